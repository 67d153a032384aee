//===- ModelCore.cpp - what a Model is made of ----------------------------===//
//
// Loading: the target is chosen, the code loaded, variables allocated and
// initialised (ModelVariables.cpp), and each program's launches resolved to
// functions and to places in flat tables. The manifest was validated by the
// reader: no index is checked again.
//
//===----------------------------------------------------------------------===//
#include "runtime/ModelCore.h"
#include "runtime/CpuFeatures.h"
#include "runtime/Processors.h"

#include <algorithm>
#include <cstring>

namespace tandem::runtime {

namespace {

constexpr int maxThreads = 1024;

std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

Status grow(std::shared_ptr<Storage> &storage, int64_t bytes,
            const std::shared_ptr<MemoryAccount> &account, Device device = {}) {
  if (bytes == 0 || (storage && storage->bytes() >= bytes))
    return Status::success();
  storage.reset();
  auto larger = Storage::allocate(bytes, account, device);
  if (!larger)
    return larger.status();
  storage = std::move(*larger);
  return Status::success();
}

} // namespace

Result<std::shared_ptr<ModelCore>>
ModelCore::create(artifact::ArtifactReader reader, const Options &options) {
  if (options.threads < 0 || options.threads > maxThreads)
    return Status::usage("expected 0 to " + std::to_string(maxThreads) +
                         " threads but got " + std::to_string(options.threads));
  std::shared_ptr<ModelCore> core(new ModelCore(std::move(reader)));
  core->useGraphs = options.useGraphs;
  core->useLibraries = options.useLibraries;
  if (Status status = core->chooseTarget(options); !status)
    return status;
  if (Status status = core->loadCode(); !status)
    return status;
  int threads = options.threads ? options.threads : availableThreads();
  core->pool = std::make_unique<ThreadPool>(core->place.isHost() ? threads : 1);
  if (Status status = core->createVariables(); !status)
    return status;
  if (Status status = core->bindPrograms(); !status)
    return status;
  if (!core->place.isHost())
    if (Status status = core->reserveOnDevice(); !status)
      return status;
  if (Status status = core->initializeVariables(options.seed); !status)
    return status;
  // What was uploaded is there for calls on any stream.
  if (Backend *backend = core->place.backend())
    if (Status status =
            backend->synchronize(currentStream(core->place.device()));
        !status)
      return status;
  return core;
}

ModelCore::~ModelCore() {
  if (fetched)
    place.backend()->releaseFence(fetched);
}

/// Finds the device, and the artifact's code for it.
Status ModelCore::chooseTarget(const Options &options) {
  Device device;
  if (options.device)
    device = *options.device;
  else if (!reader.choose("cpu") && manifest().target.kind == "cuda")
    device.kind = DeviceKind::Cuda;
  if (!reader.choose(targetOf(device.kind))) {
    std::vector<std::string> targets;
    for (const artifact::Manifest &manifest : reader.manifests())
      targets.push_back(manifest.target.kind +
                        (manifest.target.arch.empty() ? "" : ":") +
                        manifest.target.arch);
    return Status::noDevice("the artifact has no code for device '" +
                            toString(device) + "'; it has the targets " +
                            joined(targets));
  }
  Result<Place> found = Place::at(device);
  if (!found)
    return std::move(found).status();
  place = *found;
  if (place.isHost())
    return chooseVariant(options.cpuVariant);
  if (!options.cpuVariant.empty())
    return Status::usage("variants are for processors, and the device is '" +
                         toString(device) + "'");
  return Status::success();
}

/// Of the variants that this processor can run, the one that uses most of it;
/// or the one that is wanted.
Status ModelCore::chooseVariant(const std::string &wanted) {
  std::span<const artifact::Manifest> manifests = reader.manifests();
  std::vector<std::string> names;
  std::string problems;
  std::optional<size_t> best;
  for (size_t i = 0; i < manifests.size(); ++i) {
    const artifact::Target &target = manifests[i].target;
    if (target.kind != "cpu")
      continue;
    names.push_back(target.arch);
    if (!wanted.empty() && target.arch != wanted)
      continue;
    std::string problem = cpuProblem(target.features);
    if (!problem.empty())
      problems += (problems.empty() ? "the artifact's code is for '"
                                    : "; other code is for '") +
                  target.arch + "' and " + problem;
    else if (!best ||
             target.features.size() > manifests[*best].target.features.size())
      best = i;
  }
  if (!best && problems.empty())
    return Status::usage("the artifact has no code for '" + wanted +
                         "'; it has the variants " + joined(names));
  if (!best)
    return Status::noDevice(problems);
  reader.choose(*best);
  return Status::success();
}

Status ModelCore::loadCode() {
  if (Backend *backend = place.backend()) {
    auto loaded = backend->load(reader, {useLibraries});
    if (!loaded)
      return std::move(loaded).status();
    deviceCode = std::move(*loaded);
    return Status::success();
  }
  if (manifest().kernels.empty())
    return Status::success();
  auto loaded = CodeObject::load(reader.code("object.cpu"));
  if (!loaded)
    return loaded.status();
  code = std::move(*loaded);
  return Status::success();
}

Status ModelCore::bindPrograms() {
  std::vector<KernelFunction> functions;
  std::vector<std::string> missing;
  for (const artifact::Kernel &kernel : manifest().kernels) {
    functions.push_back(place.isHost() ? code.find(kernel.symbol.c_str())
                                       : nullptr);
    if (!functions.back() && place.isHost())
      missing.push_back(kernel.symbol);
  }
  if (!missing.empty())
    return Status::failed("the artifact's code object lacks the kernels " +
                          joined(missing));
  auto variableOf = [this](std::string_view name) {
    return findVariable(name);
  };
  for (const artifact::Program &program : manifest().programs) {
    BoundProgram &bound = programs.emplace_back();
    bound.index = programs.size() - 1;
    bindProgram(bound, manifest(), program, functions, variableOf);
    if (!place.isHost()) {
      bound.uploads.resize(program.arguments.size());
      bound.downloads.resize(program.results.size());
    }
  }
  const std::pair<const char *, const char *> pairs[] = {
      {"forward", "backward"},
      {"forward", "grad_forward"},
      {"grad_forward", "grad_backward"}};
  for (auto [first, second] : pairs)
    if (BoundProgram *from = find(first), *to = find(second); from && to)
      bindContext(*from, *to);
  if (BoundProgram *from = find("prepare"), *to = find("evaluate"); from && to)
    bindPrepared(*from, *to);
  return Status::success();
}

BoundProgram *ModelCore::find(std::string_view name) {
  for (BoundProgram &bound : programs)
    if (bound.program->name == name)
      return &bound;
  return nullptr;
}

/// Allocates what calls need beside their tensors, and uploads the constants.
Status ModelCore::reserveOnDevice() {
  int64_t arenaBytes = 0, hostBytes = 0, planned = 0;
  for (const artifact::Program &program : manifest().programs) {
    arenaBytes = std::max(arenaBytes, program.arenaBytes);
    hostBytes = std::max(hostBytes, program.hostBytes);
    planned = std::max(planned, program.peakBytes);
  }
  std::span<const std::byte> bytes = reader.constants();
  Status status = grow(arena, arenaBytes, account, place.device());
  if (status)
    status = grow(constants, static_cast<int64_t>(bytes.size()), account,
                  place.device());
  if (!status)
    return std::move(status).in("cannot load the model, which plans " +
                                std::to_string(planned) + " bytes, on '" +
                                toString(place.device()) + "'");
  hostMemory = HostMemory(*place.backend());
  if (hostBytes) {
    Result<Tensor> made = hostMemory.allocate(
        artifact::DType::U8, std::span<const int64_t>(&hostBytes, 1));
    if (!made)
      return std::move(made).status().in("cannot load the model");
    hostArena = std::move(*made);
  }
  return constants ? place.copy(constants->data(), bytes.data(),
                                static_cast<int64_t>(bytes.size()))
                   : Status::success();
}

const std::byte *ModelCore::constantsData() const {
  return place.isHost() ? reader.constants().data()
         : constants    ? static_cast<const std::byte *>(constants->data())
                        : nullptr;
}

Status ModelCore::follow(Stream stream, Stream caller) {
  Backend &backend = *place.backend();
  if (stream != caller)
    if (Status status = backend.wait(stream, caller); !status)
      return status;
  if (lastStream == stream)
    return Status::success();
  // What is captured and what runs now cannot wait for each other: whoever
  // replays the capture orders it.
  if (lastStream && *lastStream != caller &&
      backend.isCapturing(stream) == backend.isCapturing(*lastStream))
    if (Status status = backend.wait(stream, *lastStream); !status)
      return status;
  lastStream = stream;
  for (Variable &variable : variables)
    variable.tensor.useOn(stream);
  for (Storage *storage : {arena.get(), constants.get()})
    if (storage)
      storage->useOn(stream);
  if (BoundProgram *preparing = find("prepare"))
    for (Tensor &tensor : preparing->internal)
      if (tensor.defined())
        tensor.useOn(stream);
  return Status::success();
}

Status ModelCore::leave(Stream stream, Stream caller) {
  if (stream == caller)
    return Status::success();
  lastStream = caller;
  return place.backend()->wait(caller, stream);
}

Status ModelCore::followCurrent() {
  if (place.isHost())
    return Status::success();
  Stream stream = currentStream(place.device());
  return follow(stream, stream);
}

Status ModelCore::reserve(const BoundProgram &program) {
  if (!place.isHost())
    return Status::success();
  int64_t before = arena ? arena->bytes() : 0;
  if (Status status = grow(arena, program.program->arenaBytes, account);
      !status)
    return status;
  if (arena && arena->bytes() != before)
    clear(*arena);
  return grow(scratch, program.scratchBytes * pool->threads(), account);
}

std::shared_ptr<ContextState> ModelCore::takeContext() {
  std::lock_guard lock(poolMutex);
  if (!freeContexts.empty()) {
    std::shared_ptr<ContextState> context = std::move(freeContexts.back());
    freeContexts.pop_back();
    return context;
  }
  auto context = std::make_shared<ContextState>();
  context->owner = weak_from_this();
  freeContexts.reserve(++contextsMade);
  return context;
}

std::shared_ptr<SavedValues> ModelCore::takeSaved(BoundProgram &program) {
  {
    std::lock_guard lock(poolMutex);
    if (!program.freeSaved.empty()) {
      std::shared_ptr<SavedValues> saved = std::move(program.freeSaved.back());
      program.freeSaved.pop_back();
      return saved;
    }
    program.freeSaved.reserve(++program.savedMade);
  }
  auto saved = std::make_shared<SavedValues>();
  saved->program = &program;
  saved->results.resize(program.results.size());
  saved->kept.resize(program.kept.size());
  saved->layouts.resize(program.arguments.size());
  return saved;
}

void ModelCore::give(std::shared_ptr<SavedValues> saved) {
  while (saved) {
    {
      // Of two that let go at once, the second must see that it is the last.
      std::lock_guard lock(poolMutex);
      if (saved.use_count() > 1)
        return saved.reset();
    }
    // Outside the lock: tensors of the caller may run code when they end.
    saved->clear();
    std::shared_ptr<SavedValues> base = std::move(saved->base);
    {
      std::lock_guard lock(poolMutex);
      saved->program->freeSaved.push_back(std::move(saved));
    }
    saved = std::move(base);
  }
}

void ModelCore::give(std::shared_ptr<ContextState> context) {
  context->failure.clear();
  std::lock_guard lock(poolMutex);
  freeContexts.push_back(std::move(context));
}

} // namespace tandem::runtime
