//===- AlongDim.cpp - sums and order along one dimension ------------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/reference/Generic.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

/// Calls `body(first, step, size)` for each line of elements along `dim`.
template <typename Body>
static void forEachLine(ArrayRef<int64_t> shape, int64_t dim, Body body) {
  int64_t outer = 1, step = 1, size = shape[dim];
  for (int64_t d = 0, rank = shape.size(); d < rank; ++d)
    (d < dim ? outer : step) *= d == dim ? 1 : shape[d];
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t j = 0; j < step; ++j)
      body(i * size * step + j, step, size);
}

//===----------------------------------------------------------------------===//
// cumsum
//===----------------------------------------------------------------------===//

LogicalResult CumsumOp::inferReturnTypes(MLIRContext *, Loc loc,
                                         Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType();
  auto shape = infer::shapeOf(loc, x);
  if (failed(shape) ||
      failed(expectDim(loc, "dim", adaptor.getDim(), shape->size())))
    return failure();
  return pushShape(loc, x, *shape, types);
}

int64_t CumsumOp::getFlops() { return getX().getType().getNumElements(); }

LogicalResult CumsumOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.expr(CumsumOp::create(p.builder, p.loc, p.dy(), getDim(),
                                     getExclusive(), !getReverse())));
  return success();
}

void CumsumOp::evaluate(reference::Inputs in, reference::Outputs out) {
  Type element = getX().getType().getElementType();
  forEachLine(out[0].shape, getDim(),
              [&](int64_t first, int64_t step, int64_t size) {
                double sum = 0;
                for (int64_t i = 0; i < size; ++i) {
                  int64_t at = first + (getReverse() ? size - 1 - i : i) * step;
                  double next = reference::sum(element, sum, (*in[0])[at]);
                  out[0][at] = getExclusive() ? sum : next;
                  sum = next;
                }
              });
}

//===----------------------------------------------------------------------===//
// sort
//===----------------------------------------------------------------------===//

LogicalResult SortOp::inferReturnTypes(MLIRContext *context, Loc loc,
                                       Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType();
  auto shape = infer::shapeOf(loc, x);
  if (failed(shape) ||
      failed(expectDim(loc, "dim", adaptor.getDim(), shape->size())) ||
      failed(pushShape(loc, x, *shape, types)))
    return failure();
  types.push_back(RankedTensorType::get(*shape, IntegerType::get(context, 64)));
  return success();
}

int64_t SortOp::getFlops() {
  auto type = getX().getType();
  return type.getNumElements() *
         (1 + llvm::Log2_64_Ceil(type.getDimSize(getDim()) + 1));
}

/// The row-major positions in the operand of the sorted elements.
static Expr positionsOf(const Expr &indices, int64_t dim) {
  Expr position = indices;
  int64_t stride = 1;
  for (int64_t d = indices.rank() - 1; d >= 0; --d) {
    Expr index = indices;
    if (d != dim)
      index = indices.wrap(
          IotaOp::create(*indices.builder, indices.loc, indices.type(), d));
    Expr part = index * static_cast<double>(stride);
    position = d == indices.rank() - 1 ? part : position + part;
    stride *= indices.dim(d);
  }
  return position;
}

LogicalResult SortOp::pullback(Pullback &p) {
  if (!p.needs(0))
    return success();
  int64_t n = p.x().type().getNumElements();
  Expr positions = positionsOf(p.out(1), getDim()).reshape({n});
  Expr dx = p.expr(TakeGradOp::create(p.builder, p.loc, p.dy().reshape({n}),
                                      positions, ArrayRef<int64_t>{n}));
  p.set(0, dx.reshape(p.x().shape()));
  return success();
}

/// `x` comes before `y`; NaN after all numbers.
static bool isLess(double x, double y) {
  return x < y || (!std::isnan(x) && std::isnan(y));
}

void SortOp::evaluate(reference::Inputs in, reference::Outputs out) {
  const reference::Array &x = *in[0];
  forEachLine(x.shape, getDim(),
              [&](int64_t first, int64_t step, int64_t size) {
                auto order = llvm::to_vector(llvm::seq<int64_t>(0, size));
                llvm::sort(order, [&](int64_t i, int64_t j) {
                  double a = x[first + i * step], b = x[first + j * step];
                  if (getDescending())
                    std::swap(a, b);
                  return isLess(a, b) || (!isLess(b, a) && i < j);
                });
                for (int64_t i = 0; i < size; ++i) {
                  out[0][first + i * step] = x[first + order[i] * step];
                  out[1][first + i * step] = static_cast<double>(order[i]);
                }
              });
}
