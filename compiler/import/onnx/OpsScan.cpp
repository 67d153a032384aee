//===- OpsScan.cpp - ONNX: Scan -------------------------------------------===//
//
// A scan whose directions agree is one of the program; else it is written out.
// Axes are moved to the front and back.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/FlowBody.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

using GraphPtr = std::shared_ptr<const Graph>;

namespace {

/// One Scan over tensors without a batch.
class ScanTranslation {
public:
  ScanTranslation(Node &node, GraphPtr graph) : node(node), graph(graph) {}
  /// Reads the attributes; `rank` dimensions of the operands are a batch's.
  LogicalResult read();
  /// The last states, then the stacks.
  FailureOr<SmallVector<Value>> run(ArrayRef<Value> states,
                                    ArrayRef<Value> inputs);
  size_t numInputs = 0;

private:
  bool isBackward(ArrayRef<int64_t> directions, size_t i) {
    return i < directions.size() && directions[i] == 1;
  }
  Node &node;
  GraphPtr graph;
  SmallVector<int64_t> inputAxes, inputDirections, outputAxes, outputDirections;
};

} // namespace

LogicalResult ScanTranslation::read() {
  int64_t count = node.integer("num_scan_inputs", -1);
  if (count < 0 || count > static_cast<int64_t>(node.numOperands()))
    return node.error("expected 'num_scan_inputs' to be a number of operands");
  numInputs = static_cast<size_t>(count);
  if (node.opset() < 9) {
    inputDirections = node.integers("directions");
    return success();
  }
  inputAxes = node.integers("scan_input_axes");
  inputDirections = node.integers("scan_input_directions");
  outputAxes = node.integers("scan_output_axes");
  outputDirections = node.integers("scan_output_directions");
  return success();
}

FailureOr<SmallVector<Value>> ScanTranslation::run(ArrayRef<Value> states,
                                                   ArrayRef<Value> inputs) {
  if (graph->inputs.size() != states.size() + inputs.size() ||
      graph->outputs.size() < states.size())
    return node.error("expected a graph of " +
                      Twine(states.size() + inputs.size()) +
                      " inputs, with outputs for its states");
  // Dimension 0 of each operand is that of the scan.
  OpBuilder &b = node.builder();
  SmallVector<Value> moved;
  std::optional<int64_t> length;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto type = cast<RankedTensorType>(input.getType());
    int64_t rank = type.getRank();
    int64_t axis = i < inputAxes.size() ? inputAxes[i] : 0;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank ||
        (length && type.getDimSize(axis) != *length))
      return node.error("expected the inputs to have one length along the axes "
                        "of the scan");
    length = type.getDimSize(axis);
    SmallVector<int64_t> order = {axis};
    for (int64_t d = 0; d < rank; ++d)
      if (d != axis)
        order.push_back(d);
    moved.push_back(axis ? Value(node.wrap(input).permute(order)) : input);
  }
  if (!length)
    return node.error("expected inputs to scan");
  size_t numSlices = graph->outputs.size() - states.size();
  SmallVector<bool> backward;
  for (size_t i = 0; i < inputs.size(); ++i)
    backward.push_back(isBackward(inputDirections, i));
  for (size_t k = 0; k < numSlices; ++k)
    backward.push_back(isBackward(outputDirections, k));
  bool isUniform = llvm::all_equal(backward);

  auto body = [&](ArrayRef<Value> values) -> FailureOr<SmallVector<Value>> {
    SmallVector<Datum> data(values.begin(), values.end());
    auto made = node.inlineGraph(*graph, data);
    if (failed(made))
      return failure();
    auto list = valuesOf(node, *made);
    if (failed(list))
      return failure();
    for (auto [i, state] : llvm::enumerate(states))
      if ((*list)[i].getType() != state.getType())
        return node.unsupported("a scan whose state number " + Twine(i) +
                                " changes its type");
    return list;
  };
  SmallVector<Value> results;
  if (isUniform) {
    Body region(node);
    SmallVector<Value> arguments;
    for (Value state : states)
      arguments.push_back(region.add(state.getType()));
    for (Value input : moved) {
      auto type = cast<RankedTensorType>(input.getType());
      arguments.push_back(region.add(type.clone(type.getShape().drop_front())));
    }
    if (failed(region.record([&] { return body(arguments); })))
      return failure();
    llvm::SetVector<Value> used;
    region.collect(used);
    SmallVector<Value> constants = used.takeVector();
    region.take(constants);
    SmallVector<Type> types(region.types);
    for (Type &type : MutableArrayRef(types).drop_front(states.size())) {
      type = stackType(node, type, *length);
      if (!type)
        return failure();
    }
    bool isReverse = !backward.empty() && backward[0];
    auto op = ScanOp::create(b, node.loc(), types, b.getI64IntegerAttr(*length),
                             Value(), isReverse ? b.getUnitAttr() : UnitAttr(),
                             states, moved, constants);
    op.getBody().takeBody(region.region);
    llvm::append_range(results, op.getResults());
  } else {
    if (*length > mostWrittenOut)
      return node.unsupported("a scan of " + Twine(*length) +
                              " iterations in several directions");
    SmallVector<Value> now(states);
    std::vector<SmallVector<Value>> slices(numSlices);
    for (int64_t t = 0; t < *length; ++t) {
      SmallVector<Value> values(now);
      for (auto [i, input] : llvm::enumerate(moved))
        values.push_back(
            sliceOf(node, input, backward[i] ? *length - 1 - t : t));
      auto made = body(values);
      if (failed(made))
        return failure();
      now.assign(made->begin(), made->begin() + states.size());
      for (size_t k = 0; k < numSlices; ++k) {
        Value slice = (*made)[states.size() + k];
        slices[k].insert(backward[inputs.size() + k] ? slices[k].begin()
                                                     : slices[k].end(),
                         slice);
      }
    }
    results = now;
    for (const SmallVector<Value> &list : slices) {
      Value whole = stackOf(node, list);
      if (!whole)
        return failure();
      results.push_back(whole);
    }
  }
  // Stacks along other axes.
  for (size_t k = 0; k < numSlices; ++k) {
    Value &whole = results[states.size() + k];
    int64_t rank = cast<RankedTensorType>(whole.getType()).getRank();
    int64_t axis = k < outputAxes.size() ? outputAxes[k] : 0;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank)
      return node.error(
          "expected 'scan_output_axes' to be axes of the outputs");
    if (axis == 0)
      continue;
    SmallVector<int64_t> order;
    for (int64_t d = 1; d < rank; ++d)
      order.push_back(d);
    order.insert(order.begin() + axis, 0);
    whole = node.wrap(whole).permute(order);
  }
  return results;
}

