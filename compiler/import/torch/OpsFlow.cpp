//===- OpsFlow.cpp - higher-order operators: graphs in nodes --------------===//
//
// What they are given has no names: arguments are known by their order.
//
//===----------------------------------------------------------------------===//
#include "compiler/capture/FlowRegion.h"
#include "compiler/import/torch/GraphTranslator.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using Form = Argument::Form;

/// All tensors among the arguments from `first` on, in their order.
static SmallVector<Value> tensorsFrom(Node &node, size_t first) {
  SmallVector<Value> list;
  const auto &inputs = node.data().inputs;
  for (size_t i = first; i < inputs.size(); ++i) {
    Form form = inputs[i].argument.form;
    if (form == Form::Tensor || form == Form::Tensors)
      llvm::append_range(list, node.refsOf(inputs[i].argument));
  }
  return list;
}

static const Argument *at(Node &node, size_t i, Form form) {
  const auto &inputs = node.data().inputs;
  if (i < inputs.size() && inputs[i].argument.form == form)
    return &inputs[i].argument;
  (void)node.error("expected argument " + Twine(i) + " of another kind");
  return nullptr;
}

static LogicalResult giveRefs(Node &node, ArrayRef<Value> refs) {
  for (auto [i, ref] : llvm::enumerate(refs))
    if (failed(node.view(i, ref)))
      return failure();
  return success();
}

/// The graph stands where the node does, in another mode.
static LogicalResult wrapped(Node &node, size_t graphAt,
                             GraphTranslator::Mode mode) {
  const Argument *graph = at(node, graphAt, Form::Graph);
  if (!graph || node.failed())
    return failure();
  GraphTranslator &translator = node.translator();
  auto outside = std::exchange(translator.mode, mode);
  auto made = node.inlined(*graph->graph, tensorsFrom(node, graphAt + 1));
  translator.mode = outside;
  return mlir::failed(made) ? failure() : giveRefs(node, *made);
}

static LogicalResult gradEnabled(Node &node) {
  const Argument *enabled = at(node, 0, Form::Bool);
  if (!enabled)
    return failure();
  GraphTranslator::Mode mode = node.translator().mode;
  mode.differentiates = enabled->numbers[0].integer != 0;
  return wrapped(node, 1, mode);
}

/// wrap_with_autocast(device, dtype, enabled, cache, graph, tensors...)
static LogicalResult autocast(Node &node) {
  size_t i = 0;
  const auto &inputs = node.data().inputs;
  while (i < inputs.size() && inputs[i].argument.form != Form::Graph)
    ++i;
  GraphTranslator::Mode mode = node.translator().mode;
  mode.isAutocast = inputs.size() > 2 &&
                    inputs[2].argument.form == Form::Bool &&
                    inputs[2].argument.numbers[0].integer != 0;
  return wrapped(node, i, mode);
}

//===----------------------------------------------------------------------===//
// Branches and loops
//===----------------------------------------------------------------------===//

static SmallVector<Value> read(Node &node, ArrayRef<Value> refs) {
  SmallVector<Value> values;
  for (Value ref : refs)
    values.push_back(
        ref ? Value(ReadOp::create(node.builder(), node.loc(), ref)) : Value());
  return values;
}

/// Records a graph into a region whose arguments are its inputs.
static bool record(Node &node, FlowRegion &region, const Graph &graph) {
  OpBuilder &builder = node.builder();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&region.block());
  SmallVector<Value> refs = region.begin(builder);
  auto made = node.inlined(graph, refs);
  return succeeded(made) && region.end(builder, *made);
}

static LogicalResult giveFlow(Node &node, FailureOr<Operation *> op) {
  if (mlir::failed(op))
    return failure();
  for (auto [i, value] : llvm::enumerate((*op)->getResults()))
    if (failed(node.result(i, value)))
      return failure();
  return success();
}

static LogicalResult branch(Node &node) {
  const Argument *predicate = at(node, 0, Form::Tensor);
  const Argument *then = at(node, 1, Form::Graph);
  const Argument *otherwise = at(node, 2, Form::Graph);
  if (!predicate || !then || !otherwise)
    return node.failed() ? failure()
                         : node.unsupported("a condition that is no tensor");
  SmallVector<Value> condition = read(node, node.refsOf(*predicate));
  SmallVector<Value> inputs = read(node, tensorsFrom(node, 3));
  if (node.failed() || condition.size() != 1)
    return failure();
  Expr flag = node.reshape(node.wrap(condition[0]), {});
  TypeRange types = ValueRange(inputs).getTypes();
  FlowRegion yes("the branch that is taken", node.loc(), types);
  FlowRegion no("the other branch", node.loc(), types);
  if (!record(node, yes, *then->graph) || !record(node, no, *otherwise->graph))
    return failure();
  return giveFlow(
      node, buildIf(node.builder(), node.loc(), flag, inputs, yes, no, {}));
}

static LogicalResult whileLoop(Node &node) {
  const Argument *condition = at(node, 0, Form::Graph);
  const Argument *body = at(node, 1, Form::Graph);
  const auto &inputs = node.data().inputs;
  if (!condition || !body || inputs.size() < 3)
    return failure();
  SmallVector<Value> carries = read(node, node.refsOf(inputs[2].argument));
  SmallVector<Value> constants = read(node, tensorsFrom(node, 3));
  if (node.failed())
    return failure();
  SmallVector<Value> all(carries);
  llvm::append_range(all, constants);
  TypeRange types = ValueRange(all).getTypes();
  FlowRegion test("the condition", node.loc(), types);
  FlowRegion loop("the body", node.loc(), types);
  if (!record(node, test, *condition->graph) ||
      !record(node, loop, *body->graph))
    return failure();
  return giveFlow(node, buildWhile(node.builder(), node.loc(), carries,
                                   constants, test, loop, {}));
}

/// scan(combine, init, xs, more): slices along dimension 0.
static LogicalResult scan(Node &node) {
  const Argument *body = at(node, 0, Form::Graph);
  const auto &inputs = node.data().inputs;
  if (!body || inputs.size() < 3)
    return failure();
  ScanParts parts;
  parts.carries = read(node, node.refsOf(inputs[1].argument));
  parts.inputs = read(node, node.refsOf(inputs[2].argument));
  parts.constants = read(node, tensorsFrom(node, 3));
  if (node.failed())
    return failure();
  if (parts.inputs.empty())
    return node.unsupported("a scan over nothing");
  auto first = cast<RankedTensorType>(parts.inputs[0].getType());
  parts.length = first.getRank() ? first.getDimSize(0) : 0;
  auto types = parts.argumentTypes(node.loc());
  if (mlir::failed(types))
    return failure();
  FlowRegion region("the body", node.loc(), *types);
  if (!record(node, region, *body->graph))
    return failure();
  return giveFlow(node,
                  buildScan(node.builder(), node.loc(), parts, region, {}));
}

void torch::addFlowOps(OpTable &table) {
  table.add("higher_order.wrap_with_set_grad_enabled", gradEnabled);
  table.add("higher_order.wrap_with_autocast", autocast);
  table.add("higher_order.cond", branch);
  table.add("higher_order.while_loop", whileLoop);
  table.add("higher_order.scan", scan);
}
