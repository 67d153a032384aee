//===- Model.cpp - a loaded artifact and its parameters -------------------===//
//
// The public calls: each takes the model's mutex, finds the program, and leaves
// the rest to Call. Running out of memory inside the standard library becomes a
// status here, since no exception leaves the runtime.
//
//===----------------------------------------------------------------------===//
#include "runtime/Model.h"
#include "runtime/Call.h"
#include "runtime/ModelCore.h"

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
  for (const BoundProgram &bound : core.programs) {
    text += separator + ("'" + bound.program->name + "'");
    separator = ", ";
  }
  return Status::usage(core.programs.empty() ? text + "none" : text);
}

Status cannotBackward(const std::string &why) {
  return Status::usage("cannot run 'backward': " + why);
}

/// With gradients enabled, an input that requires grad must not be written.
Status checkCreateGraph(const artifact::Manifest &manifest) {
  if (manifest.mutatedInBackward.empty())
    return Status::success();
  std::string text;
  for (int64_t index : manifest.mutatedInBackward)
    text += (text.empty() ? "" : ", ") + ("'" + manifest.values[index].name) +
            "' (index " + std::to_string(index) + ")";
  return cannotBackward("create_graph was asked for, but the backward writes "
                        "values that require grad: " +
                        text);
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
        artifact::ArtifactReader::open(path);
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
const artifact::ArtifactReader &Model::reader() const { return core_->reader; }
int Model::threads() const { return core_->pool->threads(); }

bool Model::hasProgram(std::string_view name) const {
  return core_->manifest().findProgram(name) != nullptr;
}

Result<Tensor> Model::get(std::string_view name) const {
  int v = core_->findVariable(name);
  if (v < 0)
    return Status::usage("there is no param or state '" + std::string(name) +
                         "'");
  std::lock_guard lock(core_->mutex);
  const Variable &variable = core_->variables[v];
  if (!variable.isSet)
    return Status::usage("'" + variable.value->name + "' has no value");
  return variable.tensor;
}

Status Model::set(std::string_view name, const Tensor &tensor) {
  return guarded([&]() -> Status {
    int v = core_->findVariable(name);
    if (v < 0)
      return Status::usage("there is no param or state '" + std::string(name) +
                           "'");
    std::lock_guard lock(core_->mutex);
    Variable &variable = core_->variables[v];
    if (Status status = variable.tensor.copyFrom(tensor); !status)
      return std::move(status).in("'" + variable.value->name + "'");
    variable.isSet = true;
    return Status::success();
  });
}

Status Model::initialize(uint64_t seed) {
  std::lock_guard lock(core_->mutex);
  return core_->initializeVariables(seed);
}

Status Model::run(std::string_view program, std::span<const Argument> inputs,
                  std::span<const Destination> outputs) {
  return guarded([&]() -> Status {
    std::lock_guard lock(core_->mutex);
    BoundProgram *bound = core_->find(program);
    if (!bound)
      return noProgram(*core_, program);
    if (program == "backward")
      return Status::usage("cannot run 'backward' by itself: it needs the "
                           "context of a forward");
    return Call(*core_, *bound, nullptr, nullptr).run(inputs, outputs);
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
                               std::span<const Destination> outputs) {
  return guarded([&]() -> Result<Context> {
    std::lock_guard lock(core_->mutex);
    BoundProgram *bound = core_->find("forward");
    if (!bound)
      return noProgram(*core_, "forward");
    Result<std::unique_ptr<SavedValues>> saved = core_->takeSaved();
    if (!saved)
      return saved.status();
    Status status =
        Call(*core_, *bound, saved->get(), nullptr).run(inputs, outputs);
    if (!status) {
      core_->give(std::move(*saved));
      return status;
    }
    std::shared_ptr<ContextState> state = core_->takeContext();
    state->saved = std::move(*saved);
    return Context(std::move(state));
  });
}

Status Model::backward(Context &context, std::span<const Argument> cotangents,
                       std::span<const Destination> grads,
                       const BackwardOptions &options) {
  return guarded([&]() -> Status {
    // The model's mutex first: of two threads with one context, the second
    // looks at it when the first is done.
    std::lock_guard lock(core_->mutex);
    BoundProgram *bound = core_->find("backward");
    if (!bound)
      return noProgram(*core_, "backward");
    if (!context.state_)
      return cannotBackward("expected the context of a forward but got an "
                            "empty one");
    ContextState &state = *context.state_;
    if (state.owner.lock() != core_)
      return cannotBackward("the context belongs to another model");
    std::lock_guard stateLock(state.mutex);
    if (!state.saved)
      return cannotBackward("the context was already used; the first backward "
                            "must ask for retain_graph if there is a second");
    if (options.createGraph)
      if (Status status = checkCreateGraph(manifest()); !status)
        return status;
    Status status =
        Call(*core_, *bound, nullptr, state.saved.get()).run(cotangents, grads);
    if (status && !options.retainGraph)
      core_->give(std::move(state.saved));
    return status;
  });
}

MemoryUse Model::memory() const {
  int64_t planned = 0;
  for (const artifact::Program &program : manifest().programs)
    planned = std::max(planned, program.peakBytes);
  return {planned, core_->account->current, core_->account->peak};
}

} // namespace tandem::runtime
