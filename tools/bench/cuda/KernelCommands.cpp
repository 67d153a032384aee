//===- KernelCommands.cpp - what gpu-check does on a device ---------------===//
//
// Each prints one object of JSON (docs/schemas/gpu-check.schema.json,
// "result").
//
//===----------------------------------------------------------------------===//
#include "tools/bench/cuda/KernelCommands.h"
#include "tools/bench/cuda/DeviceFacts.h"
#include "tools/bench/cuda/KernelTimes.h"
#include "tools/bench/cuda/ModelCall.h"
#include "tools/bench/cuda/Streams.h"
#include "tools/commands/Print.h"

#include <cstdio>
#include <nlohmann/json.hpp>

using namespace tandem;
using artifact::DType;
using runtime::Model;
using Json = nlohmann::ordered_json;

namespace {

/// Where a command runs.
struct Where {
  std::string device = "cuda";

  void declare(commands::OptionTable &table) {
    table.text("device", "DEVICE", device, "cuda, cuda:1 or cuda-emu")
        .byDefault("cuda");
  }
  Result<Model> load(const std::string &path, bool useGraphs,
                     bool useLibraries) const {
    auto known = runtime::parseDevice(device);
    if (!known)
      return std::move(known).status();
    runtime::Options options;
    options.device = *known;
    options.useGraphs = useGraphs;
    options.useLibraries = useLibraries;
    return Model::load(path, options);
  }
};

Result<DType> typeOf(const std::string &name) {
  if (auto type = artifact::parseDType(name))
    return *type;
  return Status::usage("expected a type of numbers but got '" + name + "'");
}

/// A model with what it is called with.
struct Loaded {
  std::unique_ptr<Model> model;
  gpu::ModelCall call;
};

Result<Loaded> loadCase(const std::string &path, const std::string &type,
                        const Where &where, bool useGraphs, bool useLibraries) {
  auto rounding = typeOf(type);
  if (!rounding)
    return std::move(rounding).status();
  auto loaded = where.load(path, useGraphs, useLibraries);
  if (!loaded)
    return std::move(loaded).status();
  auto model = std::make_unique<Model>(std::move(*loaded));
  auto call = gpu::ModelCall::make(*model, *rounding);
  if (!call)
    return std::move(call).status().in("'" + path + "'");
  return Loaded{std::move(model), std::move(*call)};
}

void print(const Json &json) { std::printf("%s\n", json.dump().c_str()); }

//===----------------------------------------------------------------------===//
// device
//===----------------------------------------------------------------------===//

struct DeviceOptions {
  static constexpr std::string_view
      usage = "device",
      description = "Says what the device is, and how fast it copies.";
  Where where;

  void declare(commands::OptionTable &table) { where.declare(table); }
};

Status device(const DeviceOptions &options) {
  auto known = runtime::parseDevice(options.where.device);
  auto facts = known ? gpu::deviceFacts(*known) : known.status();
  if (!facts)
    return std::move(facts).status();
  print(*facts);
  return Status::success();
}

//===----------------------------------------------------------------------===//
// streams
//===----------------------------------------------------------------------===//

struct StreamsOptions {
  static constexpr std::string_view
      usage = "streams",
      description = "Checks gradients on streams that are held up.";
  Where where;

  void declare(commands::OptionTable &table) { where.declare(table); }
};

Status streams(const StreamsOptions &options) {
  auto known = runtime::parseDevice(options.where.device);
  auto found = known ? gpu::checkStreams(*known) : known.status();
  if (!found)
    return std::move(found).status();
  print(*found);
  int failed = (*found)["failed"];
  return failed ? Status(Code::Differs,
                         std::to_string(failed) + " rows do not hold")
                : Status::success();
}

//===----------------------------------------------------------------------===//
// expect
//===----------------------------------------------------------------------===//

struct ExpectOptions {
  static constexpr std::string_view
      usage = "expect X.tdm -o F.safetensors",
      description = "Runs a model, forward and backward, on inputs that follow "
                    "from their names, on the CPU, and keeps what it gives.";
  std::string path, type = "f32", output;

  void declare(commands::OptionTable &table) {
    table.positional("X.tdm", path, "the artifact");
    table.text("type", "TYPE", type, "what inputs are rounded to before")
        .byDefault("f32");
    table.text("o", "F.safetensors", output, "where they go").required();
  }
};

Status expect(const ExpectOptions &options) {
  auto loaded = loadCase(options.path, options.type, Where{"cpu"}, true, true);
  auto outputs = loaded ? loaded->call.outputsOfRun() : loaded.status();
  if (!outputs)
    return std::move(outputs).status();
  DType kept = options.type == "f64" ? DType::F64 : DType::F32;
  return gpu::saveOutputs(options.output, kept, *outputs);
}

//===----------------------------------------------------------------------===//
// kernels
//===----------------------------------------------------------------------===//

struct KernelsOptions {
  static constexpr std::string_view
      usage = "kernels X.tdm --expected=F.safetensors",
      description =
          "Compares what a model gives, forward and backward, with what is "
          "expected; and what it gives again and again, as a graph, and once "
          "captured by the caller, with that of launches one by one, to the "
          "bit.";
  std::string path, expected, type = "f32";
  Where where;
  std::optional<double> tolerance;
  std::optional<int64_t> repeats;
  bool noLibraries = false;

