//===- DividePasses.cpp - the passes that divide joints -------------------===//
#include "passes/partition/DividePasses.h"
#include "passes/Passes.h"
#include "passes/shard/ShardPasses.h"

using namespace mlir;
using namespace tandem;

void tandem::addChooseSaved(OpPassManager &passes, StringRef kind) {
  ChooseSavedOptions options;
  options.kind = kind.str();
  passes.addPass(createChooseSaved(options));
}

void tandem::addDividePasses(OpPassManager &passes) {
  passes.addPass(createSplitJoint());
  // Readers are ops of the model, and no copies.
  passes.addPass(createRecordReaders());
  passes.nest<func::FuncOp>().addPass(createInsertHostCopies());
  passes.addPass(createBuildUpdate());
  // It is of one process, unlike what it follows.
  addShardPasses(passes);
  passes.addPass(createBuildStep());
  // Of the step alone: other programs see params that anybody may have written.
  passes.addPass(createKeepCasts());
}

LogicalResult tandem::rehearsePartition(ModuleOp module, StringRef kind) {
  PassManager passes(module.getContext(), ModuleOp::getOperationName());
  passes.enableVerifier(false); // what it makes is thrown away
  if (!kind.empty())
    addChooseSaved(passes, kind);
  addDividePasses(passes);
  return passes.run(module);
}
