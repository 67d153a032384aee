//===- BuildOp.h - makes ops from names and attributes --------------------===//
//
// What the tracer and the importers share: an op of the dialect from its name,
// operands and attributes, with result types inferred. Whatever is wrong is a
// diagnostic at `loc` and a failure, never an assertion.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_BUILDOP_H
#define TANDEM_COMPILER_BUILDOP_H

#include "mlir/IR/Builders.h"

namespace tandem {

/// Creates the op `tandem.<name>`. `types` are its result types; empty: they
/// are inferred. The op is verified.
mlir::FailureOr<mlir::Operation *>
buildOp(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
        mlir::ValueRange operands,
        llvm::ArrayRef<mlir::NamedAttribute> attributes,
        mlir::TypeRange types = {});

/// Fails, with a diagnostic, for the largest or smallest of nothing. What
/// formulas make of that in between is the neutral element, but a model that
/// asks for it is mistaken.
mlir::LogicalResult expectElements(mlir::Operation *op);

} // namespace tandem

#endif
