//===- Pipelines.cpp - the passes of each phase, in order -----------------===//
#include "passes/Pipelines.h"
#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace tandem;

static void enter(OpPassManager &passes, StringRef before) {
  EnterPhaseOptions options;
  options.after = before.str();
  passes.addPass(createEnterPhase(options));
}

static void leave(OpPassManager &passes, StringRef phase) {
  LeavePhaseOptions options;
  options.phase = phase.str();
  passes.addPass(createLeavePhase(options));
}

//===----------------------------------------------------------------------===//
// functionalize
//===----------------------------------------------------------------------===//

void tandem::buildFunctionalizePipeline(OpPassManager &passes) {
  enter(passes, "capture");
  passes.addPass(createFunctionalizeRefs());
  leave(passes, "functionalize");
}

//===----------------------------------------------------------------------===//
// joint
//===----------------------------------------------------------------------===//

void tandem::buildJointPipeline(OpPassManager &passes,
                                const JointOptions &options) {
  enter(passes, "functionalize");
  // Composites, which the joint decomposes, draw random numbers and say which
  // labels they take. What only infers may repeat what it draws.
  if (!options.inference)
    passes.addPass(createCheckRandom());
  passes.addPass(createRecordRanges());
  BuildEvaluateOptions evaluate;
  evaluate.loss = options.loss;
  evaluate.inference = options.inference;
  // While composites still know how to infer.
  passes.addPass(createBuildEvaluate(evaluate));
  OpPassManager &primal = passes.nest<func::FuncOp>();
  FuseCompositesOptions fuse;
  fuse.order = options.order;
  // What is left of them is differentiated op by op.
  primal.addPass(createFuseComposites(fuse));
  primal.addPass(createDecomposeComposites());
  // They are part of what is differentiated.
  primal.addPass(createExpandGrads());
  if (!options.inference) {
    DifferentiateOptions differentiate;
    differentiate.loss = options.loss;
    differentiate.order = options.order;
    passes.addPass(createDifferentiate(differentiate));
  }
  // Now that nothing is differentiated any more.
  OpPassManager &joint = passes.nest<func::FuncOp>();
  joint.addPass(createInlineCustomVjps());
  joint.addPass(createEraseDeadOps());
  joint.addPass(createDecomposeComposites());
  passes.addPass(createSealMutations());
  leave(passes, "joint");
}

//===----------------------------------------------------------------------===//
// optimize
//===----------------------------------------------------------------------===//

void tandem::buildOptimizePipeline(OpPassManager &passes) {
  enter(passes, "joint");
  // While no op computes two things at once.
  passes.addPass(createRecordRows());
  OpPassManager &program = passes.nest<func::FuncOp>();
  program.addPass(createExpandFlow());
  // Before other rewrites, which take it that there are elements.
  program.addPass(createFoldEmptyTensors());
  program.addPass(createSetPrecision());
  // After the gradients, whose formulas have powers of their own.
  program.addPass(createExpandPowers());
  program.addPass(createSimplify());
  // No fold makes a constant in a region from here on.
  program.addPass(createHoistConstants());
  // Ops that became one are forward if one of them was.
  program.addPass(createMarkPasses());
  leave(passes, "optimize");
}

//===----------------------------------------------------------------------===//
// partition
//===----------------------------------------------------------------------===//

/// What makes programs of a joint whose saved values are chosen.
static void addDividePasses(OpPassManager &passes) {
  passes.addPass(createSplitJoint());
  // Readers are ops of the model, and no copies.
  passes.addPass(createRecordReaders());
  passes.nest<func::FuncOp>().addPass(createInsertHostCopies());
  passes.addPass(createBuildUpdate());
  passes.addPass(createBuildStep());
}

static void addChooseSaved(OpPassManager &passes, StringRef kind) {
  ChooseSavedOptions options;
  options.kind = kind.str();
  passes.addPass(createChooseSaved(options));
}

