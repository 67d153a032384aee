//===- PlanPasses.cpp - the passes that plan one program ------------------===//
#include "passes/plan/PlanPasses.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace tandem;

void tandem::addPlanPasses(OpPassManager &program,
                           std::unique_ptr<Pass> chooseMethods) {
  // The optimizer's ops among others, and what was read at this phase.
  program.addPass(createFoldEmptyTensors());
  program.addPass(createEraseDeadOps());
  // What is split is several kernels. Not in optimize: a reduction in parts is
  // for the machine, and partition asks for the time of the one that is meant.
  program.addPass(createSplitReductions());
  program.addPass(createSplitFilterGrads());
  program.addPass(createFormKernels());
  // Before kernels are ordered: what both read is held until both have run.
  program.addPass(createJoinAttention());
  // Before memory is counted: calls need workspaces.
  program.addPass(createChooseLibraries());
  program.addPass(createOrderKernels());
  // Until memory is as scarce as that order found it to be.
  program.addPass(createJoinPointwise());
  // Behind the kernels that are left to hide behind.
  program.addPass(createPlaceHostCopies());
  // Of the kernels that there will be, before memory is counted: scratch is
  // memory.
  if (chooseMethods)
    program.addPass(std::move(chooseMethods));
  program.addPass(createPlanMemory());
  // What overwrites what, and lies beside what, is known.
  program.addPass(createChooseNonTemporalStores());
  program.addPass(createCheckPlan());
}

LogicalResult tandem::planProgram(func::FuncOp func,
                                  std::unique_ptr<Pass> chooseMethods) {
  PassManager passes(func.getContext(), func::FuncOp::getOperationName());
  passes.enableVerifier(false); // what it makes is thrown away, or code soon
  addPlanPasses(passes, std::move(chooseMethods));
  return passes.run(func);
}

LogicalResult tandem::rehearseProgram(func::FuncOp func) {
  return planProgram(func, /*chooseMethods=*/nullptr);
}
