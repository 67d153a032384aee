//===- Autocast.h - what a module says of mixed precision -----------------===//
//
// Read by passes/precision, which takes it off.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_AUTOCAST_H
#define TANDEM_IR_AUTOCAST_H

#include "mlir/IR/Types.h"

namespace tandem {

/// On the module: the low type of its ops of f32, bf16 or f16.
inline constexpr llvm::StringLiteral kAmpAttr = "tandem.amp";
/// On the module: the weights whose products are of f8 values,
/// `.*attn.*:margin=1` (passes/precision/Fp8Spec.h).
inline constexpr llvm::StringLiteral kFp8Attr = "tandem.fp8";
/// On an op: the same, of the region that it was recorded in; f32 where that
/// switches mixed precision off.
inline constexpr llvm::StringLiteral kAutocastAttr = "tandem.autocast";
/// On an op: the type that it is computed in, whatever else is said.
inline constexpr llvm::StringLiteral kComputeTypeAttr = "tandem.compute_type";
/// On the module: the type that its backward is computed in. Without it an op
/// of the backward has the types of its forward op.
inline constexpr llvm::StringLiteral kBackwardTypeAttr = "tandem.backward_type";

/// True for bf16 and f16.
inline bool isLowFloat(mlir::Type type) {
  return type.isBF16() || type.isF16();
}
/// True for f32, bf16 and f16: what mixed precision exchanges. f64 stays.
inline bool isMixable(mlir::Type type) {
  return type.isF32() || isLowFloat(type);
}

} // namespace tandem

#endif
