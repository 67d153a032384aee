//===- CpuModel.cpp - processors as passes reckon with them ---------------===//
#include "passes/target/CpuModel.h"

#include "passes/target/Target.h"

using namespace mlir;
using namespace tandem;

CpuModel CpuModel::of(Operation *op) {
  CpuModel model;
  if (TargetAttr target = TargetAttr::of(op)) {
    if (target.getVectorBits())
      model.bits = target.getVectorBits();
    if (target.getProcessors())
      model.processors = std::min<int64_t>(target.getProcessors(), 1024);
  }
  model.registers = model.bits >= 512 ? 32 : 16;
  return model;
}

int64_t CpuModel::lanes(Type type) const {
  return std::max<int64_t>(2, bits / type.getIntOrFloatBitWidth());
}
