//===- CheckOptions.cpp - options against each other and the module -------===//
#include "compiler/CheckOptions.h"
#include "compiler/InputTypes.h"
#include "compiler/Mixup.h"
#include "compiler/PassSteps.h"
#include "compiler/Phases.h"
#include "compiler/Precision.h"
#include "compiler/TagPaths.h"
#include "compiler/emit/Assemble.h"
#include "compiler/emit/KernelCache.h"
#include "ir/Dialect.h"
#include "ir/Signature.h"
#include "passes/adapters/LoraSpec.h"
#include "passes/partition/AverageSpec.h"
#include "passes/partition/BudgetSpec.h"
#include "passes/partition/ClipSpec.h"
#include "passes/partition/GroupSpec.h"
#include "passes/partition/LossScaleSpec.h"
#include "passes/partition/NoiseSpec.h"
#include "passes/partition/OptimizerSpec.h"
#include "passes/partition/optimizers/Schedules.h"
#include "passes/precision/Fp8Spec.h"
#include "passes/shard/ParallelSpec.h"
#include "passes/target/Target.h"
#include "runtime/artifact/NearestName.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace tandem;

Result<std::vector<Target>> tandem::targetsOf(const CompileOptions &options) {
  return parseTargets(options.target.empty() ? "cpu" : options.target);
}

bool tandem::isPipeline(const CompileOptions &options) {
  return llvm::any_of(llvm::split(options.parallel, '+'), [](StringRef kind) {
    return stagesOfEachRank(kind) > 0;
  });
}

int64_t tandem::stagesOf(const CompileOptions &options) {
  std::string error;
  if (!isPipeline(options))
    return 1;
  if (auto mesh = parseMeshSpec(options.mesh, error))
    for (const auto &[name, size] : *mesh)
      if (name == kPipeAxis)
        for (StringRef kind : llvm::split(options.parallel, '+'))
          if (int64_t each = stagesOfEachRank(kind))
            return size * each;
  return 1;
}

/// What `--parallel=pp` does not go together with.
static void checkPipeline(const CompileOptions &options,
                          std::vector<std::string> &wrong) {
  auto refuse = [&](bool isGiven, const char *option) {
    if (isGiven)
      wrong.push_back("--parallel=pp and " + std::string(option) +
                      " are not compiled together yet");
  };
  if (!isPipeline(options))
    return;
  if (options.optimizer.empty() && options.stopAfter.empty())
    wrong.emplace_back("--parallel=pp needs --optimizer: stages are trained");
  refuse(options.inference, "--inference");
  refuse(options.tune.has_value(), "--tune");
  refuse(!options.gradientNoise.empty(), "--gradient-noise");
  std::string error;
  auto lora = parseLoraSpec(options.lora, error);
  refuse(lora && !lora->whole.empty(), "modules_to_save of --lora");
  auto targets = targetsOf(options);
  refuse(targets && targets->size() > 1, "several targets");
}

/// What is said of ranks, as far as it is known without a model.
static Status checkRanks(const CompileOptions &options) {
  std::string error;
  if (options.mesh.empty())
    return options.parallel.empty() && options.shard.empty() &&
                   options.batchNorm.empty() && !options.bucketMb
               ? Status::success()
               : Status::usage("--parallel, --shard, --batch-norm and "
                               "--bucket-mb need --mesh");
  if (!options.batchNorm.empty() && options.batchNorm != "per-rank" &&
      options.batchNorm != "synchronized")
    return Status::usage("expected --batch-norm to be synchronized or "
                         "per-rank, but got '" +
                         options.batchNorm + "'");
  if (options.bucketMb &&
      !(*options.bucketMb >= CompileOptions::leastBucketMb &&
        *options.bucketMb <= CompileOptions::mostBucketMb))
    return Status::usage("expected --bucket-mb to be from 0.00001 to 1024");
  auto mesh = parseMeshSpec(options.mesh, error);
  if (!mesh)
    return Status::usage("--mesh: " + error);
  if (!options.parallel.empty() &&
      !parseParallelSpec(options.parallel, *mesh, error))
    return Status::usage("--parallel: " + error);
  if (options.order != 1)
    return Status::usage("--mesh and --order=2 exclude each other");
  if (options.prepare)
    return Status::usage("--mesh and --prepare exclude each other");
  return Status::success();
}

