//===- ByteProducts.h - products of factors of 8 bits ---------------------===//
//
// A product whose factors are casts of f8E4M3FN, f8E5M2, i8 or ui8, which the
// tensor cores of some GPUs multiply as they are: half the bytes of bf16 are
// read, and no wider tensor is ever made.
//
// A product of two f8 values has at most 8 significant bits and is exact. Of
// 32 of them some cores keep 13 bits below the largest (that is known of sm_89
// and of wgmma on sm_90), which is more than what tf32 keeps of a factor, and
// less than what f32 does: products that may not be of tf32 are none of these.
// Sums of integers are exact in 32 bits.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_TARGET_BYTEPRODUCTS_H
#define TANDEM_PASSES_TARGET_BYTEPRODUCTS_H

#include "ir/Ops.h"

namespace tandem {

/// The tensor of f8E4M3FN, f8E5M2, i8 or ui8 of which the factor `number` of a
/// product is a cast; null if it is none.
mlir::Value bytesOfFactor(MatmulOp product, unsigned number);

/// True if the tensor cores of the target of the module around `op` multiply f8
/// values.
bool hasFloat8Products(mlir::Operation *op);

/// True if the tensor cores of the product's target multiply the bytes of which
/// its factors are casts, with sums as exact as its precision asks for.
bool multipliesBytes(MatmulOp product);

/// The terms of each sum of a product.
int64_t termsOf(MatmulOp product);

/// True if wgmma takes the bytes of such a product once both factors lie along
/// k: the target has it, and rows are whole pieces of bulk copies.
bool fitsWarpgroups(MatmulOp product);

} // namespace tandem

#endif
