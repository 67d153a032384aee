//===- Target.cpp - what code is made for ---------------------------------===//
#include "compiler/Target.h"

#include "mlir/IR/Builders.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace mlir;
using namespace tandem;

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

/// The instructions that code for `arch` may use; on the host without those
/// that it does not report. What else LLVM calls a feature (tuning, modes) no
/// processor reports, and none needs.
static std::vector<std::string> featuresOf(const std::string &arch, bool host) {
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      hostTarget()->createMCSubtargetInfo(hostTriple(), arch, ""));
  llvm::StringMap<bool> reported = llvm::sys::getHostCPUFeatures();
  std::vector<std::string> features;
  for (const llvm::SubtargetFeatureKV &feature :
       info->getEnabledProcessorFeatures()) {
    auto it = reported.find(feature.Key);
    if (it != reported.end() && (!host || it->second))
      features.push_back(feature.Key);
  }
  llvm::sort(features);
  return features;
}

Result<CpuTarget> tandem::parseTarget(const std::string &text) {
  StringRef kind, arch;
  std::tie(kind, arch) = StringRef(text).split(':');
  bool named = StringRef(text).contains(':');
  if (kind == "cuda")
    return Status::unsupported("target '" + text +
                               "' is not supported: this "
                               "compiler generates code for cpu");
  if (kind != "cpu" || (named && arch.empty()))
    return Status::usage("expected --target to be cpu or cpu:ARCH, but got '" +
                         text + "'");
  if (!hostTarget())
    return Status::unsupported("LLVM has no code generator for '" +
                               hostTriple().str() + "'");
  CpuTarget target;
  target.arch = named ? arch.str() : llvm::sys::getHostCPUName().str();
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      hostTarget()->createMCSubtargetInfo(hostTriple(), "", ""));
  if (!info->isCPUStringValid(target.arch))
    return Status::usage("unknown processor '" + target.arch + "' for '" +
                         hostTriple().getArchName().str() + "'");
  target.features = featuresOf(target.arch, !named);
  auto has = [&](const char *feature) {
    return llvm::is_contained(target.features, feature);
  };
  target.vectorBits = has("avx512f") ? 512 : has("avx2") ? 256 : 128;
  return target;
}

DictionaryAttr tandem::targetAttr(const CpuTarget &target,
                                  MLIRContext *context) {
  Builder b(context);
  SmallVector<StringRef> features(target.features.begin(),
                                  target.features.end());
  return b.getDictionaryAttr(
      {b.getNamedAttr("kind", b.getStringAttr("cpu")),
       b.getNamedAttr("arch", b.getStringAttr(target.arch)),
       b.getNamedAttr("features", b.getStrArrayAttr(features)),
       b.getNamedAttr("vector_bits", b.getI64IntegerAttr(target.vectorBits))});
}

Result<CpuTarget> tandem::targetFromAttr(DictionaryAttr attr) {
  auto wrong = Status::failed("expected 'tandem.target' to have 'kind', "
                              "'arch', 'features' and 'vector_bits'");
  if (!attr)
    return wrong;
  auto arch = attr.getAs<StringAttr>("arch");
  auto features = attr.getAs<ArrayAttr>("features");
  auto bits = attr.getAs<IntegerAttr>("vector_bits");
  if (!arch || !features || !bits)
    return wrong;
  CpuTarget target{arch.str(), {}, static_cast<int>(bits.getInt())};
  for (Attribute feature : features) {
    auto name = dyn_cast<StringAttr>(feature);
    if (!name)
      return wrong;
    target.features.push_back(name.str());
  }
  return target;
}

std::unique_ptr<llvm::TargetMachine>
tandem::createMachine(const CpuTarget &target) {
  std::string features;
  for (const std::string &feature : target.features)
    features += (features.empty() ? "+" : ",+") + feature;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  return std::unique_ptr<llvm::TargetMachine>(hostTarget()->createTargetMachine(
      hostTriple(), target.arch, features, options, llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}
