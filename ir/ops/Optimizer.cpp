//===- Optimizer.cpp - parameter updates ---===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/reference/Generic.h"

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Optimizer.cpp.inc"

void TandemDialect::addOptimizerOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Optimizer.cpp.inc"
      >();
}
