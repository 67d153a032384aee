//===- Compile.cpp - from a model to a lowered module ---------------------===//
#include "compiler/Compile.h"
#include "compiler/CheckOptions.h"
#include "compiler/InputTypes.h"
#include "compiler/Mixup.h"
#include "compiler/Nesting.h"
#include "compiler/PassSteps.h"
#include "compiler/Phases.h"
#include "compiler/Precision.h"
#include "compiler/RunPhases.h"
#include "compiler/StampRanks.h"
#include "compiler/TagPaths.h"
#include "compiler/Target.h"
#include "compiler/capture/GraphDigest.h"
#include "compiler/capture/Names.h"
#include "compiler/emit/KernelKeys.h"
#include "compiler/functions/NearestOp.h"
#include "compiler/import/JsonGraph.h"
#include "compiler/import/ParseModule.h"
#include "compiler/import/onnx/Import.h"
#include "compiler/import/onnx/OnnxFile.h"
#include "compiler/import/stablehlo/Import.h"
#include "compiler/import/torch/Archive.h"
#include "compiler/import/torch/Import.h"
#include "ir/Dialect.h"
#include "ir/Pipeline.h"
#include "ir/Report.h"
#include "ir/Sharding.h"
#include "ir/Signature.h"
#include "ir/UpdateAttributes.h"
#include "passes/lower/common/Method.h"
#include "passes/plan/StepMemory.h"
#include "passes/shard/ParallelSpec.h"
#include "passes/target/Target.h"
#include "runtime/artifact/DeviceFiles.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"

#include <chrono>

using namespace mlir;
using namespace tandem;

void tandem::registerCompiler(DialectRegistry &registry) {
  registerCompilerPasses();
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  registry.insert<TandemDialect>();
}

/// `status` is a failure if the file cannot be read as what its name says; what
/// is wrong with the model is in the result.
static Import importFile(const std::string &path, MLIRContext &context,
                         Status &status, const ImportOptions &options) {
  auto import = [&](auto &&file, auto importer) {
    status = file.status();
    return file ? importer(*file, path, options, context) : Import();
  };
  return llvm::sys::path::extension(path) == ".onnx"
             ? import(onnx::readModelFile(path), onnx::importModel)
             : import(torch::readArchive(path), torch::importProgram);
}

/// The module, unless it has names that messages and manifests cannot have.
static OwningOpRef<ModuleOp> withGoodNames(OwningOpRef<ModuleOp> module,
                                           const std::string &path,
                                           Status &status) {
  if (!module || succeeded(checkNames(*module)))
    return module;
  status = Status::failed("'" + path + "' has names with control characters");
  return {};
}

static OwningOpRef<ModuleOp> readImported(const std::string &path,
                                          MLIRContext &context, Status &status,
                                          const ImportOptions &options,
                                          Weights *weights) {
  Import import = importFile(path, context, status, options);
  if (!status)
    return {};
  status = import.status();
  if (!status)
    status = std::move(status).in("'" + path + "'");
  import.module = withGoodNames(std::move(import.module), path, status);
  if (!status)
    return {};
  for (const std::string &note : import.notes)
    emitRemark(FileLineColLoc::get(&context, path, 0, 0)) << note;
  if (weights)
    *weights = std::move(import.weights);
  return std::move(import.module);
}

/// Says which op is meant where MLIR finds a name to be none. Its parser asks a
/// dialect for no more than to parse the name's op after all.
static void addSuggestion(MLIRContext &context, Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  StringRef message = text, name = message;
  bool isUnknown = message.starts_with("custom op '") ||
                   message.starts_with("unregistered operation '");
  if (!isUnknown)
    return;
  name = name.split('\'').second.split('\'').first;
  // What is wrong inside of a known op begins with "custom op" too.
  bool isKnown = RegisteredOperationName::lookup(name, &context).has_value();
  if (!isKnown && name.consume_front("tandem."))
    diagnostic << suggestOp(&context, name, /*withFunctions=*/false);
}

