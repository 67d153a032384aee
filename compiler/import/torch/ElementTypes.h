//===- ElementTypes.h - PyTorch's element types ---------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_TORCH_ELEMENTTYPES_H
#define TANDEM_COMPILER_IMPORT_TORCH_ELEMENTTYPES_H

#include "compiler/import/TensorData.h"

#include "mlir/IR/BuiltinTypes.h"

namespace tandem::torch {

// `dtype` is a number of the ScalarType in torch.export's schema.

/// The same type; Undefined if an archive's tensor cannot have it.
ElementKind kindOf(int64_t dtype);
/// "float32": PyTorch's word.
std::string spellingOf(int64_t dtype);
/// The element type of the dialect; null if it has none.
mlir::Type elementTypeOf(int64_t dtype, mlir::MLIRContext *context);

} // namespace tandem::torch

#endif
