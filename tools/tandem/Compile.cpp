//===- Compile.cpp - the command `compile` --------------------------------===//
#include "compiler/CheckOptions.h"
#include "compiler/PassSteps.h"
#include "compiler/emit/KernelCache.h"
#include "runtime/artifact/StageFiles.h"
#include "runtime/artifact/Text.h"
#include "runtime/io/Array.h"
#include "tools/commands/Print.h"
#include "tools/onnx/Tensors.h"
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/CompiledFacts.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/ExplainFused.h"
#include "tools/tandem/InspectMethods.h"
#include "tools/tandem/KernelCode.h"
#include "tools/tandem/PlannedFacts.h"
#include "tools/tandem/Report.h"
#include "tools/tandem/Session.h"
#include "tools/tandem/SimulationFlags.h"
#include "tools/tandem/SimulationReport.h"
#include "tools/tandem/WriteText.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <map>

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

static void printTimes(const std::vector<PhaseTime> &times) {
  double total = 0;
  for (const PhaseTime &time : times)
    total += time.seconds;
  std::fprintf(stderr, "%-20s %9s %6s\n", "phase", "seconds", "share");
  for (const PhaseTime &time : times)
    std::fprintf(stderr, "%-20s %9.3f %5.1f%%\n", time.phase.c_str(),
                 time.seconds, total > 0 ? 100 * time.seconds / total : 0);
  std::fprintf(stderr, "%-20s %9.3f\n", "total", total);
}

/// What the cache of kernels was good for, or why it was not.
static void sayKept(const KernelCache *kernels) {
  if (!kernels)
    return;
  std::string problem = kernels->problem();
  std::fprintf(stderr, "kernel cache: %s%s%s\n",
               artifact::forScreen(kernels->summary()).c_str(),
               problem.empty() ? "" : "; ",
               artifact::forScreen(problem).c_str());
}

/// Says on stderr what a file holds that was written, and how much that is.
static void sayWritten(const std::string &what, const std::string &path) {
  uint64_t bytes = 0;
  if (path.empty() || llvm::sys::fs::file_size(path, bytes))
    return; // On stdout.
  std::fprintf(stderr, "wrote %s to %s (%s)\n", what.c_str(),
               artifact::inQuotes(path).c_str(),
               bytesText(static_cast<int64_t>(bytes)).c_str());
}

/// The modules as text, with locations, on stdout or in `path`. Those of
/// several targets are parted as mlir-opt's --split-input-file expects.
static Status writeModules(const Modules &modules, const std::string &path) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const auto &module : modules) {
    if (&module != &modules.front())
      out << "// -----\n";
    module.get().print(out, OpPrintingFlags().enableDebugInfo());
    out << '\n';
  }
  if (path.empty()) {
    // What is lost on stdout is the frame's to say.
    std::fwrite(text.data(), 1, text.size(), stdout);
    return Status::success();
  }
  return writeText(path, text);
}

/// Where the weights of the imported model `model` go: to `asked`, or beside
/// `output`. Empty if there is nowhere, or the model is of another kind.
static std::string weightsPath(StringRef model, StringRef output,
                               const std::string &asked) {
  if (!asked.empty() || output.empty() || !isImported(model))
    return asked;
  if (!output.consume_back(".tdm"))
    output.consume_back(".mlir");
  return output.str() + ".safetensors";
}

/// An artifact that has the name of something else is asked for by mistake, and
/// so is a module that has an artifact's.
static Status checkName(const std::string &output, bool isModule) {
  StringRef name = output;
  if (isModule && name.ends_with(".tdm"))
    return Status::usage("expected -o to name a module (.mlir) with "
                         "--stop-after, but got " +
                         io::inQuotes(output));
  for (StringRef other : {".mlir", ".json", ".onnx", ".pt2", ".safetensors",
                          ".npy", ".npz", ".jsonl", ".csv"})
    if (!isModule && name.ends_with(other))
      return Status::usage("expected -o to name an artifact (.tdm), but got " +
                           io::inQuotes(output));
  return Status::success();
}

