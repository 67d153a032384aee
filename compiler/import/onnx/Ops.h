//===- Ops.h - what translations of operators share -----------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_OPS_H
#define TANDEM_COMPILER_IMPORT_ONNX_OPS_H

#include "compiler/import/onnx/Translator.h"

#include "llvm/ADT/STLExtras.h"

namespace tandem::onnx {

/// Fails, with an error, unless the first `count` operands are dense tensors.
inline mlir::LogicalResult expectOperands(Node &node, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!node.has(i))
      return node.error("operand #" + llvm::Twine(i) + " is missing");
    if (!node.type(i))
      return node.unsupported("operand #" + llvm::Twine(i) +
                              ", which is no dense tensor");
  }
  return mlir::success();
}

/// Gives the first result; fails if it could not be made, which was said then.
inline mlir::LogicalResult give(Node &node, mlir::Value value) {
  if (!value)
    return mlir::failure();
  node.result(0, value);
  return mlir::success();
}

/// `x` with another element type.
inline mlir::Value castTo(Node &node, mlir::Value x, mlir::Type element) {
  return x ? node.wrap(x).cast(element).value : x;
}

/// A dimension of a tensor of `rank`, negative ones counted from the end; an
/// error if it is none.
mlir::FailureOr<int64_t> dimension(Node &node, llvm::StringRef what,
                                   int64_t given, int64_t rank);
/// The same of a list, whose entries must differ.
mlir::FailureOr<llvm::SmallVector<int64_t>>
dimensions(Node &node, llvm::StringRef what, llvm::ArrayRef<int64_t> given,
           int64_t rank);

} // namespace tandem::onnx

#endif
