//===- Inspect.cpp - the command `inspect` of the compiler ----------------===//
//
// What tandem-run's shows of files (tools/commands/Show.h); a model is compiled
// first. Besides, the code of a GPU and the curve over memory budgets.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/BudgetCurve.h"
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/CompiledFacts.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/ExplainFused.h"
#include "tools/tandem/InspectCode.h"
#include "tools/tandem/InspectEstimate.h"
#include "tools/tandem/InspectMethods.h"
#include "tools/tandem/InspectShardings.h"
#include "tools/tandem/InspectTypes.h"
#include "tools/tandem/KernelCode.h"
#include "tools/tandem/LoadFacts.h"
#include "tools/tandem/PlannedFacts.h"
#include "tools/tandem/Report.h"
#include "tools/tandem/Session.h"

#include "tools/commands/Show.h"
#include "tools/tandem/WriteText.h"

#include <cstdio>

using namespace tandem;
using namespace tandem::commands;
namespace am = tandem::artifact;

/// Writes the page of `model`, an artifact or what one was made of, with the
/// curve, and with the code where there are texts.
static Status writePage(const std::string &model,
                        const am::ArtifactReader &reader,
                        const nlohmann::ordered_json &planned, Session &session,
                        const std::optional<BudgetCurve> &curve,
                        const KernelTexts *texts, const CompileOptions &options,
                        const std::string &path) {
  auto facts = pageFacts(reader, planned, session, model);
  if (!facts)
    return facts.status();
  if (curve)
    (*facts)["budget_curve"] = nlohmann::ordered_json::parse(toJson(*curve));
  if (texts) {
    auto code = codeFacts(reader, (*facts)["summaries"], *texts);
    if (!code)
      return code.status();
    (*facts)["code"] = *std::move(code);
  }
  if (Status s = addNotFused(*facts, model, options); !s)
    return s;
  return writeText(path, reportPage(*facts));
}

/// Prints the curve, and writes it to `path`, if there is one.
static Status showBudgetCurve(const std::string &model, const std::string &path,
                              const CompileOptions &options,
                              std::optional<double> seconds,
                              const std::string &params,
                              std::optional<BudgetCurve> &known) {
  bool isSvg = std::string_view(path).ends_with(".svg");
  auto curve = budgetCurve(model, options, seconds, params);
  if (!curve)
    return curve.status();
  std::fputs(toTable(*curve).c_str(), stdout);
  if (!path.empty())
    if (Status s = writeText(path, isSvg ? toSvg(*curve) : toJson(*curve)); !s)
      return s;
  known = *std::move(curve);
  return Status::success();
}

static Status printFacts(const am::ArtifactReader &reader,
                         const nlohmann::ordered_json &planned,
                         Session &session) {
  auto facts = compiledFacts(reader, planned, session);
  if (facts)
    std::printf("%s\n", jsonText(*facts).c_str());
  return facts.status();
}

namespace {
struct InspectOptions {
  static constexpr std::string_view
      usage = "inspect X.tdm|F.safetensors|MODEL [options]",
      description = "Shows what is in an artifact or a checkpoint; a model is "
                    "compiled first, in memory.";

  std::string path, html, kernel, curvePath, params;
  bool json = false, code = false, ptx = false, resources = false,
       curve = false;
  bool methods = false, shardings = false, types = false;
  bool estimate = false;
  EstimateOptions estimated;
  std::optional<double> measured;
  CompileFlags flags;

  void declare(OptionTable &table);
};
} // namespace

static Status checkCurveFile(std::string_view path) {
  if (path.empty() || path.ends_with(".svg") || path.ends_with(".json"))
    return Status::success();
  return Status::usage("expected --budget-curve=FILE to end in .json or .svg, "
                       "but got '" +
                       std::string(path) + "'");
}

