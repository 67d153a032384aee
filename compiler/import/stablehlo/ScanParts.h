//===- ScanParts.h - what a scan reads and writes slice by slice ----------===//
//
// JAX's scan is a `while` that reads slice i of whole tensors and writes slice
// i of others, which it carries along. While its body is translated, reads of a
// tensor from outside at the counter become an input of the scan, and a carry
// of which the slice at the counter is written, and nothing else, becomes a
// stack: else a backward would keep the whole tensor for each iteration.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_STABLEHLO_SCANPARTS_H
#define TANDEM_COMPILER_IMPORT_STABLEHLO_SCANPARTS_H

#include "compiler/import/stablehlo/FlowBody.h"

#include "llvm/ADT/MapVector.h"

namespace tandem::stablehlo {

struct ScanParts {
  /// A write of a slice, and the ops that make it.
  struct Output {
    mlir::Value carry, slice, whole;
    bool isReverse = false;
    llvm::SmallVector<mlir::Operation *> ops;
  };

  FlowBody *body;
  mlir::Value counter; ///< its argument in the body
  int64_t start, trips;
  /// Block arguments by what they are slices of; with 1 from the last on.
  llvm::MapVector<std::pair<mlir::Value, int>, mlir::Value> inputs;
  std::vector<Output> outputs;

  /// The write that makes `yielded` of `carry`, of which that is the only use.
  const Output *outputOf(mlir::Value carry, mlir::Value yielded) const;
};

/// The slice of an input, if that is what is read: `sizes` at `starts` of `x`;
/// null otherwise.
mlir::Value scanInputOf(Node &node, mlir::Value x, Sizes sizes,
                        llvm::ArrayRef<mlir::Value> starts);

/// Where the builder stands, for `noteScanOutput`.
mlir::Operation *scanPosition(Node &node);

/// Remembers that `whole`, made by the ops behind `before`, is `x` with `slice`
/// at `starts`, if that is a slice of the innermost scan.
void noteScanOutput(Node &node, mlir::Value x, mlir::Value slice,
                    llvm::ArrayRef<mlir::Value> starts, mlir::Value whole,
                    mlir::Operation *before);

/// Erases the ops of a write that has become a stack.
void eraseScanOutput(const ScanParts::Output &output);

} // namespace tandem::stablehlo

#endif
