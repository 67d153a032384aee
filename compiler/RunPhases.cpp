//===- RunPhases.cpp - the passes of phases, run and looked at ------------===//
#include "compiler/RunPhases.h"
#include "compiler/PassLog.h"
#include "compiler/Phases.h"
#include "compiler/Reproducer.h"
#include "compiler/capture/Names.h"
#include "compiler/emit/KernelKeys.h"
#include "runtime/artifact/AtomicFile.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace tandem;

static std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, OpPrintingFlags().enableDebugInfo());
  return text;
}

Status Dumps::write(ModuleOp module, const std::string &folder,
                    const std::string &name) const {
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return Status::failed("cannot make '" + folder + "': " + error.message());
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, modelNameOf(module.getName().value_or("")) +
                                    "." + name + (label.empty() ? "" : ".") +
                                    label + ".mlir");
  std::string text = textOf(module);
  auto file = artifact::AtomicFile::create(path.str().str());
  if (!file)
    return file.status();
  if (Status s = file->write(text.data(), text.size()); !s)
    return s;
  return file->commit();
}

Status Dumps::phase(ModuleOp module) const {
  // What stands within a phase is no module of one.
  if (options.dumpPhases.empty() || module->hasAttr(kWithinAttr))
    return Status::success();
  StringRef phase = phaseOf(module);
  std::string name;
  llvm::raw_string_ostream(name)
      << llvm::format("%02d", *phaseNumber(phase)) << '.' << phase;
  return write(module, options.dumpPhases, name);
}

void Dumps::begin(ModuleOp module) {
  if (!options.dumpPasses.empty())
    last = textOf(module);
}

Status Dumps::pass(ModuleOp module, const PassStep &done,
                   ArrayRef<PassStep> rest) {
  module->removeAttr(kWithinAttr);
  std::string now = textOf(module);
  // At the end it is the phase's.
  if (now == last || rest.empty())
    return Status::success();
  last = std::move(now);
  setWithin(module, done, rest);
  std::string name;
  llvm::raw_string_ostream(name)
      << llvm::format("%02d", *phaseNumber(done.phase)) << '.' << done.phase
      << '.' << llvm::format("%02d", done.number) << '.' << done.name;
  return write(module, options.dumpPasses, name);
}

namespace {
/// How the steps of a phase are run.
struct Run {
  ModuleOp module;
  const CompileOptions &options;
  TimingScope timing;
  StringRef label;
  /// What there is to do does not depend on the kernel cache.
  bool isCounted = true;

  Status steps(ArrayRef<PassStep> steps);
};
} // namespace

/// In one pass manager.
Status Run::steps(ArrayRef<PassStep> steps) {
  PassManager passes(module.getContext(), ModuleOp::getOperationName());
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (failed(parsePassPipeline(pipelineText(steps), passes, stream)))
    return Status::failed("phase '" + steps.front().phase +
                          "' has a broken pipeline: " + message);
  // Outside of what is timed: counting ops takes time.
  std::function<void()> log =
      options.passes ? options.passes->watch(passes, steps, label, isCounted)
                     : nullptr;
  passes.enableTiming(timing);
  Status status =
      runPasses(module, passes, steps.front().phase, options.reproducer);
  if (log)
    log();
  return status;
}

/// Behind how many of the steps kernels get keys; 0 if none do: what is written
/// or handed on for anything but emission has neither keys nor functions
/// without code. Sizes have keys without a cache, too, since functions of
/// several are one only where their keys are (JoinKernels.cpp).
static size_t keysBehind(ArrayRef<PassStep> steps,
                         const CompileOptions &options) {
  if (!options.stopAfter.empty() || !options.dumpPhases.empty() ||
      (!options.kernels && options.variants.empty()))
    return 0;
  auto chosen = llvm::find_if(steps, [](const PassStep &step) {
    return step.name == "deduplicate-kernels";
  });
  auto emitted = llvm::find_if(steps, [](const PassStep &step) {
    return step.name == "emit-cpu-kernels";
  });
  return chosen != steps.end() && emitted != steps.end() && chosen < emitted
             ? size_t(chosen - steps.begin()) + 1
             : 0;
}

Status tandem::runSteps(ModuleOp module, ArrayRef<PassStep> steps, size_t count,
                        const CompileOptions &options, Dumps &dumps,
                        StringRef label) {
  if (count == 0)
    return Status::success();
  // They run under the phase's verifier, and not under what the stamp says.
  module->removeAttr(kWithinAttr);
  Run run{module, options, TimingScope(), label};
  if (options.timing)
    run.timing = options.timing->nest(
        (steps.front().phase + (label.empty() ? "" : ".") + label).str());
  if (options.dumpPasses.empty()) {
    // The code of those kernels that is there is not made: which there are is
    // known when their functions are.
    ArrayRef<PassStep> now = steps.take_front(count);
    size_t keyed = keysBehind(now, options);
    if (keyed) {
      if (Status s = run.steps(now.take_front(keyed)); !s)
        return s;
      TimingScope keys = run.timing.nest("keys of kernels");
      addKernelKeys(module, options.kernels, options.effort);
      run.isCounted = options.kernels == nullptr;
    }
    if (Status s = run.steps(now.drop_front(keyed)); !s)
      return s;
  } else {
    dumps.begin(module);
    for (size_t i = 0; i < count; ++i) {
      module->removeAttr(kWithinAttr);
      if (Status s = run.steps(steps.slice(i, 1)); !s)
        return s;
      if (Status s = dumps.pass(module, steps[i], steps.drop_front(i + 1)); !s)
        return s;
    }
  }
  setWithin(module, steps[count - 1], steps.drop_front(count));
  return Status::success();
}
