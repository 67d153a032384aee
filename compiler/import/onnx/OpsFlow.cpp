//===- OpsFlow.cpp - ONNX: If and Loop ------------------------------------===//
//
// What is known when compiling is decided there: the branch of a known
// condition is the only one, and a short loop of which each iteration says
// whether there is another one is written out, so that shapes may change and
// sequences grow. Everything else becomes a branch or a loop of the program.
// Graphs see the names outside: what they use of them becomes an operand.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/FlowBody.h"
#include "compiler/import/onnx/Known.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

using GraphPtr = std::shared_ptr<const Graph>;

static RankedTensorType scalarOf(Type element) {
  return RankedTensorType::get({}, element);
}

/// A tensor of one element, as one of no dimensions; null, and an error was
/// given, if it has more.
static Value asScalar(Node &node, Value x, const char *what) {
  auto type = x ? cast<RankedTensorType>(x.getType()) : RankedTensorType();
  if (type && type.getNumElements() != 1) {
    (void)node.error(Twine("expected ") + what + " to be one element");
    return {};
  }
  return type ? node.wrap(x).reshape({}) : Value();
}

/// One element in the shape that the graph declares for it.
static Value asDeclared(Node &node, Value scalar, const NamedType &declared) {
  SmallVector<int64_t> shape;
  if (declared.type.hasShape)
    shape.assign(declared.type.shape.size(), 1);
  return node.wrap(scalar).reshape(shape);
}

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

static LogicalResult translateIf(Node &node) {
  GraphPtr then = node.graph("then_branch"), no = node.graph("else_branch");
  if (!then || !no)
    return node.error("expected two graphs");
  if (auto known = node.knownInts(0)) {
    if (known->size() != 1)
      return node.error("expected the condition to be one element");
    auto made = node.inlineGraph((*known)[0] ? *then : *no, {});
    if (failed(made))
      return failure();
    for (size_t i = 0; i < std::min(made->size(), node.numResults()); ++i)
      node.result(i, (*made)[i]);
    return success();
  }
  Value condition = asScalar(node, node.operand(0), "the condition");
  if (!condition)
    return failure();
  Body yes(node), otherwise(node);
  for (auto [body, graph] :
       {std::pair(&yes, then), std::pair(&otherwise, no)}) {
    auto translate = [&]() -> FailureOr<SmallVector<Value>> {
      auto made = node.inlineGraph(*graph, {});
      if (failed(made))
        return failure();
      return valuesOf(node, *made);
    };
    if (failed(body->record(translate)))
      return failure();
  }
  if (yes.types != otherwise.types)
    return node.unsupported("branches that give other types of tensors, where "
                            "data decides which is taken");
  llvm::SetVector<Value> used;
  yes.collect(used);
  otherwise.collect(used);
  SmallVector<Value> inputs = used.takeVector();
  yes.take(inputs);
  otherwise.take(inputs);
  auto op =
      IfOp::create(node.builder(), node.loc(), yes.types, condition, inputs);
  op.getThen().takeBody(yes.region);
  op.getOtherwise().takeBody(otherwise.region);
  for (size_t i = 0;
       i < std::min<size_t>(op->getNumResults(), node.numResults()); ++i)
    node.result(i, op->getResult(i));
  return success();
}

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

namespace {

/// One Loop.
class LoopTranslation {
public:
  LoopTranslation(Node &node, GraphPtr graph)
      : node(node), graph(std::move(graph)),
        numCarries(node.numOperands() > 2 ? node.numOperands() - 2 : 0) {}
  LogicalResult run();

private:
  /// Writes the iterations out; false if one does not know whether there is
  /// another.
  FailureOr<bool> writeOut(int64_t most);
  LogicalResult runScan(int64_t length, Value condition);
  LogicalResult runWhile(Value most, Value condition);
  /// The iteration: its condition (one bool), carries and slices. `condition`
  /// is null in a loop that only counts.
  FailureOr<SmallVector<Value>> iterate(Value index, Value condition,
                                        ArrayRef<Value> carries);
  LogicalResult finish(ValueRange results);

  Type index() { return node.builder().getI64Type(); }
  Type truth() { return node.builder().getI1Type(); }
  Value number(int64_t value) {
    return node.splat(scalarOf(index()), static_cast<double>(value));
  }
  Value isTrue() { return node.splat(scalarOf(truth()), 1); }

  Node &node;
  GraphPtr graph;
  size_t numCarries, numSlices = 0;
  SmallVector<Value> initial;
};

} // namespace

