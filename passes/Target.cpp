//===- Target.cpp - what passes ask of a module's target ------------------===//
#include "passes/Target.h"

#include "ir/Dialect.h"

using namespace mlir;
using namespace tandem;

bool tandem::isForCuda(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<DictionaryAttr>(kTargetAttr)) {
      auto kind = target.getAs<StringAttr>("kind");
      return kind && kind.getValue() == "cuda";
    }
  return false;
}

int64_t tandem::cudaSharedLimit(int64_t sm) {
  // CUDA C++ Programming Guide, "Technical Specifications per Compute
  // Capability": the maximum for a block, which is 1 KiB below the SM's.
  switch (sm) {
  case 80:
  case 87:
    return 163 * 1024;
  case 86:
  case 89:
  case 120:
    return 99 * 1024;
  default:
    return sm >= 90 ? 227 * 1024 : 48 * 1024;
  }
}
