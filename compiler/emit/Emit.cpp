//===- Emit.cpp - from lowered modules to an artifact ---------------------===//
#include "compiler/Compile.h"
#include "compiler/Phases.h"
#include "compiler/Reproducer.h"
#include "compiler/Target.h"
#include "compiler/emit/Assemble.h"
#include "compiler/emit/BuildManifest.h"
#include "compiler/emit/CodeGen.h"
#include "compiler/emit/DeviceCode.h"
#include "compiler/emit/Emulation.h"
#include "compiler/emit/JoinKernels.h"
#include "compiler/emit/ObjectCode.h"
#include "ir/Dialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/ScopeExit.h"

#include <chrono>

using namespace mlir;
using namespace tandem;

using Names = std::vector<std::string>;

static Status addCode(ModuleOp module, const CpuTarget &target,
                      const Names &exported, const CompileOptions &options,
                      artifact::ArtifactWriter &writer) {
  auto kernels = module.lookupSymbol<ModuleOp>("cpu");
  if (!kernels)
    return Status::failed("the lowered module has no kernels for 'cpu'");
  // A program that only changes handles has no code.
  if (exported.empty())
    return Status::success();
  ObjectOptions how;
  how.threads = options.threads;
  how.effort = options.effort;
  how.cache = options.kernels;
  how.timing = options.timing;
  auto object = emitSharedObject(kernels, exported, target, how);
  if (!object)
    return object.status();
  writer.setObject(std::move(*object));
  return Status::success();
}

/// The machine code of a text, as `--cubin` wants it; or nothing.
static Result<std::string> cubinOf(ModuleOp module, const std::string &ptx,
                                   const CudaTarget &target,
                                   const CompileOptions &options) {
  if (options.cubin == "no")
    return std::string();
  TimingScope timing = timed(options.timing, "cubin");
  auto assembly = assemble(ptx, target.arch);
  if (!assembly)
    return assembly.status();
  if (assembly->cubin.empty() && options.cubin == "yes")
    return Status::unsupported("--cubin=yes: " + assembly->problem);
  if (assembly->isTooOld && assembly->cubin.empty())
    module.emitWarning() << "no cubin for '" << target.arch
                         << "', the driver will compile the PTX: "
                         << assembly->problem;
  return std::move(assembly->cubin);
}

static Status addCode(ModuleOp module, const CudaTarget &target,
                      const Names &exported, const CompileOptions &options,
                      artifact::ArtifactWriter &writer) {
  auto kernels = module.lookupSymbol<gpu::GPUModuleOp>("cuda");
  if (!kernels)
    return Status::failed("the lowered module has no kernels for 'cuda'");
  if (exported.empty())
    return Status::success();
  auto code = emitDeviceCode(kernels, exported, target, options.emulation,
                             options.threads, options.timing, options.kernels);
  if (!code)
    return code.status();
  Result<std::string> cubin = cubinOf(module, code->ptx, target, options);
  if (!cubin)
    return cubin.status();
  // The driver takes it as a C string.
  writer.addCode("ptx", std::move(code->ptx) + '\0');
  writer.addCode("cubin", std::move(*cubin));
  if (options.emulation) {
    TimingScope timing = timed(options.timing, "emulation");
    auto image = emitEmulation(code->modules, options.threads);
    if (!image)
      return std::move(image).status().in("--emulation");
    writer.addCode("emulation", std::move(*image));
  }
  return Status::success();
}

static artifact::Target manifestTarget(const Target &target) {
  if (auto *cuda = std::get_if<CudaTarget>(&target))
    return {"cuda", cuda->arch, {}};
  const auto &cpu = std::get<CpuTarget>(target);
  return {"cpu", cpu.arch, cpu.features};
}

