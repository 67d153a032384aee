//===- Inputs.cpp - what a command line gives to a model ------------------===//
//
// Names and shapes are left to the model's own checks, which know them all;
// here only files are read and element types converted.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Inputs.h"

#include "runtime/artifact/ArtifactReader.h"
#include "runtime/artifact/Text.h"
#include "runtime/comm/Shard.h"
#include "runtime/device/Processors.h"
#include "tools/commands/Checkpoint.h"
#include "tools/commands/MemoryLimit.h"
#include "tools/commands/Print.h"
#include "tools/commands/Sandbox.h"
#include "tools/commands/TableFiles.h"

#include <algorithm>
#include <iterator>

namespace tandem::commands {

using artifact::Manifest;
using artifact::Program;
using artifact::Role;

Option &declareMemoryLimit(OptionTable &options, std::string &limit) {
  return options
      .text("memory-limit", "BYTES", limit,
            "the most that the process may have of the GPU's memory")
      .check([](std::string_view text) {
        return bytesFrom(text).status().in("--memory-limit");
      })
      .example("8GiB")
      .byDefault("what the GPU has")
      .excludes("device=cpu");
}

void ModelOptions::declare(OptionTable &options) {
  options.group("");
  options.positional("X.tdm", artifact, "the artifact");
  options.text("params", "F.safetensors", params,
               "parameters, and the model's own states (not the "
               "optimizer's)");
  options.integer("threads", "N", threads, 1, 1024, "threads to compute with")
      .byDefault("one for each processor");
  options
      .integer("seed", "S", seed, 0, INT64_MAX,
               "seed of initial parameters and of shuffling")
      .byDefault("0");
  options.text("require-signature", "F.pem", requireSignature,
               "a public key: load the artifact only if X.tdm.sig is its "
               "signature by the secret one ('tandem sign')");
  options
      .flag("sandbox", sandbox,
            "let the artifact's code have the files that the command line "
            "names, and neither a network nor other programs")
      .onlyWith("device", "cpu")
      .excludes("rank-logs", "ranks need a network")
      .excludes("timeout", "ranks need a network");
  options.group("device");
  options.text("device", "DEVICE", device, "cpu, cuda[:N] or cuda-emu[:N]")
      .check([](std::string_view text) {
        return runtime::parseDevice(text).status().in("--device");
      })
      .completes([] {
        return std::vector<std::string>{"cpu", "cuda", "cuda-emu"};
      })
      .example("cpu")
      .example("cuda:1")
      .byDefault("cpu if the artifact has code for it, else cuda");
  options
      .text("cpu-variant", "ARCH", cpuVariant,
            "of an artifact for several processors, the code for this one")
      .onlyWith("device", "cpu")
      .byDefault("the best that runs here");
  options
      .flag("no-cuda-graph", noGraphs,
            "launch kernels one by one instead of whole programs")
      .excludes("device=cpu");
  options
      .text("libraries", "auto|no", libraries,
            "no: cuBLASLt and cuDNN are not used where they are installed")
      .oneOf({"auto", "no"})
      .excludes("device=cpu")
      .byDefault("auto");
  declareMemoryLimit(options, memoryLimit);
  options
      .text("profile", "F.json", profile,
            "write what ran on the device, and when, in Chrome's format")
      .excludes("device=cpu");
  ranks.declare(options);
  options.group("");
  options.flag("force", force,
               "let outputs replace inputs and files of another kind");
}

Option &ModelOptions::declareAverage(OptionTable &options) {
  return options
      .text("average", "ema|swa|schedulefree", average,
            "parameters that have an average over updates (compile --ema, "
            "--swa, --optimizer=schedulefree) are that")
      .oneOf(
          {averageKinds[0].name, averageKinds[1].name, averageKinds[2].name});
}

void ModelOptions::declare(Files &files) const {
  files.reads("X.tdm", artifact);
  files.reads("--params", params);
  files.reads("--require-signature", requireSignature);
  files.writes({"--profile", profile, {io::FileKind::Profile}});
}

Status ModelOptions::check(const Files &files, bool isForced) const {
  if (Status status = files.check(force, isForced); !status || !sandbox)
    return status;
  // What the artifact says of itself is read before any of its code is there.
  if (auto reader = artifact::ArtifactReader::open(artifact)) {
    const Manifest &manifest = reader->manifest();
    if (manifest.pipeline || comm::ranksOf(manifest.mesh) > 1)
      return Status::unsupported("--sandbox is for artifacts of one process, "
                                 "and " +
                                 tandem::artifact::inQuotes(artifact) +
                                 " is for several, which need a network");
  }
  SandboxPaths paths{artifact, files.inputs(), files.outputs(),
                     files.outputFolders()};
  if (std::ranges::any_of(paths.inputs, io::isTableName))
    std::ranges::copy(tableLibraries(), std::back_inserter(paths.inputs));
  if (!requireSignature.empty())
    paths.inputs.push_back(artifact + ".sig");
  return enterSandbox(paths);
}

/// True if a value that no file gives is drawn from the seed.
static bool drawsFromSeed(const Manifest &manifest, bool hasParams) {
  using Kind = artifact::Init::Kind;
  return std::any_of(manifest.values.begin(), manifest.values.end(),
                     [&](const artifact::Value &value) {
                       if (!value.init)
                         return false;
                       // The state of random numbers is none that --params
                       // sets.
                       Kind kind = value.init->kind;
                       return kind == Kind::Seed ||
                              (kind != Kind::Constant && !hasParams);
                     });
}

Result<runtime::Options> ModelOptions::runtimeOptions() const {
  runtime::Options options;
  options.threads = int(threads.value_or(threadsOfRank()));
  options.seed = uint64_t(seed.value_or(0));
  options.cpuVariant = cpuVariant;
  // A GPU's driver is many files and calls.
  if (sandbox)
    options.device = runtime::Device{};
  options.useGraphs = !noGraphs;
  options.useLibraries = libraries == "auto";
  options.requireSignature = requireSignature;
  if (!memoryLimit.empty()) {
    auto bytes = bytesFrom(memoryLimit);
    if (!bytes)
      return std::move(bytes).status().in("--memory-limit");
    options.memoryLimit = *bytes;
  }
  if (!device.empty()) {
    auto parsed = runtime::parseDevice(device);
    if (!parsed)
      return std::move(parsed).status().in("--device");
    if (!parsed->isHost() && device.find(':') == std::string::npos)
      parsed->index = deviceOfRank();
    options.device = *parsed;
  }
  return options;
}

Facts ModelOptions::facts() const {
  return {{"the seed", std::to_string(seed.value_or(0))},
          {"--params", digestForRanks(params)},
          {"--average", average}};
}

Result<runtime::Model> ModelOptions::load(bool usesSeed) const {
  auto options = runtimeOptions();
  if (!options)
    return std::move(options).status();
  auto model = runtime::Model::load(artifact, *options);
  if (model && model->manifest().pipeline)
    return Status::unsupported(
        tandem::artifact::inQuotes(artifact) +
        " is a stage of a pipeline, which 'train', 'predict' and 'bench' run; "
        "a "
        "checkpoint of it is for an artifact of one process, too");
  if (int most = runtime::availableThreads(); model && options->threads > most)
    warn("--threads=" + std::to_string(options->threads) + " on " +
         std::to_string(most) + (most == 1 ? " processor" : " processors") +
         ": threads wait for each other");
  if (model && model->device().isHost()) {
    Problems problems;
    if (noGraphs)
      problems.add("--no-cuda-graph has no effect on device 'cpu'");
    if (libraries != "auto")
      problems.add("--libraries has no effect on device 'cpu'");
    if (!problems.none())
      return problems.status();
  }
  if (model && seed && !usesSeed &&
      !drawsFromSeed(model->manifest(), !params.empty()))
    return Status::usage(
        std::string("--seed has no effect: the model draws no random numbers, "
                    "and its initial values are ") +
        (params.empty() ? "no drawn ones" : "those of --params"));
  if (model)
    if (Status status = openRanks(*model, artifact, ranks); !status)
      return status;
  if (model)
    if (Status status = agree(facts()); !status)
      return status;
  if (model && !params.empty())
    if (Status status = loadParameters(*model, params, average); !status)
      return status;
  return model;
}

void ModelOptions::noteInitialValues(const runtime::Model &model) const {
  const auto &values = model.manifest().values;
  bool initial = std::any_of(values.begin(), values.end(),
                             [](const artifact::Value &value) {
                               return value.role == Role::Param && value.init;
                             });
  if (params.empty() && initial)
    note("without --params the parameters have their initial values (--seed " +
         std::to_string(seed.value_or(0)) + ")");
}

std::vector<const artifact::Slot *> inputsOf(const Program &program) {
  std::vector<const artifact::Slot *> inputs;
  for (const artifact::Slot &slot : program.arguments)
    if (slot.role == Role::Input)
      inputs.push_back(&slot);
  return inputs;
}

std::vector<const artifact::Slot *> inputsOf(const Program &program,
                                             const std::vector<char> &needs) {
  std::vector<const artifact::Slot *> inputs;
  for (size_t a = 0; a < program.arguments.size(); ++a)
    if (program.arguments[a].role == Role::Input && needs[a])
      inputs.push_back(&program.arguments[a]);
  return inputs;
}

Status checkVariables(const runtime::Model &model, const Program &program) {
  std::vector<std::string_view> missing; // in the order of the programs
  auto check = [&](const Program &one) {
    for (const artifact::Slot &slot : one.arguments) {
      bool isVariable = slot.role == Role::Param || slot.role == Role::State;
      if (isVariable && !model.get(slot.name) &&
          std::find(missing.begin(), missing.end(), slot.name) == missing.end())
        missing.push_back(slot.name);
    }
  };
  check(program);
  const Program *prepare = model.manifest().findProgram("prepare");
  if (prepare && prepare != &program &&
      std::any_of(program.arguments.begin(), program.arguments.end(),
                  [](auto &slot) { return slot.role == Role::Prepared; }))
    check(*prepare);
  if (missing.empty())
    return Status::success();
  constexpr size_t most = 3;
  std::string names;
  for (size_t i = 0; i < std::min(missing.size(), most); ++i)
    names += (i ? ", " : "") + artifact::inQuotes(missing[i]);
  size_t count = missing.size();
  return Status::usage(std::to_string(count) +
                       (count == 1 ? " parameter or state of program '"
                                   : " parameters and states of program '") +
                       program.name + (count == 1 ? "' has" : "' have") +
                       " no value and no initial one: " + names +
                       (count > most ? ", ..." : "") +
                       "; expected --params=F.safetensors with them");
}

Result<const Program *>
chooseProgram(const Manifest &manifest, const std::string &wanted,
              std::initializer_list<std::string_view> otherwise) {
  auto runs = [](const Program &program) {
    return std::all_of(program.arguments.begin(), program.arguments.end(),
                       [](const artifact::Slot &slot) {
                         return slot.role == Role::Input ||
                                slot.role == Role::Param ||
                                slot.role == Role::State ||
                                slot.role == Role::Prepared;
                       });
  };
  if (wanted.empty()) {
    for (std::string_view name : otherwise)
      if (const Program *program = manifest.findProgram(name))
        if (runs(*program))
          return program;
  } else if (const Program *program = manifest.findProgram(wanted)) {
    if (runs(*program))
      return program;
    return Status::usage("program '" + wanted +
                         "' needs gradients or saved values, which no file "
                         "can give; it runs as part of 'step'");
  }
  std::string known;
  for (const Program &program : manifest.programs)
    if (runs(program))
      known += (known.empty() ? "'" : ", '") + program.name + "'";
  if (!wanted.empty())
    return Status::usage("the artifact has no program '" + wanted +
                         "'; it has " + (known.empty() ? "none" : known));
  return Status::unsupported("the artifact has no program to run");
}

} // namespace tandem::commands
