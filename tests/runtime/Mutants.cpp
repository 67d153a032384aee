//===- Mutants.cpp - valid manifests with hostile fields ------------------===//
//
// See Mutants.h.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/Mutants.h"
#include "runtime/artifact/ArtifactFormat.h"
#include "runtime/artifact/FormatVersion.h"
#include "tests/runtime/ListedFields.h"
#include "tests/runtime/TestModel.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

namespace tandem::test {

namespace {

using Json = Mutants::Json;
using Sizes = std::vector<int64_t>;

template <typename T>
const T &any(const std::vector<T> &of, const Decide &decide) {
  return of[decide(of.size())];
}

/// The product as 64 bits keep it.
int64_t wrapped(const Sizes &shape) {
  uint64_t product = 1;
  for (int64_t size : shape)
    product *= static_cast<uint64_t>(size);
  return static_cast<int64_t>(product);
}

/// Three times this is 2, as 64 bits keep it: a number of elements that
/// overflows may look as if it did not.
constexpr int64_t third = 0x5555555555555556;

bool overflows(const Sizes &shape) {
  int64_t product = 1;
  bool is = false;
  for (int64_t size : shape)
    is |= __builtin_mul_overflow(product, size, &product);
  return is;
}

/// One view of a tensor of this shape, which it changes to what the view gives
/// if nobody looks at overflows.
Json anyView(Sizes &shape, const Decide &decide) {
  Sizes dims, ones(shape.size(), 1), starts(shape.size(), 0), limits = shape;
  switch (decide(8)) {
  case 0:
  case 1: { // large dimensions in front
    Sizes sizes;
    if (decide(2))
      sizes = {third, 3};
    else
      for (size_t more = 1 + decide(3); more; --more)
        sizes.push_back(number(decide));
    for (size_t i = 0; i < shape.size(); ++i)
      dims.push_back(static_cast<int64_t>(sizes.size() + i));
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    shape = sizes;
    return {{"op", "broadcast"}, {"shape", shape}, {"dims", dims}};
  }
  case 2: // all in one
    shape = {wrapped(shape)};
    return {{"op", "reshape"}, {"shape", shape}};
  case 3: { // a factor goes elsewhere
    if (overflows(shape)) {
      shape.insert(shape.begin(), {int64_t(1) << 40, int64_t(1) << 40});
    } else if (shape.size() > 1) {
      size_t from = decide(shape.size()), to = decide(shape.size());
      int64_t factor = int64_t(1) << decide(33);
      if (shape[from] % factor == 0 && from != to) {
        shape[from] /= factor;
        shape[to] = wrapped({shape[to], factor});
      }
    }
    return {{"op", "reshape"}, {"shape", shape}};
  }
  case 4: // the first of each large dimension
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] > 64 || decide(4) == 0)
        shape[i] = limits[i] =
            std::min(static_cast<int64_t>(1 + decide(64)), shape[i]);
    return {{"op", "slice"},
            {"starts", starts},
            {"limits", limits},
            {"strides", ones}};
  case 5:
    for (size_t i = 0; i < shape.size(); ++i)
      dims.insert(dims.begin() +
                      static_cast<ptrdiff_t>(decide(dims.size() + 1)),
                  static_cast<int64_t>(i));
    {
      Sizes was = shape;
      for (size_t i = 0; i < dims.size(); ++i)
        shape[i] = was[static_cast<size_t>(dims[i])];
    }
    return {{"op", "permute"}, {"permutation", dims}};
  case 6: {
    Sizes strides;
    shape.assign(1 + decide(3), 0);
    for (int64_t &size : shape) {
      size = decide(3) ? static_cast<int64_t>(1 + decide(4)) : number(decide);
      strides.push_back(decide(3) ? static_cast<int64_t>(decide(4))
                                  : number(decide));
    }
    return {{"op", "as_strided"},
            {"sizes", shape},
            {"strides", strides},
            {"offset",
             decide(3) ? static_cast<int64_t>(decide(4)) : number(decide)}};
  }
  default:
    return {{"op", "detach"}};
  }
}

} // namespace

Mutants::Mutants(const std::vector<std::string> &seedTexts) {
  for (const std::string &text : seedTexts) {
    seeds.push_back(Json::parse(text));
    collect(seeds.back(), "");
    if (text.find("\"views\"") != std::string::npos)
      withViews.push_back(seeds.back());
  }
}

