//===- KernelGraph.cpp - what orders the kernels of a program -------------===//
#include "passes/plan/KernelGraph.h"
#include "ir/Signature.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/HostCopies.h"
#include "passes/plan/PlanMemory.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tandem;

KernelGraph::KernelGraph(func::FuncOp func, InPlacePairs &pairs)
    : kernels(func.getOps<KernelOp>()), func(func), pairs(pairs),
      storage(func) {
  findReaders();
  steps.steps.resize(kernels.size());
  addValues();
  addReuses();
  addEdges();
}

void KernelGraph::findReaders() {
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
void KernelGraph::addValues() {
  auto add = [&](Value value, StepGraph::Value made) {
    auto type = cast<RankedTensorType>(value.getType());
    made.bytes = llvm::alignTo(byteSize(type), kBufferAlignment);
    for (unsigned step : made.steps)
      steps.steps[step].values.push_back(steps.values.size());
    valueOf[value] = steps.values.size();
    steps.values.push_back(std::move(made));
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

void KernelGraph::addReuses() {
  for (auto [k, kernel] : llvm::enumerate(kernels)) {
    SmallVector<Value> sources;
    for (Value input : kernel.getInputs())
      sources.push_back(throughFreeViews(input));
    for (auto [result, input] : pairs.of(kernel)) {
      auto made = valueOf.find(kernel.getResult(result));
      auto read = valueOf.find(sources[input]);
      if (made != valueOf.end() && read != valueOf.end() &&
          llvm::count(sources, sources[input]) == 1)
        steps.steps[k].reuses.push_back({made->second, read->second});
    }
  }
}

void KernelGraph::addEdges() {
  for (KernelOp kernel : kernels)
    for (Value result : kernel.getResults())
      for (unsigned reader : readers[result])
        steps.addEdge(numbers.lookup(kernel), reader);
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
        steps.addEdge(reader, update);
  }
  std::optional<unsigned> last;
  for (auto [k, kernel] : llvm::enumerate(kernels)) {
    if (isMemoryEffectFree(kernel))
      continue;
    if (last)
      steps.addEdge(*last, k);
    last = k;
  }
}
