//===- Model.cpp - a loaded artifact and its parameters -------------------===//
//
// The public calls: each takes the model's mutex, finds the program, and leaves
// the rest to Call. Running out of memory inside the standard library becomes a
// status here, since no exception leaves the runtime.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Model.h"
#include "runtime/call/Call.h"
#include "runtime/call/CreateGraph.h"
#include "runtime/model/ModelCore.h"
#include "runtime/model/Pieces.h"
#include "runtime/model/Signed.h"

#include <new>

namespace tandem::runtime {

using artifact::Role;

namespace {

template <typename Fn> auto guarded(Fn fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const std::bad_alloc &) {
    return Status(Code::Failed, "out of memory");
  }
}

Status noProgram(const ModelCore &core, std::string_view name) {
  std::string text =
      "the artifact has no program '" + std::string(name) + "'; it has ";
  const char *separator = "";
  for (const Program &program : core.programs()) {
    if (program.size)
      continue; // Those of the first size have all names.
    text += separator + ("'" + program.plan->name + "'");
    separator = ", ";
  }
  return Status::usage(core.programs().empty() ? text + "none" : text);
}

Status cannotBackward(const std::string &why) {
  return Status::usage("cannot run 'backward': " + why);
}

/// The model's mutex. A hook that calls the model it serves is refused, instead
/// of waiting for itself, and so is one whose model's caller waits for it.
class Lock {
public:
  /// With `needsRanks`, ranks that the artifact is for must be there.
  explicit Lock(ModelCore &core, bool needsRanks = true)
      : core(core), answer(core.mutex.lock()), needsRanks(needsRanks),
        isInHold(answer == HookMutex::Answer::IsMine && core.admitsHolder) {
    if (isInHold)
      core.admitsHolder = false; // a hook of this call is no holder
  }
  Lock(const Lock &) = delete;
  Lock &operator=(const Lock &) = delete;
  ~Lock() {
    if (isInHold)
      core.admitsHolder = true;
    if (answer == HookMutex::Answer::Held)
      core.mutex.unlock();
  }

  /// The mutex stays held when this ends, and is a Hold's. Fails in one.
  bool leaveHeld() {
    if (isInHold)
      return false;
    answer = HookMutex::Answer::IsMine;
    core.admitsHolder = true;
    return true;
  }

  Status status() const {
    if (isInHold || answer == HookMutex::Answer::Held)
      return needsRanks ? core.checkRanks() : Status::success();
    switch (answer) {
    case HookMutex::Answer::IsMine:
      return Status::usage("a hook cannot call the model that calls it");
    case HookMutex::Answer::WouldWaitForEver:
      return Status::usage("a hook cannot call model '" +
                           core.manifest().model +
                           "' now: a hook of that model's call on another "
                           "thread waits for the model that calls this one");
    case HookMutex::Answer::Held:
      break;
    }
    return Status::success();
  }

private:
  ModelCore &core;
  HookMutex::Answer answer;
  bool needsRanks;
  bool isInHold;
};

Status checkGraph(const ModelCore &core) {
  const artifact::Manifest &manifest = core.manifest();
  Status status = checkCreateGraph(
      manifest.mutatedInBackward,
      [&](int64_t index) -> const artifact::Value & {
        return manifest.values[index];
      },
      [&](const artifact::Value &value) -> std::string {
        for (const artifact::Slot &slot :
             manifest.findProgram("backward")->results)
          if (slot.role == Role::Update && slot.name == value.name)
            return slot.where;
        return {};
      });
  if (!status)
    return std::move(status).in("cannot run 'backward'");
  return status;
}

/// Runs a backward whose context can be used; both mutexes are held.
Status runBackward(ModelCore &core, const Program &program, ContextState &state,
                   std::span<const Argument> cotangents,
                   std::span<const Destination> grads,
                   const BackwardOptions &options, Context *graph) {
  std::shared_ptr<SavedValues> saved;
  if (graph)
    saved = core.takeSaved(program);
  CallMode mode{saved.get(), &state.saved, options.retainGraph,
                options.createGraph || graph};
  CallOutcome outcome = runCall(core, program, cotangents, grads, mode);
  Status status = std::move(outcome.status);
  bool isUsed = status ? !options.retainGraph : outcome.hasStarted;
  if (!status && outcome.hasStarted)
    state.failure = status.message();
  if (status && saved && !outcome.isNothing) {
    saved->base = state.saved;
    std::shared_ptr<ContextState> made = core.takeContext();
    made->saved = std::move(saved);
    *graph = Context(std::move(made));
  }
  core.give(std::move(saved));
  if (isUsed)
    core.give(std::move(state.saved));
  return status;
}

} // namespace

