//===- Composite.cpp - ops that mean a sequence of simpler ones ---===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/reference/Generic.h"

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Composite.cpp.inc"

void TandemDialect::addCompositeOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Composite.cpp.inc"
      >();
}