OwningOpRef<ModuleOp> tandem::readModel(const std::string &path,
                                        MLIRContext &context, Status &status,
                                        const ImportOptions &options,
                                        Weights *weights) {
  StringRef extension = llvm::sys::path::extension(path);
  if (isImported(path))
    return readImported(path, context, status, options, weights);
  status = artifact::expectNoDevice(path);
  if (!status)
    return {};
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer) {
    status = Status::failed("cannot read '" + path +
                            "': " + buffer.getError().message());
    return {};
  }
  if (extension == ".json")
    return withGoodNames(
        importJsonGraph((*buffer)->getBuffer(), path, context, status), path,
        status);
  if (stablehlo::isExportedFile(path))
    return withGoodNames(stablehlo::importExported((*buffer)->getBuffer(), path,
                                                   context, status, options),
                         path, status);
  if (extension != ".mlir") {
    status = Status::usage("expected a model in .mlir, .json, .onnx, .pt2 or "
                           ".bin (of jax.export), but got '" +
                           path + "'");
    return {};
  }
  StringRef text = (*buffer)->getBuffer();
  bool isStablehlo = stablehlo::isModule(text);
  if (!isStablehlo || !text.starts_with("ML\xefR"))
    status = checkNesting(text, path);
  if (!status)
    return {};
  if (isStablehlo)
    return withGoodNames(
        stablehlo::importModule(text, path, context, status, options), path,
        status);
  context.loadDialect<TandemDialect>();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    addSuggestion(context, diagnostic);
    return failure(); // others show it
  });
  auto module = parseModule(text, path, context);
  if (!module)
    status = Status::failed("'" + path + "' is not a valid module");
  return withGoodNames(std::move(module), path, status);
}

Status tandem::adaptModel(ModuleOp module, const CompileOptions &options) {
  // First the rows: what is mixed is what the model takes.
  StringRef loss = options.loss;
  Status status =
      mixRows(module, options.mixup, loss.empty() ? "loss" : loss.str());
  return status ? changeInputs(module, options.inputs) : status;
}

/// Params whose names `expression` matches a part of require no gradients.
static Status freeze(ModuleOp module, const std::string &expression) {
  auto graph = module.lookupSymbol<func::FuncOp>("graph");
  if (expression.empty() || !graph)
    return Status::success();
  llvm::Regex regex(expression);
  std::string trained;
  bool matches = false, isLeft = false;
  for (unsigned i = 0, n = graph.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(graph, i);
    if (!role || role.getKind() != RoleKind::Param)
      continue;
    bool isMatch = regex.match(role.getName().getValue());
    matches |= isMatch;
    if (!role.has(RoleAttr::kRequiresGrad))
      continue;
    trained += (trained.empty() ? "'" : ", '") + role.getName().str() + "'";
    if (isMatch)
      setRoleOfArgument(graph, i, role.without(RoleAttr::kRequiresGrad));
    else
      isLeft = true;
  }
  if (!matches)
    return Status::usage("--freeze=" + expression +
                         " matches no part of a param's name; those that are "
                         "trained are " +
                         (trained.empty() ? "none" : trained));
  if (!isLeft)
    return Status::usage("--freeze=" + expression +
                         " leaves no param to train");
  return Status::success();
}

/// Puts what the options say about the model into the module.
static Status stamp(ModuleOp module, const CompileOptions &options) {
  Builder b(module.getContext());
  if (!module->hasAttr(kPhaseAttr))
    module->setAttr(kPhaseAttr, b.getStringAttr("capture"));
  if (Status s = checkAgainstModule(module, options); !s)
    return s;
  auto text = [&](StringRef name, const std::string &value) {
    if (!value.empty())
      module->setAttr(name, b.getStringAttr(value));
  };
  text(kLossAttr, options.loss);
  text(kOptimizerAttr, options.optimizer);
  text(kClipAttr, options.clip);
  text(kGradientNoiseAttr, options.gradientNoise);
  if (options.centralize)
    module->setAttr(kCentralizeAttr, b.getUnitAttr());
  text(kLossScaleAttr, options.lossScale);
  // What stages add up, they update by.
  if (options.accumulate || isPipeline(options))
    module->setAttr(kAccumulateAttr, b.getUnitAttr());
  if (!options.groups.empty()) {
    SmallVector<StringRef> groups(options.groups.begin(), options.groups.end());
    module->setAttr(kGroupsAttr, b.getStrArrayAttr(groups));
  }
  text(kLrScheduleAttr, options.lrSchedule);
  text(kEmaAttr, options.ema);
  text(kSwaAttr, options.swa);
  // With the loss that was chosen. What later phases add is not the model's.
  if (phaseReached(module) == 1)
    module->setAttr(kGraphDigestAttr, b.getStringAttr(graphDigest(module)));
  if (Status s = freeze(module, options.freeze); !s)
    return s;
  if (options.prepare)
    module->setAttr(kPrepareAttr, b.getUnitAttr());
  // A model is the same one with adapters, and in other types.
  text(kLoraAttr, options.lora);
  if (Status s = stampPrecision(module, options); !s)
    return s;
  return stampRanks(module, options);
}

