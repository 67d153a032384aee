//===- manifest-page.cpp - prints docs/manifest.md ------------------------===//
//
// tandem-manifest-page: the fields of Manifest.def as a page, the manifest
// itself first.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/FormatVersion.h"
#include "runtime/artifact/ManifestFields.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

using namespace tandem::artifact;

namespace {

std::string lower(std::string_view text) {
  std::string made(text);
  for (char &c : made)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return made;
}

template <typename T> struct ItemOf { using Type = void; };
template <typename T> struct ItemOf<std::vector<T>> { using Type = T; };
template <typename T> struct ItemOf<std::optional<T>> { using Type = T; };

template <typename T> std::string typeText(bool isPlural = false) {
  std::string s = isPlural ? "s" : "";
  if constexpr (HasFields<T>) {
    return "[" + std::string(Fields<T>::name) + "](#" + lower(Fields<T>::name) +
           ")";
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(Enumeration<T>::noun);
  } else if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return "integer" + s;
  } else if constexpr (std::is_same_v<T, double>) {
    return "number" + s;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "text" + s;
  } else if constexpr (std::is_same_v<T,
                                      std::vector<typename ItemOf<T>::Type>>) {
    return "list" + s + " of " + typeText<typename ItemOf<T>::Type>(true);
  } else {
    return typeText<typename ItemOf<T>::Type>(isPlural);
  }
}

std::string numberText(int64_t value) {
  for (int power = 20; power < 63; ++power) {
    if (value == int64_t(1) << power)
      return "2^" + std::to_string(power);
    if (value == (int64_t(1) << power) - 1)
      return "2^" + std::to_string(power) + " - 1";
  }
  return std::to_string(value);
}

std::string checkText(const Check &check) {
  std::string text;
  if (check.low != INT64_MIN)
    text = numberText(check.low) + " to " + numberText(check.high);
  if (check.multipleOf > 1)
    text += ", multiples of " + std::to_string(check.multipleOf);
  if (check.most != Check::maxItems)
    text = "at most " + std::to_string(check.most);
  switch (check.text) {
  case Check::Text::Any:
    break;
  case Check::Text::Name:
    return "not empty";
  case Check::Text::Symbol:
    return "a symbol";
  case Check::Text::Digest:
    return "64 hexadecimal digits";
  }
  return text;
}

/// When a field is there; of a struct with kinds, found by trying them all.
template <typename T, typename M, typename Row>
std::string whereText(const Field<T, M, Row> &f) {
  if (!f.where)
    return "";
  if (!f.where->text.empty())
    return std::string(f.where->text);
  std::string text;
  Fields<T>::visit([&]<typename F>(const F &field) {
    using Member = typename F::Member;
    if constexpr (std::is_enum_v<Member>)
      if (!field.where)
        forEachName<Member>([&](Member value, std::string_view name) {
          T object;
          object.*field.member = value;
          if (f.where->holds(object, ""))
            text += (text.empty() ? "" : " or ") + std::string("`") +
                    std::string(name) + "`";
        });
  });
  return text;
}

/// Only the first enumeration of a struct tells its kinds apart.
template <typename T> void addRows(std::string &page) {
  Fields<T>::visit([&]<typename F>(const F &field) {
    using Member = typename F::Member;
    if constexpr (F::isFlat) {
      constexpr bool isOptional = !HasFields<Member>;
      using Struct =
          std::conditional_t<isOptional, typename ItemOf<Member>::Type, Member>;
      page += "| | the fields of " + typeText<Struct>() + " | " +
              (isOptional ? "no" : "yes") + " | | | " +
              std::string(field.meaning) + " |\n";
    } else {
      constexpr FieldRow row = F::row;
      std::string where = whereText(field);
      std::string needed = row.presence == Presence::required ? "yes" : "no";
      page += "| `" + std::string(row.key) + "` | " + typeText<Member>() +
              " | " + needed + (where.empty() ? "" : ": " + where) + " | " +
              std::to_string(row.since) + " | " + checkText(row.check) + " | " +
              std::string(row.meaning) + " |\n";
    }
  });
}

template <typename T> std::string section() {
  std::string page = "\n## " + std::string(Fields<T>::name) + "\n\n" +
                     std::string(Fields<T>::meaning) + "\n\n" +
                     "| field | type | required | since | range | meaning |\n"
                     "|---|---|---|---|---|---|\n";
  addRows<T>(page);
  return page;
}

template <typename E> void printNames() {
  std::string row = "| " + std::string(Enumeration<E>::noun) + " | ";
  const char *separator = "";
  forEachName<E>([&](E, std::string_view name) {
    row += separator + std::string("`") + std::string(name) + "`";
    separator = ", ";
  });
  std::printf("%s |\n", row.c_str());
}

} // namespace

int main() {
  std::vector<std::string> sections;
#define MANIFEST_HAS(name) 1
#define STRUCT(Struct, meaning) sections.push_back(section<Struct>());
#define FIELD(...)
#define FLAT(...)
#include "runtime/artifact/Manifest.def"
  std::printf(
      "# The manifest, field by field\n\n"
      "<!-- Written by tandem-manifest-page from "
      "runtime/artifact/Manifest.def. -->\n\n"
      "Format %lld; this runtime reads %lld to %lld "
      "([versions](rationale/versions.md)). The manifest is one JSON object; "
      "[ARCHITECTURE](ARCHITECTURE.md) section 3 has an example, and how its "
      "parts work together. An optional field is left out where it is empty, "
      "zero or false. A field of a format after that of the file is refused, "
      "and so is one that is unknown. The range of a list is that of its "
      "items; no list has more than %zu items, and no text has control "
      "characters. Ranges that depend on other fields are not shown.\n",
      static_cast<long long>(formatVersion),
      static_cast<long long>(oldestFormat),
      static_cast<long long>(formatVersion), Check::maxItems);
  std::reverse(sections.begin(), sections.end());
  for (const std::string &section : sections)
    std::fputs(section.c_str(), stdout);
  std::printf("\n## Names\n\n| what | is one of |\n|---|---|\n");
  printNames<Role>();
  printNames<DType>();
  printNames<Rows>();
  printNames<Init::Kind>();
  printNames<View::Op>();
  printNames<Buffer::Place>();
  return 0;
}
