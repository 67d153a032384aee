//===- SplitFilterGrads.cpp - gradients of filters, in parts of the images ===//
//
// The gradient of a convolution's filter is a sum over all images. One of few
// planes is made of few blocks, too few for many threads, so its images are cut
// into parts whose sums are made beside each other and then added, in their
// order. Part p has the images p, p + parts, ...: it is a group of a
// convolution of fewer images with more planes, which are where they were:
//   x [N, C, H, W] is [N / parts, parts * C, H, W].
//
//===----------------------------------------------------------------------===//
#include "ir/ops/Convolution.h"
#include "ir/ops/Precision.h"
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/target/Target.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace tandem {
#define GEN_PASS_DEF_SPLITFILTERGRADS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static bool isNarrow(Conv2dFilterGradOp op) {
  Type element = op.getY().getType().getElementType();
  return element.isF16() || element.isBF16();
}

/// How many parts: as many as give enough blocks of results, while each is
/// worth a thread's start and what is added is little beside what is read.
/// Depends on shapes alone.
static int64_t partsOf(Conv2dFilterGradOp op) {
  constexpr int64_t enoughBlocks = 8, planesOfBlock = 64;
  constexpr int64_t fewestFlops = 1 << 21, fewestReads = 4;
  Convolution2d conv = op.getConvolution();
  auto sizeOf = [](Value x) {
    return cast<RankedTensorType>(x.getType()).getNumElements();
  };
  int64_t made = sizeOf(op.getY());
  if (made == 0)
    return 1;
  int64_t blocks = conv.groups *
                   llvm::divideCeil(conv.filtersPerGroup(), planesOfBlock) *
                   llvm::divideCeil(conv.channelsPerGroup(), planesOfBlock);
  // Pairs of images are multiplied at once, where there are any.
  bool hasPairs = isNarrow(op) && conv.batch % 2 == 0;
  int64_t unit = hasPairs ? 2 : 1;
  int64_t most = std::min(
      {conv.batch, op.getFlops() / fewestFlops,
       (sizeOf(op.getX()) + sizeOf(op.getDy())) / (fewestReads * made)});
  int64_t parts = 1;
  for (int64_t p = 2; p <= most && parts * blocks < enoughBlocks; ++p)
    if (conv.batch % (unit * p) == 0)
      parts = p;
  return parts;
}

static void split(Conv2dFilterGradOp op, int64_t parts) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto tagged = [&](Operation *made) {
    for (StringRef tag : {kPassAttr, kStreamAttr})
      if (Attribute value = op->getAttr(tag))
        made->setAttr(tag, value);
    return made->getResult(0);
  };
  auto grouped = [&](Value images) {
    SmallVector<int64_t> shape(
        cast<RankedTensorType>(images.getType()).getShape());
    shape[0] /= parts;
    shape[1] *= parts;
    return tagged(ReshapeOp::create(b, loc, images, shape));
  };
  SmallVector<int64_t> shape(op.getShape());
  shape[0] *= parts;
  Value x = grouped(op.getX()), dy = grouped(op.getDy());
  // What is added is not rounded to less than f32.
  StringAttr precision =
      isNarrow(op) ? b.getStringAttr(kSumsPrecision) : op.getPrecisionAttr();
  Value sums = tagged(Conv2dFilterGradOp::create(
      b, loc, x, dy, shape, op.getStrides(), op.getPadding(), op.getDilation(),
      op.getGroups() * parts, precision));
  shape[0] /= parts;
  shape.insert(shape.begin(), parts);
  sums = tagged(ReshapeOp::create(b, loc, sums, shape));
  Value sum = tagged(ReduceSumOp::create(b, loc, sums, ArrayRef<int64_t>{0}));
  if (isNarrow(op))
    sum = tagged(CastOp::create(b, loc, op.getY().getType(), sum));
  op.getY().replaceAllUsesWith(sum);
  op.erase();
}

/// Returns how many were cut.
static unsigned splitFilterGrads(func::FuncOp func) {
  if (isForCuda(func))
    return 0;
  unsigned count = 0;
  SmallVector<Conv2dFilterGradOp> ops;
  func.walk([&](Conv2dFilterGradOp op) { ops.push_back(op); });
  for (Conv2dFilterGradOp op : ops) {
    Type element = op.getY().getType().getElementType();
    bool isSummed = element.isF32() || element.isF64() || isNarrow(op);
    if (!isSummed || op.getPrecision() == kSumsPrecision)
      continue;
    if (int64_t parts = partsOf(op); parts > 1) {
      split(op, parts);
      ++count;
    }
  }
  return count;
}

namespace {
struct SplitFilterGrads : tandem::impl::SplitFilterGradsBase<SplitFilterGrads> {
  void runOnOperation() final { splits += splitFilterGrads(getOperation()); }
};
} // namespace
