//===- OpTable.cpp - the ops of StableHLO ---------------------------------===//
#include "compiler/import/stablehlo/Node.h"

using namespace tandem::stablehlo;

const OpTable &OpTable::get() {
  static const OpTable table = [] {
    OpTable made;
    addElementwiseOps(made);
    addShapeOps(made);
    addProductOps(made);
    addReduceOps(made);
    addWindowOps(made);
    addIndexOps(made);
    addSortOps(made);
    addFlowOps(made);
    addCallOps(made);
    return made;
  }();
  return table;
}