/// Whether the least rate of a schedule is at most the rate that it is of.
static bool isBelowRate(const ScheduleSpec &schedule, double rate,
                        std::string &error) {
  double least = schedule.option("min");
  if (least <= rate)
    return true;
  error.clear();
  llvm::raw_string_ostream(error)
      << llvm::format("expected 'min', the least rate, to be at most 'lr', "
                      "the rate (%g), but got %g",
                      rate, least);
  return false;
}

/// What is said of the update, all of which is read by its pass.
static void checkUpdate(const CompileOptions &options,
                        std::vector<std::string> &wrong) {
  std::string error;
  auto expect = [&](bool isRight, const char *option) {
    if (!isRight)
      wrong.push_back(option + (": " + error));
  };
  std::optional<OptimizerSpec> optimizer;
  if (!options.optimizer.empty()) {
    optimizer = parseOptimizerSpec(options.optimizer, error);
    expect(optimizer.has_value(), "--optimizer");
  }
  auto needs = [&](bool isGiven, const char *what) {
    if (isGiven && options.optimizer.empty())
      wrong.emplace_back(what);
  };
  if (!options.clip.empty())
    expect(parseClipSpec(options.clip, error).has_value(), "--clip");
  needs(!options.clip.empty(), "--clip needs --optimizer: gradients are "
                               "clipped in its update");
  if (!options.gradientNoise.empty())
    expect(parseNoiseSpec(options.gradientNoise, error).has_value(),
           "--gradient-noise");
  needs(!options.gradientNoise.empty() || options.centralize,
        "--gradient-noise and --centralize need --optimizer: they change "
        "gradients in its update");
  if (!options.lossScale.empty())
    expect(parseLossScaleSpec(options.lossScale, error).has_value(),
           "--loss-scale");
  needs(!options.lossScale.empty(), "--loss-scale needs --optimizer, whose "
                                    "update divides by it");
  needs(options.accumulate,
        "--accumulate needs --optimizer, which uses the sums");
  std::optional<ScheduleSpec> schedule;
  if (!options.lrSchedule.empty()) {
    schedule = parseScheduleSpec(options.lrSchedule, error);
    expect(schedule.has_value(), "--lr-schedule");
  }
  needs(!options.lrSchedule.empty(),
        "--lr-schedule needs --optimizer, whose rate it is");
  if (optimizer && schedule)
    expect(isBelowRate(*schedule, optimizer->values.lookup("lr"), error),
           "--lr-schedule");
  for (const std::string &text : options.groups) {
    if (!optimizer)
      continue;
    auto group = parseGroupSpec(text, *optimizer, error);
    expect(group.has_value(), "--group");
    // Otherwise it has the rate of all.
    if (!group || (!group->hasRate && !group->schedule))
      continue;
    if (const auto &own = group->schedule ? group->schedule : schedule)
      expect(isBelowRate(*own, group->spec.values.lookup("lr"), error),
             "--group");
  }
  needs(!options.groups.empty(),
        "--group needs --optimizer, whose numbers it says");
  if (!options.ema.empty())
    expect(parseEmaSpec(options.ema, error).has_value(), "--ema");
  if (!options.swa.empty())
    expect(parseSwaSpec(options.swa, error).has_value(), "--swa");
  needs(!options.ema.empty() || !options.swa.empty(),
        "--ema and --swa need --optimizer: they average what its updates give");
}

/// What `--fp8` is, and what it does not go together with.
static void checkFp8(const CompileOptions &options,
                     std::vector<std::string> &wrong) {
  if (options.fp8.empty())
    return;
  if (std::string error; !parseFp8Spec(options.fp8, error))
    wrong.push_back("--fp8: " + error);
  auto refuse = [&](bool isGiven, const char *option) {
    if (isGiven)
      wrong.push_back("--fp8 and " + std::string(option) +
                      " exclude each other");
  };
  refuse(options.order != 1, "--order=2");
  refuse(!options.mesh.empty(), "--mesh");
  refuse(llvm::any_of(
             options.precision,
             [](StringRef rule) { return rule.starts_with("backward:"); }),
         "--precision=backward");
}

