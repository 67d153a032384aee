//===- PlanePrefetch.cpp - the planes that are needed next ----------------===//
#include "passes/lower/cpu/products/PlanePrefetch.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

PlanePrefetch::PlanePrefetch(Code &code, const Operand &operand,
                             ArrayRef<int64_t> sizes, int64_t images,
                             int64_t planes)
    : code(code), operand(operand), all(sizes[0]), images(images), lines(0) {
  constexpr int64_t lineBits = 512;
  if (!operand.isAffine() || all == 0 || (all > 1 && operand.stride(0) == 0))
    return;
  int64_t stride = 1;
  for (unsigned d : {3, 2, 1}) {
    if (sizes[d] != 1 && operand.stride(d) != stride)
      return;
    stride *= sizes[d];
  }
  perLine = lineBits / operand.element.getIntOrFloatBitWidth();
  lines = divideCeil(planes * sizes[2] * sizes[3], perLine);
}

int64_t PlanePrefetch::linesOfPart(int64_t parts) const {
  return divideCeil(lines, std::max<int64_t>(1, parts / images));
}

void PlanePrefetch::enter(Value image, Value plane) {
  this->image = image;
  this->plane = plane;
}

void PlanePrefetch::beginPart(Value number, int64_t parts, int64_t rounds) {
  if (lines == 0)
    return;
  int64_t ofImage = std::max<int64_t>(1, parts / images);
  linesOfRound = divideCeil(linesOfPart(parts), rounds);
  Value at = code.min(code.add(image, code.div(number, ofImage)), all - 1);
  Value first =
      code.mul(code.rem(number, ofImage), linesOfRound * rounds * perLine);
  part = code.add(operand.at(code, {at, plane, {}, {}}), first);
}

void PlanePrefetch::emitRound(Value round) const {
  constexpr uint32_t secondLevelCache = 2;
  if (lines == 0)
    return;
  Value first = code.add(part, code.mul(round, linesOfRound * perLine));
  for (int64_t line = 0; line < linesOfRound; ++line)
    memref::PrefetchOp::create(code.b, code.loc, operand.memref,
                               ValueRange{code.add(first, line * perLine)},
                               /*isWrite=*/false, secondLevelCache,
                               /*isDataCache=*/true);
}
