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
#include "llvm/ADT/ScopeExit.h"
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

/// Whether MLIR's verifier runs behind each pass, and not only behind the last
/// one: it took half of the time of `lower`, and a third of that of `plan`.
/// Where it finds something, a reproducer says which pass it was.
#ifdef NDEBUG
static constexpr bool kVerifiesEach = false;
#else
static constexpr bool kVerifiesEach = true;
#endif

namespace {
/// How the steps of a phase are run.
struct Run {
  ModuleOp module;
  const CompileOptions &options;
  TimingScope timing;
  StringRef label;
  /// What there is to do does not depend on the kernel cache.
  bool isCounted = true;

  Status steps(ArrayRef<PassStep> steps, bool areVerified = true);
};
} // namespace

static Status parse(ArrayRef<PassStep> steps, PassManager &passes) {
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (succeeded(parsePassPipeline(pipelineText(steps), passes, stream)))
    return Status::success();
  return Status::failed("phase '" + steps.front().phase +
                        "' has a broken pipeline: " + message);
}

/// In one pass manager.
Status Run::steps(ArrayRef<PassStep> steps, bool areVerified) {
  if (steps.empty())
    return Status::success();
  PassManager passes(module.getContext(), ModuleOp::getOperationName());
  passes.enableVerifier(areVerified);
  if (Status s = parse(steps, passes); !s)
    return s;
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
    return step.name == "emit-cpu-kernels" || step.name == "emit-cuda-kernels";
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
  PassManager whole(module.getContext(), ModuleOp::getOperationName());
  llvm::scope_exit end([&] {
    if (options.reproducer)
      options.reproducer->end();
  });
  // Of all that runs at once.
  auto begin = [&](ArrayRef<PassStep> now) {
    if (!options.reproducer)
      return Status::success();
    whole.clear();
    if (Status s = parse(now, whole); !s)
      return s;
    options.reproducer->begin(module, whole, now.front().phase);
    return Status::success();
  };
  if (options.dumpPasses.empty()) {
    ArrayRef<PassStep> now = steps.take_front(count);
    if (Status s = begin(now); !s)
      return s;
    // The code of those kernels that is there is not made: which there are is
    // known when their functions are.
    size_t keyed = keysBehind(now, options);
    if (keyed) {
      if (Status s = run.steps(now.take_front(keyed), kVerifiesEach); !s)
        return s;
      TimingScope keys = run.timing.nest("keys of kernels");
      addKernelKeys(module, options.kernels,
                    {options.effort, options.emulation});
      run.isCounted = options.kernels == nullptr;
    }
    if (Status s = run.steps(now.drop_back().drop_front(keyed), kVerifiesEach);
        !s)
      return s;
    if (Status s = run.steps(now.take_back()); !s)
      return s;
  } else {
    dumps.begin(module);
    for (size_t i = 0; i < count; ++i) {
      module->removeAttr(kWithinAttr);
      if (Status s = begin(steps.slice(i, 1)); !s)
        return s;
      if (Status s = run.steps(steps.slice(i, 1)); !s)
        return s;
      if (Status s = dumps.pass(module, steps[i], steps.drop_front(i + 1)); !s)
        return s;
    }
  }
  setWithin(module, steps[count - 1], steps.drop_front(count));
  return Status::success();
}
