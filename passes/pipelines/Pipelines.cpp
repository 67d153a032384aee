//===- Pipelines.cpp - the passes of each phase, in order -----------------===//
#include "passes/pipelines/Pipelines.h"
#include "passes/Passes.h"
#include "passes/partition/DividePasses.h"
#include "passes/plan/PlanPasses.h"
#include "passes/shard/ShardPasses.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

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
  // Of values alone it is known who needs them.
  passes.addPass(createAssignStages());
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
  // Before all that depends on what is trained.
  passes.addPass(createAddAdapters());
  // Adapters are products, too; and what it makes is no longer low or high.
  passes.addPass(createQuantizeProducts());
  passes.addPass(createRecordRanges());
  // Each stage is differentiated by itself, between what comes and what goes.
  // Data is checked against the inputs of the whole model: behind their ranges.
  passes.addPass(createTakeStage());
  // While composites say what is low; before the gradients, which follow.
  passes.addPass(createApplyAutocast());
  BuildEvaluateOptions evaluate;
  evaluate.loss = options.loss;
  evaluate.inference = options.inference;
  // While composites still know how to infer.
  passes.addPass(createBuildEvaluate(evaluate));
  // Of what trains alone, while it is one op.
  passes.addPass(createSplitBatchNorms());
  OpPassManager &primal = passes.nest<func::FuncOp>();
  // While a concatenation is one op.
  primal.addPass(createSplitConcats());
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
  passes.addPass(createSetBackwardType());
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
  // While iterations are one op: what is equal in them is hard to find later.
  program.addPass(createHoistSums());
  program.addPass(createExpandFlow());
  // Before other rewrites, which take it that there are elements.
  program.addPass(createFoldEmptyTensors());
  program.addPass(createSetPrecision());
  // After the gradients, whose formulas have powers of their own.
  program.addPass(createExpandPowers());
  // Before products and sums are simplified.
  program.addPass(createSimplifyWindows());
  program.addPass(createSimplify());
  // No fold makes a constant in a region from here on.
  program.addPass(createHoistConstants());
  // Ops that became one are forward if one of them was.
  program.addPass(createMarkPasses());
  addShardPasses(passes);
  leave(passes, "optimize");
}

//===----------------------------------------------------------------------===//
// partition
//===----------------------------------------------------------------------===//