void Mutants::collect(const Json &json, const std::string &key) {
  auto found = std::find_if(pool.begin(), pool.end(),
                            [&](const auto &one) { return one.first == key; });
  if (found == pool.end())
    found = pool.insert(pool.end(), {key, {}});
  found->second.push_back(json);
  if (json.is_object())
    for (const auto &[name, value] : json.items())
      collect(value, name);
  else if (json.is_array())
    for (const Json &item : json)
      collect(item, key);
}

void Mutants::find(Json &json, Json *parent, const std::string &key,
                   std::vector<Place> &places) const {
  places.push_back({&json, parent, key});
  if (json.is_object())
    for (auto &[name, value] : json.items())
      find(value, &json, name, places);
  else if (json.is_array())
    for (Json &item : json)
      find(item, &json, key, places);
}

Json Mutants::pooled(const std::string &key, const Decide &decide) const {
  for (const auto &[name, values] : pool)
    if (name == key)
      return any(values, decide);
  return nullptr;
}

void Mutants::changeInteger(Json &value, const Decide &decide) const {
  auto was = static_cast<uint64_t>(value.get<int64_t>());
  switch (decide(5)) {
  case 0:
    value = static_cast<int64_t>(was + 1);
    return;
  case 1:
    value = static_cast<int64_t>(was - 1);
    return;
  case 2:
    value = static_cast<int64_t>(was * 2);
    return;
  default:
    value = number(decide);
  }
}

void Mutants::changeText(const Place &place, const Decide &decide) const {
  *place.value = decide(2) ? pooled(place.key, decide) : Json(text(decide));
}

void Mutants::changeList(const Place &place, const Decide &decide) const {
  Json &list = *place.value;
  bool isNumbers = list.empty() || list[0].is_number_integer();
  switch (decide(6)) {
  case 0: // another length
    if (isNumbers) {
      Sizes made(decide(3) ? decide(20) : 100 + decide(100), 1);
      for (int64_t &one : made)
        if (decide(3) == 0)
          one = number(decide);
      list = made;
      return;
    }
    [[fallthrough]];
  case 1:
    if (!list.empty())
      list.push_back(Json(list[decide(list.size())]));
    return;
  case 2:
    if (!list.empty())
      list.erase(decide(list.size()));
    return;
  case 3:
    if (list.size() > 1)
      std::swap(list[decide(list.size())], list[decide(list.size())]);
    return;
  case 4:
    list = Json::array();
    return;
  default:
    list = pooled(place.key, decide);
  }
}

/// Adds or removes a member.
void Mutants::changeMembers(const Place &place, const Decide &decide) const {
  Json &object = *place.value;
  if (decide(3) == 0 && !object.empty()) {
    auto it = object.begin();
    std::advance(it, static_cast<ptrdiff_t>(decide(object.size())));
    object.erase(it);
    return;
  }
  Json other = pooled(place.key, decide);
  if (decide(3) == 0 || !other.is_object() || other.empty())
    return addListed(place, decide);
  auto it = other.begin();
  std::advance(it, static_cast<ptrdiff_t>(decide(other.size())));
  object[it.key()] = it.value();
}

/// Adds a field that Manifest.def knows of the object, whether a seed has it or
/// not.
void Mutants::addListed(const Place &place, const Decide &decide) const {
  const std::vector<ListedField> &listed = listedFields(place.key);
  if (listed.empty())
    return;
  const ListedField &field = any(listed, decide);
  Json value = decide(2) ? pooled(field.key, decide) : Json();
  if (value.is_null())
    value = field.made(decide);
  (*place.value)[field.key] = value;
}