FailureOr<bool> LoopTranslation::writeOut(int64_t most) {
  SmallVector<Datum> carries;
  for (size_t i = 0; i < numCarries; ++i)
    carries.push_back(node.datum(2 + i));
  std::vector<SmallVector<Value>> slices(numSlices);
  Datum condition = dataOf(DenseElementsAttr::get(scalarOf(truth()), true));
  auto declared = [&](Datum datum, size_t input) {
    // A known scalar in the shape that the graph declares.
    auto data = std::make_shared<TensorData>(*datum.data);
    const ValueType &type = graph->inputs[input].type;
    data->shape.assign(type.hasShape ? type.shape.size() : 0, 1);
    return Datum(TensorPtr(data));
  };
  for (int64_t i = 0; i < most; ++i) {
    auto number = DenseElementsAttr::get(scalarOf(index()), i);
    SmallVector<Datum> inputs = {declared(dataOf(number), 0),
                                 declared(condition, 1)};
    llvm::append_range(inputs, carries);
    auto made = node.inlineGraph(*graph, inputs);
    if (failed(made))
      return failure();
    auto goesOn = node.knownInts((*made)[0]);
    if (!goesOn || goesOn->size() != 1)
      return false;
    carries.assign(made->begin() + 1, made->begin() + 1 + numCarries);
    for (size_t k = 0; k < numSlices; ++k) {
      Value slice = node.valueOf((*made)[1 + numCarries + k]);
      if (!slice)
        return failure();
      slices[k].push_back(slice);
    }
    if ((*goesOn)[0] == 0)
      break;
    if (i + 1 == mostWrittenOut && most > mostWrittenOut)
      return false;
  }
  for (size_t i = 0; i < numCarries; ++i)
    node.result(i, carries[i]);
  for (size_t k = 0; k < numSlices; ++k) {
    if (!node.wants(numCarries + k))
      continue;
    if (slices[k].empty())
      return node.unsupported("a loop without iterations that stacks tensors");
    Value whole = stackOf(node, slices[k]);
    if (!whole)
      return failure();
    node.result(numCarries + k, whole);
  }
  return true;
}

FailureOr<SmallVector<Value>>
LoopTranslation::iterate(Value index, Value condition,
                         ArrayRef<Value> carries) {
  SmallVector<Datum> inputs = {asDeclared(node, index, graph->inputs[0]),
                               asDeclared(node, condition, graph->inputs[1])};
  for (Value carry : carries)
    inputs.push_back(carry);
  auto made = node.inlineIteration(*graph, inputs, index);
  if (failed(made))
    return failure();
  auto values = valuesOf(node, *made);
  if (failed(values))
    return failure();
  (*values)[0] = asScalar(node, (*values)[0], "the condition");
  if (!(*values)[0])
    return failure();
  for (auto [i, carry] : llvm::enumerate(carries))
    if ((*values)[1 + i].getType() != carry.getType())
      return node.unsupported("a loop whose value number " + Twine(i) +
                              " changes its type, where the iterations are "
                              "not known");
  return values;
}

LogicalResult LoopTranslation::finish(ValueRange results) {
  for (auto [i, result] : llvm::enumerate(results))
    if (i < node.numResults())
      node.result(i, result);
  return success();
}

/// A loop of known length; with a condition, only its carries are asked for.
LogicalResult LoopTranslation::runScan(int64_t length, Value condition) {
  OpBuilder &b = node.builder();
  // Carried: the number of the iteration, the condition, the values.
  SmallVector<Value> carries = {number(0), condition ? condition : isTrue()};
  llvm::append_range(carries, initial);
  Body body(node);
  SmallVector<Value> arguments;
  for (Value carry : carries)
    arguments.push_back(body.add(carry.getType()));
  auto step = [&](ArrayRef<Value> values) -> FailureOr<SmallVector<Value>> {
    auto made = iterate(values[0], values[1], values.drop_front(2));
    if (failed(made))
      return failure();
    SmallVector<Value> all = {node.wrap(values[0]) + 1.0};
    llvm::append_range(all, *made);
    return all;
  };
  auto guarded = [&]() -> FailureOr<SmallVector<Value>> {
    if (!condition)
      return step(arguments);
    Body yes(node), no(node);
    SmallVector<Value> inside;
    for (Value argument : arguments) {
      inside.push_back(yes.add(argument.getType()));
      (void)no.add(argument.getType());
    }
    SmallVector<Value> same(no.region.getArguments());
    if (failed(yes.record([&] { return step(inside); })) ||
        failed(
            no.record([&]() -> FailureOr<SmallVector<Value>> { return same; })))
      return failure();
    llvm::SetVector<Value> used;
    yes.collect(used);
    yes.take(used.getArrayRef());
    no.take(used.getArrayRef());
    SmallVector<Value> operands = arguments;
    llvm::append_range(operands, used);
    auto op = IfOp::create(b, node.loc(), no.types, arguments[1], operands);
    op.getThen().takeBody(yes.region);
    op.getOtherwise().takeBody(no.region);
    return SmallVector<Value>(op.getResults());
  };
  if (failed(body.record(guarded)))
    return failure();
  llvm::SetVector<Value> used;
  body.collect(used);
  SmallVector<Value> constants = used.takeVector();
  body.take(constants);
  SmallVector<Type> types;
  for (Value carry : carries)
    types.push_back(carry.getType());
  for (Type type : ArrayRef(body.types).drop_front(carries.size())) {
    types.push_back(stackType(node, type, length));
    if (!types.back())
      return failure();
  }
  auto op =
      ScanOp::create(b, node.loc(), types, b.getI64IntegerAttr(length), Value(),
                     UnitAttr(), carries, ValueRange(), constants);
  op.getBody().takeBody(body.region);
  return finish(op.getResults().drop_front(2));
}