/// The page of an artifact of `model`, which stands in `output` or is a stage
/// beside it.
static Status writeReport(const artifact::ArtifactWriter &writer,
                          const nlohmann::ordered_json &planned,
                          Session &session, const std::string &model,
                          const CompileOptions &options,
                          const KernelTexts *texts, const std::string &output,
                          const std::string &path) {
  auto bytes = writer.bytes();
  if (!bytes)
    return bytes.status();
  auto reader =
      artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
  if (!reader)
    return reader.status();
  auto facts = pageFacts(*reader, planned, session, output);
  if (!facts)
    return facts.status();
  if (texts) {
    auto code = codeFacts(*reader, (*facts)["summaries"], *texts);
    if (!code)
      return code.status();
    (*facts)["code"] = *std::move(code);
  }
  // The stages of a pipeline have a page each.
  Status status;
  if (!reader->manifest().pipeline)
    status = addNotFused(*facts, model, options);
  if (status)
    status = writeText(path, reportPage(*facts));
  if (status)
    sayWritten("a report", path);
  return status;
}

/// What is planned of the artifact `i` of `count`: of several stages that of
/// one, whose modules stand side by side.
static nlohmann::ordered_json plannedOf(const nlohmann::ordered_json &planned,
                                        size_t count, size_t i) {
  if (count == 1 || planned.empty())
    return planned;
  return {{planned[0][i]}};
}

/// What an imported model's parameters start from. `isPart`: the artifact has
/// others, too.
static Status writeWeights(const Weights &weights, const std::string &path,
                           const std::string &model, bool isPart) {
  if (weights.empty())
    return Status::success();
  if (path.empty()) {
    std::fprintf(stderr,
                 "note: %zu weights of '%s' are not written; "
                 "--weights=F.safetensors writes them\n",
                 weights.size(), model.c_str());
    return Status::success();
  }
  if (Status s = onnx::writeWeights(path, weights, model); !s)
    return s;
  sayWritten(std::to_string(weights.size()) + " weights", path);
  if (isPart)
    std::fprintf(stderr,
                 "note: the artifact has parameters or states beside these, "
                 "which begin by themselves: 'train --init-from=F' takes the "
                 "file, and --params would ask for all\n");
  return Status::success();
}

/// True if the phase or pass `text` is of the phase `phase`.
static bool isOfPhase(std::string_view text, std::string_view phase) {
  return phaseOfStop(text) == phase;
}

/// A line for each target.
static Status printPipelines(const std::string &model,
                             const CompileOptions &options) {
  Session session(options);
  auto module = session.read(model);
  if (!module)
    return session.status();
  auto pipelines = pipelinesOf(*module, session.options());
  if (!pipelines)
    return std::move(pipelines).status().in(model);
  for (const std::string &pipeline : *pipelines)
    std::printf("%s\n", pipeline.c_str());
  return Status::success();
}

static Status checkVariant(std::string_view text) {
  StringRef variant(text);
  bool isRight = !variant.empty();
  llvm::StringSet<> names;
  // What is no list of sizes is a file.
  if (variant.contains('='))
    for (StringRef dim : llvm::split(variant, ',')) {
      auto [name, size] = dim.rsplit('=');
      int64_t number = 0;
      isRight &= !name.empty() && !size.getAsInteger(10, number) && number > 0;
      if (!names.insert(name).second)
        return Status::usage("--variant=" + variant.str() +
                             ": expected one size of '" + name.str() +
                             "' but got two");
    }
  return isRight ? Status::success()
                 : Status::usage("expected --variant=NAME=N,... with N of at "
                                 "least 1, or a file, but got '" +
                                 std::string(text) + "'");
}

/// A size is called as its file without folder and ending, or as it is asked
/// for: no two are called the same.
static Status checkNames(const std::vector<std::string> &variants,
                         StringRef model) {
  bool areFiles = !StringRef(variants.front()).contains('=');
  std::map<std::string, StringRef> named;
  if (areFiles)
    named[llvm::sys::path::stem(model).str()] = model;
  for (const std::string &variant : variants) {
    StringRef name = areFiles ? llvm::sys::path::stem(variant) : variant;
    auto [found, isNew] = named.try_emplace(name.str(), variant);
    if (isNew)
      continue;
    if (!areFiles)
      return Status::usage("--variant=" + variant + " is given twice");
    return Status::usage("--variant=" + variant + ": a size is called as its " +
                         "file, but '" + found->second.str() + "' is '" +
                         name.str() + "' already: expected --variant to be a " +
                         "file of another name");
  }
  return Status::success();
}

