//===- ShardPasses.cpp - the passes that make programs local to a rank ----===//
#include "passes/shard/ShardPasses.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace tandem;

void tandem::addShardPasses(OpPassManager &passes) {
  passes.addPass(createAssignShardings());
  passes.addPass(createShard());
  // What is gathered for the backward is the backward's, and collectives have
  // no pass yet.
  passes.nest<func::FuncOp>().addPass(createMarkPasses());
}
