//===- HostCopy.cpp - copies to the host's memory and back ----------------===//
#include "ir/HostCopy.h"
#include "ir/reference/Array.h"

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/HostCopy.cpp.inc"

void ToHostOp::evaluate(ArrayRef<const reference::Array *> in,
                        MutableArrayRef<reference::Array> out) {
  out[0] = *in[0];
}

void ToDeviceOp::evaluate(ArrayRef<const reference::Array *> in,
                          MutableArrayRef<reference::Array> out) {
  out[0] = *in[0];
}