LogicalResult LoopTranslation::runWhile(Value most, Value condition) {
  OpBuilder &b = node.builder();
  SmallVector<Value> carries = {number(0), condition ? condition : isTrue()};
  llvm::append_range(carries, initial);
  SmallVector<Value> constants;
  if (most)
    constants.push_back(most);
  Body test(node), body(node);
  SmallVector<Value> asked, given;
  for (ArrayRef<Value> list : {ArrayRef(carries), ArrayRef(constants)})
    for (Value value : list) {
      asked.push_back(test.add(value.getType()));
      given.push_back(body.add(value.getType()));
    }
  auto goesOn = [&]() -> FailureOr<SmallVector<Value>> {
    Expr all = node.wrap(asked[1]);
    if (most)
      all = logicalAnd(all, compare(ComparePredicate::lt, node.wrap(asked[0]),
                                    node.wrap(asked.back())));
    return SmallVector<Value>{all};
  };
  auto step = [&]() -> FailureOr<SmallVector<Value>> {
    auto made =
        iterate(given[0], given[1], ArrayRef(given).slice(2, initial.size()));
    if (failed(made))
      return failure();
    SmallVector<Value> all = {node.wrap(given[0]) + 1.0};
    llvm::append_range(all, *made);
    return all;
  };
  if (failed(test.record(goesOn)) || failed(body.record(step)))
    return failure();
  llvm::SetVector<Value> used;
  body.collect(used);
  llvm::append_range(constants, used);
  body.take(used.getArrayRef());
  for (Value value : used)
    (void)test.add(value.getType());
  auto op = WhileOp::create(b, node.loc(), ValueRange(carries).getTypes(),
                            carries, constants);
  op.getCondition().takeBody(test.region);
  op.getBody().takeBody(body.region);
  return finish(op.getResults().drop_front(2));
}

LogicalResult LoopTranslation::run() {
  size_t outputs = graph->outputs.size();
  if (graph->inputs.size() != 2 + numCarries || outputs < 1 + numCarries)
    return node.error("expected a graph of " + Twine(2 + numCarries) +
                      " inputs and at least " + Twine(1 + numCarries) +
                      " outputs, but got " + Twine(graph->inputs.size()) +
                      " and " + Twine(outputs));
  numSlices = outputs - 1 - numCarries;
  std::optional<SmallVector<int64_t>> trips, begins;
  if (node.has(0))
    trips = node.knownInts(0);
  if (node.has(1))
    begins = node.knownInts(1);
  if ((trips && trips->size() != 1) || (begins && begins->size() != 1))
    return node.error("expected the trip count and the condition to be one "
                      "element each");
  bool isEndless = !node.has(0);
  std::optional<int64_t> most;
  if (trips)
    most = std::max<int64_t>((*trips)[0], 0);
  if (begins && (*begins)[0] == 0)
    most = 0;
  bool isKnownToBegin = !node.has(1) || begins;
  if (isKnownToBegin && (most || isEndless) &&
      (!most || *most <= mostWrittenOut)) {
    auto done = writeOut(most.value_or(mostWrittenOut + 1));
    if (failed(done))
      return failure();
    if (*done)
      return success();
  }
  for (size_t i = 0; i < numCarries; ++i) {
    Value value = node.operand(2 + i);
    if (!value)
      return failure();
    initial.push_back(value);
  }
  // A condition that only hands on what it is given never ends the loop.
  bool counts = graph->outputs[0].name == graph->inputs[1].name;
  for (const NodeData &inner : graph->nodes)
    counts |= inner.op == "Identity" && inner.domain.empty() &&
              inner.inputs.size() == 1 && inner.outputs.size() == 1 &&
              inner.outputs[0] == graph->outputs[0].name &&
              inner.inputs[0] == graph->inputs[1].name;
  if (most && isKnownToBegin && counts)
    return runScan(*most, {});
  if (numSlices > 0) {
    // The size of a stack follows from how often the loop runs.
    bool isKnown =
        isEndless || most || succeeded(node.needInts(0, "the trip count"));
    if (!isKnownToBegin)
      isKnown &= succeeded(node.needInts(1, "the condition"));
    if (!isKnown)
      return failure();
    return node.unsupported("a loop that stacks as many tensors as data says");
  }
  Value condition = isTrue();
  if (node.has(1))
    condition = asScalar(node, node.operand(1), "the condition");
  if (!condition)
    return failure();
  if (most)
    return runScan(*most, condition);
  Value count;
  if (!isEndless)
    count = asScalar(node, node.operand(0), "the trip count");
  if (!isEndless && !count)
    return failure();
  return runWhile(count, condition);
}

static LogicalResult translateLoop(Node &node) {
  GraphPtr graph = node.graph("body");
  if (!graph)
    return node.error("expected a graph");
  return LoopTranslation(node, graph).run();
}

void onnx::addFlowOps(OpTable &table) {
  table.add("If", translateIf);
  table.add("Loop", translateLoop);
}
