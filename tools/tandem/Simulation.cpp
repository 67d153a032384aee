//===- Simulation.cpp - a step of a model on other machines ---------------===//
#include "tools/tandem/Simulation.h"

#include "compiler/CheckOptions.h"
#include "compiler/Target.h"
#include "passes/shard/ParallelSpec.h"
#include "passes/target/CpuModel.h"
#include "runtime/artifact/ArtifactReader.h"
#include "runtime/artifact/DeviceFiles.h"
#include "runtime/artifact/StageFiles.h"
#include "runtime/io/Argument.h"
#include "tools/commands/CountProgress.h"
#include "tools/simulate/ReadModule.h"
#include "tools/tandem/CodeOfDevice.h"
#include "tools/tandem/Session.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;
using namespace tandem::simulate;
namespace am = tandem::artifact;

Result<Machines> commands::machinesWith(const std::string &path) {
  Machines machines = Machines::builtin();
  if (path.empty())
    return machines;
  if (Status status = am::expectNoDevice(path); !status)
    return status;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return Status::failed("cannot read " + io::inQuotes(path) + ": " +
                          buffer.getError().message());
  StringRef text = (*buffer)->getBuffer();
  std::string error;
  if (!machines.add(std::string_view(text.data(), text.size()), error))
    return Status::usage(io::inQuotes(path) + ": " + error);
  return machines;
}

Result<SimulatedMachine> commands::machineOf(const SimulationOptions &options) {
  auto tables = machinesWith(options.machines);
  if (!tables)
    return std::move(tables).status();
  std::string error;
  auto [first, second] = StringRef(options.links).split('+');
  const LinkRow *inside = nullptr, *between = nullptr;
  if (!options.links.empty()) {
    inside = tables->link(first.str(), error);
    if (inside && !second.empty())
      between = tables->link(second.str(), error);
    if (!inside || (!second.empty() && !between))
      return Status::usage("--links: " + error);
  }
  // One link that is between machines alone: each rank has its own.
  std::string name = options.device;
  if (name.empty())
    name = inside && !inside->device.empty() ? inside->device : "cpu";
  const DeviceRow *device = tables->device(name, error);
  if (!device)
    return Status::usage("--device: " + error);
  if (!inside)
    inside = tables->link(device->links, error);
  SimulatedMachine made{*device, *inside, std::nullopt, 1};
  if (between && between->ranks)
    return Status::usage("--links: '" + between->name +
                         "' is inside of a machine, but stands behind '+'");
  if (between && !inside->ranks)
    return Status::usage("--links: '" + inside->name +
                         "' is between machines, but stands in front of '+'");
  if (between)
    made.between = *between;
  made.ranksOfMachine =
      options.ranksOfMachine.value_or(inside->ranks ? inside->ranks : 1);
  if (!inside->ranks && made.ranksOfMachine > 1)
    return Status::usage("--ranks-per-machine needs a link inside of a machine "
                         "in --links");
  if (!inside->ranks)
    made.between = *inside;
  if (options.threads && !device->isCpu())
    return Status::usage("--rank-threads has no effect: '" + device->name +
                         "' is no processor");
  return made;
}

double Simulation::mfu() const {
  double could = step.seconds * peak * double(ranks());
  return could > 0 ? modelFlops / could : 0;
}

int64_t Simulation::memory() const {
  int64_t most = 0;
  for (const RankResult &rank : step.ranks)
    most = std::max(most, rank.memory + rank.inFlight);
  return most;
}

/// The axes in the order in which ranks are numbered. Stages say nothing of the
/// axis that they lie along: `asked`, the option, does, or it is the first.
static std::vector<am::MeshAxis> axesOf(const am::Manifest &manifest,
                                        const std::string &asked) {
  std::vector<am::MeshAxis> axes = manifest.mesh;
  auto isPipe = [](const am::MeshAxis &axis) {
    return kPipeAxis == StringRef(axis.name);
  };
  if (!manifest.pipeline || llvm::any_of(axes, isPipe))
    return axes;
  size_t place = 0;
  std::string error;
  if (auto mesh = parseMeshSpec(asked, error))
    for (size_t i = 0; i < mesh->size() && i <= axes.size(); ++i)
      if ((*mesh)[i].first == kPipeAxis)
        place = i;
  axes.insert(axes.begin() + int64_t(place),
              {kPipeAxis.str(), manifest.pipeline->ranks});
  return axes;
}

