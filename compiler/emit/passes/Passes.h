//===- Passes.h - the passes of the compiler on LLVM IR -------------------===//
//
// What LLVM's own pipelines do not do for kernels, as passes of its pass
// manager: they run by name in the pipelines of emission (`kCpuPipeline`,
// `kCudaPipeline` below), and alone in tandem-llvm-opt.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_PASSES_PASSES_H
#define TANDEM_COMPILER_EMIT_PASSES_PASSES_H

#include "llvm/IR/PassManager.h"

namespace llvm {
class PassBuilder;
}

namespace tandem {

/// tandem-mark-non-temporal-stores, before optimization. LLVM does not
/// vectorize loops with non-temporal stores of scalars, which no processor has.
/// So they become ordinary ones with a mark that vectorization keeps.
struct MarkNonTemporalStores : llvm::PassInfoMixin<MarkNonTemporalStores> {
  llvm::PreservedAnalyses run(llvm::Module &module,
                              llvm::ModuleAnalysisManager &);
};

/// tandem-far-angles, after optimization: llvm.sin and llvm.cos of f32 with the
/// flag `arcp`, which says nothing else of them, are used where an angle is
/// beyond lower::kFarAngle alone (passes/lower/common/Polynomials.h). They are
/// a branch that is taken where a lane is, and anything in other lanes.
struct FarAngles : llvm::PassInfoMixin<FarAngles> {
  llvm::PreservedAnalyses run(llvm::Module &module,
                              llvm::ModuleAnalysisManager &);
};

/// tandem-emit-non-temporal-stores, after optimization: the marked stores that
/// have become stores of whole aligned vectors are non-temporal, those of half
/// a line where all marked ones of their block are such, and functions with
/// such stores end with a fence, so that another thread that is told of their
/// end sees what they wrote.
struct EmitNonTemporalStores : llvm::PassInfoMixin<EmitNonTemporalStores> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &);
};

/// tandem-insert-prefetches, after optimization: LLVM does not vectorize loops
/// with prefetches. In functions with the attribute kLoadsAheadAttr
/// (passes/lower/common/KernelBody.h) vector loads of a parameter prefetch what
/// lies as many bytes ahead as the attribute says, once a cache line. A
/// processor foresees what a loop reads up to the end of a page, and at most
/// some lines beyond; and where many lines are asked for at once, they wait for
/// room.
struct InsertPrefetches : llvm::PassInfoMixin<InsertPrefetches> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &);
};

/// tandem-single-lane-stores, after optimization, for x86: masked stores whose
/// mask is constant and has one lane are stores of that element. LLVM 22 does
/// the same while it selects instructions, but of a vector that is truncated it
/// stores the wide element, over what lies behind
/// (github.com/llvm/llvm-project/issues/179489). Vectorized loops of one
/// element more than vectors have such stores.
struct SingleLaneStores : llvm::PassInfoMixin<SingleLaneStores> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &);
};

/// tandem-narrow-floats-as-bits, after optimization: bf16 and f16 are selected,
/// and loaded and stored with masks or at several places, as integers; bf16 is
/// loaded, stored and shuffled so too. Kernels compute in f32 and wider;
/// narrower floats are only moved. Where LLVM's optimizer has made choices
/// among bits into choices among such numbers, its code generator would, on
/// processors without them, widen and narrow them by calls of the compiler's
/// library, which the process that loads the code need not have.
struct NarrowFloatsAsBits : llvm::PassInfoMixin<NarrowFloatsAsBits> {
  llvm::PreservedAnalyses run(llvm::Function &function,
                              llvm::FunctionAnalysisManager &);
};

/// Lets pipelines of `builder` name these passes, and tandem-optimize<O0> to
/// <O3>, LLVM's default pipelines with the tuning of `builder`.
void registerLlvmPasses(llvm::PassBuilder &builder);

/// What optimizes the functions of kernels for a processor, and for a GPU, as
/// text for parsePassPipeline().
extern const llvm::StringLiteral kCpuPipeline;
extern const llvm::StringLiteral kCudaPipeline;

/// The pass of LLVM's that kCpuPipeline goes without (runPasses()). It looks
/// for loads of what an iteration before stored, pair by pair: a quarter of the
/// time that the passes take where tiles of convolutions have hundreds of
/// loads. Kernels keep such values in registers: their code is the same.
inline constexpr llvm::StringLiteral kNoUseForKernels =
    "LoopLoadEliminationPass";

} // namespace tandem

#endif
