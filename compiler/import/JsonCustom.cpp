//===- JsonCustom.cpp - custom_vjp in JSON graphs -------------------------===//
#include "compiler/capture/CustomRegions.h"
#include "compiler/import/GraphImporter.h"

using namespace mlir;
using namespace tandem;

/// Names the refs by the strings of a list of the same length.
bool GraphImporter::defineAll(const JsonPlace &parent, const char *list,
                              ValueRange refs) {
  std::vector<JsonPlace> places = parent.list(list);
  if (places.size() != refs.size()) {
    parent.wrong("expected " + std::to_string(refs.size()) + " names in '" +
                 list + "', but got " + std::to_string(places.size()));
    return false;
  }
  for (auto [place, ref] : llvm::zip_equal(places, refs)) {
    if (!place.json.is_string()) {
      place.wrong("expected a name, but got " + place.json.dump());
      return false;
    }
    define(place, place.json.get<std::string>(), ref);
  }
  return true;
}

bool GraphImporter::addForward(const JsonPlace &place, CustomRegions &regions) {
  size_t before = problems.size();
  if (!place.isObject({"inputs", "refs", "nodes", "outputs", "saved"}))
    return false;
  Block &block = regions.forwardBlock();
  builder.setInsertionPointToEnd(&block);
  SmallVector<Value> values;
  regions.beginForward(builder, values);
  if (!defineAll(place, "inputs", values) ||
      !defineAll(place, "refs", regions.refsOf(block)))
    return false;
  addNodes(place);
  SmallVector<Value> results, saved;
  for (const JsonPlace &output : place.list("outputs"))
    if (Handle *value = handle(output))
      results.push_back(value->ref);
  SmallVector<int64_t> unchecked;
  for (const JsonPlace &entry : place.list("saved")) {
    bool isObject = entry.json.is_object();
    if (isObject && (!entry.isObject({"value", "unchecked"}) ||
                     entry.text("value").empty()))
      continue;
    if (isObject && entry.flag("unchecked"))
      unchecked.push_back(static_cast<int64_t>(saved.size()));
    if (Handle *value = handle(isObject ? entry.at("value") : entry))
      saved.push_back(ReadOp::create(builder, location(place), value->ref));
  }
  return problems.size() == before &&
         regions.endForward(builder, results, saved, unchecked);
}

bool GraphImporter::addBackward(const JsonPlace &place,
                                CustomRegions &regions) {
  size_t before = problems.size();
  if (!place.isObject({"saved", "cotangents", "refs", "nodes", "gradients"}))
    return false;
  Block &block = regions.backwardBlock();
  builder.setInsertionPointToEnd(&block);
  SmallVector<Value> saved, cotangents;
  regions.beginBackward(builder, saved, cotangents);
  if (!defineAll(place, "saved", saved) ||
      !defineAll(place, "cotangents", cotangents) ||
      !defineAll(place, "refs", regions.refsOf(block)))
    return false;
  addNodes(place);
  SmallVector<Value> gradients;
  for (const JsonPlace &entry : place.list("gradients")) {
    Handle *value = entry.json.is_null() ? nullptr : handle(entry);
    gradients.push_back(value ? value->ref : Value());
  }
  return problems.size() == before && regions.endBackward(builder, gradients);
}

void GraphImporter::addCustomVjp(const JsonPlace &node) {
  if (regionKind == RegionKind::Custom)
    return node.wrong("expected a custom_vjp not to stand inside of another");
  std::string name = node.has("name") ? node.text("name") : "custom_vjp";
  Location loc = nameOf(node, name);
  bool ok = node.has("forward") && node.has("backward");
  if (!ok)
    node.wrong("expected fields 'forward' and 'backward'");
  SmallVector<Value> inputs, refs;
  for (const JsonPlace &input : node.list("inputs")) {
    Handle *value = handle(input);
    ok = ok && value;
    if (value)
      inputs.push_back(read(loc, value->ref));
  }
  for (const JsonPlace &ref : node.list("refs")) {
    Handle *value = handle(ref);
    ok = ok && value;
    if (value)
      refs.push_back(value->ref);
  }
  if (!ok)
    return defineResults(node, {}, /*known=*/false);

  Listener listener(*this, node);
  CustomRegions regions(name, loc, inputs, refs);
  {
    // The regions have names, a grad mode, types and a place of their own.
    OpBuilder::InsertionGuard guard(builder);
    Names outside;
    std::swap(outside, names);
    bool differentiated = std::exchange(differentiates, true);
    Type cast = std::exchange(autocast, Type());
    RegionKind kind = std::exchange(regionKind, RegionKind::Custom);
    ok = addForward(node.at("forward"), regions);
    names.clear();
    ok = ok && addBackward(node.at("backward"), regions);
    regionKind = kind;
    differentiates = differentiated;
    autocast = cast;
    names = std::move(outside);
  }
  if (!ok)
    return defineResults(node, {}, /*known=*/false);
  auto op = regions.build(builder, node.flag("undefined_cotangents"),
                          node.flag("first_order"), tags());
  if (failed(op))
    return defineResults(node, {}, /*known=*/false);
  tagResults(node, *op, {});
  SmallVector<Value> results;
  for (Value result : (*op)->getResults())
    results.push_back(MakeRefOp::create(builder, loc, result));
  defineResults(node, results);
}
