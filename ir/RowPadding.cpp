//===- RowPadding.cpp - rows that begin at multiples of 16 bytes ----------===//
#include "ir/RowPadding.h"

#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;

int64_t tandem::rowPaddingOf(RankedTensorType type) {
  if (type.getRank() == 0)
    return 0;
  int64_t piece = kRowBytes / elementBytes(type.getElementType());
  int64_t rest = type.getShape().back() % piece;
  return rest == 0 ? 0 : piece - rest;
}

/// Attributes are verified before the op is: nothing of it is certain.
static bool padsRows(PadOp pad) {
  auto type = pad->getNumOperands() != 1
                  ? RankedTensorType()
                  : dyn_cast<RankedTensorType>(pad->getOperand(0).getType());
  auto value = dyn_cast_or_null<FloatAttr>(pad.getValueAttr());
  if (!type || type.getRank() == 0 || !value || !value.getValue().isPosZero() ||
      value.getType() != type.getElementType())
    return false;
  auto isZero = [](int64_t size) { return size == 0; };
  for (DenseI64ArrayAttr list :
       {pad.getLowAttr(), pad.getHighAttr(), pad.getInteriorAttr()})
    if (!list || list.size() != type.getRank() ||
        !llvm::all_of(list.asArrayRef().drop_back(), isZero))
      return false;
  return pad.getLow().back() == 0 && pad.getInterior().back() == 0 &&
         pad.getHigh().back() == rowPaddingOf(type);
}

bool tandem::isRowPadding(Operation *op) {
  auto pad = dyn_cast_or_null<PadOp>(op);
  return pad && pad->hasAttr(kRowPaddingAttr) && padsRows(pad);
}

LogicalResult tandem::verifyRowPadding(Operation *op,
                                       NamedAttribute attribute) {
  auto pad = dyn_cast<PadOp>(op);
  if (pad && padsRows(pad) && isa<UnitAttr>(attribute.getValue()))
    return success();
  return op->emitOpError()
         << "expected '" << kRowPaddingAttr
         << "' to be a unit attribute of a 'tandem.pad' that ends rows with as "
            "many zeros as make them multiples of "
         << kRowBytes << " bytes";
}
