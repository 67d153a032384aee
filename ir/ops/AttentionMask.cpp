//===- AttentionMask.cpp - who sees whom in attention ---------------------===//
#include "ir/KnownElements.h"
#include "ir/ops/Attention.h"

using namespace mlir;
using namespace tandem;

MaskKind tandem::kindOfMask(Value mask) {
  auto type = dyn_cast<RankedTensorType>(mask.getType());
  if (!type || type.getRank() < 2)
    return MaskKind::Other;
  std::optional<KnownElements> known = knownElements(mask);
  if (!known)
    return MaskKind::Other;
  size_t rank = known->shape.size();
  for (size_t d = 0; d + 2 < rank; ++d)
    if (known->varies(d))
      return MaskKind::Other;
  bool isBool = type.getElementType().isInteger(1);
  auto isSeen = [&](double x) -> std::optional<bool> {
    if (isBool)
      return x != 0;
    if (x == 0)
      return true;
    return x <= kHides ? std::optional(false) : std::nullopt;
  };
  bool isAll = true, isCausal = true;
  int64_t columnStride = known->varies(rank - 1) ? 1 : 0;
  int64_t rowStride = known->varies(rank - 2) ? known->shape[rank - 1] : 0;
  int64_t rows = type.getDimSize(rank - 2), columns = type.getDimSize(rank - 1);
  if (!known->varies(rank - 2) && !known->varies(rank - 1)) {
    // All alike.
    std::optional<bool> seen = isSeen(known->elements.front());
    return seen == true ? MaskKind::All : MaskKind::Other;
  }
  for (int64_t row = 0; row < rows && (isAll || isCausal); ++row)
    for (int64_t column = 0; column < columns; ++column) {
      std::optional<bool> seen = isSeen(known->elements[static_cast<size_t>(
          row * rowStride + column * columnStride)]);
      if (!seen)
        return MaskKind::Other;
      isAll &= *seen;
      isCausal &= *seen == (column <= row);
    }
  return isAll ? MaskKind::All : isCausal ? MaskKind::Causal : MaskKind::Other;
}
