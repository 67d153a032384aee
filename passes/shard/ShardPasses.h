//===- ShardPasses.h - the passes that make programs local to a rank ------===//
#ifndef TANDEM_PASSES_SHARD_SHARDPASSES_H
#define TANDEM_PASSES_SHARD_SHARDPASSES_H

#include "mlir/Pass/PassManager.h"

namespace tandem {

/// Adds the passes that give shardings to the programs of a module that are of
/// one process, and make them those of a rank. Without a mesh they do nothing.
void addShardPasses(mlir::OpPassManager &passes);

} // namespace tandem

#endif