Status tandem::checkOptions(const CompileOptions &options) {
  std::vector<std::string> wrong;
  if (!options.partition.empty() && options.partition != "min-cut" &&
      options.partition != "default")
    wrong.push_back("expected --partition to be min-cut or default, but got '" +
                    options.partition + "'");
  if (Status s = checkStopAfter(options); !s)
    wrong.push_back(s.message());
  if (options.inference && !options.optimizer.empty())
    wrong.emplace_back("--inference and --optimizer exclude each other");
  if (options.prepare && !options.inference)
    wrong.emplace_back("--prepare needs --inference: in training parameters "
                       "change with every step");
  if (options.order != 1 && options.order != 2)
    wrong.push_back("expected --order to be 1 or 2, but got " +
                    std::to_string(options.order));
  if (options.inference && options.order != 1)
    wrong.emplace_back("--inference and --order exclude each other");
  if (!options.memoryBudget.empty()) {
    std::string error;
    if (!parseBudgetSpec(options.memoryBudget, error))
      wrong.push_back(error);
    if (options.inference)
      wrong.emplace_back("--inference and --memory-budget exclude each other");
    if (options.partition == "default")
      wrong.emplace_back(
          "--partition=default and --memory-budget exclude each other");
  }
  checkUpdate(options, wrong);
  if (Status s = checkAmp(options); !s)
    wrong.push_back(s.message());
  for (const std::string &rule : options.precision) {
    if (Status s = checkPrecisionRule(rule); !s)
      wrong.push_back(s.message());
    if (StringRef(rule).starts_with("backward:") &&
        (options.inference || options.order != 1))
      wrong.emplace_back(options.inference
                             ? "--inference and --precision=backward exclude "
                               "each other"
                             : "--order=2 and --precision=backward exclude "
                               "each other");
  }
  for (const std::string &input : options.inputs)
    if (Status s = parseInputSpec(input).status(); !s)
      wrong.push_back("--input: " + s.message());
  if (!options.mixup.empty()) {
    if (Status s = parseMixupSpec(options.mixup).status(); !s)
      wrong.push_back("--mixup: " + s.message());
    if (options.inference)
      wrong.emplace_back("--inference and --mixup exclude each other");
    if (!options.mesh.empty())
      wrong.emplace_back("--mesh and --mixup exclude each other");
  }
  if (std::string error;
      !options.lora.empty() && !parseLoraSpec(options.lora, error))
    wrong.push_back("--lora: " + error);
  checkFp8(options, wrong);
  if (options.cubin != "no")
    if (auto targets = targetsOf(options))
      if (llvm::any_of(*targets, [](auto &t) { return kindOf(t) == "cuda"; }))
        if (Status s = checkNamedPtxas(); !s)
          wrong.push_back(s.message());
  if (Status s = checkRanks(options); !s)
    wrong.push_back(s.message());
  checkPipeline(options, wrong);
  if (options.threads < 0)
    wrong.push_back("expected --threads of at least 0, but got " +
                    std::to_string(options.threads));
  if (options.effort < 0 || options.effort > 3)
    wrong.push_back("expected --effort of 0 to 3, but got " +
                    std::to_string(options.effort));
  if (!options.kernelCacheSize.empty() && !cacheBytes(options.kernelCacheSize))
    wrong.push_back("expected --kernel-cache-size to be bytes, as 2GiB, but "
                    "got '" +
                    options.kernelCacheSize + "'");
  Status target = targetsOf(options).status();
  if (target.code() == Code::Usage)
    wrong.push_back(target.message());
  if (options.cubin != "auto" && options.cubin != "yes" &&
      options.cubin != "no")
    wrong.push_back("expected --cubin to be auto, yes or no, but got '" +
                    options.cubin + "'");
  if (options.matmulPrecision != "f32" && options.matmulPrecision != "tf32")
    wrong.push_back("expected --matmul-precision to be f32 or tf32, but got '" +
                    options.matmulPrecision + "'");
  if (Status s = checkTagPaths(options); !s)
    wrong.push_back(s.message());
  if (Status s = checkOptions(options.import); !s)
    wrong.push_back(s.message());
  if (options.libraries != "auto" && options.libraries != "yes" &&
      options.libraries != "no")
    wrong.push_back("expected --libraries to be auto, yes or no, but got '" +
                    options.libraries + "'");
  if (options.winograd != "auto" && options.winograd != "no")
    wrong.push_back("expected --winograd to be auto or no, but got '" +
                    options.winograd + "'");
  if (options.tune) {
    if (!(*options.tune >= 0))
      wrong.emplace_back("expected --tune to be at least 0 seconds");
    // What is measured is the whole phase's.
    auto phase = phaseNumber(phaseOfStop(options.stopAfter));
    bool isWithin = !phaseNumber(options.stopAfter);
    if (phase && *phase - isWithin < *phaseNumber("plan"))
      wrong.push_back("--tune has no effect before 'plan' is done, but "
                      "--stop-after is '" +
                      options.stopAfter + "'");
  }
  if (wrong.empty())
    return target;
  return Status::usage(llvm::join(wrong, "; "));
}

