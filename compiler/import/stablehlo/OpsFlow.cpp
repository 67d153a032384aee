//===- OpsFlow.cpp - StableHLO: branches and loops ------------------------===//
//
// A `while` that counts from one known number to another, as scans and
// fori_loops of JAX do, is a `scan`, which can be differentiated; a short one
// is written out. Others are loops without a gradient.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/stablehlo/FlowBody.h"
#include "compiler/import/stablehlo/ScanParts.h"
#include "ir/Ops.h"

#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

using Branch = llvm::function_ref<FlowBody::Values()>;

/// `tandem.if` of two branches, which may use what is around them.
static FlowBody::Values branches(Node &node, Value condition, Branch then,
                                 Branch otherwise) {
  FlowBody first(node), second(node);
  if (failed(first.record(then)) || failed(second.record(otherwise)))
    return failure();
  if (first.types != second.types)
    return node.error("expected branches of the same types");
  llvm::SetVector<Value> used;
  first.collect(used);
  second.collect(used);
  SmallVector<Value> inputs = used.takeVector();
  first.take(inputs);
  second.take(inputs);
  auto op =
      IfOp::create(node.builder(), node.loc(), first.types, condition, inputs);
  op.getThen().takeBody(first.region);
  op.getOtherwise().takeBody(second.region);
  return SmallVector<Value>(op.getResults());
}

static LogicalResult give(Node &node, FlowBody::Values made) {
  if (failed(made))
    return failure();
  if (made->size() != node.numResults())
    return node.error("expected " + Twine(node.numResults()) +
                      " values of each branch, but got " + Twine(made->size()));
  for (auto [i, value] : llvm::enumerate(*made))
    node.result(i, value);
  return success();
}

static LogicalResult translateIf(Node &node) {
  if (failed(node.expect(1, node.numResults(), 2)))
    return failure();
  if (node.rank(0) != 0 || !node.element(0).isInteger(1))
    return node.error("expected one i1 as the condition");
  MutableArrayRef<Region> regions = node.source()->getRegions();
  return give(node, branches(
                        node, node.operand(0),
                        [&] { return node.inlineRegion(regions[0], {}); },
                        [&] { return node.inlineRegion(regions[1], {}); }));
}

/// An index outside of the branches takes the last one.
static LogicalResult translateCase(Node &node) {
  size_t count = node.source()->getNumRegions();
  if (count == 0 || failed(node.expect(1, node.numResults(), count)))
    return node.error("expected at least one branch");
  if (node.rank(0) != 0 || !node.element(0).isInteger(32))
    return node.error("expected one i32 as the index");
  MutableArrayRef<Region> regions = node.source()->getRegions();
  if (auto known = node.integerOf(node.operand(0))) {
    bool isBranch = *known >= 0 && *known < static_cast<int64_t>(count);
    return give(node,
                node.inlineRegion(regions[isBranch ? *known : count - 1], {}));
  }
  if (count > 100)
    return node.unsupported("more than 100 branches");
  std::function<FlowBody::Values(size_t)> from =
      [&](size_t i) -> FlowBody::Values {
    auto here = [&] { return node.inlineRegion(regions[i], {}); };
    if (i + 1 == count)
      return here();
    Value number = node.full(node.type(0), static_cast<double>(i));
    Value isHere = node.compare("eq", node.operand(0), number);
    if (!isHere)
      return failure();
    return branches(node, isHere, here, [&] { return from(i + 1); });
  };
  return give(node, from(0));
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {

/// One `while`.
class Loop {
public:
  explicit Loop(Node &node)
      : node(node), condition(node.source()->getRegion(0)),
        body(node.source()->getRegion(1)) {}
  LogicalResult run();

private:
  /// Finds the counter and how often the body runs; false if there is none.
  bool findTrips();
  LogicalResult writeOut();
  LogicalResult scan();
  LogicalResult loop();

  Node &node;
  Region &condition, &body;
  int64_t counter = -1; ///< the number of a carry
  int64_t start = 0, trips = 0;
};

} // namespace

/// So many iterations at most are written out.
static constexpr int64_t mostWrittenOut = 8;

static std::string wordOf(Operation *op, StringRef name) {
  Attribute found = op->getDiscardableAttr(name);
  if (auto properties =
          dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
      !found && properties)
    found = properties.get(name);
  auto word = dyn_cast_or_null<StringAttr>(found);
  return word ? word.getValue().str() : "";
}

/// The one integer that a constant of the source is.
static std::optional<int64_t> integerOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getName().getStringRef() != "stablehlo.constant")
    return std::nullopt;
  Attribute found = op->getDiscardableAttr("value");
  if (auto properties =
          dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
      !found && properties)
    found = properties.get("value");
  auto elements = dyn_cast_or_null<DenseIntElementsAttr>(found);
  if (!elements || elements.getNumElements() != 1)
    return std::nullopt;
  APInt number = elements.getSplatValue<APInt>();
  return number.getBitWidth() > 1 && number.isSignedIntN(64)
             ? std::optional(number.getSExtValue())
             : std::nullopt;
}