/// The target with what is asked for.
static TargetAttr withAsked(TargetAttr target, const CompileOptions &options) {
  StringRef kind = stringifyTargetKind(target.getKind());
  for (const TargetOption &asked : targetOptions(options))
    if (kind == asked.kind && asked.value != asked.usual)
      target = target.with(asked.attribute,
                           StringAttr::get(target.getContext(), asked.value));
  if (target.isCpu() && options.fastMath)
    target =
        target.with(TargetAttr::kFastMath, UnitAttr::get(target.getContext()));
  return target;
}

/// The options that a target without them lacks, as they are written.
static std::string lackOf(TargetAttr target, const CompileOptions &options) {
  std::vector<std::string> flags;
  TargetAttr wanted = withAsked(target, options);
  for (const TargetOption &asked : targetOptions(options))
    if (wanted.getFields().get(asked.attribute) !=
        target.getFields().get(asked.attribute))
      flags.push_back((asked.flag + "=" + asked.value).str());
  if (wanted.getFastMath() && !target.getFastMath())
    flags.push_back("--fast-math");
  return llvm::join(flags, ", ");
}

/// Asks by which methods the kernels of a module at `plan` are computed and how
/// much scratch these take, because their schedules or the target are others,
/// or some do not say it. What schedules say stays.
static Status chooseMethodsAgain(ModuleOp module) {
  PassManager passes(module.getContext());
  std::string pipeline = "func.func(tandem-choose-methods)";
  if (module->hasAttr(kStepMemoryAttr))
    pipeline += ",tandem-report-plan";
  if (failed(parsePassPipeline(pipeline, passes)) || failed(passes.run(module)))
    return Status::failed("the methods of kernels could not be chosen");
  return Status::success();
}

/// Puts the target into the module. One that is past `capture` stays with its
/// kind of target, one that has been lowered with its target.
static Status stampTarget(ModuleOp module, const CompileOptions &options) {
  StringRef phase = phaseOf(module);
  auto has = module->getAttrOfType<TargetAttr>(kTargetAttr);
  bool isLowered = phaseReached(module) >= *phaseNumber("lower");
  // Of what was divided by targets, a kind is what it is already.
  bool isKept =
      options.target.empty() ||
      (options.target == "cuda" && phase != "capture" && has && !has.isCpu());
  if (isKept && (has || isLowered)) {
    if (!has || withAsked(has, options) == has)
      return Status::success();
    if (isLowered)
      return Status::usage(lackOf(has, options) +
                           " comes too late for a module at 'lower'");
    module->setAttr(kTargetAttr, withAsked(has, options));
    return Status::success();
  }
  auto targets = targetsOf(options);
  if (!targets)
    return targets.status();
  auto wanted = targetAttr(targets->front(), module.getContext());
  wanted = withAsked(wanted, options);
  bool isOther = has && phase != "capture" && has.getKind() != wanted.getKind();
  if (targets->size() != 1 || isOther || (isLowered && has != wanted))
    return Status::usage("--target=" + options.target +
                         " comes too late for a module at '" + phase.str() +
                         "': expected it to be what that was made for");
  if (!isLowered)
    module->setAttr(kTargetAttr, wanted);
  return Status::success();
}

/// Looks for the schedules of a module at `plan`, if that is asked for.
static Status tune(ModuleOp module, const CompileOptions &options,
                   const Target &target, std::vector<PhaseTime> &times,
                   StringRef label) {
  const auto *cpu = std::get_if<CpuTarget>(&target);
  if (!options.tune || !cpu)
    return Status::success();
  auto start = std::chrono::steady_clock::now();
  TuneOptions how;
  how.seconds = *options.tune;
  how.cachePath = options.tuneCache;
  how.timer = options.timer;
  how.compileThreads = options.threads;
  how.remarks = options.remarks;
  how.progress = options.tuneProgress;
  auto report = tuneKernels(module, *cpu, how);
  if (!report)
    return report.status();
  if (Status s = chooseMethodsAgain(module); !s)
    return s;
  if (report->left())
    module.emitWarning() << "--tune: " << report->left() << " of "
                         << report->kernels
                         << " kernels with a choice of schedules were not "
                            "measured in the time given, and keep the model's";
  std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  times.push_back({("tune" + Twine(label.empty() ? "" : ".") + label).str(),
                   spent.count()});
  return Status::success();
}

