//===- FieldReader.cpp - what is no template of the reader ----------------===//
//
// See FieldReader.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/FieldReader.h"
#include "runtime/artifact/NearestName.h"

#include <algorithm>

namespace tandem::artifact {

bool FieldReader::Members::isKnown(std::string_view key) const {
  return std::find(known.begin(), known.end(), key) != known.end();
}

const FieldReader::Json *
FieldReader::Members::find(std::string_view key) const {
  auto found = object->find(std::string(key));
  return found == object->end() ? nullptr : &*found;
}

bool FieldReader::wrong(const Path &at, const char *expected,
                        const Json &json) {
  problems.add(at.text(), std::string("expected ") + expected + " but got " +
                              json.type_name());
  return false;
}

bool FieldReader::read(const Json &json, const Path &at, std::string_view,
                       std::string &out) {
  if (!json.is_string())
    return wrong(at, "a string", json);
  out = json.get<std::string>();
  return true;
}

bool FieldReader::read(const Json &json, const Path &at, std::string_view,
                       bool &out) {
  if (!json.is_boolean())
    return wrong(at, "true or false", json);
  out = json.get<bool>();
  return true;
}

bool FieldReader::read(const Json &json, const Path &at, std::string_view,
                       int64_t &out) {
  if (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX) {
    problems.add(at.text(), "expected a 64-bit integer but got " + json.dump());
    return false;
  }
  if (!json.is_number_integer())
    return wrong(at, "an integer", json);
  out = json.get<int64_t>();
  return true;
}

bool FieldReader::read(const Json &json, const Path &at, std::string_view,
                       double &out) {
  if (!json.is_number())
    return wrong(at, "a number", json);
  out = json.get<double>();
  return true;
}

int FieldReader::readName(const Json &json, const Path &at,
                          std::string_view noun,
                          std::string_view (*spell)(int value), int last) {
  std::string text;
  if (!read(json, at, "", text))
    return -1;
  std::vector<std::string_view> names;
  for (int value = 0; value <= last; ++value) {
    std::string_view name = spell(value);
    if (name.empty())
      continue;
    if (name == text)
      return value;
    names.push_back(name);
  }
  problems.add(at.text(), "unknown " + std::string(noun) + " '" + text + "'" +
                              didYouMean(text, names));
  return -1;
}

const FieldReader::Json *FieldReader::take(Members &members, const Path &at,
                                           std::string_view key,
                                           Presence presence, int since,
                                           bool &isRight) {
  members.known.push_back(key);
  const Json *json = members.find(key);
  if (json && since > format) {
    problems.add(Path(at, key).text(),
                 "a field since format " + std::to_string(since) +
                     ", but this has format " + std::to_string(format));
    isRight = false;
    return nullptr;
  }
  if (json || presence != Presence::required || since > format)
    return json;
  problems.add(at.text(),
               "expected the field '" + std::string(key) + "' but got none");
  isRight = false;
  return nullptr;
}

void FieldReader::refuseOthers(const Members &members, const Path &at) {
  for (const auto &[key, value] : members.object->items())
    if (!members.isKnown(key))
      problems.add(Path(at, std::string_view(key)).text(),
                   "unknown field" + didYouMean(key, members.known));
}

void FieldReader::completed(Alias &alias, const Path &at, std::string_view) {
  if (alias.of.empty() == alias.output.empty())
    problems.add(at.text(), "expected one of the fields 'of' and 'output'");
}

void FieldReader::completed(std::vector<Value> &values, std::string_view list) {
  if (list != "values")
    return;
  for (const Value &value : values)
    if (value.role != Role::Output)
      valueByName.emplace(value.name, &value);
}

void FieldReader::completed(Slot &slot, const Path &, std::string_view list) {
  if (fields::typed->holds(slot, list))
    return;
  auto found = valueByName.find(slot.name);
  if (found != valueByName.end()) {
    slot.dtype = found->second->dtype;
    slot.shape = found->second->shape;
  }
}

} // namespace tandem::artifact
