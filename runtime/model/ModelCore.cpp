//===- ModelCore.cpp - what a Model is made of ----------------------------===//
//
// Loading: the target is chosen, the code loaded, variables allocated and
// initialised (ModelVariables.cpp), and each program's links resolved. The
// manifest was validated by the reader: no index is checked again.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/ModelCore.h"
#include "runtime/comm/PeerCommunicator.h"
#include "runtime/comm/ThreadPeers.h"
#include "runtime/device/Processors.h"
#include "runtime/model/Pieces.h"

#include <algorithm>

namespace tandem::runtime {

namespace {

constexpr int maxThreads = 1024;

bool takesPrepared(const artifact::Program &program) {
  return std::any_of(program.arguments.begin(), program.arguments.end(),
                     [](const artifact::Slot &slot) {
                       return slot.role == artifact::Role::Prepared;
                     });
}

std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

Status grow(std::shared_ptr<Storage> &storage, int64_t bytes,
            const std::shared_ptr<MemoryAccount> &account, Device device) {
  if (bytes == 0 || (storage && storage->room() >= bytes))
    return Status::success();
  storage.reset();
  auto larger = Storage::allocate(bytes, account, device);
  if (!larger)
    return larger.status();
  storage = std::move(*larger);
  return Status::success();
}

} // namespace

namespace {

/// Sets a device's limit of memory, and what it was again if a load fails.
class Limit {
public:
  Limit() = default;
  Limit(const Limit &) = delete;
  Limit &operator=(const Limit &) = delete;
  ~Limit() {
    // Another load may have set its own meanwhile.
    if (backend && backend->memoryLimit() == bytes)
      (void)backend->limitMemory(before).ok();
  }

