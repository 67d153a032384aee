//===- GemmFactor.cpp - tensors as the factors of a product ---------------===//
#include "passes/lower/cuda/GemmFactor.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cuda_lower;

MatrixFactor::MatrixFactor(AnchorKernel &kernel, ThreadCode &code,
                           unsigned number, ArrayRef<AffineExpr> index,
                           ArrayRef<int64_t> sizes, ArrayRef<unsigned> lines,
                           ArrayRef<unsigned> k)
    : kernel(kernel), code(code), number(number), index(index), sizes(sizes),
      lineDims(lines), kDims(k) {
  operand = kernel.operand(number, index, sizes);
  inMemory = operand.isAffine();
  if (!inMemory) {
    element = scalar::computeType(operand.element);
    // Neighbours in the operand are likely neighbours in memory.
    alongK = llvm::any_of(
        kDims, [&](unsigned d) { return index.back().isFunctionOfDim(d); });
    return;
  }
  element = operand.element;
  int64_t ofK = neighbours(kDims, lineDims);
  int64_t ofLines = neighbours(lineDims, kDims);
  auto stride = [&](const Dims &axis) {
    return std::abs(operand.stride(axis.back()));
  };
  vector = std::max(ofK, ofLines);
  alongK =
      ofK > ofLines || (ofK == ofLines && stride(kDims) <= stride(lineDims));
}

bool MatrixFactor::isOne(const Dims &axis) const {
  for (size_t i = 1; i < axis.size(); ++i)
    if (sizes[axis[i - 1]] > 1 &&
        operand.stride(axis[i - 1]) != operand.stride(axis[i]) * sizes[axis[i]])
      return false;
  return true;
}

int64_t MatrixFactor::neighbours(const Dims &axis, const Dims &other) const {
  if (operand.stride(axis.back()) != 1)
    return 1;
  int64_t count = 16 / elementBytes(operand.element);
  auto fits = [&](int64_t distance) {
    while (distance % count != 0)
      count /= 2;
  };
  fits(isOne(axis) ? [&] {
    int64_t extent = 1;
    for (unsigned d : axis)
      extent *= sizes[d];
    return extent;
  }() : sizes[axis.back()]);
  SmallVector<AffineExpr> zeros(
      sizes.size(), getAffineConstantExpr(0, operand.position.getContext()));
  fits(
      cast<AffineConstantExpr>(operand.position.replaceDims(zeros)).getValue());
  for (unsigned d = 0; d < sizes.size(); ++d)
    if (d != axis.back() && sizes[d] > 1 &&
        !(isOne(axis) && llvm::is_contained(axis, d)))
      fits(operand.stride(d));
  return count;
}

void MatrixFactor::enter(ArrayRef<Value> values) {
  dims.assign(values.begin(), values.end());
  if (!inMemory)
    return;
  SmallVector<Value> fixed(dims);
  for (unsigned d : llvm::concat<const unsigned>(lineDims, kDims))
    fixed[d] = Value();
  base = operand.at(code, fixed);
}

void MatrixFactor::spread(const Dims &axis, Value at,
                          MutableArrayRef<Value> values) {
  for (size_t i = axis.size(); i-- > 1;)
    std::tie(at, values[axis[i]]) = code.split(at, sizes[axis[i]]);
  values[axis[0]] = at;
}

Value MatrixFactor::offset(const Dims &axis, Value at) {
  if (isOne(axis))
    return code.mul(at, operand.stride(axis.back()));
  SmallVector<Value> values(sizes.size());
  spread(axis, at, values);
  Value sum = code.index(0);
  for (unsigned d : axis)
    sum = code.add(sum, code.mul(values[d], operand.stride(d)));
  return sum;
}

GemmFactor::Spot MatrixFactor::spot(Value line, Value k) {
  Value ofLine = code.add(base, offset(lineDims, line));
  return {operand.memref, code.add(ofLine, offset(kDims, k)), Value()};
}

Value MatrixFactor::compute(Value line, Value k) {
  SmallVector<Value> values(dims);
  spread(lineDims, line, values);
  spread(kDims, k, values);
  return kernel.element(number, index, values, sizes);
}
