//===- Pipelines.h - the passes of each phase, in order -------------------===//
//
// A phase is a pipeline of passes that begins with tandem-enter-phase and ends
// with tandem-leave-phase. It is registered with a name, so that tandem-opt
// runs a phase by name, and the table of phases in compiler/ is text.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PIPELINES_PIPELINES_H
#define TANDEM_PASSES_PIPELINES_PIPELINES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassOptions.h"

namespace tandem {

/// functionalize: refs become values, mutations become results.
void buildFunctionalizePipeline(mlir::OpPassManager &passes);

struct JointOptions : mlir::PassPipelineOptions<JointOptions> {
  Option<std::string> loss{
      *this, "loss",
      llvm::cl::desc("the output to differentiate; by default the one that the "
                     "module's 'tandem.loss' names, else the one named 'loss', "
                     "else every one that depends on an argument that requires "
                     "grad")};
  Option<bool> inference{*this, "inference",
                         llvm::cl::desc("keep only '@evaluate'"),
                         llvm::cl::init(false)};
  Option<int64_t> order{
      *this, "order",
      llvm::cl::desc("how often the programs can be differentiated; 2 adds "
                     "'@grad_joint', the joint of the joint"),
      llvm::cl::init(1)};
};

/// joint: the backward is derived beside the forward.
void buildJointPipeline(mlir::OpPassManager &passes,
                        const JointOptions &options);

/// optimize: common and dead code goes, constants fold.
void buildOptimizePipeline(mlir::OpPassManager &passes);

struct PartitionOptions : mlir::PassPipelineOptions<PartitionOptions> {
  Option<std::string> kind{
      *this, "kind",
      llvm::cl::desc("what is saved: 'default' (all that the backward uses) or "
                     "'min-cut' (the fewest bytes)"),
      llvm::cl::init("min-cut")};
  Option<std::string> memoryBudget{
      *this, "memory-budget",
      llvm::cl::desc("the most memory that a step may take: a number from 0, "
                     "the least that is possible, to 1, the fastest plan's, or "
                     "bytes such as '6GiB'")};
  Option<bool> remarks{
      *this, "remarks",
      llvm::cl::desc("say what is saved and what is computed again"),
      llvm::cl::init(false)};
};

/// partition: forward, backward, update and step part.
void buildPartitionPipeline(mlir::OpPassManager &passes,
                            const PartitionOptions &options);

struct PlanOptions : mlir::PassPipelineOptions<PlanOptions> {
  Option<bool> remarks{*this, "remarks",
                       llvm::cl::desc("say how many kernels and bytes each "
                                      "program has"),
                       llvm::cl::init(false)};
};

/// plan: ops become kernels, values get their places.
void buildPlanPipeline(mlir::OpPassManager &passes, const PlanOptions &options);

/// The part of `lower` that is about kernels, without what it asks of programs:
/// for a processor or a GPU. Modules that are made to measure or to test
/// kernels have no other programs.
void addLowerToCpuPasses(mlir::OpPassManager &passes);
void addLowerToCudaPasses(mlir::OpPassManager &passes);

/// lower: kernels become LLVM functions, programs lists of launches.
void buildLowerToCpuPipeline(mlir::OpPassManager &passes);
void buildLowerToCudaPipeline(mlir::OpPassManager &passes);

/// Registers each pipeline with tandem-opt and the table of phases.
void registerTandemPipelines();

} // namespace tandem

#endif
