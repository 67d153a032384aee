//===- Known.h - values that are known when compiling ---------------------===//
//
// Shapes, axes and the like are data in ONNX. What follows from constants is
// evaluated by the reference, in double, so integers beyond 2^53 that were
// calculated (not written down) saturate or round.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_KNOWN_H
#define TANDEM_COMPILER_IMPORT_ONNX_KNOWN_H

#include "compiler/import/onnx/Graph.h"
#include "ir/reference/Array.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <optional>

namespace tandem::onnx {

/// The dialect's element type for ONNX's; null if there is none.
mlir::Type elementTypeOf(ElementKind kind, mlir::MLIRContext *context);
/// ONNX's for the dialect's.
ElementKind kindOf(mlir::Type elementType);
/// The type of a tensor of the file; null if the dialect has none such.
mlir::RankedTensorType typeOf(const TensorData &data,
                              mlir::MLIRContext *context);
/// The same elements as an attribute. The type must not be null.
mlir::DenseElementsAttr attributeOf(const TensorData &data,
                                    mlir::MLIRContext *context);
TensorPtr dataOf(mlir::DenseElementsAttr attribute);
/// Elements as integers (floats toward zero) or numbers, row-major.
llvm::SmallVector<int64_t> integersOf(const TensorData &data);
llvm::SmallVector<double> numbersOf(const TensorData &data);

/// Evaluates values of the program that depend on constants alone.
class KnownValues {
public:
  /// `leaf` gives the data of a block argument that stands for a known tensor;
  /// null for others.
  using Leaf = std::function<TensorPtr(mlir::Value)>;
  explicit KnownValues(Leaf leaf) : leaf(std::move(leaf)) {}

  /// The value; null if it is not known. Then `unknown` has the block
  /// arguments on which it depends.
  TensorPtr of(mlir::Value value,
               llvm::SmallVectorImpl<mlir::Value> *unknown = nullptr);

private:
  using Array = reference::Array;
  bool evaluate(mlir::Operation *op);
  const Array *find(mlir::Value value);

  Leaf leaf;
  llvm::DenseMap<mlir::Value, std::shared_ptr<const Array>> arrays;
};

} // namespace tandem::onnx

#endif
