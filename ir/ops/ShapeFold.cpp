//===- ShapeFold.cpp - chains of views become one view --------------------===//
//
// Views only move elements, so every rewrite here keeps every bit. A view that
// leaves the row-major order alone becomes a reshape, which costs nothing.
//
//===----------------------------------------------------------------------===//
#include "ir/Ops.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tandem;

static ArrayRef<int64_t> shapeOf(Value v) {
  if (auto ref = dyn_cast<RefType>(v.getType()))
    return ref.getShape();
  return cast<RankedTensorType>(v.getType()).getShape();
}

//===----------------------------------------------------------------------===//
// broadcast
//===----------------------------------------------------------------------===//

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  if (auto inner = getX().getDefiningOp<BroadcastOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t d : inner.getDims())
      composed.push_back(getDims()[d]);
    setOperand(inner.getX());
    setDims(composed);
    return getResult();
  }
  return {};
}

namespace {
/// A broadcast that only adds dimensions of size 1.
struct BroadcastToReshape : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const final {
    ArrayRef<int64_t> from = shapeOf(op.getX()), to = op.getShape();
    auto isSize = [](int64_t size) { return size != 1; };
    if (!llvm::equal(llvm::make_filter_range(from, isSize),
                     llvm::make_filter_range(to, isSize)))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getX(), to);
    return success();
  }
};

/// A broadcast of a reshape that only added dimensions of size 1.
struct BroadcastOfReshape : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const final {
    auto reshape = op.getX().getDefiningOp<ReshapeOp>();
    if (!reshape)
      return failure();
    SmallVector<int64_t> kept, dims;
    for (auto [size, d] : llvm::zip_equal(reshape.getShape(), op.getDims()))
      if (size != 1) {
        kept.push_back(size);
        dims.push_back(d);
      }
    if (shapeOf(reshape.getX()) != ArrayRef(kept))
      return failure();
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, reshape.getX(), op.getShape(),
                                             dims);
    return success();
  }
};

/// A permutation that only moves dimensions of size 1.
struct PermuteToReshape : OpRewritePattern<PermuteOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PermuteOp op,
                                PatternRewriter &rewriter) const final {
    ArrayRef<int64_t> from = shapeOf(op.getX());
    SmallVector<int64_t> moved;
    for (int64_t d : op.getPermutation())
      if (from[d] != 1)
        moved.push_back(d);
    if (!llvm::is_sorted(moved))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getX(), shapeOf(op.getY()));
    return success();
  }
};
} // namespace

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<BroadcastToReshape, BroadcastOfReshape>(context);
}

void PermuteOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<PermuteToReshape>(context);
}

//===----------------------------------------------------------------------===//
// reshape, permute, slice, pad, reverse
//===----------------------------------------------------------------------===//

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  if (auto inner = getX().getDefiningOp<ReshapeOp>()) {
    setOperand(inner.getX());
    return getResult();
  }
  return {};
}

OpFoldResult PermuteOp::fold(FoldAdaptor) {
  if (llvm::is_sorted(getPermutation()))
    return getX();
  if (auto inner = getX().getDefiningOp<PermuteOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t d : getPermutation())
      composed.push_back(inner.getPermutation()[d]);
    setOperand(inner.getX());
    setPermutation(composed);
    return getResult();
  }
  return {};
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  // Of no elements the start may lie behind the end of the inner one.
  auto inner = getX().getDefiningOp<SliceOp>();
  if (inner && !llvm::is_contained(shapeOf(getY()), 0)) {
    // Element i of the outer slice is element start + i * stride of the inner.
    SmallVector<int64_t> starts, limits, strides;
    for (auto [d, count] : llvm::enumerate(shapeOf(getY()))) {
      int64_t stride = inner.getStrides()[d] * getStrides()[d];
      starts.push_back(inner.getStarts()[d] +
                       getStarts()[d] * inner.getStrides()[d]);
      limits.push_back(starts.back() + (count - 1) * stride + 1);
      // A slice of one element can have any stride.
      strides.push_back(count == 1 ? 1 : stride);
    }
    setOperand(inner.getX());
    setStarts(starts);
    setLimits(limits);
    setStrides(strides);
    return getResult();
  }
  return {};
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? getX() : Value();
}

OpFoldResult ReverseOp::fold(FoldAdaptor) {
  ArrayRef<int64_t> shape = shapeOf(getX());
  if (llvm::all_of(getDims(), [&](int64_t d) { return shape[d] <= 1; }))
    return getX();
  auto inner = getX().getDefiningOp<ReverseOp>();
  if (!inner)
    return {};
  // What is reversed twice is not.
  SmallVector<int64_t> dims;
  for (int64_t d = 0, rank = shape.size(); d < rank; ++d)
    if (llvm::is_contained(getDims(), d) !=
        llvm::is_contained(inner.getDims(), d))
      dims.push_back(d);
  if (dims.empty())
    return inner.getX();
  setOperand(inner.getX());
  setDims(dims);
  return getResult();
}