namespace {
/// What a measurement has shown.
struct Calibrated {
  Slowness slowness;
  std::optional<double> processors;
};
} // namespace

/// Simulates the stages on the machine, so much slower than by the tables.
static Result<StepResult> play(const Simulation &of,
                               const SimulationOptions &options,
                               const Slowness &slowness) {
  const DeviceRow &row = of.machine.device;
  int64_t ofMachine = of.network->ranksOfMachine();
  double threads = options.threads.value_or(0);
  of.network->slowDown(slowness.links);
  Device device(row, of.vectorBits, ofMachine, threads, slowness);
  StepOptions step;
  step.batches = options.batches.value_or(1);
  step.hasStreamPerCommunicator = !row.isCpu();
  if (row.isCpu())
    step.threads = std::max<int64_t>(
        1, threads > 0 ? int64_t(threads)
                       : int64_t(row.cores / double(ofMachine)));
  // On processors the thread that communicates needs one that is free.
  bool hasRoom = !row.isCpu() ||
                 (threads > 0 && threads + 1 <= row.cores / double(ofMachine));
  step.overlaps = !options.noOverlap && hasRoom;
  return simulateStep(*of.stages, device, *of.network, step);
}

/// What is the same for models and artifacts. `forward`: the flops of one
/// forward before it was cut, or 0.
static Result<Simulation> simulateStages(std::vector<am::Manifest> stages,
                                         const std::string &mesh,
                                         int64_t vectorBits, double forward,
                                         const SimulationOptions &options,
                                         const Calibrated &calibrated) {
  auto machine = machineOf(options);
  if (!machine)
    return std::move(machine).status();
  Simulation made;
  made.machine = *machine;
  made.vectorBits = vectorBits;
  DeviceRow &row = made.machine.device;
  LinkRow inside = machine->inside;
  auto processors =
      calibrated.processors ? calibrated.processors : options.processors;
  if (processors && row.isCpu())
    row.cores = *processors;
  made.stages = std::make_unique<std::vector<am::Manifest>>(std::move(stages));
  std::vector<am::MeshAxis> axes = axesOf(made.stages->front(), mesh);
  int64_t ranks = 1;
  for (const am::MeshAxis &axis : axes)
    ranks *= axis.size;
  int64_t ofMachine = std::min(ranks, machine->ranksOfMachine);
  // Where a processor has several ranks, a message waits for its turn.
  if (row.isCpu())
    inside.latency +=
        std::max(0.0, double(ofMachine) / row.cores - 1) * row.turn;
  if (ranks > machine->ranksOfMachine && !machine->between)
    return Status::usage(
        std::to_string(ranks) + " ranks are more than the " +
        std::to_string(machine->ranksOfMachine) +
        " of a machine: expected --links=" + machine->inside.name +
        "+LINK, with the link between machines");
  made.network = std::make_unique<Network>(
      std::move(axes), inside, machine->between ? &*machine->between : nullptr,
      machine->ranksOfMachine, row.isCpu());
  auto result = play(made, options, calibrated.slowness);
  if (!result)
    return std::move(result).status();
  made.step = *std::move(result);
  made.peak =
      Device(row, vectorBits, ofMachine, options.threads.value_or(0), {})
          .peak(made.step.type);
  made.isOfModel = forward > 0;
  made.modelFlops = made.isOfModel
                        ? 3 * forward * double(options.batches.value_or(1))
                        : made.step.modelFlops * double(ranks) /
                              double(made.step.ranks.size());
  return made;
}

