//===- FieldReader.h - structs of a manifest from their JSON --------------===//
//
// Reads any struct of Manifest.def: every field's presence and type is checked,
// unknown fields are refused with the nearest known name, and all problems are
// added with their places. What an older format lacks is the member's initial
// value. Internal to runtime/artifact and its tests.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_FIELDREADER_H
#define TANDEM_RUNTIME_ARTIFACT_FIELDREADER_H

#include "runtime/artifact/ManifestFields.h"
#include "runtime/artifact/ManifestPath.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

namespace tandem::artifact {

class FieldReader {
public:
  using Json = nlohmann::json;
  using Path = ManifestPath;

  FieldReader(int64_t format, ManifestProblems &problems)
      : format(format), problems(problems) {}

  /// The members of one JSON object, and those that somebody named.
  struct Members {
    const Json *object;
    std::vector<std::string_view> known = {};

    bool isKnown(std::string_view key) const;
    const Json *find(std::string_view key) const;
  };

  /// Reads an object that stands in the field `list`; `known` are members that
  /// were read before.
  template <HasFields T>
  bool read(const Json &json, const Path &at, std::string_view list, T &out,
            std::vector<std::string_view> known = {}) {
    if (!json.is_object())
      return wrong(at, "an object", json);
    Members members{&json, std::move(known)};
    if (readFields(members, at, list, out))
      refuseOthers(members, at);
    return true;
  }

  bool read(const Json &json, const Path &at, std::string_view,
            std::string &out);
  bool read(const Json &json, const Path &at, std::string_view, bool &out);
  bool read(const Json &json, const Path &at, std::string_view, int64_t &out);
  bool read(const Json &json, const Path &at, std::string_view, double &out);

  template <typename E>
  requires std::is_enum_v<E>
  bool read(const Json &json, const Path &at, std::string_view, E &out) {
    int value = readName(
        json, at, Enumeration<E>::noun,
        [](int value) { return spelling(static_cast<E>(value)); },
        static_cast<int>(Enumeration<E>::last));
    if (value >= 0)
      out = static_cast<E>(value);
    return value >= 0;
  }

  template <typename T>
  bool read(const Json &json, const Path &at, std::string_view list,
            std::optional<T> &out) {
    return read(json, at, list, out.emplace());
  }

  template <typename T>
  bool read(const Json &json, const Path &at, std::string_view list,
            std::vector<T> &out) {
    if (!json.is_array())
      return wrong(at, "a list", json);
    size_t index = 0;
    for (const Json &item : json)
      read(item, Path(at, index++), list, out.emplace_back());
    completed(out, list);
    return true;
  }

private:
  bool wrong(const Path &at, const char *expected, const Json &json);
  /// Returns the value of an enumeration by its name, or -1.
  int readName(const Json &json, const Path &at, std::string_view noun,
               std::string_view (*spell)(int value), int last);
  /// Returns the member to read, or null; adds what is wrong with that.
  const Json *take(Members &members, const Path &at, std::string_view key,
                   Presence presence, int since, bool &isRight);
  void refuseOthers(const Members &members, const Path &at);

  /// Returns false where it cannot be told which fields belong to the object.
  template <HasFields T>
  bool readFields(Members &members, const Path &at, std::string_view list,
                  T &out) {
    bool isLost = false, depends = false;
    Fields<T>::visit([&]<typename F>(const F &field) {
      using Member = typename F::Member;
      Member &value = out.*field.member;
      if constexpr (!F::isFlat) {
        depends |= field.where != nullptr;
        if (field.where && (isLost || !field.where->holds(out, list)))
          return;
        bool isRight = true;
        if (const Json *json = take(members, at, F::row.key, F::row.presence,
                                    F::row.since, isRight))
          isRight = read(*json, Path(at, F::row.key), F::row.key, value);
        isLost |= std::is_enum_v<Member> && !isRight;
      } else if constexpr (HasFields<Member>) {
        readFields(members, at, list, value);
      } else {
        if (hasAny<typename Member::value_type>(members))
          readFields(members, at, list, value.emplace());
      }
    });
    completed(out, at, list);
    return !isLost || !depends;
  }

  /// Whether the object has a field of `T` that nobody has read.
  template <HasFields T> bool hasAny(const Members &members) {
    bool has = false;
    Fields<T>::visit([&]<typename F>(const F &) {
      has |= !members.isKnown(F::row.key) && members.find(F::row.key);
    });
    return has;
  }

  // What a struct needs beyond its fields.
  template <typename T> void completed(T &, const Path &, std::string_view) {}
  template <typename T> void completed(std::vector<T> &, std::string_view) {}

  void completed(Alias &alias, const Path &at, std::string_view);
  /// Those of the manifest itself: a stage's list of inputs has other types.
  void completed(std::vector<Value> &values, std::string_view list);
  /// An argument has the type of its value; a name without one is left for
  /// `validate` to report.
  void completed(Slot &slot, const Path &, std::string_view list);

  int64_t format;
  ManifestProblems &problems;
  std::unordered_map<std::string_view, const Value *> valueByName;
};

} // namespace tandem::artifact

#endif
