//===- IndexMathTest.cpp - index expressions mean what they meant ---------===//
//
// Random expressions are evaluated at every index before and after they are
// made simpler, and what reshapes took apart comes together again.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/IndexMath.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace tandem;

namespace {

using Shape = SmallVector<int64_t>;

int64_t elementsOf(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

/// A shape of as many elements.
Shape drawShape(int64_t elements, std::mt19937 &random) {
  Shape shape;
  while (elements > 1 && shape.size() < 3) {
    SmallVector<int64_t> divisors;
    for (int64_t d = 1; d <= elements; ++d)
      if (elements % d == 0)
        divisors.push_back(d);
    shape.push_back(divisors[random() % divisors.size()]);
    elements /= shape.back();
  }
  shape.push_back(elements);
  return shape;
}

SmallVector<AffineExpr> dimsOf(ArrayRef<int64_t> sizes, MLIRContext &context) {
  SmallVector<AffineExpr> dims;
  for (size_t d = 0; d < sizes.size(); ++d)
    dims.push_back(simplifyIndex(getAffineDimExpr(d, &context), sizes));
  return dims;
}

int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> values;
  for (int64_t dim : dims)
    values.push_back(getAffineConstantExpr(dim, expr.getContext()));
  return cast<AffineConstantExpr>(expr.replaceDims(values)).getValue();
}

AffineExpr drawExpr(ArrayRef<int64_t> sizes, int depth, std::mt19937 &random,
                    MLIRContext &context) {
  if (depth == 0)
    return getAffineDimExpr(random() % sizes.size(), &context);
  AffineExpr from = drawExpr(sizes, depth - 1, random, context);
  int64_t by = 2 + random() % 6;
  switch (random() % 6) {
  case 0:
    return from.floorDiv(by);
  case 1:
    return from % by;
  case 2:
    return from * by;
  case 3:
    return from - by;
  case 4:
    return (from % (by * 2)).floorDiv(2);
  default:
    return from + drawExpr(sizes, depth - 1, random, context);
  }
}

TEST(IndexMath, SimplerExpressionsHaveTheSameValues) {
  MLIRContext context;
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    Shape sizes = drawShape(24 << random() % 3, random);
    AffineExpr expr = drawExpr(sizes, 1 + random() % 5, random, context);
    AffineExpr simple = simplifyIndex(expr, sizes);
    SmallVector<AffineExpr> zero(sizes.size(),
                                 getAffineConstantExpr(0, &context));
    for (int64_t at = 0; at < elementsOf(sizes); ++at) {
      Shape dims;
      for (AffineExpr d :
           delinearize(getAffineConstantExpr(at, &context), sizes, {}))
        dims.push_back(cast<AffineConstantExpr>(d).getValue());
      ASSERT_EQ(evaluate(expr, dims), evaluate(simple, dims))
          << "draw " << i << ", element " << at;
    }
  }
}

// An index that went through [24, 4] -> [2, 1, 48] -> [2, 4, 3, 4] and back was
// written otherwise than before: a kernel was refused for it.
TEST(IndexMath, ReshapesThatLeadBackLeaveTheIndex) {
  MLIRContext context;
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    int64_t elements = ArrayRef<int64_t>{96, 360, 210, 64}[random() % 4];
    Shape sizes = drawShape(elements, random);
    SmallVector<AffineExpr> dims = dimsOf(sizes, context), index = dims;
    Shape shape = sizes;
    for (const Shape &to : {drawShape(elements, random), sizes}) {
      index = delinearize(linearize(index, shape, &context), to, sizes);
      shape = to;
    }
    EXPECT_TRUE(index == dims) << "draw " << i;
  }
}

TEST(IndexMath, DigitsOfDigitsAreDigits) {
  MLIRContext context;
  Shape sizes = {24, 4}, shape = sizes;
  SmallVector<AffineExpr> dims = dimsOf(sizes, context), index = dims;
  for (const Shape &to :
       {Shape{2, 1, 48}, Shape{2, 4, 3, 4}, Shape{2, 1, 48}, sizes}) {
    index = delinearize(linearize(index, shape, &context), to, sizes);
    shape = to;
  }
  EXPECT_TRUE(index == dims);
}

} // namespace
