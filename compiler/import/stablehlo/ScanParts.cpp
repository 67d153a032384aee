//===- ScanParts.cpp - what a scan reads and writes slice by slice --------===//
#include "compiler/import/stablehlo/ScanParts.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

/// Without casts, and without what makes negative indices count from the end:
/// the counter is not negative.
static Value bare(Value index, Value counter) {
  while (index && index != counter) {
    Operation *op = index.getDefiningOp();
    if (auto cast = dyn_cast_or_null<CastOp>(op))
      index = cast.getX();
    else if (auto select = dyn_cast_or_null<SelectOp>(op)) {
      auto test = select.getCondition().getDefiningOp<CompareOp>();
      if (!test || test.getPredicate() != ComparePredicate::lt ||
          test.getLhs() != select.getRhs())
        return index;
      auto zero = test.getRhs().getDefiningOp<ConstantOp>();
      auto elements = zero ? dyn_cast<DenseIntElementsAttr>(zero.getValue())
                           : DenseIntElementsAttr();
      if (!elements || !elements.isSplat() ||
          !elements.getSplatValue<APInt>().isZero())
        return index;
      index = select.getRhs();
    } else {
      return index;
    }
  }
  return index;
}

/// 1 if the index is the counter, -1 if it is `trips - 1 - counter`, else 0.
static int directionOf(Node &node, const ScanParts &scan, Value index) {
  index = bare(index, scan.counter);
  if (!index)
    return 0;
  if (index == scan.counter)
    return 1;
  auto sub = index.getDefiningOp<SubOp>();
  return sub && bare(sub.getRhs(), scan.counter) == scan.counter &&
                 node.integerOf(sub.getLhs()) == scan.trips - 1
             ? -1
             : 0;
}

/// The direction of a slice of one along dimension 0, of all else; 0 if it is
/// none of the innermost scan.
static int directionOf(Node &node, Sizes whole, Sizes slice,
                       ArrayRef<Value> starts) {
  if (node.scans().empty() || !node.scans().back() || whole.empty() ||
      slice.size() != whole.size() || starts.size() != whole.size())
    return 0;
  const ScanParts &scan = *node.scans().back();
  if (scan.start != 0 || whole[0] != scan.trips || slice[0] != 1 ||
      whole.drop_front() != slice.drop_front())
    return 0;
  return directionOf(node, scan, starts[0]);
}

/// True if the builder stands in the body itself.
static bool isInBody(Node &node, const ScanParts &scan) {
  return node.builder().getInsertionBlock() == &scan.body->region.front();
}

Value stablehlo::scanInputOf(Node &node, Value x, Sizes sizes,
                             ArrayRef<Value> starts) {
  int direction = directionOf(node, Node::typeOf(x).getShape(), sizes, starts);
  if (!direction)
    return {};
  ScanParts &scan = *node.scans().back();
  Region *region = &scan.body->region;
  if (!isInBody(node, scan) || x.getParentRegion() == region)
    return {};
  Value &argument = scan.inputs[{x, direction < 0 ? 1 : 0}];
  auto type = Node::typeOf(x);
  if (!argument)
    argument = scan.body->add(type.clone(type.getShape().drop_front()));
  return node.reshape(argument, sizes);
}

Operation *stablehlo::scanPosition(Node &node) {
  Block *block = node.builder().getInsertionBlock();
  return block->empty() ? nullptr : &block->back();
}

void stablehlo::noteScanOutput(Node &node, Value x, Value slice,
                               ArrayRef<Value> starts, Value whole,
                               Operation *before) {
  if (!whole || node.failed())
    return;
  int direction = directionOf(node, Node::typeOf(x).getShape(),
                              Node::typeOf(slice).getShape(), starts);
  auto argument = dyn_cast<BlockArgument>(x);
  if (!direction || !argument)
    return;
  ScanParts &scan = *node.scans().back();
  Block *block = &scan.body->region.front();
  if (!isInBody(node, scan) || argument.getOwner() != block)
    return;
  ScanParts::Output output;
  output.carry = x;
  output.whole = whole;
  output.isReverse = direction < 0;
  for (auto it = before ? std::next(before->getIterator()) : block->begin();
       it != block->end(); ++it)
    output.ops.push_back(&*it);
  output.slice =
      node.reshape(slice, Node::typeOf(slice).getShape().drop_front());
  scan.outputs.push_back(std::move(output));
}

const ScanParts::Output *ScanParts::outputOf(Value carry, Value yielded) const {
  for (const Output &output : outputs) {
    if (output.carry != carry || output.whole != yielded)
      continue;
    // Only the write uses the carry, and only the end uses what is written.
    for (Operation *user : carry.getUsers())
      if (!llvm::is_contained(output.ops, user))
        return nullptr;
    for (Operation *op : output.ops)
      for (Operation *user : op->getUsers())
        if (!llvm::is_contained(output.ops, user) &&
            !(isa<YieldOp>(user) && op == yielded.getDefiningOp()))
          return nullptr;
    return yielded.hasOneUse() ? &output : nullptr;
  }
  return nullptr;
}

void stablehlo::eraseScanOutput(const ScanParts::Output &output) {
  for (Operation *op : llvm::reverse(output.ops))
    op->erase();
}