  void declare(commands::OptionTable &table) {
    table.positional("X.tdm", path, "the artifact");
    table.text("expected", "F.safetensors", expected, "what it gives")
        .required();
    table.text("type", "TYPE", type, "what inputs are rounded to before")
        .byDefault("f32");
    table
        .number("tolerance", "X", tolerance,
                "the largest difference, of the largest magnitude")
        .atLeast(0)
        .byDefault("1e-5");
    table
        .integer("repeats", "N", repeats, 1, 1000000,
                 "how often it runs as a graph")
        .byDefault("20");
    table.flag("no-libraries", noLibraries, "not as calls of libraries");
    where.declare(table);
  }
};

/// How many of the repeats gave other bits than the first run.
Result<int64_t> differentRuns(Loaded &loaded, int64_t repeats,
                              const std::vector<gpu::NamedTensor> &first) {
  int64_t different = 0;
  for (int64_t i = 0; i < repeats; ++i) {
    auto outputs = loaded.call.outputsOfRun();
    if (!outputs)
      return std::move(outputs).status();
    different += !gpu::haveSameBits(first, *outputs);
  }
  return different;
}

Status checkKernels(const KernelsOptions &options) {
  double tolerance = options.tolerance.value_or(1e-5);
  int64_t repeats = options.repeats.value_or(20);
  bool useLibraries = !options.noLibraries;
  auto single =
      loadCase(options.path, options.type, options.where, false, useLibraries);
  auto first = single ? single->call.outputsOfRun() : single.status();
  if (!first)
    return std::move(first).status();
  auto difference = gpu::compareWith(options.expected, *first);
  if (!difference)
    return std::move(difference).status();
  auto graph =
      loadCase(options.path, options.type, options.where, true, useLibraries);
  auto different =
      graph ? differentRuns(*graph, repeats, *first) : graph.status();
  if (!different)
    return std::move(different).status();
  int64_t runs = repeats;
  if (graph->call.isPure()) {
    auto captured = graph->call.outputsOfCapture();
    if (!captured)
      return std::move(captured).status();
    *different += !gpu::haveSameBits(*first, *captured);
    ++runs;
  }

  Json kernels = Json::array();
  for (const artifact::Kernel &kernel : single->model->manifest().kernels)
    kernels.push_back(kernel.summary.empty() ? kernel.symbol : kernel.summary);
  bool isClose = difference->largest <= tolerance;
  print({{"check", "kernels"},
         {"code", single->model->code()},
         {"difference", difference->largest < 1e300 ? Json(difference->largest)
                                                    : Json("infinite")},
         {"tolerance", tolerance},
         {"output", difference->output},
         {"repeats", runs},
         {"other_bits", *different},
         {"kernels", std::move(kernels)}});
  if (!isClose)
    return Status(Code::Differs,
                  "output '" + difference->output + "' differs by " +
                      commands::roundedText(difference->largest) +
                      " of its largest magnitude, and " +
                      commands::roundedText(tolerance) + " are allowed");
  if (*different)
    return Status(Code::Differs, std::to_string(*different) + " of " +
                                     std::to_string(runs) +
                                     " runs gave other bits than the first");
  return Status::success();
}

//===----------------------------------------------------------------------===//
// time
//===----------------------------------------------------------------------===//

struct TimeOptions {
  static constexpr std::string_view
      usage = "time X.tdm",
      description = "Times a program as a whole, and then each of its launches "
                    "by events.";
  std::string path, program;
  Where where;
  std::optional<double> seconds;
  std::optional<int64_t> calls;
  bool noLibraries = false;

  void declare(commands::OptionTable &table) {
    table.positional("X.tdm", path, "the artifact");
    table.text("program", "NAME", program, "the program")
        .byDefault("the first of step, evaluate and forward that there is");
    table.number("seconds", "S", seconds, "how long whole calls are timed")
        .above(0)
        .atMost(600)
        .byDefault("3");
    table
        .integer("calls", "N", calls, 1, 1000,
                 "calls of which each launch is timed")
        .byDefault("20");
    table.flag("no-libraries", noLibraries, "not as calls of libraries");
    where.declare(table);
  }
};

Status timeProgram(const TimeOptions &options) {
  auto model = options.where.load(options.path, true, !options.noLibraries);
  if (!model)
    return std::move(model).status();
  auto times =
      gpu::timeKernels(*model, options.program, options.seconds.value_or(3),
                       options.calls.value_or(20));
  if (!times)
    return std::move(times).status();
  print(*times);
  return Status::success();
}

} // namespace

std::vector<commands::Command> gpu::kernelCommands() {
  return {
      commands::commandOf<device>("device", "what the device is"),
      commands::commandOf<streams>("streams", "check gradients on streams"),
      commands::commandOf<expect>("expect", "keep what a model gives"),
      commands::commandOf<checkKernels>("kernels",
                                        "compare what a model gives"),
      commands::commandOf<timeProgram>("time", "time a program's launches")};
}