/// The number of the block argument of `region` that a value is; -1 if none.
static int64_t argumentOf(Value value, Region &region) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner() == &region.front()
             ? static_cast<int64_t>(argument.getArgNumber())
             : -1;
}

bool Loop::findTrips() {
  if (!condition.hasOneBlock() || !body.hasOneBlock())
    return false;
  // counter < limit
  Operation *end = condition.front().getTerminator();
  if (end->getNumOperands() != 1)
    return false;
  Operation *test = end->getOperand(0).getDefiningOp();
  if (!test || test->getName().getStringRef() != "stablehlo.compare" ||
      test->getNumOperands() != 2 || test->getParentRegion() != &condition ||
      wordOf(test, "comparison_direction") != "LT")
    return false;
  counter = argumentOf(test->getOperand(0), condition);
  std::optional<int64_t> limit = integerOf(test->getOperand(1));
  if (counter < 0)
    return false;
  Operation *next = body.front().getTerminator();
  auto number = static_cast<unsigned>(counter);
  if (next->getNumOperands() != node.size())
    return false;
  // The limit may be carried along as it is.
  if (!limit) {
    int64_t carry = argumentOf(test->getOperand(1), condition);
    if (carry < 0 || argumentOf(next->getOperand(carry), body) != carry)
      return false;
    limit = node.integerOf(node.operand(carry));
  }
  std::optional<int64_t> from = node.integerOf(node.operand(counter));
  if (!limit || !from)
    return false;
  // counter + 1
  Operation *step = next->getOperand(number).getDefiningOp();
  if (!step || step->getName().getStringRef() != "stablehlo.add" ||
      step->getNumOperands() != 2 || step->getParentRegion() != &body)
    return false;
  for (int i : {0, 1})
    if (argumentOf(step->getOperand(i), body) == counter &&
        integerOf(step->getOperand(1 - i)) == 1) {
      start = *from;
      int64_t count = 0;
      if (llvm::SubOverflow(*limit, start, count))
        return false;
      trips = std::max<int64_t>(count, 0);
      return true;
    }
  return false;
}

LogicalResult Loop::run() {
  for (Region *region : {&condition, &body})
    if (!region->hasOneBlock() ||
        region->front().getNumArguments() != node.size())
      return node.error("expected regions of one block with an argument for "
                        "each operand");
  if (!findTrips())
    return loop();
  return trips <= mostWrittenOut ? writeOut() : scan();
}

LogicalResult Loop::writeOut() {
  SmallVector<Value> carries(node.all());
  for (int64_t i = 0; i < trips; ++i) {
    // The counter is known.
    carries[counter] =
        node.full(node.type(counter), static_cast<double>(start + i));
    auto made = node.inlineRegion(body, carries);
    if (failed(made))
      return failure();
    carries = *made;
  }
  carries[counter] =
      node.full(node.type(counter), static_cast<double>(start + trips));
  for (auto [i, carry] : llvm::enumerate(carries))
    node.result(i, carry);
  return success();
}

