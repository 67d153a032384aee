//===- Emit.cpp - from a lowered module to an artifact --------------------===//
#include "compiler/Compile.h"
#include "compiler/Phases.h"
#include "compiler/Target.h"
#include "compiler/emit/BuildManifest.h"
#include "compiler/emit/ObjectCode.h"
#include "ir/Dialect.h"

#include "mlir/IR/SymbolTable.h"

#include <chrono>

using namespace mlir;
using namespace tandem;

Result<artifact::ArtifactWriter>
tandem::emitArtifact(ModuleOp module, const CompileOptions &options,
                     std::vector<PhaseTime> &times) {
  auto start = std::chrono::steady_clock::now();
  if (phaseOf(module) != "lower")
    return Status::usage("expected a module at 'lower', but it is at '" +
                         phaseOf(module).str() + "'");
  artifact::ArtifactWriter writer;
  auto manifest = buildManifest(module, writer);
  if (!manifest)
    return manifest.status();
  auto target =
      targetFromAttr(module->getAttrOfType<DictionaryAttr>(kTargetAttr));
  if (!target)
    return target.status();
  manifest->target = {"cpu", target->arch, target->features};

  std::vector<std::string> exported;
  for (const artifact::Kernel &kernel : manifest->kernels)
    exported.push_back(kernel.symbol);
  auto kernels = module.lookupSymbol<ModuleOp>("cpu");
  if (!kernels)
    return Status::failed("the lowered module has no kernels for 'cpu'");
  // A program that only changes handles has no code.
  if (!exported.empty()) {
    auto object = emitSharedObject(kernels, exported, *target, options.threads);
    if (!object)
      return object.status();
    writer.setObject(std::move(*object));
  }
  writer.setManifest(std::move(*manifest));
  std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  times.push_back({"emit", spent.count()});
  return writer;
}
