//===- ListedFields.cpp - mutants that come from Manifest.def -------------===//
//
// Values for every field by its type (ListedFields.h), and the mutants that
// must be refused at their place (Mutants.h).
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/ListedFields.h"
#include "runtime/artifact/ManifestFields.h"
#include "runtime/artifact/ManifestPath.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace tandem::test {

using namespace artifact;

namespace {

using Json = Mutants::Json;

constexpr int64_t numbers[] = {-1,
                               0,
                               1,
                               2,
                               3,
                               8,
                               15,
                               16,
                               17,
                               63,
                               64,
                               123,
                               int64_t(1) << 16,
                               0x7fffffff,
                               int64_t(1) << 31,
                               int64_t(1) << 32,
                               int64_t(1) << 40,
                               int64_t(1) << 46,
                               int64_t(1) << 48,
                               (int64_t(1) << 48) + 64,
                               int64_t(1) << 60,
                               int64_t(1) << 61,
                               int64_t(1) << 62,
                               INT64_MAX - 63,
                               INT64_MAX,
                               INT64_MIN,
                               INT64_MIN + 1};

constexpr const char *texts[] = {
    "",           "x",        "y", "w",    "loss",        "pred",
    "\n\x1b[31m", "../evil",  "r", "base", "update of x", "cotangent of loss",
    "\xc3\xa4",   "grad of w"};

template <typename T> struct ItemOf { using Type = T; };
template <typename T> struct ItemOf<std::vector<T>> {
  using Type = typename ItemOf<T>::Type;
};
template <typename T> struct ItemOf<std::optional<T>> {
  using Type = typename ItemOf<T>::Type;
};
template <typename T> constexpr bool isVector = false;
template <typename T> constexpr bool isVector<std::vector<T>> = true;

template <typename T> Json made(const Decide &decide) {
  if constexpr (isVector<T>) {
    Json list = Json::array();
    for (size_t count = decide(4); count; --count)
      list.push_back(made<typename T::value_type>(decide));
    return list;
  } else if constexpr (HasFields<T>) {
    Json object = Json::object();
    Fields<T>::visit([&]<typename F>(const F &) {
      using Member = typename F::Member;
      if constexpr (!F::isFlat)
        if (F::row.presence == Presence::required || decide(4) == 0)
          object[std::string(F::row.key)] = made<Member>(decide);
    });
    return object;
  } else if constexpr (std::is_enum_v<T>) {
    std::vector<std::string_view> names;
    forEachName<T>([&](T, std::string_view name) { names.push_back(name); });
    return names[decide(names.size())];
  } else if constexpr (std::is_same_v<T, bool>) {
    return decide(4) != 0;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return number(decide);
  } else if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(number(decide));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return text(decide);
  } else {
    return made<typename T::value_type>(decide);
  }
}

using Listed = std::map<std::string, std::vector<ListedField>>;

/// Adds the fields of `T` to those that stand under `under`, and what it holds.
template <typename T> void list(const std::string &under, Listed &all) {
  std::vector<ListedField> &own = all[under]; // a map moves none of them
  Fields<T>::visit([&]<typename F>(const F &) {
    using Item = typename ItemOf<typename F::Member>::Type;
    if constexpr (F::isFlat) {
      list<Item>(under, all);
    } else {
      std::string key(F::row.key);
      own.push_back({key, made<typename F::Member>});
      if constexpr (HasFields<Item>)
        if (!all.count(key))
          list<Item>(key, all);
    }
  });
}

/// Walks over a manifest and its JSON at once.
class Walk {
public:
  Walk(const Manifest &manifest,
       const std::function<void(const FieldMutant &)> &fn)
      : whole(Json::parse(*toJson(manifest))), fn(fn) {}

  std::set<std::string> seen;

  template <typename T>
  void value(const FieldRow &row, const ManifestPath &at, const T &value) {
    if constexpr (isVector<T>) {
      for (size_t i = 0; i < value.size(); ++i)
        this->value(row, ManifestPath(at, i), value[i]);
    } else if constexpr (HasFields<T>) {
      fields(at, row.key, value);
    }
  }
  template <typename T>
  void value(const FieldRow &row, const ManifestPath &at,
             const std::optional<T> &value) {
    if (value)
      this->value(row, at, *value);
  }