/// Calls `visit(phase, option, member)` for each option that acts in one phase
/// alone.
template <typename Visit> static void visitPhaseOptions(Visit visit) {
  using O = CompileOptions;
  visit("joint", "--loss", &O::loss);
  visit("joint", "--freeze", &O::freeze);
  visit("joint", "--order", &O::order);
  visit("joint", "--inference", &O::inference);
  visit("joint", "--batch-norm", &O::batchNorm);
  visit("joint", "--lora", &O::lora);
  visit("joint", "--amp", &O::amp);
  visit("joint", "--fp8", &O::fp8);
  visit("joint", "--precision", &O::precision);
  visit("optimize", "--mesh", &O::mesh);
  visit("optimize", "--parallel", &O::parallel);
  visit("optimize", "--shard", &O::shard);
  visit("optimize", "--bucket-mb", &O::bucketMb);
  visit("partition", "--partition", &O::partition);
  visit("partition", "--memory-budget", &O::memoryBudget);
  visit("partition", "--optimizer", &O::optimizer);
  visit("partition", "--clip", &O::clip);
  visit("partition", "--gradient-noise", &O::gradientNoise);
  visit("partition", "--centralize", &O::centralize);
  visit("partition", "--loss-scale", &O::lossScale);
  visit("partition", "--accumulate", &O::accumulate);
  visit("partition", "--group", &O::groups);
  visit("partition", "--lr-schedule", &O::lrSchedule);
  visit("partition", "--ema", &O::ema);
  visit("partition", "--swa", &O::swa);
  visit("partition", "--prepare", &O::prepare);
}

CompileOptions tandem::withoutDone(const CompileOptions &options,
                                   ModuleOp module) {
  const CompileOptions none;
  CompileOptions left = options;
  visitPhaseOptions([&](StringRef phase, StringRef, auto member) {
    if (phaseReached(module) >= *phaseNumber(phase))
      left.*member = none.*member;
  });
  return left;
}

/// Fails if the module has been through the phase in which an option acts.
static Status checkInTime(ModuleOp module, const CompileOptions &options) {
  const CompileOptions none;
  std::vector<std::string> wrong;
  visitPhaseOptions([&](StringRef phase, StringRef option, auto member) {
    if (options.*member != none.*member &&
        phaseReached(module) >= *phaseNumber(phase))
      wrong.push_back(
          (option + " has no effect on a module that is past " +
           (module->hasAttr(kWithinAttr) ? "the beginning of '" : "'") + phase +
           "'; this one is at " + placeOf(module))
              .str());
  });
  return wrong.empty() ? Status::success()
                       : Status::usage(llvm::join(wrong, "; "));
}

/// The names of the outputs of a graph.
static std::vector<std::string_view> outputsOf(ModuleOp module) {
  std::vector<std::string_view> names;
  if (auto graph = module.lookupSymbol<func::FuncOp>("graph"))
    for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i)
      if (RoleAttr role = roleOfResult(graph, i);
          role && role.getKind() == RoleKind::Output)
        names.push_back(role.getName().getValue());
  return names;
}

