//===- Target.cpp - what passes ask of a module's target ------------------===//
#include "passes/target/Target.h"

#include "ir/Dialect.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tandem;

/// The target of the module around `op`; null if there is none.
static DictionaryAttr targetOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<DictionaryAttr>(kTargetAttr))
      return target;
  return {};
}

StringRef tandem::textOfTarget(Operation *op, StringRef name) {
  DictionaryAttr target = targetOf(op);
  auto text = target ? target.getAs<StringAttr>(name) : StringAttr();
  return text ? text.getValue() : StringRef();
}

bool tandem::hasTarget(Operation *op) {
  return !textOfTarget(op, "kind").empty();
}
bool tandem::isForCuda(Operation *op) {
  return textOfTarget(op, "kind") == "cuda";
}

bool tandem::hasFeature(Operation *op, StringRef feature) {
  DictionaryAttr target = targetOf(op);
  auto features = target ? target.getAs<ArrayAttr>("features") : ArrayAttr();
  return features && llvm::is_contained(
                         features, StringAttr::get(op->getContext(), feature));
}

bool tandem::usesFastMath(Operation *op) {
  DictionaryAttr target = targetOf(op);
  return target && target.contains(kFastMathAttr);
}

StringRef tandem::productPrecision(Operation *op) {
  if (!llvm::is_contained(op->getName().getAttributeNames(), "precision") ||
      !getElementTypeOrSelf(op->getOperand(0)).isF32())
    return {};
  if (auto own = op->getAttrOfType<StringAttr>("precision"))
    return own.getValue();
  StringRef asked = textOfTarget(op, "matmul_precision");
  return asked.empty() ? "f32" : asked;
}

bool tandem::allowsWinograd(Operation *op) {
  return textOfTarget(op, "winograd") != "no";
}

int64_t tandem::integerOfTarget(Operation *op, StringRef name,
                                int64_t otherwise) {
  DictionaryAttr target = targetOf(op);
  auto value = target ? target.getAs<IntegerAttr>(name) : IntegerAttr();
  return value ? value.getInt() : otherwise;
}

int64_t tandem::cacheShare(Operation *op) {
  return integerOfTarget(op, kLastCacheAttr, 32 << 20) / 8;
}

CudaArch tandem::cudaArchOf(Operation *op) {
  CudaArch arch;
  StringRef name = textOfTarget(op, "arch");
  if (name.consume_front("sm_")) {
    arch.isExact = name.consume_back("a");
    (void)name.getAsInteger(10, arch.sm);
  }
  return arch;
}
