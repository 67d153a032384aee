//===- ThinImages.cpp - 1x1 convolutions with strides ---------------------===//
//
// A convolution of 1x1 taps whose strides skip pixels reads a thinner image:
//
//   %y = conv2d %x, %w strides [2, 2]
// ->
//   %seen = slice %x step [1, 1, 2, 2]
//   %y = conv2d %seen, %w
//
// Its planes are without gaps then, and their pixels fill vectors whatever
// their lines are. A kernel of its own makes the slice, where that takes less
// time than half of the convolution, which gathers pixels otherwise. Lines
// whose every second pixel fills vectors are read in place.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/target/CpuModel.h"
#include "passes/target/Rates.h"
#include "passes/target/Target.h"

#include "ir/ops/Convolution.h"
#include "ir/ops/Scalar.h"

namespace tandem {
#define GEN_PASS_DEF_THINIMAGES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static bool readsThinImage(Conv2dOp op) {
  constexpr Window2d::Pair one{1, 1}, none{0, 0};
  Convolution2d conv = op.getConvolution();
  const Window2d &w = conv.window;
  if (w.kernel != one || w.stride == one || w.before != none ||
      w.after != none || op.getY().getType().getNumElements() == 0)
    return false;
  Type element = op.getY().getType().getElementType();
  if (readsEverySecondPixel(
          w, CpuModel::of(op).lanes(scalar::computeType(element))))
    return false;
  // Lines that have pixels are read whole; the slice is written, and read.
  auto seen = static_cast<double>(byteSize(op.getX().getType())) / w.stride[0];
  double slice = seen + 2 * seen / static_cast<double>(w.stride[1]);
  Rates rates = Rates::of(op);
  return 2 * rates.seconds(0, slice) < rates.arithmetic(op);
}

static void readThinImage(Conv2dOp op) {
  const Window2d w = op.getConvolution().window;
  RankedTensorType type = op.getX().getType();
  SmallVector<int64_t> limits(type.getShape()), shape(type.getShape());
  SmallVector<int64_t> strides(4, 1);
  for (int d : {0, 1}) {
    strides[2 + d] = w.stride[d];
    shape[2 + d] = w.output[d];
    limits[2 + d] = (w.output[d] - 1) * w.stride[d] + 1;
  }
  OpBuilder b(op);
  auto slice = SliceOp::create(b, op.getLoc(), type.clone(shape), op.getX(),
                               SmallVector<int64_t>(4, 0), limits, strides);
  for (StringRef tag : {kPassAttr, kStreamAttr})
    if (Attribute value = op->getAttr(tag))
      slice->setAttr(tag, value);
  op.getXMutable().assign(slice.getResult());
  op.setStrides({1, 1});
}

namespace {
struct ThinImages : tandem::impl::ThinImagesBase<ThinImages> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    if (!isForCuda(func))
      for (auto conv : func.getOps<Conv2dOp>())
        if (readsThinImage(conv)) {
          readThinImage(conv);
          ++thinned;
        }
    if (thinned == 0)
      markAllAnalysesPreserved();
  }
};
} // namespace
