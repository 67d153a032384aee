//===- Indexing.cpp - gather and scatter by data ---===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/reference/Generic.h"

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Indexing.cpp.inc"

void TandemDialect::addIndexingOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Indexing.cpp.inc"
      >();
}
