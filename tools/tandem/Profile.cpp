//===- Profile.cpp - `profile`: where the time of a program goes ----------===//
//
// A model is compiled in memory, and then it is known where in it each kernel
// is from; an artifact has forgotten that.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/CompiledFacts.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/FlameGraph.h"
#include "tools/tandem/PlannedFacts.h"
#include "tools/tandem/ProfileFacts.h"
#include "tools/tandem/ProfileTrace.h"
#include "tools/tandem/Report.h"
#include "tools/tandem/Session.h"
#include "tools/tandem/WriteText.h"

#include "tools/commands/Checkpoint.h"
#include "tools/commands/MemoryLimit.h"
#include "tools/commands/Print.h"

#include <cstdio>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

namespace {
struct ProfileOptions {
  static constexpr std::string_view
      usage = "profile X.tdm|MODEL [options]",
      description =
          "Runs a program again and again, and says what each kernel takes: "
          "beside what this machine could do, what the compiler expected, and "
          "what the processor counts; of a model also where in it the time is "
          "spent. Inputs and parameters that are not given are made up.";

  std::string path, program, params, device, memoryLimit, flame, html, trace;
  std::vector<std::string> data;
  std::optional<int64_t> runThreads;
  Repeats repeats;
  bool json = false;
  CompileFlags flags;

  void declare(OptionTable &table);
  bool isArtifact() const { return std::string_view(path).ends_with(".tdm"); }
};
} // namespace

void ProfileOptions::declare(OptionTable &table) {
  table.positional("FILE", path, "an artifact (.tdm) or a model");
  table
      .text("program", "NAME", program,
            "the program: step, evaluate, forward or prepare")
      .byDefault("the first of step, evaluate and forward that there is");
  table.list("data", "NAME=@FILE", data, "an input").keyed();
  table.text("params", "F.safetensors", params,
             "parameters, and the model's own states");
  table.text("device", "DEVICE", device, "cpu, cuda[:N] or cuda-emu[:N]")
      .check([](std::string_view text) {
        return runtime::parseDevice(text).status().in("--device");
      })
      .completes([] {
        return std::vector<std::string>{"cpu", "cuda", "cuda-emu"};
      })
      .example("cpu")
      .byDefault("cpu if the artifact has code for it, else cuda");
  declareMemoryLimit(table, memoryLimit);
  table
      .integer("run-threads", "N", runThreads, 1, 1024,
               "threads that the program runs on")
      .byDefault("one for each processor");
  table
      .integer("warmup", "N", repeats.warmup, 0, INT64_MAX,
               "rounds of calls before timing")
      .byDefault("3");
  table
      .integer("steps", "N", repeats.steps, 1, 100000000,
               "rounds of calls to time")
      .excludes("seconds");
  table.number("seconds", "S", repeats.seconds, "time calls for S seconds")
      .above(0)
      .atMost(1e6)
      .byDefault("3, without --steps");
  table.flag("json", json, "print it as one JSON object");
  table
      .text("html", "F.html", html,
            "write the page of `inspect --html` with what was measured")
      .check(checkReportFile)
      .example("profile.html");
  table
      .text("flame", "F.svg", flame,
            "draw where in the model the time goes, as a flame graph")
      .check([](std::string_view path) {
        return path.ends_with(".svg")
                   ? Status::success()
                   : Status::usage("expected --flame=FILE to end in .svg, but "
                                   "got '" +
                                   std::string(path) + "'");
      })
      .example("flame.svg")
      .notFor(".tdm", "an artifact, which does not say where its kernels are "
                      "from");
  table.text("trace", "F.json", trace,
             "write the timeline in Chrome's trace format, for Perfetto");
  size_t own = table.options().size();
  table.groupOf("compile");
  flags.declare(table);
  for (size_t i = own; i < table.options().size(); ++i)
    table.options()[i].notFor(".tdm", "an artifact");
}