/// Emits one target's part of an artifact; `sizes` as buildManifest takes them.
static Result<artifact::ArtifactWriter>
emitTarget(ModuleOp module, ArrayRef<LoweredSize> sizes,
           const CompileOptions &options, std::vector<PhaseTime> &times) {
  auto start = std::chrono::steady_clock::now();
  if (options.reproducer)
    options.reproducer->beginEmit(module);
  llvm::scope_exit end([&] {
    if (options.reproducer)
      options.reproducer->end();
  });
  if (phaseOf(module) != "lower")
    return Status::usage("expected a module at 'lower', but it is at '" +
                         phaseOf(module).str() + "'");
  for (const LoweredSize &size : sizes)
    if (size.module != module)
      joinKernels(module, size.module);
  artifact::ArtifactWriter writer;
  auto manifest = buildManifest(module, writer, sizes);
  if (!manifest)
    return manifest.status();
  auto target = targetFromAttr(module->getAttrOfType<TargetAttr>(kTargetAttr));
  if (!target)
    return target.status();
  auto kernels = module.lookupSymbol<ModuleOp>("cpu");
  if (auto *cpu = std::get_if<CpuTarget>(&*target);
      cpu && !(kernels && usesTiles(kernels, options.kernels)))
    *cpu = withoutTiles(std::move(*cpu));
  manifest->target = manifestTarget(*target);

  Names exported;
  for (const artifact::Kernel &kernel : manifest->kernels)
    exported.push_back(kernel.symbol);
  Status status = std::visit(
      [&](const auto &one) {
        return addCode(module, one, exported, options, writer);
      },
      *target);
  if (!status)
    return status;
  writer.setManifest(std::move(*manifest));
  std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  times.push_back({"emit", spent.count()});
  return writer;
}

static Result<artifact::ArtifactWriter> emit(const Modules &modules,
                                             ArrayRef<SizeModules> sizes,
                                             const CompileOptions &options,
                                             std::vector<PhaseTime> &times) {
  auto isForCuda = [](const OwningOpRef<ModuleOp> &module) {
    return module.get().lookupSymbol<gpu::GPUModuleOp>("cuda") != nullptr;
  };
  bool forCuda = llvm::any_of(modules, isForCuda);
  if (!forCuda && (options.cubin == "yes" || options.emulation))
    return Status::usage(
        "expected a target of the kind 'cuda' for " +
        std::string(options.emulation ? "--emulation" : "--cubin=yes"));
  std::vector<Target> targets;
  for (const auto &module : modules) {
    auto target =
        targetFromAttr(module.get()->getAttrOfType<TargetAttr>(kTargetAttr));
    if (!target)
      return target.status();
    targets.push_back(std::move(*target));
  }
  std::vector<std::string> labels = targetLabels(targets);
  std::optional<artifact::ArtifactWriter> whole;
  for (auto [i, module, label] : llvm::enumerate(modules, labels)) {
    SmallVector<LoweredSize> ofTarget;
    for (const SizeModules &size : sizes)
      ofTarget.push_back({size.name, size.modules[i].get()});
    TimingScope timing;
    CompileOptions part = options;
    if (options.timing) {
      timing = options.timing->nest(modules.size() > 1 ? "emit." + label
                                                       : std::string("emit"));
      part.timing = &timing;
    }
    auto writer = emitTarget(module.get(), ofTarget, part, times);
    if (!writer)
      return writer;
    if (modules.size() > 1)
      times.back().phase += "." + label;
    if (whole)
      whole->join(std::move(*writer));
    else
      whole = std::move(*writer);
  }
  if (!whole)
    return Status::failed("expected a module for each target, but got none");
  return std::move(*whole);
}

Result<artifact::ArtifactWriter>
tandem::emitArtifact(ModuleOp module, const CompileOptions &options,
                     std::vector<PhaseTime> &times) {
  return emitTarget(module, {}, options, times);
}

Result<artifact::ArtifactWriter>
tandem::emitTargets(const Modules &modules, const CompileOptions &options,
                    std::vector<PhaseTime> &times) {
  return emit(modules, {}, options, times);
}

Result<artifact::ArtifactWriter>
tandem::emitSizes(ArrayRef<SizeModules> sizes, const CompileOptions &options,
                  std::vector<PhaseTime> &times) {
  return emit(sizes.front().modules, sizes, options, times);
}
