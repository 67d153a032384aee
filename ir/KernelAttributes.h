//===- KernelAttributes.h - what plan says of a kernel beside its record --===//
#ifndef TANDEM_IR_KERNELATTRIBUTES_H
#define TANDEM_IR_KERNELATTRIBUTES_H

#include "ir/Init.h"

namespace tandem {

/// On a planned kernel, and in `tandem.kernel` of a lowered one: pairs of a
/// result and the input that it overwrites, [array<i64: 0, 2>].
inline constexpr llvm::StringLiteral kInPlaceAttr = "in_place";
/// On a kernel with several loop nests: how many results each has, in order.
inline constexpr llvm::StringLiteral kPartsAttr = "parts";
/// On a kernel: the numbers of the results that are written past the caches,
/// rising.
inline constexpr llvm::StringLiteral kPastCachesAttr = "past_caches";

/// A result of a kernel and an input of it.
using InPlacePair = std::pair<unsigned, unsigned>;

/// Reads `in_place` of an op with so many results and inputs; null has no
/// pairs.
mlir::FailureOr<llvm::SmallVector<InPlacePair, 2>>
readInPlace(EmitError error, mlir::Attribute attribute, unsigned results,
            unsigned inputs);

} // namespace tandem

#endif