/// Operands `from` on as tensors.
static FailureOr<SmallVector<Value>> operandsFrom(Node &node, size_t from) {
  SmallVector<Value> values;
  for (size_t i = from; i < node.numOperands(); ++i) {
    Value value = node.operand(i);
    if (!value)
      return node.has(i) ? LogicalResult(failure())
                         : node.error("operand " + Twine(i) + " is missing");
    values.push_back(value);
  }
  return values;
}

/// Version 8: each operand has a batch in front, of which each entry is
/// scanned on its own.
static LogicalResult translateBatches(Node &node, ScanTranslation &scan,
                                      ArrayRef<Value> operands,
                                      size_t numStates) {
  auto batchOf = [](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getRank() ? type.getDimSize(0) : -1;
  };
  int64_t batch = operands.empty() ? -1 : batchOf(operands[0]);
  for (Value operand : operands)
    if (batchOf(operand) != batch || batch > mostWrittenOut || batch < 1)
      return node.unsupported("operands without one batch of 1 to " +
                              Twine(mostWrittenOut));
  std::vector<SmallVector<Value>> results;
  for (int64_t i = 0; i < batch; ++i) {
    SmallVector<Value> entry;
    for (Value operand : operands)
      entry.push_back(sliceOf(node, operand, i));
    auto made = scan.run(ArrayRef(entry).take_front(numStates),
                         ArrayRef(entry).drop_front(numStates));
    if (failed(made))
      return failure();
    results.resize(made->size());
    for (auto [list, value] : llvm::zip_equal(results, *made))
      list.push_back(value);
  }
  for (auto [i, list] : llvm::enumerate(results)) {
    Value whole = stackOf(node, list);
    if (!whole)
      return failure();
    if (i < node.numResults())
      node.result(i, whole);
  }
  return success();
}

static LogicalResult translateScan(Node &node) {
  GraphPtr graph = node.graph("body");
  if (!graph)
    return node.error("expected a graph");
  ScanTranslation scan(node, graph);
  if (failed(scan.read()))
    return failure();
  bool hasBatch = node.opset() < 9;
  if (hasBatch && node.has(0))
    return node.unsupported("sequences of several lengths");
  auto operands = operandsFrom(node, hasBatch ? 1 : 0);
  if (failed(operands))
    return failure();
  if (operands->size() < scan.numInputs)
    return node.error("expected at least as many operands as inputs to scan");
  size_t numStates = operands->size() - scan.numInputs;
  if (hasBatch)
    return translateBatches(node, scan, *operands, numStates);
  auto results = scan.run(ArrayRef(*operands).take_front(numStates),
                          ArrayRef(*operands).drop_front(numStates));
  if (failed(results))
    return failure();
  for (auto [i, result] : llvm::enumerate(*results))
    if (i < node.numResults())
      node.result(i, result);
  return success();
}

void onnx::addScanOps(OpTable &table) { table.add("Scan", translateScan, 8); }