Context::Context(std::shared_ptr<ContextState> state)
    : state_(std::move(state)) {}

Context &Context::operator=(Context &&other) noexcept {
  // The moved-from temporary gives back what this one held.
  Context old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

Context::~Context() {
  if (!state_)
    return;
  std::shared_ptr<ModelCore> core = state_->owner.lock();
  if (!core)
    return;
  if (state_->saved)
    core->give(std::move(state_->saved));
  core->give(std::move(state_));
}

bool Context::live() const {
  if (!state_)
    return false;
  std::lock_guard lock(state_->mutex);
  return state_->saved != nullptr;
}

Model::Model(std::shared_ptr<ModelCore> core) : core_(std::move(core)) {}

Result<Model> Model::load(const std::string &path, const Options &options) {
  return guarded([&]() -> Result<Model> {
    Result<artifact::ArtifactReader> reader =
        options.requireSignature.empty()
            ? artifact::ArtifactReader::open(path)
            : openSigned(path, options.requireSignature);
    if (!reader)
      return reader.status();
    Result<Model> model = load(std::move(*reader), options);
    if (!model)
      return std::move(model).status().in("'" + path + "'");
    return model;
  });
}

Result<Model> Model::load(artifact::ArtifactReader reader,
                          const Options &options) {
  return guarded([&]() -> Result<Model> {
    auto core = ModelCore::create(std::move(reader), options);
    if (!core)
      return core.status();
    return Model(std::move(*core));
  });
}

const artifact::Manifest &Model::manifest() const { return core_->manifest(); }
const artifact::Manifest &Model::manifestOfSize(size_t number) const {
  return core_->ofSizes.empty() ? manifest() : core_->ofSizes[number];
}
const artifact::Manifest &Model::wholeManifest() const {
  return core_->wholeValues ? *core_->wholeValues : core_->manifest();
}
const artifact::ArtifactReader &Model::reader() const { return core_->reader; }
Device Model::device() const { return core_->place.device(); }
int Model::threads() const { return core_->code->threads(); }

std::string Model::code() const {
  const artifact::Target &target = manifest().target;
  std::string loaded = core_->code->description();
  return target.kind + " " + target.arch +
         (loaded.empty() ? "" : ", " + loaded);
}

bool Model::hasProgram(std::string_view name) const {
  return core_->manifest().findProgram(name) != nullptr;
}

Hold::~Hold() {
  if (!core_)
    return;
  core_->admitsHolder = false;
  core_->mutex.unlock();
}

Result<Hold> Model::hold() const {
  Lock lock(*core_, false);
  if (Status status = lock.status(); !status)
    return status;
  if (!lock.leaveHeld())
    return Status::usage("this thread holds the model already");
  return Hold(core_);
}

Result<Tensor> Model::get(std::string_view name) const {
  int v = core_->findVariable(name);
  if (v < 0)
    return Status::usage("there is no param or state '" + std::string(name) +
                         "'");
  Lock lock(*core_);
  if (!lock.status())
    return lock.status();
  const Variable &variable = core_->variables[v];
  if (!variable.isSet)
    return Status::usage("'" + variable.value->name +
                         "' has no value: it has no initial one and was not "
                         "set");
  if (Status status = core_->followCurrent(); !status)
    return status;
  return variable.tensor;
}

Status Model::set(std::string_view name, const Tensor &tensor) {
  return guarded([&]() -> Status {
    int v = core_->findVariable(name);
    if (v < 0)
      return Status::usage("there is no param or state '" + std::string(name) +
                           "'");
    Lock lock(*core_);
    if (Status status = lock.status(); !status)
      return status;
    Variable &variable = core_->variables[v];
    if (Status status = core_->followCurrent(); !status)
      return status;
    if (Status status = variable.tensor.copyFrom(tensor); !status)
      return std::move(status).in("'" + variable.value->name + "'");
    // The caller may overwrite its tensor, which may be registered memory.
    if (tensor.device().isHost() && tensor.elements())
      if (Status status = variable.tensor.storage()->backend()->finishCopies(
              tensor.data(), currentStream(variable.tensor.device()));
          !status)
        return std::move(status).in("'" + variable.value->name + "'");
    variable.isSet = true;
    return Status::success();
  });
}

Status Model::setCommunicator(std::shared_ptr<comm::Communicator> world) {
  return guarded([&]() -> Status {
    Lock lock(*core_, false);
    if (Status status = lock.status(); !status)
      return status;
    if (!world)
      return Status::usage("expected a communicator but got none");
    if (comm::ranksOf(manifest().mesh) == 1)
      return Status::success();
    if (core_->communicators)
      return Status::usage("the model has its communicator");
    auto made = comm::MeshCommunicators::make(std::move(world), manifest());
    if (!made)
      return std::move(made).status();
    core_->communicators = *std::move(made);
    if (Status status = core_->followCurrent(); !status)
      return status;
    return core_->initializeVariables(core_->seed);
  });
}

const comm::MeshCommunicators *Model::communicators() const {
  return core_->communicators.get();
}

Result<Tensor> Model::getWhole(std::string_view name) const {
  return guarded([&]() -> Result<Tensor> {
    Result<Tensor> piece = get(name);
    if (!piece)
      return piece;
    const artifact::Value *value =
        core_->variables[core_->findVariable(name)].value;
    return wholeOf(*piece, value, communicators());
  });
}

Status Model::setWhole(std::string_view name, const Tensor &whole) {
  return guarded([&]() -> Status {
    int v = core_->findVariable(name);
    if (v < 0)
      return set(name, whole);
    const artifact::Value &value = *core_->variables[v].value;
    auto piece = pieceOf(whole, value, communicators());
    if (!piece)
      return std::move(piece).status().in("'" + value.name + "'");
    return set(name, *piece);
  });
}

Status Model::initialize(uint64_t seed) {
  Lock lock(*core_);
  if (!lock.status())
    return lock.status();
  if (Status status = core_->followCurrent(); !status)
    return status;
  return core_->initializeVariables(seed);
}

Status Model::run(std::string_view program, std::span<const Argument> inputs,
                  std::span<const Destination> outputs) {
  return run(program, inputs, outputs, CallMode());
}

Status Model::runWanted(std::string_view program,
                        std::span<const Argument> inputs,
                        std::span<const Destination> outputs) {
  const artifact::Program *found = manifest().findProgram(program);
  if (found && std::any_of(found->results.begin(), found->results.end(),
                           [](const artifact::Slot &slot) {
                             return slot.role == Role::Update;
                           }))
    return Status::usage("cannot run a part of '" + std::string(program) +
                         "': it updates values");
  CallMode mode;
  mode.onlyWanted = true;
  return run(program, inputs, outputs, mode);
}

Status Model::runTimed(std::string_view program,
                       std::span<const Argument> inputs,
                       std::span<const Destination> outputs, RunTimes &times) {
  if (!core_->place.isHost())
    return Status::unsupported("launches are timed on the host alone, and this "
                               "model is on device '" +
                               toString(core_->place.device()) + "'");
  CallMode mode;
  mode.times = &times;
  return run(program, inputs, outputs, mode);
}

Status Model::run(std::string_view program, std::span<const Argument> inputs,
                  std::span<const Destination> outputs, const CallMode &mode) {
  return guarded([&]() -> Status {
    Lock lock(*core_);
    if (Status status = lock.status(); !status)
      return status;
    Result<const Program *> chosen = core_->choose(program, inputs);
    if (!chosen)
      return std::move(chosen).status();
    const Program *bound = *chosen;
    if (!bound)
      return noProgram(*core_, program);
    if (bound->source || program == "backward")
      return Status::usage("cannot run '" + std::string(program) +
                           "' by itself: it needs the context of a forward");
    return runCall(*core_, *bound, inputs, outputs, mode).status;
  });
}

Status Model::step(std::span<const Argument> inputs,
                   std::span<const Destination> outputs) {
  return run("step", inputs, outputs);
}

Status Model::update(std::span<const Argument> grads) {
  return run("update", grads, {});
}

Result<Context> Model::forward(std::span<const Argument> inputs,
                               std::span<const Destination> outputs,
                               std::shared_ptr<const SavedHooks> hooks) {
  return guarded([&]() -> Result<Context> {
    Lock lock(*core_);
    if (Status status = lock.status(); !status)
      return status;
    Result<const Program *> chosen = core_->choose("forward", inputs);
    if (!chosen)
      return std::move(chosen).status();
    const Program *bound = *chosen;
    if (!bound)
      return noProgram(*core_, "forward");
    if (hooks && (!hooks->pack || !hooks->unpack))
      return Status::usage("expected both a pack and an unpack hook");
    std::shared_ptr<SavedValues> saved = core_->takeSaved(*bound);
    saved->hooks = std::move(hooks);
    CallMode mode;
    mode.gives = saved.get();
    Status status = runCall(*core_, *bound, inputs, outputs, mode).status;
    if (!status) {
      core_->give(std::move(saved));
      return status;
    }
    // Nothing could be done with a context.
    if (!core_->find("backward")) {
      core_->give(std::move(saved));
      return Context();
    }
    std::shared_ptr<ContextState> state = core_->takeContext();
    state->saved = std::move(saved);
    return Context(std::move(state));
  });
}

Status Model::backward(Context &context, std::span<const Argument> cotangents,
                       std::span<const Destination> grads,
                       const BackwardOptions &options, Context *graph) {
  return guarded([&]() -> Status {
    // The model's mutex first: of two threads with one context, the second
    // looks at it when the first is done.
    Lock lock(*core_);
    if (Status status = lock.status(); !status)
      return status;
    if (!core_->find("backward"))
      return noProgram(*core_, "backward");
    if (!context.state_)
      return cannotBackward("expected the context of a forward but got an "
                            "empty one");
    if (graph == &context)
      return cannotBackward("expected another place for the graph than the "
                            "context");
    ContextState &state = *context.state_;
    if (state.owner.lock() != core_)
      return cannotBackward("the context belongs to another model");
    std::lock_guard stateLock(state.mutex);
    if (!state.saved && !state.failure.empty())
      return cannotBackward("the context was released when an earlier backward "
                            "failed: " +
                            state.failure);
    if (!state.saved)
      return cannotBackward("the context was already used; the first backward "
                            "must ask for retain_graph if there is a second");
    bool isSecond = state.saved->program->plan->name == "grad_forward";
    const char *name = isSecond ? "grad_backward"
                       : graph  ? "grad_forward"
                                : "backward";
    const Program *bound = core_->find(name, state.saved->program->size);
    if (!bound || (isSecond && graph))
      return Status::unsupported(
          "cannot run 'backward': the artifact has no derivative of " +
          std::string(isSecond ? "second derivatives"
                               : "its gradients; compile it with --order=2"));
    if (options.createGraph || graph)
      if (Status status = checkGraph(*core_); !status)
        return status;
    return runBackward(*core_, *bound, state, cotangents, grads, options,
                       graph);
  });
}

MemoryUse Model::memory() const {
  int64_t planned = 0;
  for (const artifact::Program &program : manifest().programs)
    planned = std::max(planned, program.peakBytes);
  return {planned, core_->account->current, core_->account->peak,
          core_->hostMemory.bytes()};
}

} // namespace tandem::runtime
