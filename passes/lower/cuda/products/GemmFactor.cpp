//===- GemmFactor.cpp - tensors as the factors of a product ---------------===//
#include "passes/lower/cuda/products/GemmFactor.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

MatrixFactor::MatrixFactor(AnchorKernel &kernel, ThreadCode &code,
                           unsigned number, ArrayRef<AffineExpr> index,
                           ArrayRef<int64_t> sizes, ArrayRef<unsigned> lines,
                           ArrayRef<unsigned> k, bool ofCast)
    : kernel(kernel), code(code), number(number), index(index), sizes(sizes),
      lineDims(lines), kDims(k) {
  operand = kernel.operand(number, index, sizes, ofCast);
  inMemory = operand.isAffine();
  if (ofCast)
    takeBytes();
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
  for (unsigned d = 0; d < sizes.size(); ++d)
    if (!llvm::is_contained(lineDims, d) && !llvm::is_contained(kDims, d) &&
        sizes[d] > 1 && operand.stride(d) != 0)
      batchDims.push_back(d);
  tensor = asTensor();
}

/// Whatever bytes are of, they are moved as i8.
void MatrixFactor::takeBytes() {
  format = operand.element;
  operand.element = code.b.getI8Type();
  if (!inMemory || !format.isUnsignedInteger())
    return;
  OpBuilder::InsertionGuard guard(code.b);
  code.b.setInsertionPointAfterValue(operand.memref);
  auto type = cast<MemRefType>(operand.memref.getType());
  operand.memref =
      UnrealizedConversionCastOp::create(
          code.b, code.loc, MemRefType::get(type.getShape(), operand.element),
          operand.memref)
          .getResult(0);
}

std::optional<FactorTensor> MatrixFactor::asTensor() const {
  // The limits of cuTensorMapEncodeTiled.
  constexpr size_t mostDims = 5;
  constexpr int64_t mostElements = int64_t(1) << 31,
                    mostBytes = (int64_t(1) << 40) - 1;
  auto buffer = dyn_cast<BlockArgument>(whole());
  int64_t bytes = elementBytes(element);
  const Dims &inner = alongK ? kDims : lineDims,
             &outer = alongK ? lineDims : kDims;
  if (!buffer || !isOne(inner) || !isOne(outer) ||
      operand.stride(inner.back()) != 1 || batchDims.size() + 2 > mostDims ||
      first() < 0 || first() * bytes % 16)
    return std::nullopt;
  FactorTensor tensor;
  tensor.buffer = buffer.getArgNumber();
  tensor.offset = first();
  tensor.sizes = {extent(inner), extent(outer)};
  tensor.strides = {1, operand.stride(outer.back())};
  for (unsigned d : llvm::reverse(batchDims)) {
    tensor.sizes.push_back(sizes[d]);
    tensor.strides.push_back(operand.stride(d));
  }
  for (auto [i, stride] : llvm::enumerate(tensor.strides))
    if (tensor.sizes[i] > mostElements ||
        (i > 0 && (stride <= 0 || stride * bytes % 16 != 0 ||
                   stride > mostBytes / bytes)))
      return std::nullopt;
  return tensor;
}

Value MatrixFactor::whole() const {
  Value tensor = operand.tensor;
  while (auto view = tensor.getDefiningOp<ViewOpInterface>())
    tensor = view->getOperand(0);
  return tensor;
}

SmallVector<Value> MatrixFactor::batchPlace() {
  SmallVector<Value> place;
  for (unsigned d : llvm::reverse(batchDims))
    place.push_back(dims[d]);
  return place;
}

int64_t MatrixFactor::extent(const Dims &axis) const {
  int64_t extent = 1;
  for (unsigned d : axis)
    extent *= sizes[d];
  return extent;
}

int64_t MatrixFactor::first() const {
  SmallVector<AffineExpr> zeros(
      sizes.size(), getAffineConstantExpr(0, operand.position.getContext()));
  return cast<AffineConstantExpr>(operand.position.replaceDims(zeros))
      .getValue();
}

bool MatrixFactor::isOne(const Dims &axis) const {
  for (size_t i = 1; i < axis.size(); ++i)
    if (sizes[axis[i - 1]] > 1 &&
        operand.stride(axis[i - 1]) != operand.stride(axis[i]) * sizes[axis[i]])
      return false;
  return true;
}

bool MatrixFactor::hasRoom(const Dims &axis, int64_t count) const {
  int64_t last =
      first() + static_cast<int64_t>(llvm::alignTo(extent(axis), count) - 1);
  for (unsigned d = 0; d < sizes.size(); ++d) {
    if (operand.stride(d) < 0)
      return false;
    if (!llvm::is_contained(axis, d))
      last += (sizes[d] - 1) * operand.stride(d);
  }
  return last < cast<RankedTensorType>(whole().getType()).getNumElements();
}

int64_t MatrixFactor::neighbours(const Dims &axis, const Dims &other) const {
  if (operand.stride(axis.back()) != 1)
    return 1;
  int64_t count = 16 / elementBytes(operand.element);
  auto fits = [&](int64_t distance) {
    while (distance % count != 0)
      count /= 2;
  };
  fits(first());
  for (unsigned d = 0; d < sizes.size(); ++d)
    if (d != axis.back() && sizes[d] > 1 &&
        !(isOne(axis) && llvm::is_contained(axis, d)))
      fits(operand.stride(d));
  if (!isOne(axis))
    fits(sizes[axis.back()]);
  else if (!hasRoom(axis, count))
    fits(extent(axis));
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