  Status set(Backend &device, int64_t limit) {
    int64_t old = device.memoryLimit();
    Status status = device.limitMemory(limit);
    if (status) {
      backend = &device;
      bytes = limit;
      before = old;
    }
    return status;
  }
  void keep() { backend = nullptr; }

private:
  Backend *backend = nullptr;
  int64_t bytes = 0, before = 0;
};

} // namespace

Result<std::shared_ptr<ModelCore>>
ModelCore::create(artifact::ArtifactReader reader, const Options &options) {
  if (options.threads < 0 || options.threads > maxThreads)
    return Status::usage("expected 0 to " + std::to_string(maxThreads) +
                         " threads but got " + std::to_string(options.threads));
  Limit limit; // ends behind what was allocated
  std::shared_ptr<ModelCore> core(new ModelCore(std::move(reader)));
  core->useGraphs = options.useGraphs;
  if (!core->manifest().mesh.empty())
    core->wholeValues =
        std::make_unique<artifact::Manifest>(wholeManifest(core->manifest()));
  core->seed = options.seed;
  if (Status status = core->findDevice(options); !status)
    return status;
  Backend &backend = core->place.backend();
  if (options.memoryLimit)
    if (Status status = limit.set(backend, options.memoryLimit); !status)
      return status;
  if (Status status = backend.choose(core->reader, options.cpuVariant); !status)
    return status;
  if (Status status = core->loadCode(options); !status)
    return status;
  if (Status status = core->createVariables(); !status)
    return status;
  core->bindPrograms();
  if (core->place.backend().isQueued())
    if (Status status = core->reserveAll(); !status)
      return status;
  if (Status status = core->placeConstants(); !status)
    return status;
  if (!core->manifest().mesh.empty() && core->checkRanks()) {
    // One rank is with itself.
    auto alone = comm::MeshCommunicators::make(
        comm::makePeerCommunicator(std::move(comm::makeThreadPeers(1)[0])),
        core->manifest());
    if (!alone)
      return std::move(alone).status();
    core->communicators = *std::move(alone);
  }
  // Several ranks: a piece is drawn when it is known whose it is.
  if (core->checkRanks())
    if (Status status = core->initializeVariables(options.seed); !status)
      return status;
  // What was uploaded is there for calls on any stream.
  if (Status status = core->place.backend().synchronize(
          currentStream(core->place.device()));
      !status)
    return status;
  limit.keep();
  return core;
}

ModelCore::~ModelCore() {
  if (fetched)
    place.backend().releaseFence(fetched);
}

Status ModelCore::checkRanks() const {
  int64_t ranks = comm::ranksOf(manifest().mesh);
  if (ranks == 1 || communicators)
    return Status::success();
  return Status::usage("the artifact is for " + std::to_string(ranks) +
                       " ranks together, of the mesh " +
                       comm::toString(manifest().mesh) +
                       ": expected a communicator of as many");
}

/// Finds the device, for which the artifact has code.
Status ModelCore::findDevice(const Options &options) {
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
  Result<DeviceMemory> found = DeviceMemory::at(device);
  if (!found)
    return std::move(found).status();
  place = *found;
  return Status::success();
}

Status ModelCore::loadCode(const Options &options) {
  LoadOptions loading;
  loading.useLibraries = options.useLibraries;
  loading.threads = options.threads ? options.threads : availableThreads();
  auto loaded = place.backend().load(reader, loading);
  if (!loaded)
    return std::move(loaded).status();
  code = *std::move(loaded);
  return Status::success();
}

void ModelCore::bindPrograms() {
  auto variableOf = [this](std::string_view name) {
    return findVariable(name);
  };
  for (size_t i = 0; i < manifest().sizes.size(); ++i)
    ofSizes.push_back(ofSize(manifest(), i));
  // Programs and contexts point to programs.
  size_t count = manifest().programs.size();
  bound.reserve(count);
  for (size_t i = 0, ofItsSize = 0; i < count; ++i, ++ofItsSize) {
    auto size = static_cast<size_t>(manifest().programs[i].size);
    if (ofSizes.empty()) {
      bound.push_back(bindProgram(manifest(), i, variableOf));
      continue;
    }
    if (!bound.empty() && bound.back().size != size)
      ofItsSize = 0;
    bound.push_back(bindProgram(ofSizes[size], ofItsSize, variableOf));
    bound.back().index = i;
    bound.back().size = size;
  }
  for (size_t i = 0; i < std::max<size_t>(ofSizes.size(), 1); ++i)
    linkPrograms(i);
  frames.reserve(count);
  workspaces.reserve(count);
  for (const Program &program : bound) {
    frames.emplace_back(program);
    workspaces.emplace_back(program, place.backend().isQueued());
  }
}

/// Links the programs of a size to each other.
void ModelCore::linkPrograms(size_t size) {
  auto named = [&](std::string_view name) {
    return const_cast<Program *>(find(name, size));
  };
  const std::pair<const char *, const char *> pairs[] = {
      {"forward", "backward"},
      {"forward", "grad_forward"},
      {"grad_forward", "grad_backward"}};
  for (auto [first, second] : pairs)
    if (Program *from = named(first), *to = named(second); from && to)
      bindContext(*from, *to);
  if (Program *from = named("prepare"))
    for (const char *taker : {"evaluate", "step", "accumulate"})
      if (Program *to = named(taker); to && takesPrepared(*to->plan))
        bindPrepared(*from, *to);
}

const Program *ModelCore::find(std::string_view name, size_t size) const {
  const Program *found = nullptr;
  for (const Program &program : bound)
    if (program.plan->name == name) {
      if (program.size == size)
        return &program;
      // The manifest of a size has those that serve it, too.
      if (program.size == 0 && artifact::servesAllSizes(name))
        found = &program;
    }
  return found;
}

Result<const Program *>
ModelCore::choose(std::string_view name,
                  std::span<const Argument> inputs) const {
  const Program *first = find(name);
  if (!first || ofSizes.empty())
    return first;
  auto tensorOf = [&](const artifact::Slot &slot) -> const Tensor * {
    for (const Argument &input : inputs)
      if (slot.role == artifact::Role::Input && input.name == slot.name)
        return input.tensor && input.tensor->defined() ? input.tensor : nullptr;
    return nullptr;
  };
  auto fits = [&](const Program &program) {
    for (const artifact::Slot &slot : program.plan->arguments)
      if (const Tensor *tensor = tensorOf(slot);
          tensor && !std::ranges::equal(tensor->shape(), slot.shape))
        return false;
    return true;
  };
  for (const Program &program : bound)
    if (program.plan->name == name && fits(program))
      return &program;
  std::string given, known;
  for (const artifact::Slot &slot : first->plan->arguments)
    if (const Tensor *tensor = tensorOf(slot))
      given += (given.empty() ? "'" : ", '") + slot.name + "' " +
               describe(tensor->dtype(), tensor->shape());
  for (const Program &program : bound) {
    if (program.plan->name != name)
      continue;
    std::string shapes;
    for (const artifact::Slot &slot : program.plan->arguments)
      if (tensorOf(slot))
        shapes += (shapes.empty() ? "'" : ", '") + slot.name + "' " +
                  describe(slot.dtype, slot.shape);
    known += (known.empty() ? "'" : "; '") +
             manifest().sizes[program.size].name + "': " + shapes;
  }
  return Status::usage("no size of '" + std::string(name) + "' fits " + given +
                       "; the artifact has " + known);
}

/// Allocates what calls need beside their tensors, for all programs.
Status ModelCore::reserveAll() {
  int64_t arenaBytes = 0, hostBytes = 0, planned = 0;
  for (const artifact::Program &program : manifest().programs) {
    arenaBytes = std::max(arenaBytes, program.arenaBytes);
    hostBytes = std::max(hostBytes, program.hostBytes);
    planned = std::max(planned, program.peakBytes);
  }
  Status status = grow(arena, arenaBytes, account, place.device());
  if (status)
    status = grow(constants, static_cast<int64_t>(reader.constants().size()),
                  account, place.device());
  if (!status)
    return std::move(status).in("cannot load the model, which plans " +
                                std::to_string(planned) + " bytes, on '" +
                                toString(place.device()) + "'");
  // A step may be captured before any call, and has what prepares with it.
  for (const Program &taker : bound)
    if (!taker.renews.empty())
      for (size_t r = 0; r < taker.prepares->results.size(); ++r) {
        const artifact::Slot &slot = taker.prepares->plan->results[r];
        Tensor &home = workspace(*taker.prepares).internal[r];
        if (home.defined())
          continue;
        auto made =
            Tensor::empty(slot.dtype, slot.shape, place.device(), account);
        if (!made)
          return std::move(made).status().in("cannot load the model: '" +
                                             slot.name + "'");
        home = *std::move(made);
      }
  hostMemory = HostMemory(place.backend());
  if (hostBytes) {
    Result<Tensor> made = hostMemory.allocate(
        artifact::DType::U8, std::span<const int64_t>(&hostBytes, 1));
    if (!made)
      return std::move(made).status().in("cannot load the model");
    hostArena = std::move(*made);
  }
  return Status::success();
}

/// Uploads the constants; on the host they stay in the reader.
Status ModelCore::placeConstants() {
  std::span<const std::byte> bytes = reader.constants();
  auto size = static_cast<int64_t>(bytes.size());
  if (place.isHost()) {
    constants = Storage::wrap(const_cast<std::byte *>(bytes.data()), size,
                              place.device(), {});
    return Status::success();
  }
  return constants ? place.copy(constants->data(), bytes.data(), size)
                   : Status::success();
}

Status ModelCore::follow(Stream stream, Stream caller) {
  Backend &backend = place.backend();
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
  for (const Program &program : bound)
    if (program.plan->name == "prepare")
      for (Tensor &tensor : workspace(program).internal)
        if (tensor.defined())
          tensor.useOn(stream);
  return Status::success();
}

Status ModelCore::leave(Stream stream, Stream caller) {
  if (stream == caller)
    return Status::success();
  lastStream = caller;
  return place.backend().wait(caller, stream);
}

Status ModelCore::followCurrent() {
  Stream stream = currentStream(place.device());
  return follow(stream, stream);
}

Status ModelCore::reserve(const Program &program) {
  if (!place.backend().isQueued()) {
    int64_t before = arena ? arena->bytes() : 0;
    if (Status status =
            grow(arena, program.plan->arenaBytes, account, place.device());
        !status)
      return status;
    if (arena && arena->bytes() != before)
      if (Status status = code->clear(*arena); !status)
        return status;
  }
  return code->reserve(program.index, account);
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

std::shared_ptr<SavedValues> ModelCore::takeSaved(const Program &program) {
  Workspace &home = workspace(program);
  {
    std::lock_guard lock(poolMutex);
    if (!home.freeSaved.empty()) {
      std::shared_ptr<SavedValues> saved = std::move(home.freeSaved.back());
      home.freeSaved.pop_back();
      return saved;
    }
    home.freeSaved.reserve(++home.savedMade);
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
      Workspace &home = workspace(*saved->program);
      home.freeSaved.push_back(std::move(saved));
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
