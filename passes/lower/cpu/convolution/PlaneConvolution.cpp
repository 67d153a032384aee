//===- PlaneConvolution.cpp - depthwise convolutions of small images ------===//
#include "passes/lower/cpu/convolution/PlaneConvolution.h"
#include "passes/lower/cpu/KernelEmitter.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

bool PlaneConvolution::fits() const {
  constexpr int64_t mostPixels = 256, mostCode = 800;
  auto isDense = [](const WindowAxis &axis) {
    return axis.phases == 1 && axis.step == 1 && axis.every == 1;
  };
  // Shorter vectors have no loads under masks: each lane would be one.
  constexpr int64_t shortestVectors = 256;
  return kernel.target.bits >= shortestVectors &&
         product.lanes != Product::Taps && planes == 1 && across == 1 &&
         conv.groups > 0 && conv.batch > 0 && taps > 0 && isDense(y) &&
         isDense(x) && y.results > 0 && y.seen > 0 && x.results == x.seen &&
         pixels() <= mostPixels && vectors() * taps <= mostCode &&
         image.isAffine() && image.stride(3) == 1 &&
         image.stride(2) == x.seen && filter.isAffine();
}

double PlaneConvolution::multiplyAdds() const {
  return static_cast<double>(conv.batch * conv.groups * taps * vectors() *
                             lanes);
}

ScheduleOverride PlaneConvolution::numbers() const {
  return ScheduleOverride({{ScheduleKey::Block, pixels()}});
}

void PlaneConvolution::takeScratch() {
  bindResults(/*areWhole=*/true);
  if (!takesVectors())
    sums = kernel.scratch.take(code, {vectors() * lanes}, type);
}

Work PlaneConvolution::emit() {
  takeScratch();
  kernel.forEachItem([&](Value item) {
    atImage = code.div(item, conv.groups);
    atGroup = code.rem(item, conv.groups);
    Value from = image.at(code, {atImage, atGroup, {}, {}});
    // As many sums as leave registers for what is multiplied.
    int64_t most = kernel.target.registers >= 32 ? 16 : 8;
    for (int64_t first = 0; first < vectors(); first += most) {
      int64_t count = std::min(most, vectors() - first);
      for (auto [v, vector] : llvm::enumerate(multiply(from, first, count)))
        keep(first + v, vector);
    }
    if (sums)
      finishPixels(sums, code.index(0), code.index(0), code.index(pixels()));
  });
  Work work;
  work.items = conv.batch * conv.groups;
  work.grain = grainFor(work.items, 2.0 * pixels() * taps,
                        elementBytes(type) * 2.0 * pixels());
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

/// The sums of `count` vectors of pixels from vector `first` on, of a plane
/// that is looked at from `from` on.
Code::Values PlaneConvolution::multiply(Value from, int64_t first,
                                        int64_t count) {
  Code::Values made(count, code.zeros(type, lanes));
  for (const WindowAxis::Tap &tapY : y.taps[0])
    for (const WindowAxis::Tap &tapX : x.taps[0]) {
      // What pixel (0, 0) sees.
      int64_t line = y.first + tapY.offset;
      int64_t column = x.first + tapX.offset;
      Value factor = tap({}, {}, tapY.number, tapX.number);
      for (int64_t v = 0; v < count; ++v) {
        int64_t begin = (first + v) * lanes;
        SmallVector<bool> on(lanes);
        for (int64_t lane = 0; lane < lanes; ++lane) {
          int64_t pixel = begin + lane;
          int64_t l = pixel / x.results + line, c = pixel % x.results + column;
          on[lane] =
              pixel < pixels() && l >= 0 && l < y.seen && c >= 0 && c < x.seen;
        }
        int64_t active = llvm::count(on, true);
        if (active == 0)
          continue;
        Value seen = code.load(
            image.memref, code.add(from, begin + line * x.seen + column), lanes,
            active < lanes ? code.lanesOn(on) : Value());
        made[v] = code.multiplyAdd(factor, code.widen(seen, type), made[v]);
      }
    }
  return made;
}

void PlaneConvolution::keep(int64_t vector, Value made) {
  Value pixel = code.index(vector * lanes);
  if (sums)
    return code.store(made, sums, pixel);
  Value mask;
  if (int64_t left = pixels() - vector * lanes; left < lanes)
    mask = code.firstLanes(code.index(left), lanes);
  storeVector(made, {}, pixel, mask);
}
