//===- ManifestForm.cpp - what each field of a manifest may say -----------===//
//
// The first part of `validate`: the column `check` of Manifest.def, for every
// field of every object, and types that no tensor has. Rules that compute with
// fields come afterwards, so that products of sizes and strides fit 64 bits and
// a shape fits a Layout; lists have lengths of which rules can look at pairs,
// and texts show as what they are.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestFields.h"
#include "runtime/artifact/ManifestPath.h"
#include "runtime/artifact/ManifestRules.h"
#include "runtime/artifact/Text.h"

#include <algorithm>
#include <cmath>

namespace tandem::artifact {

namespace {

bool isSymbol(const std::string &name) {
  auto ok = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), ok);
}

/// A SHA-256 as it is written.
bool isDigest(std::string_view text) {
  return text.size() == 64 &&
         text.find_first_not_of("0123456789abcdef") == text.npos;
}

template <typename T> constexpr bool isList = false;
template <typename T> constexpr bool isList<std::vector<T>> = true;
template <typename T> constexpr bool isMaybe = false;
template <typename T> constexpr bool isMaybe<std::optional<T>> = true;

class Form {
public:
  explicit Form(ManifestProblems &problems) : problems(problems) {}

  using Path = ManifestPath;

  template <HasFields T>
  void fields(const Path &at, std::string_view list, const T &object) {
    // What views make of a type is found where they are applied.
    if constexpr (requires { object.dtype, object.shape; } &&
                  !std::is_same_v<T, View>)
      type(at, object.dtype, object.shape);
    if constexpr (std::is_same_v<T, Alias>)
      if (object.of.empty() == object.output.empty())
        problems.add(at.text(), "expected one of the fields 'of' and 'output'");
    Fields<T>::visit([&]<typename F>(const F &field) {
      using Member = typename F::Member;
      const Member &value = object.*field.member;
      if constexpr (!F::isFlat) {
        if (field.isThere(object, list))
          check<F>(Path(at, F::row.key), value);
      } else if constexpr (HasFields<Member>) {
        fields(at, list, value);
      } else if (value) {
        fields(at, list, *value);
      }
    });
  }

private:
  /// Checks a value of the field `F`.
  template <typename F, typename T> void check(const Path &at, const T &value) {
    static constexpr Check row = F::row.check;
    if constexpr (HasFields<T>) {
      fields(at, F::row.key, value);
    } else if constexpr (isMaybe<T>) {
      if (value)
        check<F>(at, *value);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      if constexpr (row.low > INT64_MIN || row.high < INT64_MAX)
        number(at, row, value);
    } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
      numbers(at, row, value);
    } else if constexpr (std::is_same_v<T, double>) {
      if (!std::isfinite(value))
        problems.add(at.text(), "expected a finite number");
    } else if constexpr (std::is_same_v<T, std::string>) {
      text(at, row.text, value);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      texts(at, row, value);
    } else if constexpr (std::is_same_v<T, Condition>) {
      condition(at, row, value);
    } else if constexpr (isList<T>) {
      static_assert(HasFields<typename T::value_type>);
      if (isShort(at, row, value.size()))
        for (size_t i = 0; i < value.size(); ++i)
          fields(Path(at, i), F::row.key, value[i]);
    } else {
      static_assert(std::is_enum_v<T> || std::is_same_v<T, bool>);
    }
  }

  void type(const Path &at, DType dtype, const std::vector<int64_t> &shape) {
    if (!tensorBytes(dtype, shape))
      problems.add(Path(at, std::string_view("shape")).text(),
                   "no tensor has the type " + typeText(dtype, shape));
  }

  bool isShort(const Path &at, const Check &row, size_t count) {
    if (count <= row.most)
      return true;
    problems.add(at.text(), "expected at most " + std::to_string(row.most) +
                                " items but got " + std::to_string(count));
    return false;
  }

  void number(const Path &at, const Check &row, int64_t value) {
    if (value >= row.low && value <= row.high && value % row.multipleOf == 0)
      return;
    std::string multiple =
        row.multipleOf > 1
            ? " in multiples of " + std::to_string(row.multipleOf)
            : "";
    problems.add(at.text(), "expected " + std::to_string(row.low) + " to " +
                                std::to_string(row.high) + multiple +
                                " but got " + std::to_string(value));
  }

  void numbers(const Path &at, const Check &row,
               const std::vector<int64_t> &values) {
    if (isShort(at, row, values.size()))
      for (size_t i = 0; i < values.size(); ++i)
        number(Path(at, i), row, values[i]);
  }

  void text(const Path &at, Check::Text kind, const std::string &text) {
    switch (kind) {
    case Check::Text::Any:
      if (hasControls(text))
        problems.add(at.text(), "expected a text without control characters");
      break;
    case Check::Text::Name:
      if (text.empty() || hasControls(text))
        problems.add(at.text(),
                     "expected a printable name but got '" + text + "'");
      break;
    case Check::Text::Symbol:
      if (!isSymbol(text))
        problems.add(at.text(), "expected a symbol name");
      break;
    case Check::Text::Digest:
      if (!text.empty() && !isDigest(text))
        problems.add(at.text(), "expected 64 hexadecimal digits");
      break;
    }
  }

  void texts(const Path &at, const Check &row,
             const std::vector<std::string> &texts) {
    if (isShort(at, row, texts.size()))
      for (size_t i = 0; i < texts.size(); ++i)
        text(Path(at, i), row.text, texts[i]);
  }

  /// Rules look at each name of each group: all count.
  void condition(const Path &at, const Check &row, const Condition &groups) {
    size_t count = groups.size();
    for (const std::vector<std::string> &group : groups)
      count += group.size();
    if (isShort(at, row, count))
      for (size_t i = 0; i < groups.size(); ++i)
        texts(Path(at, i), row, groups[i]);
  }

  ManifestProblems &problems;
};

} // namespace

std::string typeText(DType dtype, const std::vector<int64_t> &shape) {
  return std::string(spelling(dtype)) + " " + toText(shape);
}

void checkForm(const Manifest &manifest, ManifestProblems &problems) {
  Form(problems).fields(ManifestPath(), "", manifest);
}

} // namespace tandem::artifact
