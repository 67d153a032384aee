//===- Target.cpp - what passes ask of a module's target ------------------===//
#include "passes/target/Target.h"
#include "passes/target/CudaModel.h"

#include "ir/Keys.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tandem;

bool tandem::hasTarget(Operation *op) { return bool(TargetAttr::of(op)); }

bool tandem::isForCuda(Operation *op) {
  TargetAttr target = TargetAttr::of(op);
  return target && target.isCuda();
}

bool tandem::hasFeature(Operation *op, StringRef feature) {
  TargetAttr target = TargetAttr::of(op);
  return target && target.hasFeature(feature);
}

bool tandem::usesFastMath(Operation *op) {
  TargetAttr target = TargetAttr::of(op);
  return target && target.getFastMath();
}

StringRef tandem::productPrecision(Operation *op) {
  if (!llvm::is_contained(op->getName().getAttributeNames(), key::kPrecision) ||
      !getElementTypeOrSelf(op->getOperand(0)).isF32())
    return {};
  if (auto own = op->getAttrOfType<StringAttr>(key::kPrecision))
    return own.getValue();
  TargetAttr target = TargetAttr::of(op);
  StringRef asked = target ? target.getMatmulPrecision() : StringRef();
  return asked.empty() ? "f32" : asked;
}

bool tandem::allowsWinograd(Operation *op) {
  TargetAttr target = TargetAttr::of(op);
  return !target || target.getWinograd() != "no";
}

int64_t tandem::cacheShare(Operation *op) {
  TargetAttr target = TargetAttr::of(op);
  int64_t bytes = target ? target.getLastCacheBytes() : 0;
  return (bytes ? bytes : 32 << 20) / 8;
}

CudaArch tandem::cudaArchOf(Operation *op) {
  CudaArch arch;
  TargetAttr target = TargetAttr::of(op);
  StringRef name = target ? target.getArch() : StringRef();
  if (CudaName own(name); own.sm) {
    arch.sm = own.sm;
    // Of later ones nothing is used that they alone have.
    arch.isExact = own.isForOneAlone && arch.sm == 90;
  }
  return arch;
}
