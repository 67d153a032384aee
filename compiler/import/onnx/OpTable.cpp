//===- OpTable.cpp - all ONNX operators -----------------------------------===//
#include "compiler/import/onnx/Translator.h"

using namespace tandem::onnx;

const OpTable &tandem::onnx::opTable() {
  static const OpTable table = [] {
    OpTable table;
    addFlowOps(table);
    addScanOps(table);
    addGraphOps(table);
    addSequenceOps(table);
    addIndexOps(table);
    addLogicOps(table);
    addMathOps(table);
    addQuantizeOps(table);
    addResizeOps(table);
    addSignalOps(table);
    addReduceOps(table);
    addShapeOps(table);
    addConvOps(table);
    addPoolOps(table);
    addActivationOps(table);
    addNormOps(table);
    addLossOps(table);
    addRecurrentOps(table);
    addRandomOps(table);
    addTrainingOps(table);
    addAttentionOps(table);
    addContribOps(table);
    return table;
  }();
  return table;
}
