//===- Parts.cpp - slices that cost nothing between kernels ---------------===//
#include "passes/plan/Parts.h"
#include "passes/plan/PlanMemory.h"

using namespace mlir;
using namespace tandem;

std::optional<int64_t> tandem::contiguousStart(SliceOp slice) {
  auto operand = dyn_cast<RankedTensorType>(slice.getX().getType());
  if (!operand || operand.getNumElements() == 0)
    return std::nullopt;
  ArrayRef<int64_t> sizes = operand.getShape();
  // From the last dimension: whole ones, then a part, then single indices.
  int64_t start = 0, stride = 1;
  bool isWhole = true;
  for (int64_t d = operand.getRank(); d-- > 0;) {
    int64_t from = slice.getStarts()[d];
    int64_t count = slice.getLimits()[d] - from;
    if (count < 1 || (slice.getStrides()[d] != 1 && count != 1) ||
        (!isWhole && count != 1))
      return std::nullopt;
    isWhole &= count == sizes[d];
    start += from * stride;
    stride *= sizes[d];
  }
  return start;
}

std::optional<int64_t> tandem::partOffset(SliceOp slice) {
  std::optional<int64_t> start = contiguousStart(slice);
  if (!start)
    return std::nullopt;
  auto type = cast<RankedTensorType>(slice.getX().getType());
  int64_t bytes = *start * (byteSize(type) / type.getNumElements());
  if (bytes % kBufferAlignment)
    return std::nullopt;
  return bytes;
}

bool tandem::isFreeOrPart(Operation *op) {
  if (auto view = dyn_cast<ViewOpInterface>(op); view && view.isFree())
    return true;
  auto slice = dyn_cast<SliceOp>(op);
  return slice && partOffset(slice);
}

Shown tandem::shownBy(Value value) {
  Shown shown{value};
  while (Operation *op = shown.source.getDefiningOp()) {
    if (!isFreeOrPart(op))
      break;
    if (auto slice = dyn_cast<SliceOp>(op)) {
      shown.offset += *partOffset(slice);
      shown.isPart = true;
    }
    shown.source = op->getOperand(0);
  }
  return shown;
}