static Result<Simulation> simulateCompiled(std::vector<am::Manifest> stages,
                                           const SimulationOptions &options,
                                           const Calibrated &calibrated) {
  int64_t bits = 256;
  if (stages.front().target.kind == "cpu")
    if (auto target = parseCpuTarget("cpu:" + stages.front().target.arch))
      bits = target->vectorBits;
  return simulateStages(std::move(stages), "", bits, 0, options, calibrated);
}

/// Simulates, by the tables alone, what was measured; `same` does it, of which
/// the measurement says how it was compiled.
static Result<Calibrated> calibrate(
    const SimulationOptions &options,
    const std::function<Result<Simulation>(const Measurement &,
                                           const SimulationOptions &)> &same) {
  Calibrated made;
  if (options.calibration.empty())
    return made;
  auto measured = readMeasurement(options.calibration);
  if (!measured)
    return std::move(measured).status();
  SimulationOptions byTables = options;
  byTables.calibration.clear();
  byTables.forwardFlops = 0; // Nobody asks.
  byTables.processors = made.processors = measured->processors;
  auto simulated = measured->artifact.empty()
                       ? same(*measured, byTables)
                       : simulateArtifact(measured->artifact, byTables);
  if (!simulated)
    return std::move(simulated).status().in(io::inQuotes(options.calibration));
  if (simulated->ranks() != measured->ranks)
    return Status::usage(
        io::inQuotes(options.calibration) + " was measured on " +
        std::to_string(measured->ranks) + " ranks, but what it names has " +
        std::to_string(simulated->ranks()) +
        ": expected the field 'artifact', or 'mesh' and 'parallel', of what "
        "was measured");
  auto slowness = slownessOf(*measured, [&](const Slowness &slow) {
    return play(*simulated, byTables, slow);
  });
  if (!slowness)
    return std::move(slowness).status();
  made.slowness = *slowness;
  return made;
}

/// The flops of one forward of the model as one process computes it; 0 if that
/// is not known.
static double forwardFlops(const std::string &path,
                           const CompileOptions &compile) {
  CompileOptions own;
  own.inference = true;
  own.stopAfter = "plan";
  own.target = compile.target;
  own.threads = compile.threads;
  own.import = compile.import;
  own.import.loss.clear();
  own.importValues = compile.importValues;
  Session session(own);
  // What is wrong with the model is said when it is compiled.
  ScopedDiagnosticHandler quiet(&session.context(),
                                [](Diagnostic &) { return success(); });
  Modules modules = session.phases(path);
  if (modules.empty())
    return 0;
  auto manifest = manifestOf(*modules.front());
  return manifest ? productFlops(*manifest, "evaluate") : 0;
}

static std::string textOf(Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream(text) << diagnostic;
  return text;
}

static constexpr const char *kNeeds =
    "the times of a device ('--device', or that of '--links') need";

Status commands::expectCodeFor(const DeviceRow &device,
                               const std::string &compiledFor) {
  if (compiledFor.empty())
    return Status::success();
  auto parsed = parseTargets(compiledFor);
  if (!parsed)
    return std::move(parsed).status();
  CodeTargets targets;
  for (const Target &one : *parsed) {
    targets.emplace_back();
    targets.back().kind = kindOf(one).str();
    targets.back().arch =
        std::visit([](const auto &code) { return code.arch; }, one);
  }
  return codeFor(device, targets, kNeeds).status();
}

/// Of the plans of all targets those that the device runs: one, or of each
/// stage of a pipeline. `first`: the module of the first.
static Result<std::vector<am::Manifest>> plansFor(const DeviceRow &device,
                                                  const Modules &modules,
                                                  const std::string &path,
                                                  ModuleOp &first) {
  std::vector<am::Manifest> all;
  CodeTargets targets;
  for (const auto &one : modules) {
    auto manifest = manifestOf(*one);
    if (!manifest)
      return std::move(manifest).status().in(path);
    all.push_back(*std::move(manifest));
    targets.push_back(all.back().target);
  }
  auto begin = codeFor(device, targets, kNeeds);
  if (!begin)
    return std::move(begin).status();
  first = *modules[*begin];
  std::vector<am::Manifest> stages;
  for (size_t i = *begin; i < all.size(); ++i) {
    bool isSame = targets[i].kind == targets[*begin].kind &&
                  targets[i].arch == targets[*begin].arch;
    if (stages.empty() || (isSame && all[i].pipeline))
      stages.push_back(std::move(all[i]));
  }
  return stages;
}

