//===- KernelFunctions.cpp - which function a kernel becomes --------------===//
#include "ir/KernelFunctions.h"

#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;

SymbolRefAttr tandem::kernelFunction(Operation *kernel) {
  return kernel->getAttrOfType<SymbolRefAttr>(kFunctionAttr);
}

SmallVector<FlatSymbolRefAttr> tandem::kernelRegions(Operation *kernel) {
  SmallVector<FlatSymbolRefAttr> regions;
  if (auto list = kernel->getAttrOfType<ArrayAttr>(kRegionsAttr))
    llvm::append_range(regions, list.getAsRange<FlatSymbolRefAttr>());
  return regions;
}

int64_t tandem::grainOf(Operation *function) {
  auto grain = function->getAttrOfType<IntegerAttr>(kGrainAttr);
  return grain ? grain.getInt() : 1;
}

std::optional<CompiledFacts> tandem::compiledFacts(Operation *op) {
  auto list = op->getAttrOfType<DenseI64ArrayAttr>(kCompiledAttr);
  if (!list)
    return std::nullopt;
  return CompiledFacts{list[0], list[1], list[2]};
}

void tandem::setCompiledFacts(Operation *op, const CompiledFacts &facts) {
  op->setAttr(
      kCompiledAttr,
      DenseI64ArrayAttr::get(op->getContext(),
                             {facts.items, facts.scratchBytes, facts.grain}));
}

StringRef tandem::codeKey(Operation *op) {
  auto key = op->getAttrOfType<StringAttr>(kCodeAttr);
  return key ? key.getValue() : StringRef();
}

static LogicalResult verifyCompiled(Operation *op, NamedAttribute attribute) {
  Attribute value = attribute.getValue();
  auto list = dyn_cast<DenseI64ArrayAttr>(value);
  bool isRight = attribute.getName() == kCodeAttr
                     ? isa<StringAttr>(value)
                     : isa<KernelFactsAttr>(value) ||
                           (list && list.size() == 3 &&
                            llvm::all_of(list.asArrayRef(),
                                         [](int64_t n) { return n >= 0; }));
  if (isRight)
    return success();
  return op->emitOpError() << "expected '" << attribute.getName() << "' to be "
                           << (attribute.getName() == kCodeAttr
                                   ? "a string"
                                   : "3 numbers of at least 0, or the facts "
                                     "of a kernel")
                           << ", but got " << value;
}

static LogicalResult verifyGrain(Operation *op, Attribute value) {
  auto grain = dyn_cast<IntegerAttr>(value);
  if (grain && grain.getType().isInteger(64) && grain.getInt() >= 1)
    return success();
  return op->emitOpError() << "expected '" << kGrainAttr
                           << "' to be an i64 of at least 1, but got " << value;
}

LogicalResult tandem::verifyKernelFunction(Operation *op,
                                           NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kGrainAttr)
    return verifyGrain(op, value);
  if (name == kCodeAttr || name == kCompiledAttr)
    return verifyCompiled(op, attribute);
  auto kernel = dyn_cast<KernelOp>(op);
  if (!kernel)
    return op->emitOpError() << "'" << name << "' belongs on a kernel";
  if (name == kFunctionAttr) {
    auto symbol = dyn_cast<SymbolRefAttr>(value);
    if (symbol && symbol.getNestedReferences().size() == 1)
      return success();
    return op->emitOpError() << "expected '" << name
                             << "' to name a function of a module, as "
                                "@cpu::@exp_0, but got "
                             << value;
  }
  size_t regions = 0;
  for (Operation &inner : kernel.getBody().front())
    if (isa<IfOp, ScanOp, WhileOp>(inner))
      regions = inner.getNumRegions();
  auto list = dyn_cast<ArrayAttr>(value);
  if (list && list.size() == regions &&
      llvm::all_of(list, llvm::IsaPred<FlatSymbolRefAttr>))
    return success();
  return op->emitOpError() << "expected '" << name << "' to name " << regions
                           << " functions, one for each region of a branch or "
                              "a loop, but got "
                           << value;
}
