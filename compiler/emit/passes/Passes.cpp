//===- Passes.cpp - the passes on LLVM IR, and their order ----------------===//
#include "compiler/emit/passes/Passes.h"

#include "llvm/Passes/PassBuilder.h"

using namespace llvm;

// Stores are marked for the optimizer to vectorize, which the branches of far
// angles would keep it from. What code generation is not to see goes behind it;
// narrow floats become bits before stores of them are looked at, whose
// alignment LLVM has lost of what it wrote out after loops were made vectors,
// and prefetches come last, since nothing moves them any more.
const StringLiteral tandem::kCpuPipeline = "tandem-mark-non-temporal-stores,"
                                           "tandem-optimize<O2>,"
                                           "tandem-far-angles,"
                                           "function("
                                           "tandem-single-lane-stores,"
                                           "tandem-narrow-floats-as-bits,"
                                           "infer-alignment,"
                                           "tandem-emit-non-temporal-stores,"
                                           "tandem-insert-prefetches)";

const StringLiteral tandem::kCudaPipeline =
    "tandem-optimize<O3>,tandem-far-angles";

template <typename Pass, typename Manager>
static bool addIf(bool isIt, Manager &passes) {
  if (isIt)
    passes.addPass(Pass());
  return isIt;
}

/// LLVM's default pipeline of a level, as `default<O2>`, which would change the
/// tuning that the builder was made with.
static bool addDefault(PassBuilder &builder, StringRef name,
                       ModulePassManager &passes) {
  static const std::pair<StringLiteral, OptimizationLevel> levels[] = {
      {"tandem-optimize<O0>", OptimizationLevel::O0},
      {"tandem-optimize<O1>", OptimizationLevel::O1},
      {"tandem-optimize<O2>", OptimizationLevel::O2},
      {"tandem-optimize<O3>", OptimizationLevel::O3}};
  for (auto &[known, level] : levels)
    if (name == known) {
      passes.addPass(level == OptimizationLevel::O0
                         ? builder.buildO0DefaultPipeline(level)
                         : builder.buildPerModuleDefaultPipeline(level));
      return true;
    }
  return false;
}

void tandem::registerLlvmPasses(PassBuilder &builder) {
  builder.registerPipelineParsingCallback(
      [&builder](StringRef name, ModulePassManager &passes,
                 ArrayRef<PassBuilder::PipelineElement>) {
        return addDefault(builder, name, passes);
      });
  builder.registerPipelineParsingCallback(
      [](StringRef name, ModulePassManager &passes,
         ArrayRef<PassBuilder::PipelineElement>) {
        return addIf<MarkNonTemporalStores>(
                   name == "tandem-mark-non-temporal-stores", passes) ||
               addIf<FarAngles>(name == "tandem-far-angles", passes);
      });
  builder.registerPipelineParsingCallback(
      [](StringRef name, FunctionPassManager &passes,
         ArrayRef<PassBuilder::PipelineElement>) {
        return addIf<EmitNonTemporalStores>(
                   name == "tandem-emit-non-temporal-stores", passes) ||
               addIf<InsertPrefetches>(name == "tandem-insert-prefetches",
                                       passes) ||
               addIf<SingleLaneStores>(name == "tandem-single-lane-stores",
                                       passes) ||
               addIf<NarrowFloatsAsBits>(name == "tandem-narrow-floats-as-bits",
                                         passes);
      });
}