void InspectOptions::declare(OptionTable &table) {
  table.positional("FILE", path, "an artifact (.tdm), .safetensors or a model");
  table.flag("json", json, "print it as one JSON object");
  table
      .text("html", "F.html", html,
            "write a page that shows it: it opens without a network")
      .check(checkReportFile)
      .example("report.html")
      .excludes("json");
  table
      .flag(
          "code", code,
          "the page also has the kernels' code, as MLIR, LLVM IR, assembly or "
          "PTX: 1.25 MiB, of those that take longest")
      .needs("html")
      .excludes("kernel-cache", "all code is made")
      .excludes("kernel-cache-size", "all code is made");
  table
      .optionalText("ptx", "KERNEL", ptx, kernel,
                    "print the PTX of all kernels, or of one")
      .excludes("html")
      .excludes("json");
  table
      .flag("kernels", resources,
            "print the registers, shared memory and spills of each kernel for "
            "cuda, as ptxas reports them")
      .excludes("html")
      .excludes("json")
      .excludes("ptx");
  table
      .flag("methods", methods,
            "print, of each kernel that several methods can compute, which is "
            "chosen, what each is expected to take, and the reason against it")
      .excludes("html")
      .excludes("ptx")
      .excludes("kernels")
      .excludes("cubin", "no code is made")
      .excludes("emulation", "no code is made")
      .notFor(".tdm", "an artifact, whose methods are chosen");
  table
      .flag(
          "shardings", shardings,
          "print, of each program, which ranks have what of its arguments and "
          "results, and each collective with its bytes and its reason")
      .excludes("html")
      .excludes("json")
      .excludes("ptx")
      .excludes("kernels")
      .excludes("methods")
      .excludes("budget-curve")
      .notFor(".tdm", "an artifact, which is compiled");
  table
      .flag("types", types,
            "print, of each op of the forward that computes floats, the type "
            "of its arithmetic and why it is that")
      .excludes("html")
      .excludes("json")
      .excludes("ptx")
      .excludes("kernels")
      .excludes("methods")
      .excludes("shardings")
      .excludes("budget-curve")
      .notFor(".tdm", "an artifact, which is compiled");
  table
      .optionalText("estimate", "DEVICE", estimate, estimated.device,
                    "print what kernels for cuda would take on a GPU, by what "
                    "they do, and what the time passes with ('tandem help "
                    "machines' lists devices; without one that of the target)")
      .example("h200")
      .excludes("html")
      .excludes("ptx")
      .excludes("kernels")
      .excludes("methods")
      .excludes("shardings")
      .excludes("types")
      .excludes("budget-curve");
  table
      .text("machines", "F.json", estimated.machines,
            "a file with more devices, or others of the same names")
      .needs("estimate");
  table
      .text(
          "calibrate", "F.json", estimated.calibration,
          "measured kernels (docs/ESTIMATE.md) that the estimate is corrected "
          "by")
      .needs("estimate");
  table
      .optionalText("budget-curve", "FILE", curve, curvePath,
                    "print planned peak and time of a step under memory "
                    "budgets from 0 to 1; write them to FILE.json or FILE.svg, "
                    "or, with --html, to the page")
      .check(checkCurveFile)
      .example("curve.svg")
      .excludes("json")
      .excludes("ptx")
      .excludes("kernels")
      .excludes("methods")
      .excludes("memory-budget", "the curve is over all budgets")
      .excludes("inference")
      .excludes("partition=default")
      .notFor(".tdm", "an artifact, which has one budget");
  table
      .number("measure", "SECONDS", measured,
              "run each plan's step for so long")
      .above(0)
      .atMost(1e6)
      .needs("budget-curve")
      .needs("optimizer", "a step is measured");
  table
      .text("params", "F.safetensors", params,
            "parameters to measure with; without them what has no initial "
            "value is made up")
      .needs("measure");
  size_t own = table.options().size();
  table.groupOf("compile");
  flags.declare(table);
  for (Option &option : table.options())
    if (option.name != "json")
      option.notFor(".safetensors", "a checkpoint");
  for (size_t i = own; i < table.options().size(); ++i)
    table.options()[i].notFor(".tdm", "an artifact");
}

static Status runInspect(const InspectOptions &command) {
  if (isShownAsCheckpoint(command.path))
    return showCheckpoint(command.path, command.json);
  CompileOptions options;
  if (Status s = command.flags.finishWhole(options); !s)
    return s;
  const std::string &path = command.path;
  Files files;
  command.flags.declare(files, path);
  files.writes({"--budget-curve",
                command.curvePath,
                {std::string_view(command.curvePath).ends_with(".svg")
                     ? io::FileKind::Svg
                     : io::FileKind::BudgetCurve}});
  files.writes({"--html", command.html, {io::FileKind::Report}});
  files.reads("--machines", command.estimated.machines);
  files.reads("--calibrate", command.estimated.calibration);
  if (Status s = files.check(command.flags.force); !s)
    return s;
  std::optional<BudgetCurve> curve;
  if (command.curve)
    if (Status s = showBudgetCurve(path, command.curvePath, options,
                                   command.measured, command.params, curve);
        !s || command.html.empty())
      return s;
  if (command.shardings)
    return printShardings(path, options);
  if (command.types)
    return printTypes(path, options);
  if (command.methods)
    return printMethods(path, options, command.json);
  bool isText = !command.json && !command.ptx && !command.estimate &&
                command.html.empty();
  if (command.code)
    options.kernelCache = "off";
  Session session(options);
  KernelTexts texts;
  auto planned = nlohmann::ordered_json::array();
  if ((command.json && !command.estimate) || !command.html.empty()) {
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
  if (std::string_view(path).ends_with(".onnx") && isText) {
    std::fputs(session.summary(path).c_str(), stdout);
    if (Status s = session.status(); !s)
      return s;
    std::printf("\n");
  }
  if (isText && !command.resources) {
    std::string summary = session.sizesSummary(path);
    std::fputs(summary.c_str(), stdout);
    if (!summary.empty() || !session.status())
      return session.status();
  }
  Result<am::ArtifactReader> reader = std::string_view(path).ends_with(".tdm")
                                          ? am::ArtifactReader::open(path)
                                          : session.loaded(path);
  if (!reader)
    return reader.status();
  if (command.ptx)
    return printPtx(*reader, command.kernel);
  if (command.resources)
    return printResources(*reader);
  if (command.estimate)
    return printEstimate(*reader, command.estimated, command.json);
  if (!command.html.empty())
    return writePage(path, *reader, planned, session, curve,
                     command.code ? &texts : nullptr, options, command.html);
  if (command.json)
    return printFacts(*reader, planned, session);
  showArtifact(*reader, path);
  return Status::success();
}

Command commands::inspectCommand() {
  return commandOf<runInspect>("inspect",
                               "show what is in an artifact or model");
}
