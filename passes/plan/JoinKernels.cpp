//===- JoinKernels.cpp - small updates become one kernel ------------------===//
//
// A step ends with an update of every parameter. On a GPU the launches of small
// ones take longer than they run: they become the parts of one kernel, each
// with a loop nest and blocks of its own. `parts` on the kernel says how many
// results each part has, in order.
//
//===----------------------------------------------------------------------===//
#include "passes/Target.h"
#include "passes/plan/FormKernels.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tandem;

/// Elements of results above which a launch costs little beside its run.
static constexpr int64_t kLargest = 1 << 20;
/// Pointers of a kernel: 4 KiB of parameters.
static constexpr size_t kMostBuffers = 480;

/// True if the value, and free views of it, are used by the terminator alone.
static bool isOnlyReturned(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (auto view = dyn_cast<ViewOpInterface>(user))
      return view.isFree() && isOnlyReturned(user->getResult(0));
    return user->hasTrait<OpTrait::IsTerminator>();
  });
}

static bool canJoin(KernelOp kernel) {
  if (kernel.getChoicesAttr() || kernel.getBody().front().empty())
    return false;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (!isa<PointwiseOpInterface, ViewOpInterface, ConstantOp, IotaOp>(op))
      return false;
  int64_t elements = 0;
  for (Value result : kernel.getResults()) {
    if (!isOnlyReturned(result))
      return false;
    elements += cast<RankedTensorType>(result.getType()).getNumElements();
  }
  return elements <= kLargest;
}

/// Moves the free views of returned values to the end.
static void sinkViews(Value value, Operation *terminator) {
  for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
    if (user != terminator) {
      user->moveBefore(terminator);
      sinkViews(user->getResult(0), terminator);
    }
}

static void join(ArrayRef<KernelOp> kernels, Operation *terminator) {
  OpBuilder b(terminator);
  SmallVector<Value> inputs;
  SmallVector<Type> types;
  SmallVector<Location> locations;
  SmallVector<int64_t> parts;
  llvm::MapVector<Value, unsigned> numbers;
  for (KernelOp kernel : kernels) {
    for (Value input : kernel.getInputs())
      if (numbers.try_emplace(input, inputs.size()).second)
        inputs.push_back(input);
    llvm::append_range(types, kernel->getResultTypes());
    locations.push_back(kernel.getLoc());
    parts.push_back(kernel->getNumResults());
  }
  KernelOp first = kernels.front();
  std::string name = (first.getName() + "_x" + Twine(kernels.size())).str();
  auto joined = KernelOp::create(
      b, FusedLoc::get(b.getContext(), locations), types, inputs,
      b.getStringAttr(name), /*buffers=*/ArrayAttr(),
      b.getI64IntegerAttr(first.getStream()), first.getNeedsAttr(),
      /*choices=*/ArrayAttr());
  joined->setAttr(kPartsAttr, b.getDenseI64ArrayAttr(parts));
  Block *body = b.createBlock(&joined.getBody());
  for (Value input : inputs)
    body->addArgument(input.getType(), input.getLoc());
  SmallVector<Value> yielded;
  unsigned next = 0;
  for (KernelOp kernel : kernels) {
    Block &old = kernel.getBody().front();
    IRMapping mapping;
    for (auto [argument, input] :
         llvm::zip_equal(old.getArguments(), kernel.getInputs()))
      mapping.map(argument, body->getArgument(numbers.lookup(input)));
    for (Operation &op : old.without_terminator())
      b.clone(op, mapping);
    for (Value value : old.getTerminator()->getOperands())
      yielded.push_back(mapping.lookup(value));
    for (Value result : kernel.getResults()) {
      sinkViews(result, terminator);
      result.replaceAllUsesWith(joined.getResult(next++));
    }
  }
  YieldOp::create(b, joined.getLoc(), yielded);
  for (KernelOp kernel : kernels)
    kernel.erase();
  // What several parts compute from the same numbers is computed once.
  IRRewriter rewriter(b.getContext());
  DominanceInfo dominance(joined);
  eliminateCommonSubExpressions(rewriter, dominance, joined);
}

void tandem::joinKernels(func::FuncOp func) {
  if (!isForCuda(func))
    return;
  Operation *terminator = func.getBody().front().getTerminator();
  // By what decides whether and where they run.
  llvm::MapVector<std::pair<Attribute, int64_t>, SmallVector<KernelOp>> groups;
  for (auto kernel : func.getOps<KernelOp>())
    if (canJoin(kernel))
      groups[{kernel.getNeedsAttr(), kernel.getStream()}].push_back(kernel);
  for (auto &[condition, kernels] : groups) {
    ArrayRef<KernelOp> rest = kernels;
    while (rest.size() > 1) {
      size_t taken = 0, buffers = 0;
      for (; taken < rest.size(); ++taken) {
        KernelOp kernel = rest[taken];
        buffers += kernel->getNumOperands() + kernel->getNumResults();
        if (buffers > kMostBuffers)
          break;
      }
      if (taken > 1)
        join(rest.take_front(taken), terminator);
      rest = rest.drop_front(std::max<size_t>(taken, 1));
    }
  }
}