Result<Simulation> commands::simulateModel(const std::string &path,
                                           CompileOptions compile,
                                           const SimulationOptions &options,
                                           std::string *problem) {
  auto machine = machineOf(options);
  if (!machine)
    return std::move(machine).status();
  auto calibrated = calibrate(
      options, [&](const Measurement &measured, const auto &byTables) {
        CompileOptions own = compile;
        if (!measured.mesh.empty())
          own.mesh = measured.mesh;
        if (!measured.parallel.empty())
          own.parallel = measured.parallel;
        return simulateModel(path, own, byTables, problem);
      });
  if (!calibrated)
    return std::move(calibrated).status();
  if (compile.target.empty() && !machine->device.isCpu())
    compile.target = machine->device.target;
  if (Status s = expectCodeFor(machine->device, compile.target); !s)
    return s;
  compile.stopAfter = "plan";
  Session session(compile);
  std::optional<ScopedDiagnosticHandler> quiet;
  if (problem)
    quiet.emplace(&session.context(), [&](Diagnostic &diagnostic) {
      if (problem->empty() &&
          diagnostic.getSeverity() == DiagnosticSeverity::Error)
        *problem = textOf(diagnostic);
      return success();
    });
  Modules modules = session.phases(path);
  if (modules.empty())
    return session.status();
  ModuleOp first;
  auto stages = plansFor(machine->device, modules, path, first);
  if (!stages)
    return std::move(stages).status();
  return simulateStages(*std::move(stages), compile.mesh,
                        CpuModel::of(first).bits,
                        options.forwardFlops ? *options.forwardFlops
                                             : forwardFlops(path, compile),
                        options, *calibrated);
}

Result<Simulation>
commands::simulateArtifact(const std::string &path,
                           const SimulationOptions &options) {
  auto calibrated = calibrate(options, [&](const auto &, const auto &byTables) {
    return simulateArtifact(path, byTables);
  });
  if (!calibrated)
    return std::move(calibrated).status();
  auto machine = machineOf(options);
  if (!machine)
    return std::move(machine).status();
  std::vector<am::Manifest> stages;
  int64_t count = 1;
  for (int64_t stage = 0; stage < count; ++stage) {
    auto reader = am::ArtifactReader::open(am::stagePath(path, stage));
    if (!reader)
      return reader.status();
    auto code = codeFor(machine->device, targetsOf(*reader), kNeeds);
    if (!code)
      return std::move(code).status().in(io::inQuotes(path));
    stages.push_back(reader->manifests()[*code]);
    const auto &pipeline = stages.back().pipeline;
    if (pipeline && pipeline->stage != stage)
      return Status::usage(io::inQuotes(path) + " is stage " +
                           std::to_string(pipeline->stage) +
                           " of a model: expected the first one");
    if (pipeline && pipeline->digest != stages.front().pipeline->digest)
      return Status::usage(io::inQuotes(am::stagePath(path, stage)) +
                           " is of another compilation than stage 0");
    if (pipeline)
      count = pipeline->stages;
  }
  return simulateCompiled(std::move(stages), options, *calibrated);
}

Result<Simulation>
commands::simulateManifests(std::vector<am::Manifest> stages,
                            const SimulationOptions &options) {
  return simulateCompiled(std::move(stages), options, Calibrated());
}

