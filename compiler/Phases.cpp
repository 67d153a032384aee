//===- Phases.cpp - the phases of a compilation ---------------------------===//
#include "compiler/Phases.h"
#include "compiler/Compile.h"
#include "ir/Dialect.h"
#include "passes/verify/PhaseVerifiers.h"

using namespace mlir;
using namespace tandem;

namespace {

std::string functionalize(const CompileOptions &, StringRef) {
  return "tandem-functionalize";
}

std::string joint(const CompileOptions &options, StringRef) {
  return options.inference    ? "tandem-build-joint{inference=true}"
         : options.order == 1 ? "tandem-build-joint"
                              : "tandem-build-joint{order=2}";
}

std::string optimize(const CompileOptions &, StringRef) {
  return "tandem-optimize-joint";
}

std::string partition(const CompileOptions &options, StringRef) {
  std::string remarks = options.remarks ? " remarks=true" : "";
  std::string budget = options.memoryBudget.empty()
                           ? ""
                           : " memory-budget=" + options.memoryBudget;
  std::string kind = options.partition.empty() ? "min-cut" : options.partition;
  return "tandem-partition-joint{kind=" + kind + budget + remarks + "}";
}

std::string plan(const CompileOptions &options, StringRef) {
  return options.remarks ? "tandem-plan-programs{remarks=true}"
                         : "tandem-plan-programs";
}

std::string lower(const CompileOptions &, StringRef kind) {
  return ("tandem-lower-to-" + kind).str();
}

constexpr Phase table[] = {
    {"functionalize", "refs become values, mutations become results",
     functionalize, verifyFunctionalize},
    {"joint", "the backward is derived beside the forward", joint, verifyJoint},
    {"optimize", "common and dead code goes, constants fold", optimize,
     verifyOptimize},
    {"partition", "forward, backward, update and step part", partition,
     verifyPartition},
    {"plan", "kernels form, buffers get their places", plan, verifyPlan},
    {"lower", "kernels become LLVM functions", lower, verifyLower},
};

} // namespace

ArrayRef<Phase> tandem::phases() { return table; }

std::optional<int> tandem::phaseNumber(StringRef name) {
  if (name == "capture")
    return 1;
  for (auto [i, phase] : llvm::enumerate(phases()))
    if (phase.name == name)
      return static_cast<int>(i) + 2;
  return std::nullopt;
}

StringRef tandem::phaseOf(ModuleOp module) {
  auto phase = module->getAttrOfType<StringAttr>(kPhaseAttr);
  return phase ? phase.getValue() : StringRef("capture");
}

LogicalResult tandem::verifyPhase(ModuleOp module) {
  for (const Phase &phase : phases())
    if (phase.name == phaseOf(module))
      return phase.verify(module);
  return verifyCapture(module);
}