/// A size that each variant has of its own is in the place of that of --dim.
static Status checkDims(const CompileOptions &options) {
  for (const auto &[dim, size] : options.import.dims) {
    auto hasOwn = [&name = dim](StringRef variant) {
      return llvm::any_of(llvm::split(variant, ','), [&](StringRef one) {
        return variant.contains('=') && one.rsplit('=').first == name;
      });
    };
    if (llvm::all_of(options.variants, hasOwn))
      return Status::usage("--dim=" + dim + "=" + std::to_string(size) +
                           " has no effect: every --variant has a size of '" +
                           dim + "'");
  }
  return Status::success();
}

/// Variants are sizes of symbolic dimensions, or files beside a model whose
/// sizes are fixed.
static Status checkVariants(const CompileOptions &options, StringRef model) {
  const std::vector<std::string> &variants = options.variants;
  auto isSizes = [](const std::string &variant) {
    return variant.find('=') != std::string::npos;
  };
  auto sizes = llvm::count_if(variants, isSizes);
  if (variants.empty())
    return Status::success();
  if (sizes && sizes != std::ssize(variants))
    return Status::usage("expected --variant to be sizes, or files, but not "
                         "both");
  if (sizes && !isImported(model))
    return Status::usage(
        "--variant=" + *llvm::find_if(variants, isSizes) +
        " is for models with symbolic dimensions, which '" + model.str() +
        "' cannot have: --variant=FILE names the same model in another size");
  if (sizes == 1)
    return Status::usage("expected several --variant, or --dim for one size");
  Status status = checkNames(variants, model);
  return status ? checkDims(options) : status;
}

namespace {
struct CompileCommandOptions {
  static constexpr std::string_view
      usage = "compile MODEL -o X.tdm [options]",
      description = "Compiles a model (.mlir in the dialect, at any phase, or "
                    "in StableHLO, a graph in .json, ONNX, an archive of "
                    "torch.export in .pt2, or of jax.export in .bin) into an "
                    "artifact.";

  std::string model, output, weights, report;
  CompileFlags flags;
  bool code = false, timeReport = false, timePasses = false,
       printPipeline = false;
  std::optional<int64_t> devices;
  SimulationOptions machine; ///< that a plan is chosen for

  void declare(OptionTable &table) {
    table.positional("MODEL", model, "the model");
    table
        .text("o", "X.tdm", output,
              "where to write the artifact, or the module of --stop-after")
        .byDefault("for a module stdout");
    table
        .text(
            "weights", "F.safetensors", weights,
            "where to write the weights of an imported model, for --params of "
            "run and train")
        .byDefault("beside what -o names, X.safetensors")
        .onlyFor(kImported, "models in ONNX and archives of PyTorch");
    table
        .text("report", "F.html", report,
              "write a page that shows what was decided, as 'inspect --html' "
              "does; of a pipeline a page for each stage")
        .check(checkReportFile)
        .example("report.html")
        .excludes("stop-after", "there is no artifact");
    table
        .flag("code", code,
              "the page also has the kernels' code, as MLIR, LLVM IR, assembly "
              "or PTX: 1.25 MiB, of those that take longest")
        .needs("report")
        .excludes("variant", "sizes share their code")
        .excludes("kernel-cache", "all code is made")
        .excludes("kernel-cache-size", "all code is made");
    table
        .list("variant", "NAME=N,...|FILE", flags.options.variants,
              "compile several sizes into one artifact, which share "
              "parameters, states and code: the sizes of symbolic dimensions "
              "of a model in ONNX, beside those of --dim, or the file of the "
              "same model in another size. A call takes what its inputs fit")
        .check(checkVariant)
        .excludes("stop-after", "sizes are modules of their own")
        .excludes("print-pipeline", "sizes are modules of their own")
        .excludes("dump-phases", "sizes are modules of their own")
        .excludes("dump-passes", "sizes are modules of their own")
        .excludes("mesh", "sizes are of one process");
    table
        .text("stop-after", "PHASE|PASS[:N]", flags.options.stopAfter,
              "stop there and write the module: after a phase (capture, "
              "functionalize, joint, optimize, partition, plan, lower), a pass "
              "('tandem help passes'), or the Nth run of a pass")
        .oneOf({"capture", "functionalize", "joint", "optimize", "partition",
                "plan", "lower"})
        .orOthers()
        .matching(isOfPhase)
        .completes(passNames);
    table
        .flag("print-pipeline", printPipeline,
              "print the passes that would run, as 'tandem-opt "
              "--pass-pipeline' takes them, and compile nothing")
        .excludes("o", "nothing is written");
    table.flag("time-report", timeReport, "say how long each phase took")
        .excludes("print-pipeline", "nothing runs");
    table
        .flag("time-passes", timePasses,
              "say how long each pass took, and each step of emission")
        .excludes("print-pipeline", "nothing runs")
        .excludes("stop-after=capture", "no pass runs");
    table.atLeastOneOf({"o", "stop-after", "print-pipeline"});
    flags.mayChoose = true;
    flags.declare(table);
    declareChoice(table);
    for (Option &option : table.options())
      if (option.name == "dump-phases" || option.name == "dump-passes" ||
          option.name == "reproducer" || option.name == "tune" ||
          option.name == "weights" || option.name == "report" ||
          option.name == "code" || option.name == "force")
        option.excludes("print-pipeline", "nothing runs");
  }

