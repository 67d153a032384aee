//===- Pooling.cpp - pooling over windows ---===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/reference/Generic.h"

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Pooling.cpp.inc"

void TandemDialect::addPoolingOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Pooling.cpp.inc"
      >();
}
