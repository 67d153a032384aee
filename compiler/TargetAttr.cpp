//===- TargetAttr.cpp - targets as attributes of modules ------------------===//
//
// What is read back may have been edited. The attribute's own verifier has
// checked its fields one by one (ir/TargetAttribute.cpp); code is made of it as
// it is, so here is checked what LLVM has to know: processor, features, and
// that vectors are as wide as some registers.
//
//===----------------------------------------------------------------------===//
#include "compiler/Target.h"
#include "ir/Nearest.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;

TargetAttr tandem::targetAttr(const Target &target, MLIRContext *context) {
  Builder b(context);
  if (auto *cuda = std::get_if<CudaTarget>(&target))
    return TargetAttr::get(
        context, TargetKind::Cuda,
        b.getDictionaryAttr(
            b.getNamedAttr(TargetAttr::kArch, b.getStringAttr(cuda->arch))));
  const auto &cpu = std::get<CpuTarget>(target);
  SmallVector<StringRef> features(cpu.features.begin(), cpu.features.end());
  NamedAttrList fields;
  fields.set(TargetAttr::kArch, b.getStringAttr(cpu.arch));
  fields.set(TargetAttr::kFeatures, b.getStrArrayAttr(features));
  fields.set(TargetAttr::kVectorBits, b.getI64IntegerAttr(cpu.vectorBits));
  if (cpu.lastCacheBytes)
    fields.set(TargetAttr::kLastCacheBytes,
               b.getI64IntegerAttr(cpu.lastCacheBytes));
  if (cpu.processors)
    fields.set(TargetAttr::kProcessors, b.getI64IntegerAttr(cpu.processors));
  return TargetAttr::get(context, TargetKind::Cpu,
                         fields.getDictionary(context));
}

namespace {
/// Collects what is wrong with a target.
struct Problems {
  std::vector<std::string> all;

  void add(const Twine &message) { all.push_back(message.str()); }
  void checkArch(TargetAttr attr) {
    if (attr.getArch().empty())
      add("expected 'arch' to be a string, but got none");
  }
  Status status() const {
    return all.empty()
               ? Status::success()
               : Status::failed("'tandem.target': " + llvm::join(all, "; "));
  }
};
} // namespace

static void checkFeatures(const CpuTarget &target, Problems &problems) {
  std::vector<StringRef> known = knownFeatures(target.arch);
  llvm::StringMap<int> seen;
  for (StringRef name : target.features)
    if (!llvm::is_contained(known, name))
      problems.add("unknown feature '" + name + "'" + didYouMean(name, known));
    else if (++seen[name] == 2)
      problems.add("the feature '" + name + "' is there twice");
}

static Result<Target> cpuFromAttr(TargetAttr attr) {
  Problems problems;
  CpuTarget target;
  target.arch = attr.getArch().str();
  problems.checkArch(attr);
  if (!target.arch.empty())
    if (Status s = checkProcessor(target.arch); !s)
      problems.add(s.message());
  for (StringRef name : attr.getFeatures())
    target.features.push_back(name.str());
  checkFeatures(target, problems);
  if (!attr.getFields().contains(TargetAttr::kFeatures))
    problems.add("expected 'features' to be a list of strings, but got none");
  int widest = widestVectors(target.features);
  target.vectorBits = static_cast<int>(attr.getVectorBits());
  if (!target.vectorBits)
    problems.add("expected 'vector_bits' to be 128, 256 or 512, but got none");
  else if (target.vectorBits > widest)
    problems.add("expected 'vector_bits' to be 128, 256 or 512, and at most " +
                 Twine(widest) +
                 ", the width of registers with these features, but got " +
                 Twine(target.vectorBits));
  target.lastCacheBytes = attr.getLastCacheBytes();
  target.processors = attr.getProcessors();
  if (Status s = problems.status(); !s)
    return s;
  return Target(std::move(target));
}

static Result<Target> cudaFromAttr(TargetAttr attr) {
  Problems problems;
  problems.checkArch(attr);
  auto target = cudaTarget(attr.getArch());
  if (!target)
    problems.add(target.status().message());
  if (Status s = problems.status(); !s)
    return s;
  return Target(std::move(*target));
}

Result<Target> tandem::targetFromAttr(TargetAttr attr) {
  if (!attr)
    return Status::failed("expected the module to say its 'tandem.target', "
                          "but got none");
  return attr.isCpu() ? cpuFromAttr(attr) : cudaFromAttr(attr);
}
