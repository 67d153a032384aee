//===- Indices.cpp - shapes and indices of anchors' operands --------------===//
#include "passes/lower/common/Indices.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

int64_t lower::product(ArrayRef<int64_t> sizes) {
  int64_t n = 1;
  for (int64_t size : sizes)
    n *= size;
  return n;
}
SmallVector<AffineExpr> lower::dimensions(MLIRContext *context, unsigned n) {
  SmallVector<AffineExpr> dims;
  for (unsigned d = 0; d < n; ++d)
    dims.push_back(getAffineDimExpr(d, context));
  return dims;
}

SmallVector<Value> lower::split(const Code &code, Value flat,
                                ArrayRef<int64_t> shape) {
  SmallVector<Value> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = d == 0 ? flat : code.rem(flat, shape[d]);
    flat = code.div(flat, shape[d]);
  }
  return index;
}

Value lower::toIndex(const Code &code, Value integer) {
  return scalar::toIndex(code.b, code.loc, integer);
}
