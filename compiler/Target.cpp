//===- Target.cpp - what code is made for ---------------------------------===//
#include "compiler/Target.h"
#include "passes/target/CudaModel.h"

#include "mlir/IR/Builders.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"

#include <mutex>

using namespace mlir;
using namespace tandem;

namespace {
/// An architecture, and the oldest version of PTX that knows it, but none that
/// is older than what the kernels use.
struct PtxArch {
  StringLiteral name;
  int64_t capability; ///< 90
  unsigned ptxVersion;
};
} // namespace

static constexpr PtxArch cudaArchs[] = {
    {"sm_80", 80, 80},    {"sm_86", 86, 80},    {"sm_89", 89, 80},
    {"sm_90", 90, 80},    {"sm_90a", 90, 80},   {"sm_100", 100, 86},
    {"sm_100a", 100, 86}, {"sm_103", 103, 88},  {"sm_103a", 103, 88},
    {"sm_120", 120, 87},  {"sm_120a", 120, 87},
};

/// What plain `cuda` stands for: the products of warpgroups where a machine has
/// them, and what every machine from Ampere on runs.
static constexpr StringLiteral commonCudaArchs[] = {"sm_90a", "sm_80"};

static const PtxArch *findCudaArch(StringRef name) {
  const PtxArch *found = llvm::find_if(
      cudaArchs, [&](const PtxArch &arch) { return arch.name == name; });
  return found == std::end(cudaArchs) ? nullptr : found;
}

int64_t CudaTarget::sharedLimit() const {
  return CudaModel::of(findCudaArch(arch)->capability).sharedBytes;
}

Result<CudaTarget> tandem::cudaTarget(StringRef arch) {
  if (findCudaArch(arch))
    return CudaTarget{arch.str()};
  std::string known;
  for (const PtxArch &one : cudaArchs)
    known += (known.empty() ? "" : ", ") + one.name.str();
  return Status::usage("expected the architecture for 'cuda' to be one of " +
                       known + ", but got '" + arch.str() + "'");
}

/// One target of a list.
static Result<Target> parseOne(StringRef text) {
  auto [kind, arch] = text.split(':');
  bool lacksArch = text.contains(':') && arch.empty();
  if (lacksArch || (kind != "cpu" && kind != "cuda"))
    return Status::usage("expected --target to be cpu, cpu:ARCH, cuda, "
                         "cuda:ARCH or several of these joined by '+', but "
                         "got '" +
                         text.str() + "'");
  if (kind == "cuda") {
    auto target = cudaTarget(arch);
    return target ? Result<Target>(std::move(*target)) : target.status();
  }
  auto target = cpuTarget(arch.str());
  return target ? Result<Target>(std::move(*target)) : target.status();
}

StringRef tandem::kindOf(const Target &target) {
  return std::holds_alternative<CpuTarget>(target) ? "cpu" : "cuda";
}

std::vector<std::string> tandem::targetNames(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, '+');
  std::vector<std::string> names;
  for (StringRef part : parts) {
    if (part == "cuda") {
      for (StringRef arch : commonCudaArchs)
        names.push_back(("cuda:" + arch).str());
      continue;
    }
    // A name alone is another architecture of the kind before it.
    bool isVariant =
        !names.empty() && !part.empty() && !part.contains(':') && part != "cpu";
    StringRef before = names.empty() ? "" : StringRef(names.back());
    StringRef kind = before.split(':').first;
    isVariant &=
        before.contains(':') && (kind == "cpu" || part.starts_with("sm_"));
    names.push_back((isVariant ? kind.str() + ":" : "") + part.str());
  }
  return names;
}

static std::string archOf(const Target &target) {
  return std::visit([](const auto &one) { return one.arch; }, target);
}

std::vector<std::string>
tandem::targetLabels(const std::vector<Target> &targets) {
  std::vector<std::string> labels;
  for (const Target &target : targets) {
    std::string label = kindOf(target).str();
    bool isOneOfSeveral = llvm::count_if(targets, [&](const Target &other) {
                            return kindOf(other) == kindOf(target);
                          }) > 1;
    if (isOneOfSeveral)
      label += "-" + archOf(target);
    labels.push_back(label);
  }
  return labels;
}

/// What keeps `target` from standing beside `other`; empty: nothing.
static std::string conflict(const Target &target, const Target &other,
                            const std::string &text) {
  if (kindOf(target) != kindOf(other) || archOf(target) != archOf(other))
    return "";
  return "expected --target to name the " +
         std::string(kindOf(target) == "cpu" ? "processor '"
                                             : "architecture '") +
         archOf(target) + "' once, but got '" + text + "'";
}

Result<std::vector<Target>> tandem::parseTargets(const std::string &text) {
  std::vector<Target> targets;
  std::vector<std::string> wrong;
  Status unsupported;
  for (const std::string &part : targetNames(text)) {
    auto target = parseOne(part);
    if (!target && target.status().code() == Code::Unsupported) {
      unsupported = target.status();
    } else if (!target) {
      wrong.push_back(target.status().message());
    } else {
      for (const Target &other : targets)
        if (std::string problem = conflict(*target, other, text);
            !problem.empty())
          wrong.push_back(problem);
      targets.push_back(std::move(*target));
    }
  }
  if (!wrong.empty())
    return Status::usage(llvm::join(wrong, "; "));
  if (!unsupported)
    return unsupported;
  return targets;
}

Result<CpuTarget> tandem::parseCpuTarget(const std::string &text) {
  auto targets = parseTargets(text);
  if (!targets)
    return targets.status();
  if (auto *cpu = std::get_if<CpuTarget>(&targets->front());
      cpu && targets->size() == 1)
    return *cpu;
  return Status::usage("expected a processor, but got '" + text + "'");
}

static const llvm::Target *nvptxTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  return llvm::TargetRegistry::lookupTarget(llvm::Triple("nvptx64-nvidia-cuda"),
                                            error);
}

std::unique_ptr<llvm::TargetMachine>
tandem::createMachine(const CudaTarget &target, unsigned ptxVersion) {
  const PtxArch *arch = findCudaArch(target.arch);
  ptxVersion = std::max(ptxVersion, arch->ptxVersion);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = kFloatFusion;
  return std::unique_ptr<llvm::TargetMachine>(
      nvptxTarget()->createTargetMachine(
          llvm::Triple("nvptx64-nvidia-cuda"), target.arch,
          "+ptx" + std::to_string(ptxVersion), options, std::nullopt,
          std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}
