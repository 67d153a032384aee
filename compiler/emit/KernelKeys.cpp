//===- KernelKeys.cpp - what a kernel's code follows from, as a hash ------===//
#include "compiler/emit/KernelKeys.h"
#include "compiler/emit/BuildIdentity.h"
#include "ir/Dialect.h"
#include "passes/lower/common/Kernels.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"

using namespace mlir;
using namespace tandem;

/// Of a branch or a loop there is only a function that calls those of its
/// regions' kernels, by their names.
static bool hasCodeOfItsOwn(KernelOp kernel) {
  return lower::classOf(kernel) != OpClass::Flow;
}

/// A text of which a file elsewhere is a part says too little.
static bool namesResources(KernelOp kernel) {
  auto found = kernel->walk([](Operation *op) {
    for (NamedAttribute attribute : op->getAttrs())
      if (isa<DenseResourceElementsAttr>(attribute.getValue()))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return found.wasInterrupted();
}

static void setCompiled(KernelOp kernel, const CompiledKernel &found) {
  if (found.launch.empty()) {
    setCompiledFacts(kernel, found.facts);
    return;
  }
  ScopedDiagnosticHandler silence(kernel.getContext(),
                                  [](Diagnostic &) { return success(); });
  // Where the text is not understood, the function is written all the same.
  if (auto facts = dyn_cast_or_null<KernelFactsAttr>(
          parseAttribute(found.launch, kernel.getContext())))
    kernel->setAttr(kCompiledAttr, facts);
}

void tandem::addKernelKeys(ModuleOp module, KernelCache *cache,
                           const CodeOptions &options) {
  auto identity = buildIdentity();
  auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
  auto kernels = lower::distinctKernels(module);
  if (!identity && cache)
    cache->close(identity.status().message());
  // The pass behind this says what is wrong with kernels.
  if (!identity || !target || failed(kernels))
    return;
  std::string common;
  llvm::raw_string_ostream(common)
      << "kernel 2\n"
      << *identity << '\n'
      << target << '\n'
      << (target.isCuda() ? int(options.emulation) : options.effort) << '\n';
  Builder b(module.getContext());
  for (KernelOp kernel : *kernels) {
    if (!hasCodeOfItsOwn(kernel) || namesResources(kernel))
      continue;
    llvm::BLAKE3 hash;
    hash.update(common);
    hash.update(lower::textOf(kernel));
    std::string key = llvm::toHex(hash.final<32>(), /*LowerCase=*/true);
    kernel->setAttr(kCodeAttr, b.getStringAttr(key));
    if (const CompiledKernel *found = cache ? cache->find(key) : nullptr)
      setCompiled(kernel, *found);
  }
}

const CompiledKernel *tandem::keptCode(Operation *function,
                                       KernelCache *cache) {
  StringRef key = codeKey(function);
  return cache && !key.empty() ? cache->find(key) : nullptr;
}

Status tandem::expectNoKeys(ModuleOp module) {
  auto found = module.walk([](Operation *op) {
    if (!op->hasAttr(kCodeAttr) && !op->hasAttr(kCompiledAttr))
      return WalkResult::advance();
    op->emitOpError() << "expected neither '" << kCodeAttr << "' nor '"
                      << kCompiledAttr << "' in what is compiled";
    return WalkResult::interrupt();
  });
  return found.wasInterrupted() ? Status::failed("the module has keys of code")
                                : Status::success();
}