/// Gives an alias another chain, and what it is an alias for the type that the
/// chain leads to; or a rank that no tensor has.
void Mutants::changeViews(Json &manifest, const Decide &decide) const {
  std::vector<Place> places, aliases;
  find(manifest, nullptr, "", places);
  for (const Place &place : places)
    if (place.value->is_object() && place.value->contains("views"))
      aliases.push_back(place);
  if (aliases.empty())
    return;
  Place alias = any(aliases, decide);
  auto typeOf = [&](const std::string &name, bool isOutput) -> Json * {
    for (Json &value : manifest["values"])
      if (value["name"] == name && (value["role"] == "output") == isOutput)
        return &value["shape"];
    return nullptr;
  };
  Json *base = nullptr;
  if (alias.value->contains("output"))
    base = typeOf((*alias.value)["output"].get<std::string>(), true);
  else if (alias.value->contains("shape") && !alias.value->contains("name"))
    base = &(*alias.value)["shape"];
  else if (alias.value->contains("of"))
    base = typeOf((*alias.value)["of"].get<std::string>(), false);
  if (!base || !base->is_array())
    return;
  Sizes shape;
  for (const Json &size : *base)
    if (size.is_number_integer())
      shape.push_back(size.get<int64_t>());
  Json chain = Json::array();
  if (decide(4) == 0)
    shape.assign(17 + decide(120), 1);
  else
    for (size_t count = 1 + decide(5); count; --count)
      chain.push_back(anyView(shape, decide));
  (*alias.value)["views"] = chain;
  // Of an output it is the alias itself that has a type, else the slot.
  Json *owner = alias.value->contains("name") ? alias.value : alias.parent;
  if (!owner || !owner->is_object())
    return;
  if (owner->contains("shape"))
    (*owner)["shape"] = shape;
  if (owner->contains("name") && alias.key != "metadata" &&
      alias.key != "storage")
    if (Json *type =
            typeOf((*owner)["name"].get<std::string>(), alias.value == owner))
      *type = shape;
  // Programs that take a saved value say its type again.
  if (owner->contains("role") && (*owner)["role"] == "saved")
    for (Json &program : manifest["programs"])
      for (Json &slot : program["arguments"])
        if (slot["name"] == (*owner)["name"] && slot.contains("shape"))
          slot["shape"] = shape;
}

void Mutants::change(Json &manifest, const Decide &decide) const {
  std::vector<Place> places;
  find(manifest, nullptr, "", places);
  // A key first: there are many more buffers than aliases.
  const std::string &key = any(pool, decide).first;
  std::vector<Place> here;
  for (const Place &place : places)
    if (place.key == key && place.parent)
      here.push_back(place);
  if (here.empty())
    return;
  const Place &place = any(here, decide);
  Json &value = *place.value;
  if (value.is_number_integer())
    return changeInteger(value, decide);
  if (value.is_string())
    return changeText(place, decide);
  if (value.is_array())
    return changeList(place, decide);
  if (value.is_object())
    return changeMembers(place, decide);
  value = value.is_boolean() ? Json(!value.get<bool>()) : pooled(key, decide);
}

std::string Mutants::next(const Decide &decide) const {
  bool isOfViews = decide(3) == 0 && !withViews.empty();
  Json manifest = any(isOfViews ? withViews : seeds, decide);
  if (isOfViews)
    changeViews(manifest, decide);
  // Mostly one change: several rarely pass.
  size_t count = decide(3) ? 1 : 1 + decide(4);
  for (count -= isOfViews; count; --count)
    change(manifest, decide);
  return manifest.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string fileAround(const std::string &manifest, const std::string &object) {
  using namespace artifact;
  const std::pair<const char *, std::string> parts[] = {
      {"manifest", manifest},
      {"object.cpu", object},
      {"constants", std::string(128, '\0')}};
  ArtifactHeader header{};
  std::vector<SectionEntry> table;
  uint64_t end = sizeof(header) + std::size(parts) * sizeof(SectionEntry);
  for (const auto &[name, bytes] : parts) {
    SectionEntry entry{};
    std::memcpy(entry.name, name, std::strlen(name));
    entry.offset = alignSection(end);
    entry.bytes = bytes.size();
    entry.crc = checksum(bytes.data(), bytes.size());
    end = entry.offset + entry.bytes;
    table.push_back(entry);
  }
  std::memcpy(header.magic, artifactMagic, sizeof(header.magic));
  header.format = formatVersion;
  header.sectionCount = static_cast<uint32_t>(table.size());
  header.fileBytes = end;
  header.tableCrc = checksum(table.data(), table.size() * sizeof(SectionEntry));
  std::string file(end, '\0');
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + sizeof(header), table.data(),
              table.size() * sizeof(SectionEntry));
  for (size_t i = 0; i < table.size(); ++i)
    std::memcpy(file.data() + table[i].offset, parts[i].second.data(),
                parts[i].second.size());
  return file;
}

std::vector<std::string> seedManifests(const std::vector<std::string> &files) {
  std::vector<std::string> texts;
  for (const artifact::Manifest &manifest :
       {regression(), scaledRegression(), mutatingRegression(),
        offloadedRegression(), wide(16, 1)})
    texts.push_back(*toJson(manifest));
  for (const std::string &path : files) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file),
                       std::istreambuf_iterator<char>());
  }
  return texts;
}

} // namespace tandem::test
