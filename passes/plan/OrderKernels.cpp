//===- OrderKernels.cpp - the order that needs least memory ---------------===//
//
// Formed kernels stand in the order of the program, which is the order in which
// somebody wrote or derived it: a step's updates all stand at its end, where
// every gradient and all that it is made of still waits for them.
//
//===----------------------------------------------------------------------===//
#include "ir/Signature.h"
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/HostCopies.h"
#include "passes/plan/PlanMemory.h"
#include "passes/plan/StepOrder.h"
#include "passes/plan/Storage.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tandem {
#define GEN_PASS_DEF_ORDERKERNELS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {
class Orderer {
public:
  Orderer(func::FuncOp func, InPlacePairs &pairs)
      : func(func), pairs(pairs), storage(func),
        kernels(func.getOps<KernelOp>()) {}
  /// Returns whether kernels moved.
  bool order();

private:
  void findReaders();
  void addValues();
  void addReuses();
  void addEdges();

  func::FuncOp func;
  InPlacePairs &pairs;
  ArgumentStorage storage;
  SmallVector<KernelOp> kernels;
  DenseMap<Operation *, unsigned> numbers;
  /// Sources (arguments, constants, kernel results): the kernels that read
  /// them, rising.
  DenseMap<Value, SmallVector<unsigned, 4>> readers;
  DenseMap<Value, unsigned> valueOf;
  StepGraph graph;
};
} // namespace

void Orderer::findReaders() {
  for (auto [k, kernel] : llvm::enumerate(kernels)) {
    numbers[kernel] = k;
    for (Value input : kernel.getInputs()) {
      auto &list = readers[throughFreeViews(input)];
      if (list.empty() || list.back() != k)
        list.push_back(k);
    }
  }
}

/// What lies in the arena, or in saved values that can be overwritten. What the
/// program returns has memory of its own at all times.
void Orderer::addValues() {
  auto add = [&](Value value, StepGraph::Value made) {
    auto type = cast<RankedTensorType>(value.getType());
    made.bytes = llvm::alignTo(byteSize(type), kBufferAlignment);
    for (unsigned step : made.steps)
      graph.steps[step].values.push_back(graph.values.size());
    valueOf[value] = graph.values.size();
    graph.values.push_back(std::move(made));
  };
  for (BlockArgument argument : func.getArguments())
    if (auto &list = readers[argument];
        !list.empty() && storage.isDonated(argument.getArgNumber()))
      add(argument, {0, list, /*isGiven=*/true});
  DenseSet<Value> returned;
  for (Value value : func.getBody().front().getTerminator()->getOperands())
    returned.insert(throughFreeViews(value));
  for (auto [k, kernel] : llvm::enumerate(kernels))
    for (Value result : kernel.getResults())
      if (!returned.contains(result) && !isOnHost(result)) {
        SmallVector<unsigned, 4> steps = {static_cast<unsigned>(k)};
        llvm::append_range(steps, readers[result]);
        add(result, {0, std::move(steps), /*isGiven=*/false});
      }
}

void Orderer::addReuses() {
  for (auto [k, kernel] : llvm::enumerate(kernels)) {
    SmallVector<Value> sources;
    for (Value input : kernel.getInputs())
      sources.push_back(throughFreeViews(input));
    for (auto [result, input] : pairs.of(kernel)) {
      auto made = valueOf.find(kernel.getResult(result));
      auto read = valueOf.find(sources[input]);
      if (made != valueOf.end() && read != valueOf.end() &&
          llvm::count(sources, sources[input]) == 1)
        graph.steps[k].reuses.push_back({made->second, read->second});
    }
  }
}

void Orderer::addEdges() {
  for (KernelOp kernel : kernels)
    for (Value result : kernel.getResults())
      for (unsigned reader : readers[result])
        graph.addEdge(numbers.lookup(kernel), reader);
  // An update overwrites the old value once nobody reads it any more. Who reads
  // it after the update in the program makes a copy necessary in any order.
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto [i, returned] : llvm::enumerate(terminator->getOperands())) {
    RoleAttr role = roleOfResult(func, i);
    if (!role || role.getKind() != RoleKind::Update)
      continue;
    auto argument = storage.updatedArgument(role.getName());
    auto kernel = throughFreeViews(returned).getDefiningOp<KernelOp>();
    if (!argument || !kernel)
      continue;
    unsigned update = numbers.lookup(kernel);
    for (unsigned reader : readers[func.getArgument(*argument)])
      if (reader < update)
        graph.addEdge(reader, update);
  }
  std::optional<unsigned> last;
  for (auto [k, kernel] : llvm::enumerate(kernels)) {
    if (isMemoryEffectFree(kernel))
      continue;
    if (last)
      graph.addEdge(*last, k);
    last = k;
  }
}

void tandem::moveKernels(func::FuncOp func, ArrayRef<KernelOp> ordered) {
  Operation *terminator = func.getBody().front().getTerminator();
  for (KernelOp kernel : ordered)
    kernel->moveBefore(terminator);
  for (Operation &op :
       llvm::make_early_inc_range(func.getBody().front().without_terminator()))
    if (isa<ViewOpInterface>(op) &&
        throughFreeViews(op.getResult(0)).getDefiningOp<KernelOp>())
      op.moveAfter(op.getOperand(0).getDefiningOp());
}

bool Orderer::order() {
  findReaders();
  graph.steps.resize(kernels.size());
  addValues();
  addReuses();
  addEdges();
  std::vector<unsigned> order = orderForMemory(graph);
  if (llvm::is_sorted(order))
    return false;
  SmallVector<KernelOp> ordered;
  for (unsigned k : order)
    ordered.push_back(kernels[k]);
  if (plannedBytes(func, ordered, pairs) > plannedBytes(func, kernels, pairs))
    return false;
  moveKernels(func, ordered);
  return true;
}

namespace {
/// What frees memory runs as soon as it can, and what takes some as late. An
/// update runs after all that reads the old value, kernels with effects keep
/// their order.
struct OrderKernels : tandem::impl::OrderKernelsBase<OrderKernels> {
  void runOnOperation() final {
    moved += Orderer(getOperation(), getAnalysis<InPlacePairs>()).order();
    markAnalysesPreserved<InPlacePairs>();
  }
};
} // namespace