/// Whether --tune can do anything for the target and the module.
static Status checkTune(ModuleOp module, const CompileOptions &options,
                        const Target &target, StringRef label) {
  if (!options.tune)
    return Status::success();
  if (phaseReached(module) >= *phaseNumber("lower"))
    return Status::usage("--tune comes too late for a module at " +
                         placeOf(module));
  const auto *cpu = std::get_if<CpuTarget>(&target);
  if (!cpu && !label.empty())
    return Status::success(); // The other targets are tuned.
  if (!cpu)
    return Status::usage("expected a target of the kind 'cpu' for --tune");
  if (!options.timer)
    return Status::unsupported("--tune: nothing here can measure kernels");
  return options.timer->canRun(cpu->arch, cpu->features);
}

/// What has to hold before a pass runs.
static Status checkRead(ModuleOp module) {
  if (Status s = expectNoKeys(module); !s || module->hasAttr(kWithinAttr))
    return s; // Its phase's verifier runs at its end.
  return succeeded(verifyPhase(module))
             ? Status::success()
             : Status::failed("the module is none that the phase '" +
                              phaseOf(module).str() + "' leaves");
}

/// Runs the first `count` of the passes that are left of a phase.
static Status runPhase(ModuleOp module, const Phase &phase,
                       ArrayRef<PassStep> whole, size_t count,
                       const CompileOptions &options, Dumps &dumps,
                       std::vector<PhaseTime> &times, StringRef label) {
  auto start = std::chrono::steady_clock::now();
  bool beganWithin = module->hasAttr(kWithinAttr);
  if (Status s = runSteps(module, whole, count, options, dumps, label); !s)
    return s;
  if (count == whole.size() && phaseOf(module) != phase.name)
    return Status::failed("phase '" + phase.name.str() +
                          "' left the module at '" + phaseOf(module).str() +
                          "'");
  if (count == whole.size() && beganWithin && failed(phase.verify(module)))
    return Status::failed("the module is none that the phase '" +
                          phase.name.str() + "' leaves");
  std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  times.push_back(
      {(phase.name + (label.empty() ? "" : ".") + label).str(), spent.count()});
  return Status::success();
}

/// The steps of the phase among `all`.
static ArrayRef<PassStep> stepsIn(ArrayRef<PassStep> all, StringRef phase) {
  auto isOther = [&](const PassStep &step) { return step.phase != phase; };
  all = all.drop_while(isOther);
  return all.take_until(isOther);
}

/// Runs the phases. `label` is not empty if the module is one of several, for
/// as many targets, that were one until now.
static Status run(ModuleOp module, const CompileOptions &options,
                  std::vector<PhaseTime> &times, StringRef label) {
  if (Status s = stamp(module, options); !s)
    return s;
  if (Status s = tagPaths(module, options); !s)
    return s;
  if (Status s = checkRead(module); !s)
    return s;
  Dumps dumps(options, label);
  bool isCapture = options.stopAfter == "capture";
  if (isCapture && phaseReached(module) > 1)
    return Status::usage("cannot stop after 'capture': the module is at " +
                         placeOf(module));
  if (label.empty())
    if (Status s = dumps.phase(module); !s)
      return s;
  if (isCapture)
    return Status::success();
  Attribute planned = module->getAttr(kTargetAttr);
  if (Status s = stampTarget(module, options); !s)
    return s;
  if (label.empty())
    if (Status s = checkAgainstTarget(module, options); !s)
      return s;
  auto target = targetFromAttr(module->getAttrOfType<TargetAttr>(kTargetAttr));
  if (!target)
    return target.status();
  if (Status s = checkTune(module, options, *target, label); !s)
    return s;
  CompileOptions whole = options;
  whole.stopAfter.clear();
  auto left = stepsLeft(module, options, kindOf(*target));
  auto all = stepsLeft(module, whole, kindOf(*target));
  if (!left || !all)
    return (left ? all : left).status();
  if (phaseOf(module) == "plan" && !module->hasAttr(kWithinAttr)) {
    bool isOther = module->getAttr(kTargetAttr) != planned;
    // What the tables chose was for the target before.
    if (isOther)
      module.walk(lower::dropChosen);
    if (isOther || (lacksScratch(module) && !left->empty()))
      if (Status s = chooseMethodsAgain(module); !s)
        return s;
    if (Status s = tune(module, options, *target, times, label); !s)
      return s;
  }
  for (const Phase &phase : phases()) {
    ArrayRef<PassStep> steps = stepsIn(*all, phase.name);
    size_t count = stepsIn(*left, phase.name).size();
    if (count == 0)
      continue;
    if (Status s =
            runPhase(module, phase, steps, count, options, dumps, times, label);
        !s)
      return s;
    if (count < steps.size())
      return Status::success();
    if (phase.name == "plan")
      if (Status s = tune(module, options, *target, times, label); !s)
        return s;
    if (Status s = dumps.phase(module); !s)
      return s;
  }
  return Status::success();
}

