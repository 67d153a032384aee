//===- JoinPointwise.cpp - small updates become one kernel ----------------===//
//
// A step ends with an update of every parameter. On a GPU the launches of small
// ones take longer than they run: they become the parts of one kernel, each
// with a loop nest and blocks of its own. `parts` on the kernel says how many
// results each part has, in order. An update of a vector may begin with the sum
// of the parts of its gradient, whose columns are the vector's elements.
//
// Who joins waits for the others, and so does all that it reads. A group ends
// where the program would need more memory for that.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/HostCopies.h"
#include "passes/plan/LoopNest.h"
#include "passes/plan/PlanMemory.h"
#include "passes/plan/Storage.h"
#include "passes/target/Target.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/MapVector.h"

namespace tandem {
#define GEN_PASS_DEF_JOINPOINTWISE
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// Elements, of results or of what is summed, above which a launch costs little
/// beside its run.
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

/// True of a kernel with reductions if blocks of threads have columns of it, as
/// those of parts do, and what it sums is small.
static bool hasSmallColumns(KernelOp kernel) {
  std::optional<LoopNest> nest = findLoopNest(kernel);
  return nest && !nest->reductions.empty() &&
         llvm::is_contained(nest->reduced, true) && !nest->reduced.back() &&
         nest->keptSize() * nest->reducedSize() <= kLargest;
}

static bool canJoin(KernelOp kernel) {
  if (kernel.getChoicesAttr() || kernel.getBody().front().empty())
    return false;
  bool reduces = false;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (!isa<PointwiseOpInterface, ViewOpInterface, ConstantOp, IotaOp,
             ReductionOpInterface>(op))
      return false;
    reduces |= isa<ReductionOpInterface>(op);
  }
  int64_t elements = 0;
  for (Value result : kernel.getResults()) {
    if (!isOnlyReturned(result))
      return false;
    elements += cast<RankedTensorType>(result.getType()).getNumElements();
  }
  return elements <= kLargest && (!reduces || hasSmallColumns(kernel));
}

/// Moves the free views of returned values to the end.
static void sinkViews(Value value, Operation *terminator) {
  for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
    if (user != terminator) {
      user->moveBefore(terminator);
      sinkViews(user->getResult(0), terminator);
    }
}

/// Makes one kernel, in front of `before`.
static void join(ArrayRef<KernelOp> kernels, Operation *before,
                 Operation *terminator) {
  OpBuilder b(before);
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
  auto joined =
      KernelOp::create(b, FusedLoc::get(b.getContext(), locations), types,
                       inputs, name, first.getStream(), first.getNeedsAttr());
  joined.setParts(parts);
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

namespace {
/// Walks the kernels in order with those that wait for others to join.
class Joiner {
public:
  Joiner(func::FuncOp func, InPlacePairs &pairs)
      : func(func), pairs(pairs), kernels(func.getOps<KernelOp>()),
        inUse(plannedBytesInUse(func, kernels, pairs)),
        most(*llvm::max_element(inUse)) {}
  /// Returns how many kernels became parts.
  unsigned run();

private:
  void findLastReaders();
  void wait(KernelOp kernel);
  void flush(Operation *before);
  static int64_t bytesOf(Value value) {
    return llvm::alignTo(byteSize(cast<RankedTensorType>(value.getType())),
                         kBufferAlignment);
  }

  func::FuncOp func;
  InPlacePairs &pairs;
  SmallVector<KernelOp> kernels;
  std::vector<int64_t> inUse;
  int64_t most;
  /// By kernel: the values of the arena that it is the last to read.
  std::vector<SmallVector<Value>> dying;
  DenseSet<Value> inArena;
  /// By what decides whether and where they run.
  llvm::MapVector<std::pair<Attribute, int64_t>, SmallVector<KernelOp>> groups;
  DenseSet<Value> held; ///< what the waiting ones read
  int64_t extra = 0;    ///< bytes that are in use for them alone
  unsigned joined = 0;  ///< kernels that are parts now
};
} // namespace

void Joiner::findLastReaders() {
  DenseSet<Value> returned;
  for (Value value : func.getBody().front().getTerminator()->getOperands())
    returned.insert(throughFreeViews(value));
  DenseMap<Value, size_t> last;
  llvm::SetVector<Value> values;
  for (auto [k, kernel] : llvm::enumerate(kernels)) {
    for (Value result : kernel.getResults())
      if (!returned.contains(result) && !isOnHost(result))
        values.insert(result);
    for (Value input : kernel.getInputs())
      last[throughFreeViews(input)] = k;
  }
  ArgumentStorage storage(func);
  for (BlockArgument argument : func.getArguments())
    if (storage.isDonated(argument.getArgNumber()))
      values.insert(argument);
  dying.resize(kernels.size());
  for (Value value : values) {
    inArena.insert(value);
    if (auto found = last.find(value); found != last.end())
      dying[found->second].push_back(value);
  }
}

void Joiner::wait(KernelOp kernel) {
  groups[{kernel.getNeedsAttr(), kernel.getStream()}].push_back(kernel);
  for (Value input : kernel.getInputs())
    if (Value source = throughFreeViews(input); inArena.contains(source))
      held.insert(source);
}

/// Joins what waits.
void Joiner::flush(Operation *before) {
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto &[condition, group] : groups) {
    ArrayRef<KernelOp> rest = group;
    while (rest.size() > 1) {
      size_t taken = 0, buffers = 0;
      for (; taken < rest.size(); ++taken) {
        KernelOp kernel = rest[taken];
        buffers += kernel->getNumOperands() + kernel->getNumResults();
        if (buffers > kMostBuffers)
          break;
      }
      if (taken > 1) {
        for (KernelOp kernel : rest.take_front(taken))
          pairs.forget(kernel);
        join(rest.take_front(taken), before, terminator);
        joined += taken;
      }
      rest = rest.drop_front(std::max<size_t>(taken, 1));
    }
  }
  groups.clear();
  held.clear();
  extra = 0;
}

unsigned Joiner::run() {
  findLastReaders();
  for (auto [k, kernel] : llvm::enumerate(kernels)) {
    // Also what is about to die, which the kernel may want to overwrite.
    int64_t kept = 0;
    for (Value value : dying[k])
      if (held.contains(value))
        kept += bytesOf(value);
    bool joins = canJoin(kernel);
    if (!groups.empty() && inUse[k] + extra + (joins ? 0 : kept) > most) {
      flush(kernel);
      kept = 0;
    }
    extra += kept;
    if (!joins)
      continue;
    wait(kernel);
    for (Value value : dying[k])
      extra += bytesOf(value);
    extra -= kept;
  }
  flush(func.getBody().front().getTerminator());
  return joined;
}

namespace {
struct JoinPointwise : tandem::impl::JoinPointwiseBase<JoinPointwise> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    if (isForCuda(func) && !func.getOps<KernelOp>().empty())
      joined += Joiner(func, getAnalysis<InPlacePairs>()).run();
    markAnalysesPreserved<InPlacePairs>();
  }
};
} // namespace