  template <typename T>
  void fields(const ManifestPath &at, std::string_view list, const T &object) {
    Fields<T>::visit([&]<typename F>(const F &field) {
      using Member = typename F::Member;
      const Member &value = object.*field.member;
      if constexpr (!F::isFlat) {
        ManifestPath here(at, F::row.key);
        if (!whole.contains(Json::json_pointer(here.text())))
          return;
        std::string name =
            std::string(Fields<T>::name) + "/" + std::string(F::row.key);
        if (seen.insert(name).second && fn)
          mutate<Member>(F::row, at.text(), here.text());
        this->value(F::row, here, value);
      } else if constexpr (HasFields<Member>) {
        fields(at, list, value);
      } else if (value) {
        fields(at, list, *value);
      }
    });
  }

private:
  void give(const std::string &at, const Json &value,
            const std::string &message) {
    Json changed = whole;
    changed[Json::json_pointer(at)] = value;
    fn({changed.dump(), message});
  }

  template <typename M>
  void mutate(const FieldRow &row, const std::string &around,
              const std::string &at) {
    Json now = whole[Json::json_pointer(at)];
    give(at, now.is_structured() ? Json(7) : Json::object(),
         at + ": expected ");
    rename(row, around, at);
    std::string first = at;
    while (now.is_array() && !now.empty()) {
      now = Json(now[0]);
      first += "/0";
    }
    using Item = typename ItemOf<M>::Type;
    if constexpr (std::is_same_v<Item, int64_t>) {
      if (now.is_number() && row.check.low > INT64_MIN)
        give(first, row.check.low - 1, first + ": expected ");
      if (now.is_number() && row.check.high < INT64_MAX)
        give(first, row.check.high + 1, first + ": expected ");
    } else if constexpr (std::is_enum_v<Item>) {
      give(first, "nobody", first + ": unknown ");
    } else if constexpr (std::is_same_v<Item, std::string>) {
      if (now.is_string())
        give(first, "a\nb", first + ": expected ");
    }
  }

  void rename(const FieldRow &row, const std::string &around,
              const std::string &at) {
    Json changed = whole;
    Json &object =
        around.empty() ? changed : changed[Json::json_pointer(around)];
    std::string key(row.key), other = key + "_";
    object[other] = object[key];
    object.erase(key);
    std::string place = around.empty() ? "manifest" : around;
    bool isNeeded = row.presence == Presence::required;
    fn({changed.dump(),
        isNeeded ? place + ": expected the field '" + key + "' but got none"
                 : at + "_: unknown field (did you mean '" + key + "'?)"});
  }

  Json whole;
  const std::function<void(const FieldMutant &)> &fn;
};

} // namespace

int64_t number(const Decide &decide) {
  return numbers[decide(std::size(numbers))];
}

std::string text(const Decide &decide) {
  return texts[decide(std::size(texts))];
}

const std::vector<ListedField> &listedFields(const std::string &key) {
  static const Listed all = [] {
    Listed made;
    list<Manifest>("", made);
    return made;
  }();
  static const std::vector<ListedField> none;
  auto found = all.find(key);
  return found == all.end() ? none : found->second;
}

void forEachFieldMutant(const Manifest &manifest,
                        const std::function<void(const FieldMutant &)> &fn) {
  Walk(manifest, fn).fields(ManifestPath(), "", manifest);
}

std::vector<std::string> fieldsOf(const Manifest &manifest) {
  std::function<void(const FieldMutant &)> none;
  Walk walk(manifest, none);
  walk.fields(ManifestPath(), "", manifest);
  return {walk.seen.begin(), walk.seen.end()};
}

std::vector<std::string> allFields() {
  std::set<std::string> all;
  auto add = [&]<typename T>(const T *) {
    Fields<T>::visit([&]<typename F>(const F &) {
      if constexpr (!F::isFlat)
        all.insert(std::string(Fields<T>::name) + "/" +
                   std::string(F::row.key));
    });
  };
#define MANIFEST_HAS(name) 1
#define STRUCT(Struct, meaning) add(static_cast<const Struct *>(nullptr));
#define FIELD(...)
#define FLAT(...)
#include "runtime/artifact/Manifest.def"
  return {all.begin(), all.end()};
}

} // namespace tandem::test