Status tandem::runPhases(ModuleOp module, const CompileOptions &options,
                         std::vector<PhaseTime> &times) {
  return run(module, options, times, /*label=*/"");
}

/// True if the module is one now, and several, one for each stage, when the
/// phases have run.
static bool isCutIntoStages(ModuleOp module, const CompileOptions &options) {
  auto has = Pipeline::of(module);
  if (has ? has->stage.has_value() : !isPipeline(options))
    return false;
  int last = *phaseNumber("functionalize");
  auto stop = phaseNumber(phaseOfStop(options.stopAfter));
  return phaseReached(module) <= last && (!stop || *stop > last);
}

/// Stages part behind `functionalize`.
static Result<Modules> runStages(ModuleOp whole, const CompileOptions &options,
                                 std::vector<PhaseTime> &times) {
  CompileOptions part = options;
  part.stopAfter = "functionalize";
  if (Status s = runPhases(whole, part, times); !s)
    return s;
  part.stopAfter = options.stopAfter;
  if (Status s = checkGroups(whole, options); !s)
    return s;
  // The module has it.
  part.mesh = part.parallel = part.shard = part.loss = "";
  part.save = part.offload = part.recompute = part.freeze = "";
  Builder b(whole.getContext());
  int64_t stages = Pipeline::of(whole)->stages;
  Modules modules;
  for (int64_t stage = 0; stage < stages; ++stage) {
    OwningOpRef<ModuleOp> copy = whole.clone();
    setPipelineField(*copy, pipeline::kStage, b.getI64IntegerAttr(stage));
    if (Status s = run(*copy, part, times, "stage" + std::to_string(stage)); !s)
      return s;
    modules.push_back(std::move(copy));
  }
  if (phaseReached(*modules.front()) >= *phaseNumber("lower")) {
    auto digest = b.getStringAttr(digestOf(modules));
    for (auto &module : modules)
      setPipelineField(*module, pipeline::kDigest, digest);
  }
  return modules;
}

Result<Modules> tandem::runTargets(OwningOpRef<ModuleOp> module,
                                   const CompileOptions &options,
                                   std::vector<PhaseTime> &times) {
  auto targets = targetsOf(options);
  if (!targets)
    return targets.status();
  if (isCutIntoStages(*module, options))
    return runStages(*module, options, times);
  Modules modules;
  if (targets->size() == 1 || phaseReached(*module) != 1 ||
      options.stopAfter == "capture") {
    if (Status s = runPhases(*module, options, times); !s)
      return s;
    modules.push_back(std::move(module));
    return modules;
  }
  CompileOptions part = options;
  part.stopAfter = "capture";
  if (Status s = runPhases(*module, part, times); !s)
    return s;
  part.stopAfter = options.stopAfter;
  for (auto [name, label] :
       llvm::zip_equal(targetNames(options.target), targetLabels(*targets))) {
    OwningOpRef<ModuleOp> copy = module->clone();
    part.target = name;
    if (Status s = run(*copy, part, times, label); !s)
      return s;
    modules.push_back(std::move(copy));
  }
  return modules;
}

Result<std::vector<std::string>>
tandem::pipelinesOf(ModuleOp module, const CompileOptions &options) {
  auto targets = targetsOf(options);
  if (!targets)
    return targets.status();
  if (Status s = stamp(module, options); !s)
    return s;
  if (Status s = checkRead(module); !s)
    return s;
  std::vector<std::string> pipelines;
  bool isSplit = targets->size() > 1 && phaseReached(module) == 1;
  CompileOptions part = options;
  for (const std::string &name :
       isSplit ? targetNames(options.target)
               : std::vector<std::string>{options.target}) {
    part.target = name;
    if (isSplit)
      module->removeAttr(kTargetAttr);
    if (Status s = stampTarget(module, part); !s)
      return s;
    auto target =
        targetFromAttr(module->getAttrOfType<TargetAttr>(kTargetAttr));
    if (!target)
      return target.status();
    auto steps = stepsLeft(module, part, kindOf(*target));
    if (!steps)
      return steps.status();
    pipelines.push_back("builtin.module(" + pipelineText(*steps) + ")");
  }
  return pipelines;
}