void tandem::buildPartitionPipeline(OpPassManager &passes,
                                    const PartitionOptions &options) {
  enter(passes, "optimize");
  OpPassManager &program = passes.nest<func::FuncOp>();
  program.addPass(createDropAliasOutputs());
  program.addPass(createClearTags());
  // What only such outputs needed.
  program.addPass(createEraseDeadOps());
  // Panels are frozen if the weights are.
  passes.addPass(createPackWeights());
  passes.addPass(createSplitFrozen());
  // Before tags are obeyed.
  passes.addPass(createDropHostOffload());
  passes.addPass(createCheckSaveTags());
  ChooseRegionsOptions regions;
  regions.kind = options.kind;
  passes.addPass(createChooseRegions(regions));
  addChooseSaved(passes, options.kind);
  if (!options.memoryBudget.empty()) {
    FitMemoryBudgetOptions budget;
    budget.memoryBudget = options.memoryBudget;
    passes.addPass(createFitMemoryBudget(budget));
  }
  // While the ops that it speaks of are there.
  ReportPartitionOptions report;
  report.remarks = options.remarks;
  passes.addPass(createReportPartition(report));
  addDividePasses(passes);
  leave(passes, "partition");
}

LogicalResult tandem::rehearsePartition(ModuleOp module, StringRef kind) {
  PassManager passes(module.getContext(), ModuleOp::getOperationName());
  passes.enableVerifier(false); // what it makes is thrown away
  if (!kind.empty())
    addChooseSaved(passes, kind);
  addDividePasses(passes);
  return passes.run(module);
}

//===----------------------------------------------------------------------===//
// plan
//===----------------------------------------------------------------------===//

/// What is about one program alone. A rehearsal, which is for the memory of
/// values, asks no kernel how it is computed.
static void addPlanPasses(OpPassManager &program, bool isRehearsal) {
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
  if (!isRehearsal)
    program.addPass(createChooseMethods());
  program.addPass(createPlanMemory());
  // What overwrites what, and lies beside what, is known.
  program.addPass(createChooseNonTemporalStores());
  program.addPass(createCheckPlan());
}

void tandem::buildPlanPipeline(OpPassManager &passes,
                               const PlanOptions &options) {
  enter(passes, "partition");
  addPlanPasses(passes.nest<func::FuncOp>(), /*isRehearsal=*/false);
  passes.addPass(createPlaceConstants());
  ReportPlanOptions report;
  report.remarks = options.remarks;
  passes.addPass(createReportPlan(report));
  leave(passes, "plan");
}

static LogicalResult runPlanPasses(func::FuncOp func, bool isRehearsal) {
  PassManager passes(func.getContext(), func::FuncOp::getOperationName());
  passes.enableVerifier(false); // what it makes is thrown away, or code soon
  addPlanPasses(passes, isRehearsal);
  return passes.run(func);
}

LogicalResult tandem::planProgram(func::FuncOp func) {
  return runPlanPasses(func, /*isRehearsal=*/false);
}

LogicalResult tandem::rehearseProgram(func::FuncOp func) {
  return runPlanPasses(func, /*isRehearsal=*/true);
}

//===----------------------------------------------------------------------===//
// By name
//===----------------------------------------------------------------------===//

void tandem::registerTandemPipelines() {
  PassPipelineRegistration<>(
      "tandem-functionalize",
      "The phase functionalize: refs become values, mutations become results",
      buildFunctionalizePipeline);
  PassPipelineRegistration<JointOptions>(
      "tandem-build-joint",
      "The phase joint: the backward is derived beside the forward",
      buildJointPipeline);
  PassPipelineRegistration<>(
      "tandem-optimize-joint",
      "The phase optimize: forward and backward are simplified together",
      buildOptimizePipeline);
  PassPipelineRegistration<PartitionOptions>(
      "tandem-partition-joint",
      "The phase partition: forward, backward, update and step part",
      buildPartitionPipeline);
  PassPipelineRegistration<PlanOptions>(
      "tandem-plan-programs",
      "The phase plan: ops become kernels, values get their places",
      buildPlanPipeline);
}
