//===- Target.cpp - what code is made for ---------------------------------===//
#include "compiler/Target.h"
#include "ir/Nearest.h"
#include "passes/target/CudaModel.h"
#include "passes/target/Target.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>
#include <unistd.h>

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

static llvm::Triple hostTriple() {
  return llvm::Triple(llvm::sys::getProcessTriple());
}

static const llvm::Target *hostTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  std::string error;
  return llvm::TargetRegistry::lookupTarget(hostTriple(), error);
}

/// Instructions of the system, special stores and matrix tiles of other types
/// than bf16, which LLVM emits only where a program names them, and kernels do
/// not. A virtual machine often hides them from a processor that is otherwise
/// whole.
static bool isNeverUsed(StringRef feature) {
  static constexpr StringLiteral names[] = {
      "amx-complex", "amx-fp16", "amx-int8",  "cldemote", "clflushopt",
      "clwb",        "clzero",   "enqcmd",    "fsgsbase", "hreset",
      "invpcid",     "kl",       "movdir64b", "movdiri",  "mwaitx",
      "pconfig",     "pku",      "prefetchi", "ptwrite",  "rdpid",
      "rdpru",       "rdrnd",    "rdseed",    "rtm",      "serialize",
      "sgx",         "shstk",    "tsxldtrk",  "uintr",    "usermsr",
      "waitpkg",     "wbnoinvd", "widekl",    "xsave",    "xsavec",
      "xsaveopt",    "xsaves"};
  return llvm::is_contained(names, feature);
}

/// What products of tiles are made of (passes/lower/cpu/products/TileCode.h).
static constexpr StringLiteral tileFeatures[] = {"amx-bf16", "amx-tile",
                                                 "avx512bf16"};

/// What LLVM says that the processor `arch` has.
static llvm::StringSet<> promisedBy(const std::string &arch) {
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      hostTarget()->createMCSubtargetInfo(hostTriple(), arch, ""));
  llvm::StringSet<> names;
  for (const llvm::SubtargetFeatureKV &feature :
       info->getEnabledProcessorFeatures())
    names.insert(feature.Key);
  return names;
}

/// The instructions that code for `arch` may use; on the host without those
/// that it does not report, and with its tiles: a virtual machine that does not
/// tell its model is taken for an older one. What else LLVM calls a feature
/// (tuning, modes) no processor reports, and none needs.
static std::vector<std::string> featuresOf(const std::string &arch, bool host) {
  llvm::StringMap<bool> reported = llvm::sys::getHostCPUFeatures();
  llvm::StringSet<> names = promisedBy(arch);
  if (host)
    for (StringRef name : tileFeatures)
      names.insert(name);
  std::vector<std::string> features;
  for (const auto &entry : names) {
    StringRef name = entry.getKey();
    auto it = reported.find(name);
    if (it != reported.end() && (!host || it->second) && !isNeverUsed(name))
      features.push_back(name.str());
  }
  llvm::sort(features);
  return features;
}

CpuTarget tandem::withoutTiles(CpuTarget target) {
  llvm::StringSet<> promised = promisedBy(target.arch);
  llvm::erase_if(target.features, [&](StringRef name) {
    return llvm::is_contained(tileFeatures, name) &&
           (name.starts_with("amx-") || !promised.contains(name));
  });
  return target;
}

/// Of the host; 0 where it does not say.
static int64_t hostCacheBytes() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  return std::max<int64_t>(0, ::sysconf(_SC_LEVEL3_CACHE_SIZE));
#else
  return 0;
#endif
}

/// Of the host, not of this process: where that may run must not show in what
/// it writes. 0 where the host does not say.
static int64_t hostProcessors() {
#ifdef _SC_NPROCESSORS_ONLN
  return std::max<int64_t>(0, ::sysconf(_SC_NPROCESSORS_ONLN));
#else
  return 0;
#endif
}

std::vector<StringRef> tandem::knownFeatures() {
  static const llvm::StringMap<bool> reported = llvm::sys::getHostCPUFeatures();
  std::vector<StringRef> names;
  for (const auto &entry : reported)
    names.push_back(entry.getKey());
  llvm::sort(names);
  return names;
}

int tandem::widestVectors(ArrayRef<std::string> features) {
  auto has = [&](const char *feature) {
    return llvm::is_contained(features, feature);
  };
  return has("avx512f") ? 512 : has("avx2") ? 256 : 128;
}

Status tandem::checkProcessor(const std::string &arch) {
  if (!hostTarget())
    return Status::unsupported("LLVM has no code generator for '" +
                               hostTriple().str() + "'");
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      hostTarget()->createMCSubtargetInfo(hostTriple(), "", ""));
  if (!info->isCPUStringValid(arch)) {
    SmallVector<StringRef> names;
    for (const llvm::SubtargetSubTypeKV &one :
         info->getAllProcessorDescriptions())
      names.push_back(one.Key);
    return Status::usage("unknown processor '" + arch + "' for '" +
                         hostTriple().getArchName().str() + "'" +
                         didYouMean(arch, names));
  }
  // LLVM ends the process when it is asked for a machine of such a processor.
  if (hostTriple().isX86() && !promisedBy(arch).contains("64bit"))
    return Status::unsupported("the processor '" + arch +
                               "' does not run code of 64 bits");
  return Status::success();
}

static Result<CpuTarget> cpuTarget(StringRef arch) {
  CpuTarget target;
  target.arch = arch.empty() ? llvm::sys::getHostCPUName().str() : arch.str();
  if (Status s = checkProcessor(target.arch); !s)
    return s;
  target.features = featuresOf(target.arch, arch.empty());
  target.vectorBits = widestVectors(target.features);
  if (arch.empty()) {
    target.lastCacheBytes = hostCacheBytes();
    target.processors = hostProcessors();
  }
  return target;
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
  auto target = cpuTarget(arch);
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

/// A product and a sum become one operation only where the code says so (inside
/// of contractions): elsewhere it would depend on which ops share a kernel, and
/// a value that the backward computes again would not be the forward's.
static constexpr auto kFusion = llvm::FPOpFusion::Standard;

std::unique_ptr<llvm::TargetMachine>
tandem::createMachine(const CpuTarget &target, llvm::CodeGenOptLevel level) {
  std::string features;
  for (const std::string &feature : target.features)
    features += (features.empty() ? "+" : ",+") + feature;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = kFusion;
  return std::unique_ptr<llvm::TargetMachine>(hostTarget()->createTargetMachine(
      hostTriple(), target.arch, features, options, llvm::Reloc::PIC_,
      std::nullopt, level));
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
  options.AllowFPOpFusion = kFusion;
  return std::unique_ptr<llvm::TargetMachine>(
      nvptxTarget()->createTargetMachine(
          llvm::Triple("nvptx64-nvidia-cuda"), target.arch,
          "+ptx" + std::to_string(ptxVersion), options, std::nullopt,
          std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}