  /// What --parallel=auto chooses by.
  void declareChoice(OptionTable &table) {
    for (Option &option : table.options())
      if (option.name == "parallel")
        option.example("auto").orNeeds("devices").excludes(
            "variant", "sizes are of one process");
      else if (option.name == "shard")
        option.orNeeds("devices");
    table.group("a plan by simulation (--parallel=auto)");
    table
        .integer("devices", "N", devices, 1, 1 << 20,
                 "choose the mesh, too, for so many ranks")
        .needs("parallel=auto", "it is chosen")
        .excludes("mesh", "it says how many there are")
        .excludes("print-pipeline", "nothing is chosen");
    declareMachine(machine, table, "parallel=auto");
  }
};
} // namespace

/// Takes the plan that is simulated to be the fastest of those that fit.
static Status choosePlan(const std::string &model, CompileOptions &options,
                         const SimulationOptions &machine,
                         std::optional<int64_t> devices) {
  auto row = machineOf(machine);
  if (!row)
    return std::move(row).status();
  CompileOptions tried = options;
  tried.stopAfter.clear();
  tried.dumpPhases.clear();
  tried.dumpPasses.clear();
  if (!row->device.isCpu())
    tried.target.clear();
  if (Status s = expectCodeFor(row->device, tried.target); !s)
    return std::move(s).in("--parallel=auto");
  auto candidates = sweep(model, tried, machine, devices);
  if (!candidates)
    return std::move(candidates).status();
  const Candidate &best = candidates->front();
  if (!best.simulation)
    return Status::failed("--parallel=auto: no plan can be compiled: " +
                          best.problem);
  if (!best.simulation->fits())
    return Status::failed("--parallel=auto: no plan fits into the memory of '" +
                          row->device.name + "'; the fastest needs " +
                          bytesText(best.simulation->memory()));
  options.mesh = best.mesh;
  options.parallel = best.parallel;
  if (options.parallel.find("tp") == std::string::npos)
    options.shard.clear();
  char millis[32];
  std::snprintf(millis, sizeof millis, "%.3f",
                best.simulation->step.seconds * 1e3);
  std::fprintf(
      stderr,
      "chose --mesh=%s%s%s: %s ms a step and %s a rank on '%s', the "
      "best of %zu plans\n",
      best.mesh.empty() ? "(none)" : best.mesh.c_str(),
      best.parallel.empty() ? "" : " --parallel=", best.parallel.c_str(),
      millis, bytesText(best.simulation->memory()).c_str(),
      row->device.name.c_str(), candidates->size());
  return Status::success();
}

