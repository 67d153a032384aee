//===- ManifestWriter.cpp - the JSON text of a manifest -------------------===//
//
// Writes the fields of Manifest.def in their order, on one line.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/FormatVersion.h"
#include "runtime/artifact/ManifestFields.h"

#include <nlohmann/json.hpp>

namespace tandem::artifact {

using Json = nlohmann::ordered_json;

namespace {

// What every field does is compiled once.
[[gnu::noinline]] void put(Json &json, std::string_view key, Json value) {
  json[std::string(key)] = std::move(value);
}

template <HasFields T>
void addFields(Json &json, const T &object, std::string_view list);

template <typename T> Json jsonOf(const T &value, std::string_view list) {
  if constexpr (HasFields<T>) {
    Json json = Json::object();
    addFields(json, value, list);
    return json;
  } else if constexpr (std::is_enum_v<T>) {
    return spelling(value);
  } else {
    return value;
  }
}

template <typename T>
Json jsonOf(const std::optional<T> &value, std::string_view list) {
  return jsonOf(*value, list);
}

template <typename T>
Json jsonOf(const std::vector<T> &items, std::string_view list) {
  Json json = Json::array();
  for (const T &item : items)
    json.push_back(jsonOf(item, list));
  return json;
}

template <HasFields T>
void addFields(Json &json, const T &object, std::string_view list) {
  static const T initial{};
  Fields<T>::visit([&]<typename F>(const F &field) {
    using Member = typename F::Member;
    const Member &value = object.*field.member;
    if constexpr (!F::isFlat) {
      if (!field.isThere(object, list) ||
          (F::row.presence == Presence::optional &&
           value == initial.*field.member))
        return;
      put(json, F::row.key, jsonOf(value, F::row.key));
    } else if constexpr (HasFields<Member>) {
      addFields(json, value, list);
    } else if (value) {
      addFields(json, *value, list);
    }
  });
}

} // namespace

Result<std::string> toJson(const Manifest &manifest) {
  Json json = {{"format", formatVersion}};
  addFields(json, manifest, "");
  try {
    return json.dump() + "\n";
  } catch (const Json::exception &) {
    return Status::failed("manifest: expected names in UTF-8");
  }
}

} // namespace tandem::artifact
