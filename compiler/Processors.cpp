//===- Processors.cpp - what LLVM knows of processors ---------------------===//
//
// Processors are of the host's kind, or of another one that LLVM makes code for
// and that the runtime runs on. A name that two kinds have is the host's.
//
//===----------------------------------------------------------------------===//
#include "compiler/Target.h"
#include "ir/Nearest.h"

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
/// A kind of processors.
struct Kind {
  const llvm::Target *target; ///< null: LLVM has none
  llvm::Triple triple;

  bool isArm() const { return triple.isAArch64(); }
  /// LLVM's name of a processor: what the options call by the kind's name has
  /// what all of the kind have.
  StringRef llvmName(StringRef arch) const {
    return isArm() && arch == kArmBase ? "generic" : arch;
  }
  std::unique_ptr<llvm::MCSubtargetInfo> infoOf(StringRef arch) const {
    return std::unique_ptr<llvm::MCSubtargetInfo>(
        target->createMCSubtargetInfo(triple, llvmName(arch), ""));
  }
  bool knows(StringRef arch) const {
    return target && infoOf("")->isCPUStringValid(llvmName(arch));
  }
  static constexpr StringLiteral kArmBase = "aarch64";
};
} // namespace

static Kind kindFor(llvm::Triple triple) {
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  return {target, std::move(triple)};
}

/// The host's kind first.
static ArrayRef<Kind> kinds() {
  static const std::vector<Kind> all = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    llvm::InitializeNativeTargetDisassembler();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
    LLVMInitializeAArch64Disassembler();
    std::vector<Kind> made;
    made.push_back(kindFor(llvm::Triple(llvm::sys::getProcessTriple())));
    if (!made.front().isArm())
      made.push_back(kindFor(llvm::Triple("aarch64-unknown-linux-gnu")));
    return made;
  }();
  return all;
}

static const Kind &host() { return kinds().front(); }

/// The kind that `arch` is of: the host's where none knows it.
static const Kind &kindOfProcessor(StringRef arch) {
  const Kind *found = llvm::find_if(
      kinds(), [&](const Kind &kind) { return kind.knows(arch); });
  return found == kinds().end() ? host() : *found;
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

/// Of aarch64, what code for kernels may use and systems report
/// (runtime/device/CpuFeatures.cpp has the same list).
static constexpr StringLiteral armFeatures[] = {
    "bf16",    "complxnum", "crc",     "dotprod", "flagm",    "fp-armv8",
    "fp16fml", "i8mm",      "fptoint", "jsconv",  "fullfp16", "lse",
    "neon",    "rcpc",      "rdm",     "sha3",    "rcpc-immo"};

/// What code is made without on processors that have it: vectors whose length
/// is not known, and what is not on that list.
static constexpr StringLiteral armUnused =
    ",-sve,-sme,-altnzcv,-cssc,-mops,-hbc,-lse2,-lse128,-rcpc3";

/// What products of tiles are made of (passes/lower/cpu/products/TileCode.h).
static constexpr StringLiteral tileFeatures[] = {"amx-bf16", "amx-tile",
                                                 "avx512bf16"};

/// What LLVM says that the processor `arch` has.
static llvm::StringSet<> promisedBy(const std::string &arch) {
  std::unique_ptr<llvm::MCSubtargetInfo> info =
      kindOfProcessor(arch).infoOf(arch);
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
static std::vector<std::string> featuresOf(const std::string &arch,
                                           bool isHost) {
  llvm::StringMap<bool> reported = llvm::sys::getHostCPUFeatures();
  llvm::StringSet<> names = promisedBy(arch);
  if (isHost)
    for (StringRef name : tileFeatures)
      names.insert(name);
  std::vector<StringRef> known = knownFeatures(arch);
  std::vector<std::string> features;
  for (const auto &entry : names) {
    StringRef name = entry.getKey();
    if (llvm::is_contained(known, name) && (!isHost || reported.lookup(name)) &&
        !isNeverUsed(name))
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

std::vector<StringRef> tandem::knownFeatures(const std::string &arch) {
  std::vector<StringRef> names;
  if (kindOfProcessor(arch).isArm()) {
    names.assign(std::begin(armFeatures), std::end(armFeatures));
  } else {
    static const llvm::StringMap<bool> reported =
        llvm::sys::getHostCPUFeatures();
    for (const auto &entry : reported)
      names.push_back(entry.getKey());
  }
  llvm::sort(names);
  return names;
}

int tandem::widestVectors(ArrayRef<std::string> features) {
  auto has = [&](const char *feature) {
    return llvm::is_contained(features, feature);
  };
  return has("avx512f") ? 512 : has("avx2") ? 256 : 128;
}

StringRef tandem::llvmProcessor(StringRef arch) {
  return kindOfProcessor(arch).llvmName(arch);
}

Status tandem::checkProcessor(const std::string &arch) {
  if (!host().target)
    return Status::unsupported("LLVM has no code generator for '" +
                               host().triple.str() + "'");
  const Kind &kind = kindOfProcessor(arch);
  if (!kind.knows(arch)) {
    SmallVector<StringRef> names;
    std::string kindNames;
    for (const Kind &one : kinds()) {
      if (!one.target)
        continue;
      kindNames += (kindNames.empty() ? "'" : " or '") +
                   one.triple.getArchName().str() + "'";
      for (const llvm::SubtargetSubTypeKV &row :
           one.infoOf("")->getAllProcessorDescriptions())
        names.push_back(row.Key);
    }
    names.push_back(Kind::kArmBase);
    return Status::usage("unknown processor '" + arch + "' for " + kindNames +
                         didYouMean(arch, names));
  }
  // LLVM ends the process when it is asked for a machine of such a processor.
  if (kind.triple.isX86() && !promisedBy(arch).contains("64bit"))
    return Status::unsupported("the processor '" + arch +
                               "' does not run code of 64 bits");
  return Status::success();
}

Result<CpuTarget> tandem::cpuTarget(const std::string &arch) {
  CpuTarget target;
  target.arch = arch.empty() ? llvm::sys::getHostCPUName().str() : arch;
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

std::unique_ptr<llvm::TargetMachine>
tandem::createMachine(const CpuTarget &target, llvm::CodeGenOptLevel level) {
  const Kind &kind = kindOfProcessor(target.arch);
  std::string features;
  for (const std::string &feature : target.features)
    features += (features.empty() ? "+" : ",+") + feature;
  if (kind.isArm())
    features += armUnused;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = kFloatFusion;
  return std::unique_ptr<llvm::TargetMachine>(kind.target->createTargetMachine(
      kind.triple, kind.llvmName(target.arch), features, options,
      llvm::Reloc::PIC_, std::nullopt, level));
}
