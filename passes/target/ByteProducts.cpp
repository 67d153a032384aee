//===- ByteProducts.cpp - products of factors of 8 bits -------------------===//
#include "passes/target/ByteProducts.h"

#include "passes/target/Target.h"

#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace tandem;

/// The compute capabilities from which mma.sync takes them.
static constexpr int64_t firstOfFloats = 89, firstOfIntegers = 80;

static bool isByte(Type type) {
  return isNarrowFloat(type) ||
         (isa<IntegerType>(type) && type.getIntOrFloatBitWidth() == 8);
}

Value tandem::bytesOfFactor(MatmulOp product, unsigned number) {
  auto cast = product->getOperand(number).getDefiningOp<CastOp>();
  Value bytes = cast ? cast->getOperand(0) : Value();
  return bytes && isByte(getElementTypeOrSelf(bytes)) ? bytes : Value();
}

int64_t tandem::termsOf(MatmulOp product) {
  RankedTensorType lhs = product.getLhs().getType();
  return lhs.getDimSize(lhs.getRank() - (product.getTransposeLhs() ? 2 : 1));
}

bool tandem::fitsWarpgroups(MatmulOp product) {
  // Of 16 bytes.
  return hasWarpgroups(cudaArchOf(product)) && termsOf(product) % 16 == 0;
}

/// The largest magnitude of an integer type.
static int64_t largestOf(Type type) {
  return type.isUnsignedInteger() ? 255 : 128;
}

bool tandem::hasFloat8Products(Operation *op) {
  return isForCuda(op) && cudaArchOf(op).sm >= firstOfFloats;
}

bool tandem::multipliesBytes(MatmulOp product) {
  Value a = bytesOfFactor(product, 0), b = bytesOfFactor(product, 1);
  if (!a || !b || !isForCuda(product))
    return false;
  Type ofA = getElementTypeOrSelf(a), ofB = getElementTypeOrSelf(b);
  Type result = product.getY().getType().getElementType();
  int64_t terms = termsOf(product);
  if (terms == 0 || isa<FloatType>(ofA) != isa<FloatType>(ofB))
    return false;
  if (isa<FloatType>(ofA))
    return hasFloat8Products(product) && productPrecision(product) == "tf32";
  return cudaArchOf(product).sm >= firstOfIntegers &&
         (result.isF32() || result.isF64()) &&
         terms <= std::numeric_limits<int32_t>::max() /
                      (largestOf(ofA) * largestOf(ofB));
}