void tandem::buildPartitionPipeline(OpPassManager &passes,
                                    const PartitionOptions &options) {
  enter(passes, "optimize");
  OpPassManager &program = passes.nest<func::FuncOp>();
  program.addPass(createDropAliasOutputs());
  program.addPass(createClearTags());
  // What only such outputs needed.
  program.addPass(createEraseDeadOps());
  // While what follows from weights is beside what they are used for.
  passes.addPass(createFoldNorms());
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

//===----------------------------------------------------------------------===//
// plan
//===----------------------------------------------------------------------===//

void tandem::buildPlanPipeline(OpPassManager &passes,
                               const PlanOptions &options) {
  enter(passes, "partition");
  OpPassManager &program = passes.nest<func::FuncOp>();
  addKernelPasses(program);
  // Of the kernels that there will be, before memory is counted: scratch is
  // memory.
  program.addPass(createChooseMethods());
  addMemoryPasses(program);
  passes.addPass(createPlaceConstants());
  ReportPlanOptions report;
  report.remarks = options.remarks;
  passes.addPass(createReportPlan(report));
  leave(passes, "plan");
}

//===----------------------------------------------------------------------===//
// lower
//===----------------------------------------------------------------------===//

void tandem::addLowerToCpuPasses(OpPassManager &passes) {
  // They need no code.
  passes.nest<func::FuncOp>().addPass(createLowerCollectives());
  // Their kernels are kernels as others are from here on.
  passes.addPass(createOutlineRegions());
  passes.addPass(createDeduplicateKernels());
  passes.addPass(createEmitCpuKernels());
  // A piece of the code each, several at a time.
  OpPassManager &code = passes.nest<ModuleOp>().nest<ModuleOp>();
  OpPassManager &body = code.nest<func::FuncOp>();
  // Before any canonicalization.
  body.addPass(createLowerTransposes());
  body.addPass(createCanonicalizerPass());
  body.addPass(createCSEPass());
  body.addPass(createExpandScalars());
  // What that wrote among it.
  body.addPass(createContractFloats());
  body.addPass(createConvertVectorToSCFPass(
      VectorTransferToSCFOptions().enableFullUnroll()));
  body.addPass(memref::createExpandStridedMetadataPass());
  body.addPass(createLowerAffinePass());
  body.addPass(createSCFToControlFlowPass());
  // Declares what it prints with, and libm's functions, in the module.
  code.addPass(createConvertVectorToLLVMPass());
  code.addPass(createConvertMathToLLVMPass());
  code.addPass(createConvertMathToLibmPass());
  code.addPass(createUBToLLVMConversionPass());
  code.addPass(createArithToLLVMConversionPass());
  code.addPass(createConvertIndexToLLVMPass());
  code.addPass(createFinalizeMemRefToLLVMConversionPass());
  code.addPass(createConvertControlFlowToLLVMPass());
  // Memrefs, all of static shapes, are bare pointers.
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  code.addPass(createConvertFuncToLLVMPass(functions));
  OpPassManager &llvm = code.nest<LLVM::LLVMFuncOp>();
  llvm.addPass(createReconcileUnrealizedCastsPass());
  llvm.addPass(createCanonicalizerPass());
  llvm.addPass(createCSEPass());
  // Of LLVM's dialect from the start.
  passes.addPass(createEmitCpuWrappers());
  // What they need to know of functions is known.
  passes.addPass(createLaunchKernels());
}

void tandem::addLowerToCudaPasses(OpPassManager &passes) {
  // They need no code.
  passes.nest<func::FuncOp>().addPass(createLowerCollectives());
  passes.nest<func::FuncOp>().addPass(createLowerHostCopies());
  DeduplicateKernelsOptions deduplicate;
  deduplicate.target = "cuda";
  passes.addPass(createDeduplicateKernels(deduplicate));
  passes.addPass(createEmitCudaKernels());
  OpPassManager &code = passes.nest<gpu::GPUModuleOp>();
  // A function alone: patterns are tried on it until nothing changes in it, not
  // until nothing changes in any, and threads take several at a time.
  OpPassManager &body = code.nest<gpu::GPUFuncOp>();
  body.addPass(createCanonicalizerPass());
  body.addPass(createCSEPass());
  // Before convert-gpu-to-nvvm, which would call libdevice.
  body.addPass(createExpandCudaFunctions());
  body.addPass(createConvertVectorToSCFPass(
      VectorTransferToSCFOptions().enableFullUnroll()));
  body.addPass(createSCFToControlFlowPass());
  body.addPass(memref::createExpandStridedMetadataPass());
  body.addPass(createLowerAffinePass());
  // Of the whole module: it may write globals, which functions share.
  code.addPass(createConvertNVGPUToNVVMPass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.useVectorAlignment = true;
  OpPassManager &converted = code.nest<gpu::GPUFuncOp>();
  converted.addPass(createConvertVectorToLLVMPass(vectors));
  converted.addPass(createConvertMathToLLVMPass());
  ConvertGpuOpsToNVVMOpsOptions gpu;
  gpu.useBarePtrCallConv = true;
  code.addPass(createConvertGpuOpsToNVVMOps(gpu));
  code.addPass(createConvertNVVMToLLVMPass());
  code.addPass(createReconcileUnrealizedCastsPass());
  code.addPass(createDeclareSharedMemory());
  OpPassManager &lowered = code.nest<LLVM::LLVMFuncOp>();
  lowered.addPass(createCanonicalizerPass());
  lowered.addPass(createCSEPass());
  // Only now: the conversion from gpu.func keeps no parameters by value.
  code.addPass(createPassTensorMaps());
  passes.addPass(createLaunchKernels());
}

void tandem::buildLowerToCpuPipeline(OpPassManager &passes) {
  enter(passes, "plan");
  addLowerToCpuPasses(passes);
  leave(passes, "lower");
}

void tandem::buildLowerToCudaPipeline(OpPassManager &passes) {
  enter(passes, "plan");
  addLowerToCudaPasses(passes);
  leave(passes, "lower");
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
  PassPipelineRegistration<>(
      "tandem-lower-to-cpu",
      "The phase lower, for a processor: kernels become LLVM functions",
      buildLowerToCpuPipeline);
  PassPipelineRegistration<>(
      "tandem-lower-to-cuda",
      "The phase lower, for a GPU: kernels become functions of NVVM",
      buildLowerToCudaPipeline);
}