static Status runCompile(const CompileCommandOptions &command) {
  CompileOptions options;
  if (Status s = command.flags.finish(options); !s)
    return s;
  const std::string &model = command.model, &output = command.output;
  if (command.flags.choosesPlan())
    if (Status s = choosePlan(model, options, command.machine, command.devices);
        !s)
      return s;
  if (command.printPipeline)
    return printPipelines(model, options);
  bool isModule = !options.stopAfter.empty();
  if (Status s = checkVariants(options, model); !s)
    return s;
  if (Status s = checkName(output, isModule); !s)
    return s;
  std::string weights = weightsPath(model, output, command.weights);
  Files files;
  command.flags.declare(files, model);
  for (const std::string &variant : options.variants)
    if (variant.find('=') == std::string::npos)
      files.reads("--variant", variant);
  files.writes({"-o",
                output,
                {isModule ? io::FileKind::Module : io::FileKind::Artifact}});
  for (int64_t i = 1, n = isModule ? 1 : stagesOf(options); i < n; ++i)
    files.writes(
        {"-o", artifact::stagePath(output, i), {io::FileKind::Artifact}});
  files.writes({"--weights", weights, {io::FileKind::InitialValues}});
  for (int64_t i = 0, n = stagesOf(options); i < n; ++i)
    files.writes(
        {"--report", reportPath(command.report, i), {io::FileKind::Report}});
  if (Status s = files.check(command.flags.force); !s)
    return s;

  DefaultTimingManager timer;
  timer.setEnabled(command.timePasses);
  timer.setDisplayMode(DefaultTimingManager::DisplayMode::Tree);
  timer.setOutput(createOutputStrategy(DefaultTimingManager::OutputFormat::Text,
                                       llvm::errs()));
  TimingScope timing = timer.getRootScope();
  options.timing = command.timePasses ? &timing : nullptr;
  if (command.code)
    options.kernelCache = "off";
  Session session(options);
  auto planned = nlohmann::ordered_json::array();
  KernelTexts texts;
  if (!command.report.empty()) {
    session.recordPasses();
    session.whenPlanned = [&](const Modules &modules) {
      planned.push_back(plannedFacts(modules));
      addMethods(planned.back(), modules);
      if (command.code)
        texts.addPlanned(modules);
    };
  }
  if (command.code)
    session.whenLowered = [&](const Modules &modules) {
      return texts.addLowered(modules);
    };
  Status status;
  if (isModule) {
    Modules modules = session.phases(model);
    status = modules.empty() ? session.status() : writeModules(modules, output);
    if (status)
      sayWritten("the module after '" + options.stopAfter + "'", output);
  } else {
    auto writers = session.artifacts(model);
    status = writers.status();
    for (size_t i = 0; status && i < writers->size(); ++i) {
      std::string path = artifact::stagePath(output, int64_t(i));
      status = (*writers)[i].write(path);
      if (status)
        sayWritten(writers->size() > 1 ? "stage " + std::to_string(i)
                                       : "the artifact",
                   path);
    }
    // When all stages are there.
    for (size_t i = 0; status && !command.report.empty() && i < writers->size();
         ++i) {
      KernelTexts own = texts.of(writers->size(), i);
      status =
          writeReport((*writers)[i], plannedOf(planned, writers->size(), i),
                      session, model, options, command.code ? &own : nullptr,
                      output, reportPath(command.report, int64_t(i)));
    }
  }
  if (status)
    status = writeWeights(session.weights(), weights, model,
                          !options.lora.empty() || !options.fp8.empty());
  timing.stop();
  if (!status)
    timer.clear();
  if (command.timePasses && status)
    sayKept(session.kernels());
  if (status && !options.dumpPasses.empty())
    std::fprintf(stderr, "wrote the modules that passes changed to %s\n",
                 artifact::inQuotes(options.dumpPasses).c_str());
  if (status && !options.dumpPhases.empty())
    std::fprintf(stderr, "wrote the module of each phase to %s\n",
                 artifact::inQuotes(options.dumpPhases).c_str());
  if (command.timeReport && status)
    printTimes(session.times());
  return status;
}

Command commands::compileCommand() {
  return commandOf<runCompile>("compile", "compile a model into an artifact");
}
