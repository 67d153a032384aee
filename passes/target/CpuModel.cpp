//===- CpuModel.cpp - processors as passes reckon with them ---------------===//
#include "passes/target/CpuModel.h"

#include "passes/target/Target.h"

using namespace mlir;
using namespace tandem;

CpuModel CpuModel::of(Operation *op) {
  CpuModel model;
  model.bits = integerOfTarget(op, "vector_bits", model.bits);
  model.processors = std::clamp<int64_t>(
      integerOfTarget(op, kProcessorsAttr, model.processors), 1, 1024);
  model.registers = model.bits >= 512 ? 32 : 16;
  return model;
}

int64_t CpuModel::lanes(Type type) const {
  return std::max<int64_t>(2, bits / type.getIntOrFloatBitWidth());
}
