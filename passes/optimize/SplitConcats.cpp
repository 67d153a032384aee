//===- SplitConcats.cpp - products of what is concatenated, by piece ------===//
//
// A convolution of one tap sums over the planes of its input: of planes that
// are concatenated it is the sum of one convolution for each piece, and nobody
// needs the concatenation, which is as large as all pieces, nor its gradient,
// which would be cut again. Maximum pooling, which often stands between them,
// is done plane by plane, and so piece by piece.
//
// Sums are made in another order.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/optimize/ReplaceTagged.h"

#include "ir/Ops.h"
#include "ir/Tags.h"
#include "ir/ops/Composite.h"
#include "ir/ops/Convolution.h"

#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/STLExtras.h"

namespace tandem {
#define GEN_PASS_DEF_SPLITCONCATS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// The dimension of planes.
static constexpr int64_t kPlanes = 1;

static int64_t elementsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

static bool isEmpty(Value value) { return elementsOf(value) == 0; }

/// Whether it is a sum over planes alone. Parts of narrow types would be
/// rounded before they are added.
static bool sumsPlanes(Conv2dOp conv) {
  Convolution2d of = conv.getConvolution();
  return of.groups == 1 && of.window.kernel[0] == 1 &&
         of.window.kernel[1] == 1 &&
         isa<Float32Type, Float64Type>(
             conv.getY().getType().getElementType()) &&
         conv.getX().getType().getElementType() ==
             conv.getY().getType().getElementType();
}

/// Finds the convolutions that read `joined`, as it is or pooled; whether
/// nothing else does.
static bool findReaders(Value joined, SmallVectorImpl<Conv2dOp> &convs) {
  // What is saved is wanted as it is.
  Operation *maker = joined.getDefiningOp();
  if (maker->hasAttr(kSaveAttr) || maker->hasAttr(kOffloadAttr))
    return false;
  return llvm::all_of(joined.getUses(), [&](OpOperand &use) {
    if (auto pool = dyn_cast<MaxPool2dOp>(use.getOwner()))
      return pool.getIndex().use_empty() && findReaders(pool.getY(), convs);
    auto conv = dyn_cast<Conv2dOp>(use.getOwner());
    if (!conv || use.getOperandNumber() != 0 || !sumsPlanes(conv))
      return false;
    convs.push_back(conv);
    return true;
  });
}

/// A convolution for each piece, and their sum.
static Expr sumOver(Conv2dOp conv, ValueRange pieces, OpBuilder &builder) {
  Location loc = conv.getLoc();
  Expr w(builder, loc, conv.getW()), sum;
  int64_t first = 0;
  for (Value piece : pieces) {
    Expr x(builder, loc, piece);
    SmallVector<int64_t> begins(4, 0), limits(w.shape()), steps(4, 1);
    begins[kPlanes] = first;
    limits[kPlanes] = first += x.dim(kPlanes);
    SmallVector<int64_t> shape(w.shape());
    shape[kPlanes] = x.dim(kPlanes);
    Expr taps =
        w.wrap(SliceOp::create(builder, loc, w.type().clone(ArrayRef(shape)), w,
                               begins, limits, steps));
    Expr part = x.wrap(Conv2dOp::create(
        builder, loc, conv.getY().getType(), x, taps, conv.getStridesAttr(),
        conv.getPaddingAttr(), conv.getDilationAttr(), conv.getGroupsAttr(),
        conv.getPrecisionAttr()));
    sum = sum ? sum + part : part;
  }
  return sum;
}

/// Puts sums over `pieces` in the place of all that reads `joined`.
static void splitOver(Value joined, ValueRange pieces) {
  for (Operation *reader : llvm::to_vector(joined.getUsers())) {
    if (auto conv = dyn_cast<Conv2dOp>(reader)) {
      replaceTagged(conv, [&](OpBuilder &builder) {
        return sumOver(conv, pieces, builder);
      });
      continue;
    }
    auto pool = cast<MaxPool2dOp>(reader);
    OpBuilder builder(pool);
    SmallVector<Value> pooled;
    for (Value piece : pieces) {
      IRMapping to;
      to.map(pool.getX(), piece);
      Operation *made = builder.clone(*pool, to);
      int64_t planes =
          cast<RankedTensorType>(piece.getType()).getDimSize(kPlanes);
      for (Value result : made->getResults()) {
        auto type = cast<RankedTensorType>(result.getType());
        SmallVector<int64_t> shape(type.getShape());
        shape[kPlanes] = planes;
        result.setType(type.clone(shape));
      }
      pooled.push_back(made->getResult(0));
    }
    splitOver(pool.getY(), pooled);
    pool.erase();
  }
}

namespace {

struct SplitConcats : tandem::impl::SplitConcatsBase<SplitConcats> {
  void runOnOperation() final {
    SmallVector<ConcatOp> concats;
    getOperation().walk([&](ConcatOp op) { concats.push_back(op); });
    for (ConcatOp concat : concats) {
      if (concat.getDim() != kPlanes || concat.getParts().size() < 2 ||
          concat.use_empty() || llvm::any_of(concat.getParts(), isEmpty))
        continue;
      SmallVector<Conv2dOp> convs;
      if (!findReaders(concat.getY(), convs) || convs.empty())
        continue;
      // Sums are written and read once more for each further piece, where the
      // concatenation is written once.
      int64_t more = 0;
      for (Conv2dOp conv : convs)
        more += 2 * elementsOf(conv.getY());
      more *= static_cast<int64_t>(concat.getParts().size()) - 1;
      if (more > elementsOf(concat.getY()))
        continue;
      splitOver(concat.getY(), concat.getParts());
      concat.erase();
      ++splits;
    }
  }
};

} // namespace
