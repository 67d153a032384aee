//===- JsonFlow.cpp - branches and loops in JSON graphs -------------------===//
//
// A region has names of its own: those that its `inputs` give to what the op
// hands it, and those of its nodes.
//
//===----------------------------------------------------------------------===//
#include "compiler/capture/FlowRegion.h"
#include "compiler/import/GraphImporter.h"

using namespace mlir;
using namespace tandem;

/// The values of a list of names, read for a node; false if one is wrong.
bool GraphImporter::readAll(const JsonPlace &node, const char *list,
                            Location loc, SmallVectorImpl<Value> &values) {
  bool ok = true;
  for (const JsonPlace &name : node.list(list)) {
    Handle *value = handle(name);
    ok = ok && value;
    if (value)
      values.push_back(read(loc, value->ref));
  }
  return ok;
}

bool GraphImporter::addRegion(const JsonPlace &node, const char *field,
                              FlowRegion &region) {
  size_t before = problems.size();
  if (!node.has(field)) {
    node.wrong("expected a field '" + std::string(field) + "'");
    return false;
  }
  JsonPlace place = node.at(field);
  if (!place.isObject({"inputs", "nodes", "outputs"}))
    return false;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&region.block());
  Names outside;
  std::swap(outside, names);
  bool differentiated = std::exchange(differentiates, true);
  RegionKind kind = regionKind;
  if (kind == RegionKind::None)
    regionKind = RegionKind::Flow;
  bool ok = defineAll(place, "inputs", region.begin(builder));
  SmallVector<Value> results;
  if (ok) {
    addNodes(place);
    for (const JsonPlace &output : place.list("outputs"))
      if (Handle *value = handle(output))
        results.push_back(value->ref);
  }
  regionKind = kind;
  differentiates = differentiated;
  names = std::move(outside);
  return ok && problems.size() == before && region.end(builder, results);
}

void GraphImporter::addIf(const JsonPlace &node) {
  Location loc = nameOf(node, "if");
  SmallVector<Value> operands;
  bool ok = readAll(node, "inputs", loc, operands);
  Listener listener(*this, node);
  if (ok && operands.empty()) {
    node.wrong("expected the condition as the first of 'inputs'");
    ok = false;
  }
  if (!ok)
    return defineResults(node, {}, /*known=*/false);
  ValueRange inputs = ArrayRef(operands).drop_front();
  auto truth = RankedTensorType::get({}, builder.getI1Type());
  if (operands[0].getType() != truth) {
    std::string text;
    llvm::raw_string_ostream(text) << operands[0].getType();
    node.wrong("expected the condition to be one bool, but got '" + text + "'");
    ok = false;
  }
  FlowRegion then("the branch 'then'", loc, inputs.getTypes());
  FlowRegion otherwise("the branch 'else'", loc, inputs.getTypes());
  // Both, so that all mistakes are found.
  ok &= addRegion(node, "then", then);
  ok &= addRegion(node, "else", otherwise);
  if (!ok)
    return defineResults(node, {}, /*known=*/false);
  defineFlow(node, buildIf(builder, loc, operands[0], inputs, then, otherwise,
                           tags()));
}

void GraphImporter::addScan(const JsonPlace &node) {
  Location loc = nameOf(node, "scan");
  ScanParts parts;
  // All of them are read, so that all mistakes are said.
  bool ok = readAll(node, "carries", loc, parts.carries);
  ok &= readAll(node, "inputs", loc, parts.inputs);
  ok &= readAll(node, "constants", loc, parts.constants);
  parts.reverse = node.flag("reverse");
  Listener listener(*this, node);
  if (node.has("trips")) {
    Handle *trips = handle(node.at("trips"));
    ok = ok && trips;
    if (trips)
      parts.trips = read(loc, trips->ref);
    auto count = RankedTensorType::get({}, builder.getI64Type());
    if (trips && parts.trips.getType() != count) {
      node.at("trips").wrong("expected the trips to be one i64");
      ok = false;
    }
  }
  std::optional<int64_t> length;
  if (node.has("length"))
    length = node.at("length").integer();
  else if (!parts.inputs.empty())
    if (auto type = dyn_cast<RankedTensorType>(parts.inputs[0].getType());
        type && type.getRank() > 0)
      length = type.getDimSize(0);
  if (!node.has("length") && !length && ok)
    node.wrong("expected a field 'length', or inputs with slices");
  if (!ok || !length)
    return defineResults(node, {}, /*known=*/false);
  parts.length = *length;
  auto types = parts.argumentTypes(loc);
  if (failed(types))
    return defineResults(node, {}, /*known=*/false);
  FlowRegion body("the body of 'scan'", loc, *types);
  if (!addRegion(node, "body", body))
    return defineResults(node, {}, /*known=*/false);
  defineFlow(node, buildScan(builder, loc, parts, body, tags()));
}

void GraphImporter::addWhile(const JsonPlace &node) {
  Location loc = nameOf(node, "while");
  SmallVector<Value> carries, constants;
  bool ok = readAll(node, "carries", loc, carries);
  ok &= readAll(node, "constants", loc, constants);
  if (!ok)
    return defineResults(node, {}, /*known=*/false);
  Listener listener(*this, node);
  SmallVector<Type> types(ValueRange(carries).getTypes());
  llvm::append_range(types, ValueRange(constants).getTypes());
  FlowRegion condition("the condition of 'while'", loc, types);
  FlowRegion body("the body of 'while'", loc, types);
  ok &= addRegion(node, "condition", condition);
  ok &= addRegion(node, "body", body);
  if (!ok)
    return defineResults(node, {}, /*known=*/false);
  defineFlow(node, buildWhile(builder, loc, carries, constants, condition, body,
                              tags()));
}

void GraphImporter::defineFlow(const JsonPlace &node,
                               FailureOr<Operation *> op) {
  if (failed(op))
    return defineResults(node, {}, /*known=*/false);
  tagResults(node, *op, {});
  SmallVector<Value> results;
  for (Value result : (*op)->getResults())
    results.push_back(MakeRefOp::create(builder, (*op)->getLoc(), result));
  defineResults(node, results);
}
