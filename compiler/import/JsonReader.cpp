//===- JsonReader.cpp - typed, complaining access to a JSON document ------===//
#include "compiler/import/JsonReader.h"
#include "ir/Nearest.h"
#include "runtime/artifact/JsonText.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cmath>

using namespace tandem;

static std::string lineAndColumn(std::string_view text, size_t byte) {
  byte = std::min(byte, text.size());
  size_t line = 1 + std::count(text.begin(), text.begin() + byte, '\n');
  size_t start = text.substr(0, byte).rfind('\n');
  size_t column = start == std::string_view::npos ? byte : byte - start - 1;
  return std::to_string(line) + ":" + std::to_string(column);
}

Result<Json> tandem::parseJson(std::string_view text) {
  Json json;
  auto problem = artifact::parseJsonText(text, json);
  if (!problem)
    return json;
  // Bytes count from 1; what is wrong with the whole stands at its begin.
  return Status::failed(
      lineAndColumn(text, std::max<size_t>(problem->byte, 1)) +
      (problem->byte ? ": not JSON: " : ": ") + problem->what);
}

void JsonPlace::wrong(const std::string &message) const {
  problems.push_back(
      artifact::printable((pointer.empty() ? "/" : pointer) + ": " + message));
}

bool JsonPlace::isObject(const std::vector<std::string_view> &known) const {
  if (!json.is_object()) {
    wrong(std::string("expected an object, but got ") + json.type_name());
    return false;
  }
  for (auto &[key, value] : json.items())
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      llvm::SmallVector<llvm::StringRef> names(known.begin(), known.end());
      std::string nearest = didYouMean(key, names);
      at(key).wrong("unknown field '" + key + "'" +
                    (nearest.empty()
                         ? "; known are '" + llvm::join(names, "', '") + "'"
                         : nearest));
    }
  return true;
}

/// A key as part of a JSON pointer (RFC 6901).
static std::string escaped(const std::string &key) {
  std::string out;
  for (char c : key)
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

JsonPlace JsonPlace::at(const std::string &key) const {
  return {json.at(key), pointer + "/" + escaped(key), problems};
}

std::string JsonPlace::text(const char *key) const {
  if (!has(key)) {
    wrong(std::string("expected a field '") + key + "'");
    return "";
  }
  JsonPlace place = at(key);
  if (!place.json.is_string() || place.json.get<std::string>().empty()) {
    place.wrong(std::string("expected a string that is not empty, but got ") +
                place.json.dump());
    return "";
  }
  return place.json.get<std::string>();
}

std::vector<JsonPlace> JsonPlace::list(const char *key) const {
  std::vector<JsonPlace> places;
  if (!has(key))
    return places;
  JsonPlace place = at(key);
  if (!place.json.is_array()) {
    place.wrong(std::string("expected a list, but got ") +
                place.json.type_name());
    return places;
  }
  for (size_t i = 0; i < place.json.size(); ++i)
    places.emplace_back(place.json[i], place.pointer + "/" + std::to_string(i),
                        problems);
  return places;
}

bool JsonPlace::flag(const char *key) const {
  if (!has(key))
    return false;
  JsonPlace place = at(key);
  if (!place.json.is_boolean()) {
    place.wrong("expected true or false, but got " + place.json.dump());
    return false;
  }
  return place.json.get<bool>();
}

std::vector<int64_t> JsonPlace::shape(const char *key) const {
  std::vector<int64_t> sizes;
  if (!has(key)) {
    wrong(std::string("expected a field '") + key + "'");
    return sizes;
  }
  for (const JsonPlace &size : list(key)) {
    if (size.json.is_number_integer() && size.json.get<int64_t>() >= 0)
      sizes.push_back(size.json.get<int64_t>());
    else
      size.wrong("expected a size of at least 0, but got " + size.json.dump());
  }
  return sizes;
}

std::optional<double> JsonPlace::number(const char *key) const {
  if (!has(key)) {
    wrong(std::string("expected a field '") + key + "'");
    return std::nullopt;
  }
  JsonPlace place = at(key);
  if (!place.json.is_number()) {
    place.wrong("expected a number, but got " + place.json.dump());
    return std::nullopt;
  }
  return place.json.get<double>();
}

std::optional<int64_t> JsonPlace::integer() const {
  if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t(INT64_MAX)) {
    wrong("expected an integer of 64 bits, but got " + json.dump());
    return std::nullopt;
  }
  if (json.is_number_integer())
    return json.get<int64_t>();
  double number = json.is_number() ? json.get<double>() : 0.5;
  if (number != std::trunc(number) || std::abs(number) >= 0x1p63) {
    wrong("expected an integer, but got " + json.dump());
    return std::nullopt;
  }
  return static_cast<int64_t>(number);
}
