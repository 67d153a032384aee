//===- Chunks.h - kernels in pieces that are compiled apart ---------------===//
//
// Kernels are compiled in chunks of a fixed size, each in an LLVM context of
// its own: several chunks at a time, and the bytes depend on nothing but the
// input. A function that several chunks use is compiled in each.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_CHUNKS_H
#define TANDEM_COMPILER_EMIT_CHUNKS_H

#include "runtime/artifact/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <string>
#include <vector>

namespace tandem {

using Chunk = mlir::OwningOpRef<mlir::ModuleOp>;

/// Copies the LLVM functions `exported` of `kernels`, an op with a symbol
/// table, and what they use: some to each chunk, in their order. In a chunk
/// only those and what it declares are visible from outside, and nothing has
/// attributes of the dialect.
std::vector<Chunk> chunksOf(mlir::Operation *kernels,
                            llvm::ArrayRef<std::string> exported);

/// Calls `work` with 0 to `count - 1`, on so many threads (0: one for each
/// processor). Returns the failure of the smallest number, if any.
Status forEachIndex(size_t count, int threads,
                    const std::function<Status(size_t)> &work);

} // namespace tandem

#endif