/// Carries that the body gives back as they came are constants of the scan.
/// What it reads slice by slice is an input, and what it writes slice by slice
/// a stack (ScanParts.h).
LogicalResult Loop::scan() {
  Operation *end = body.front().getTerminator();
  SmallVector<bool> isFixed;
  for (unsigned i = 0; i < node.size(); ++i)
    isFixed.push_back(end->getNumOperands() == node.size() &&
                      argumentOf(end->getOperand(i), body) ==
                          static_cast<int64_t>(i));
  FlowBody region(node);
  SmallVector<Value> arguments, carries;
  for (auto [i, operand] : llvm::enumerate(node.all())) {
    if (isFixed[i]) {
      arguments.push_back(operand);
      continue;
    }
    arguments.push_back(region.add(operand.getType()));
    carries.push_back(operand);
  }
  ScanParts parts{&region, arguments[counter], start, trips, {}, {}};
  SmallVector<Value> made;
  auto record = [&]() -> FlowBody::Values {
    node.scans().push_back(&parts);
    auto all = node.inlineRegion(body, arguments);
    node.scans().pop_back();
    if (failed(all))
      return failure();
    for (auto [i, value] : llvm::enumerate(*all))
      if (!isFixed[i])
        made.push_back(value);
    return made;
  };
  if (failed(region.record(record)))
    return failure();
  if (TypeRange(region.types) != ValueRange(carries).getTypes())
    return node.error("expected a body that gives values of the same types");

  // Carries of which slices are written become stacks, behind the others.
  Block &block = region.region.front();
  SmallVector<const ScanParts::Output *> outputs(carries.size());
  SmallVector<Value> yielded, slices, kept;
  SmallVector<Type> types;
  BitVector isDropped(block.getNumArguments());
  for (size_t i = 0; i < carries.size(); ++i) {
    outputs[i] = parts.outputOf(block.getArgument(i), made[i]);
    if (outputs[i]) {
      isDropped.set(i);
      slices.push_back(outputs[i]->slice);
      continue;
    }
    yielded.push_back(made[i]);
    kept.push_back(carries[i]);
    types.push_back(carries[i].getType());
  }
  llvm::append_range(yielded, slices);
  for (Value slice : slices) {
    auto type = Node::typeOf(slice);
    List shape = {trips};
    llvm::append_range(shape, type.getShape());
    types.push_back(type.clone(shape));
  }
  block.getTerminator()->setOperands(yielded);
  for (const ScanParts::Output *output : outputs)
    if (output)
      eraseScanOutput(*output);
  block.eraseArguments(isDropped);

  llvm::SetVector<Value> used;
  region.collect(used);
  SmallVector<Value> constants = used.takeVector(), inputs;
  region.take(constants);
  for (auto &[key, argument] : parts.inputs)
    inputs.push_back(key.second ? node.make("reverse", key.first,
                                            {node.attr("dims", Sizes{0})})
                                : key.first);
  if (node.failed())
    return failure();
  auto op = ScanOp::create(node.builder(), node.loc(), types,
                           node.builder().getI64IntegerAttr(trips), Value(),
                           UnitAttr(), kept, inputs, constants);
  op.getBody().takeBody(region.region);
  size_t carry = 0, stack = kept.size(), moving = 0;
  for (size_t i = 0; i < node.size(); ++i) {
    if (isFixed[i]) {
      node.result(i, node.operand(i));
      continue;
    }
    const ScanParts::Output *output = outputs[moving++];
    Value result = op.getResults()[output ? stack++ : carry++];
    if (output && output->isReverse)
      result = node.make("reverse", result, {node.attr("dims", Sizes{0})});
    node.result(i, result);
  }
  return success();
}

LogicalResult Loop::loop() {
  FlowBody test(node), next(node);
  SmallVector<Value> first, second;
  for (Value operand : node.all()) {
    first.push_back(test.add(operand.getType()));
    second.push_back(next.add(operand.getType()));
  }
  if (failed(
          test.record([&] { return node.inlineRegion(condition, first); })) ||
      failed(next.record([&] { return node.inlineRegion(body, second); })))
    return failure();
  OpBuilder &b = node.builder();
  if (test.types.size() != 1 ||
      test.types[0] != RankedTensorType::get({}, b.getI1Type()))
    return node.error("expected a condition of one i1");
  if (TypeRange(next.types) != ValueRange(node.all()).getTypes())
    return node.error("expected a body that gives values of the same types");
  llvm::SetVector<Value> used;
  test.collect(used);
  next.collect(used);
  SmallVector<Value> constants = used.takeVector();
  test.take(constants);
  next.take(constants);
  auto op = WhileOp::create(b, node.loc(), next.types, node.all(), constants);
  op.getCondition().takeBody(test.region);
  op.getBody().takeBody(next.region);
  for (auto [i, value] : llvm::enumerate(op.getResults()))
    node.result(i, value);
  return success();
}

static LogicalResult translateWhile(Node &node) {
  if (failed(node.expect(node.size(), node.size(), 2)))
    return failure();
  return Loop(node).run();
}

void stablehlo::addFlowOps(OpTable &table) {
  table.add("if", translateIf);
  table.add("case", translateCase);
  table.add("while", translateWhile);
}