/// "data=2,tensor=4" without axes of one rank.
static std::string meshText(int64_t pipe, int64_t data, int64_t tensor) {
  std::string text;
  for (auto [name, size] : {std::pair("pipe", pipe), std::pair("data", data),
                            std::pair("tensor", tensor)})
    if (size > 1)
      text += (text.empty() ? "" : ",") + std::string(name) + "=" +
              std::to_string(size);
  return text;
}

/// The plans for axes of these sizes.
static void addPlans(const std::string &mesh, bool hasPipe, bool hasData,
                     bool hasTensor, std::vector<Candidate> &all) {
  std::string more =
      std::string(hasTensor ? "+tp" : "") + (hasPipe ? "+pp" : "");
  if (!hasData) {
    all.push_back({mesh, more.empty() ? "" : more.substr(1), std::nullopt, ""});
    return;
  }
  for (const char *kind : {"ddp", "zero1", "zero2", "fsdp"})
    all.push_back({mesh, kind + more, std::nullopt, ""});
}

/// Every way to lay out `ranks`. Where nothing says how parameters are cut,
/// there is no tensor parallelism.
static std::vector<Candidate> candidatesOf(int64_t ranks, bool hasShard) {
  std::vector<Candidate> all;
  for (int64_t pipe = 1; pipe <= ranks; ++pipe)
    for (int64_t tensor = 1; ranks % pipe == 0 && tensor <= ranks / pipe;
         ++tensor) {
      if (ranks / pipe % tensor || (tensor > 1 && !hasShard))
        continue;
      int64_t data = ranks / pipe / tensor;
      addPlans(meshText(pipe, data, tensor), pipe > 1, data > 1, tensor > 1,
               all);
    }
  return all;
}

static Result<std::vector<Candidate>> candidatesOf(const std::string &text) {
  std::string error;
  auto mesh = parseMeshSpec(text, error);
  if (!mesh)
    return Status::usage("--mesh: " + error);
  bool has[3] = {};
  for (const auto &[name, size] : *mesh) {
    size_t axis = 0;
    for (const char *known : {"pipe", "data", "tensor"})
      if (name == known)
        break;
      else
        ++axis;
    if (axis == 3)
      return Status::usage("there is no ready-made plan for the axis '" + name +
                           "': expected axes of data, tensor, pipe");
    has[axis] = true;
  }
  std::vector<Candidate> all;
  addPlans(text, has[0], has[1], has[2], all);
  return all;
}

/// Rows that fit in front of those that do not, and those that failed last.
static std::tuple<int, double, StringRef, StringRef>
keyOf(const Candidate &one) {
  if (!one.simulation)
    return {2, 0, one.mesh, one.parallel};
  return {one.simulation->fits() ? 0 : 1, one.simulation->step.seconds,
          one.mesh, one.parallel};
}

Result<std::vector<Candidate>> commands::sweep(const std::string &path,
                                               const CompileOptions &compile,
                                               const SimulationOptions &options,
                                               std::optional<int64_t> ranks) {
  std::vector<Candidate> all;
  if (ranks) {
    all = candidatesOf(*ranks, !compile.shard.empty());
  } else {
    auto found = candidatesOf(compile.mesh);
    if (!found)
      return std::move(found).status();
    all = *std::move(found);
  }
  SimulationOptions same = options;
  same.forwardFlops = forwardFlops(path, compile);
  CountProgress progress("plan", int64_t(all.size()));
  int64_t over = 0;
  for (Candidate &one : all) {
    progress.show(over++);
    CompileOptions own = compile;
    own.mesh = one.mesh;
    own.parallel = one.parallel;
    if (own.parallel.find("tp") == std::string::npos)
      own.shard.clear();
    Status status = checkOptions(own);
    if (status) {
      auto made = simulateModel(path, own, same, &one.problem);
      if (made)
        one.simulation = *std::move(made);
      status = made.status();
    }
    if (!status && one.problem.empty())
      one.problem = status.message();
    if (one.simulation)
      one.problem.clear();
  }
  llvm::sort(all, [](const Candidate &a, const Candidate &b) {
    return keyOf(a) < keyOf(b);
  });
  return all;
}