/// The plan's launches of `program`, of the target that the model was loaded
/// for; null where they are not those of the artifact.
static Json plannedLaunches(const Json &planned, const runtime::Model &model,
                            const artifact::Program &program) {
  if (planned.empty())
    return nullptr;
  const auto &manifests = model.reader().manifests();
  for (size_t i = 0; i < manifests.size() && i < planned[0].size(); ++i)
    if (manifests[i].target == model.manifest().target)
      for (const Json &one : planned[0][i]["programs"])
        if (one["name"] == program.name &&
            one["launches"].size() == program.launches.size())
          return one["launches"];
  return nullptr;
}

static Status profile(const ProfileOptions &command) {
  CompileOptions compile;
  if (Status s = command.flags.finishWhole(compile); !s)
    return s;
  Files files;
  command.flags.declare(files, command.path);
  files.reads("--params", command.params);
  files.readsArguments("--data", command.data);
  files.writes({"--flame", command.flame, {io::FileKind::Svg}});
  files.writes({"--html", command.html, {io::FileKind::Report}});
  files.writes({"--trace", command.trace, {io::FileKind::Profile}});
  if (Status s = files.check(command.flags.force); !s)
    return s;
  Session session(compile);
  if (!command.html.empty())
    session.recordPasses();
  Json planned = Json::array();
  session.whenPlanned = [&](const Modules &modules) {
    planned.push_back(plannedFacts(modules));
  };
  auto reader = command.isArtifact()
                    ? artifact::ArtifactReader::open(command.path)
                    : session.loaded(command.path);
  if (!reader)
    return std::move(reader).status();
  if (!reader->manifest().mesh.empty() || reader->manifest().pipeline)
    return Status::unsupported(
        "profile: '" + command.path +
        "' is for several ranks; 'bench --kernels' times each of them");
  ModelOptions asked;
  asked.threads = command.runThreads;
  asked.device = command.device;
  asked.memoryLimit = command.memoryLimit;
  auto options = asked.runtimeOptions();
  if (!options)
    return std::move(options).status();
  auto model = runtime::Model::load(std::move(*reader), *options);
  if (!model)
    return std::move(model).status();
  if (!command.params.empty())
    if (Status s = loadParameters(*model, command.params); !s)
      return s;
  auto program = chooseProgram(model->manifest(), command.program,
                               {"step", "evaluate", "forward"});
  if (!program)
    return std::move(program).status();
  if (auto madeUp = completeVariables(*model); !madeUp)
    return std::move(madeUp).status();
  auto inputs = completeInputs(command.data, *model, **program);
  if (!inputs)
    return std::move(inputs).status();
  auto measured = measureProgram(command.repeats, *model, **program, *inputs);
  if (!measured)
    return std::move(measured).status();
  auto places = plannedLaunches(planned, *model, **program);
  if (!command.flame.empty() && places.is_null())
    return Status::unsupported("--flame: '" + command.path +
                               "' does not say where its kernels are from: "
                               "it is past the phase 'plan'");
  auto facts = profileFacts(
      {command.path, *model, **program, std::move(places)}, *measured);
  if (!facts)
    return facts.status();
  if (!command.flame.empty())
    if (Status s = writeText(command.flame, flameGraph(*facts)); !s)
      return s;
  if (!command.trace.empty())
    if (Status s = writeText(command.trace, profileTrace(*facts)); !s)
      return s;
  if (!command.html.empty()) {
    auto all = pageFacts(model->reader(), planned, session, command.path);
    if (!all)
      return all.status();
    (*all)["measured"] = *facts;
    if (Status s = writeText(command.html, reportPage(*all)); !s)
      return s;
  }
  if (command.json)
    std::printf(
        "%s\n",
        facts->dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  else
    printProfile(*facts);
  return Status::success();
}

Command commands::profileCommand() {
  return commandOf<profile>("profile", "say where the time of a program goes");
}
