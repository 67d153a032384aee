//===- PlanPasses.cpp - the passes that plan one program ------------------===//
#include "passes/plan/PlanPasses.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace tandem;

void tandem::addKernelPasses(OpPassManager &program) {
  // The optimizer's ops among others, and what was read at this phase.
  program.addPass(createFoldEmptyTensors());
  program.addPass(createEraseDeadOps());
  // Views, which kernels are made of.
  program.addPass(createShareDraws());
  program.addPass(createLeadCollectives());
  program.addPass(createOrderCollectives());
  // What is split is several kernels. Not in optimize: a reduction in parts is
  // for the machine, and partition asks for the time of the one that is meant.
  program.addPass(createSplitReductions());
  program.addPass(createSplitFilterGrads());
  program.addPass(createTurnFactors());
  program.addPass(createThinImages());
  // Who reads a result may be one kernel more or less.
  program.addPass(createReorderResults());
  // What a kernel would read that it can make of less.
  program.addPass(createRemakeValues());
  program.addPass(createFormKernels());
  // Before kernels are ordered: what both read is held until both have run.
  program.addPass(createJoinAttention());
  // Before memory is counted: calls need workspaces.
  program.addPass(createChooseLibraries());
  program.addPass(createOrderKernels());
  // From an order that needs little memory.
  program.addPass(createOverlapCollectives());
  // Until memory is as scarce as that order found it to be.
  program.addPass(createJoinPointwise());
  // Behind the kernels that are left to hide behind.
  program.addPass(createPlaceHostCopies());
  // Of the kernels that there will be.
  program.addPass(createPadRows());
}

void tandem::addMemoryPasses(OpPassManager &program) {
  program.addPass(createPlanMemory());
  // What overwrites what, and lies beside what, is known.
  program.addPass(createChooseNonTemporalStores());
  // What lies in the arena, where any part of it has an address.
  program.addPass(createNarrowInputs());
  program.addPass(createCheckPlan());
}

static LogicalResult run(func::FuncOp func, void (*add)(OpPassManager &)) {
  PassManager passes(func.getContext(), func::FuncOp::getOperationName());
  passes.enableVerifier(false); // what it makes is thrown away, or code soon
  add(passes);
  return passes.run(func);
}

LogicalResult tandem::planProgram(
    func::FuncOp func,
    llvm::function_ref<LogicalResult(func::FuncOp)> chooseMethods) {
  if (failed(run(func, addKernelPasses)) || failed(chooseMethods(func)))
    return failure();
  return run(func, addMemoryPasses);
}

LogicalResult tandem::rehearseProgram(func::FuncOp func) {
  return run(func, [](OpPassManager &program) {
    addKernelPasses(program);
    addMemoryPasses(program);
  });
}