static bool requiresGradients(ModuleOp module) {
  auto graph = module.lookupSymbol<func::FuncOp>("graph");
  for (unsigned i = 0, n = graph ? graph.getNumArguments() : 0; i < n; ++i)
    if (RoleAttr role = roleOfArgument(graph, i);
        role && role.has(RoleAttr::kRequiresGrad))
      return true;
  return false;
}

/// Fails if the loss that is asked for is no output, or there can be none for
/// an optimizer.
static Status checkLoss(ModuleOp module, const CompileOptions &options) {
  const std::string &loss = options.loss;
  std::vector<std::string_view> known = outputsOf(module);
  std::string all;
  for (std::string_view name : known)
    all += (all.empty() ? "'" : ", '") + std::string(name) + "'";
  if (!options.optimizer.empty() && !known.empty() &&
      !requiresGradients(module))
    return Status::usage(
        "--optimizer needs a loss and parameters that require grad, but this "
        "model has none of these; its outputs are " +
        all +
        " (in a model in ONNX, --loss=KIND:OUTPUT,LABELS makes a loss of one; "
        "else --loss=NAME names the output that is the loss)");
  if (loss.empty() || known.empty() || llvm::is_contained(known, loss))
    return Status::success();
  return Status::usage("--loss: the model has no output '" + loss + "'" +
                       didYouMean(loss, known) + "; its outputs are " + all);
}

Status tandem::checkGroups(ModuleOp whole, const CompileOptions &options) {
  std::vector<std::string> wrong;
  std::string error;
  auto optimizer = parseOptimizerSpec(options.optimizer, error);
  auto graph = whole.lookupSymbol<func::FuncOp>("graph");
  if (!optimizer || !graph)
    return Status::success();
  llvm::SmallVector<GroupSpec> before;
  for (const std::string &text : options.groups) {
    auto group = parseGroupSpec(text, *optimizer, error);
    if (!group)
      return Status::usage("--group: " + error);
    bool hasMember = false, isShadowed = false;
    for (unsigned i = 0, n = graph.getNumArguments(); i < n; ++i) {
      RoleAttr role = roleOfArgument(graph, i);
      StringRef name = role.getName();
      if (role.getKind() != RoleKind::Param ||
          !role.has(RoleAttr::kRequiresGrad) || !group->matches(name))
        continue;
      bool isTaken = llvm::any_of(
          before, [&](const GroupSpec &one) { return one.matches(name); });
      (isTaken ? isShadowed : hasMember) = true;
    }
    if (!hasMember)
      wrong.push_back("--group: '" + group->pattern + "' has no member: " +
                      (isShadowed ? "what it matches is of groups before it"
                                  : "it matches no whole name of a param "
                                    "that is trained"));
    before.push_back(*std::move(group));
  }
  return wrong.empty() ? Status::success()
                       : Status::usage(llvm::join(wrong, "; "));
}

Status tandem::checkAgainstModule(ModuleOp module,
                                  const CompileOptions &options) {
  Status status = checkInTime(module, options);
  return status ? checkLoss(module, options) : status;
}

SmallVector<TargetOption> tandem::targetOptions(const CompileOptions &options) {
  return {
      {"cuda", TargetAttr::kMatmulPrecision, "--matmul-precision",
       options.matmulPrecision, "f32"},
      {"cuda", TargetAttr::kLibraries, "--libraries", options.libraries,
       "auto"},
      {"cpu", TargetAttr::kWinograd, "--winograd", options.winograd, "auto"}};
}

Status tandem::checkAgainstTarget(ModuleOp module,
                                  const CompileOptions &options) {
  auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
  if (!target)
    return Status::success();
  StringRef kind = stringifyTargetKind(target.getKind());
  SmallVector<TargetOption> all = targetOptions(options);
  all.push_back({"cpu", "", "--fast-math", options.fastMath ? "yes" : "", ""});
  all.push_back(
      {"cuda", "", "--emulation", options.emulation ? "yes" : "", ""});
  // Without a cubin is what the others are anyhow.
  all.push_back(
      {"cuda", "", "--cubin", options.cubin == "yes" ? "yes" : "", ""});
  for (const TargetOption &asked : all)
    if (asked.value != asked.usual && asked.kind != kind)
      return Status::usage((asked.flag + " is for the target '" + asked.kind +
                            "', but this one is '" + kind + "'")
                               .str());
  return Status::success();
}
