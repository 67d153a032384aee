//===- ModelCore.cpp - what a Model is made of ----------------------------===//
//
// Loading: the target is checked, the code loaded, variables allocated and
// initialised, and each program's launches resolved to functions and to places
// in flat tables. The manifest was validated by the reader: no index is checked
// again.
//
//===----------------------------------------------------------------------===//
#include "runtime/ModelCore.h"
#include "runtime/CpuFeatures.h"
#include "runtime/Initialize.h"

#include <algorithm>

namespace tandem::runtime {

using artifact::Role;

namespace {

constexpr int maxThreads = 1024;

/// Below this many operations or bytes, which take a few microseconds, waking a
/// thread costs more than it gains.
constexpr int64_t smallCost = 64 * 1024;

std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

int64_t rounded(int64_t bytes) {
  auto align = static_cast<int64_t>(storageAlignment);
  return (bytes + align - 1) / align * align;
}

Status grow(std::shared_ptr<Storage> &storage, int64_t bytes,
            const std::shared_ptr<MemoryAccount> &account) {
  if (bytes == 0 || (storage && storage->bytes() >= bytes))
    return Status::success();
  storage.reset();
  auto larger = Storage::allocate(bytes, account);
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
  if (Status status = core->checkTarget(); !status)
    return status;
  if (!core->manifest().kernels.empty()) {
    auto code = CodeObject::load(core->reader.section("object.cpu"));
    if (!code)
      return code.status();
    core->code = std::move(*code);
  }
  if (Status status = core->createVariables(); !status)
    return status;
  if (Status status = core->bindPrograms(); !status)
    return status;
  if (Status status = core->initializeVariables(options.seed); !status)
    return status;
  core->pool = std::make_unique<ThreadPool>(
      options.threads ? options.threads : availableThreads());
  return core;
}

Status ModelCore::checkTarget() const {
  const artifact::Target &target = manifest().target;
  if (target.kind != "cpu")
    return Status::noDevice("the artifact is for target '" + target.kind +
                            "' but this runtime has the target 'cpu' only");
  std::vector<std::string> missing = missingCpuFeatures(target.features);
  if (!missing.empty())
    return Status::noDevice("the artifact's code is for '" + target.arch +
                            "' and this processor lacks " + joined(missing));
  return Status::success();
}

Status ModelCore::createVariables() {
  for (const artifact::Value &value : manifest().values) {
    if (value.role != Role::Param && value.role != Role::State)
      continue;
    Result<Tensor> tensor = Tensor::zeros(value.dtype, value.shape, account);
    if (!tensor)
      return std::move(tensor).status().in("'" + value.name + "'");
    tensor->storage()->fix();
    byName.emplace_back(value.name, static_cast<int>(variables.size()));
    if (tensor->elements())
      byAddress.emplace_back(addressRange(*tensor),
                             static_cast<int>(variables.size()));
    variables.push_back({&value, std::move(*tensor), false});
  }
  std::sort(byName.begin(), byName.end());
  std::sort(
      byAddress.begin(), byAddress.end(),
      [](const auto &a, const auto &b) { return a.first.low < b.first.low; });
  return Status::success();
}

Status ModelCore::initializeVariables(uint64_t seed) {
  for (Variable &variable : variables) {
    if (!variable.value->init)
      continue;
    initialize(variable.tensor, *variable.value->init, seed,
               variable.value->name);
    variable.isSet = true;
  }
  return Status::success();
}

Status ModelCore::bindPrograms() {
  std::vector<KernelFunction> functions;
  std::vector<std::string> missing;
  for (const artifact::Kernel &kernel : manifest().kernels) {
    functions.push_back(code.find(kernel.symbol.c_str()));
    if (!functions.back())
      missing.push_back(kernel.symbol);
  }
  if (!missing.empty())
    return Status::failed("the artifact's code object lacks the kernels " +
                          joined(missing));
  for (const artifact::Program &program : manifest().programs) {
    programs.emplace_back().program = &program;
    bind(programs.back(), functions);
  }
  pairContexts();
  return Status::success();
}

void ModelCore::pairContexts() {
  BoundProgram *forward = find("forward"), *backward = find("backward");
  if (!forward || !backward)
    return;
  auto indexIn = [](const std::vector<artifact::Slot> &slots,
                    const artifact::Slot &wanted) {
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i].role == wanted.role && slots[i].name == wanted.name)
        return static_cast<int>(i);
    return -1;
  };
  for (size_t a = 0; a < backward->arguments.size(); ++a) {
    const artifact::Slot &slot = backward->program->arguments[a];
    int &partner = backward->arguments[a].partner;
    if (slot.role == Role::Saved)
      partner = indexIn(forward->program->results, slot);
    if (slot.role != Role::Input)
      continue;
    partner = indexIn(forward->program->arguments, slot);
    forward->arguments[partner].partner = static_cast<int>(a);
  }
}

void ModelCore::bind(BoundProgram &bound,
                     const std::vector<KernelFunction> &functions) {
  const artifact::Program &program = *bound.program;
  for (const artifact::Slot &slot : program.arguments) {
    BoundArgument &argument = bound.arguments.emplace_back();
    if (slot.role == Role::Param || slot.role == Role::State)
      argument.variable = findVariable(slot.name);
  }
  for (const artifact::Slot &slot : program.results) {
    BoundResult &result = bound.results.emplace_back();
    if (slot.role != Role::Update)
      continue;
    result.variable = findVariable(slot.name);
    for (size_t a = 0; a < program.arguments.size(); ++a) {
      const artifact::Slot &argument = program.arguments[a];
      if (argument.role > Role::State || argument.name != slot.name)
        continue;
      result.argument = static_cast<int>(a);
      bound.arguments[a].isUpdated = true;
    }
  }
  for (const artifact::Launch &launch : program.launches) {
    const artifact::Kernel &kernel = manifest().kernels[launch.kernel];
    BoundLaunch &made = bound.launches.emplace_back();
    made.function = functions[launch.kernel];
    made.work = launch.work;
    made.grain = launch.grain;
    made.firstPointer = bound.pointerBuffer.size();
    made.isSmall = (kernel.flops > 0 || kernel.bytes > 0) &&
                   kernel.flops < smallCost && kernel.bytes < smallCost;
    for (int64_t buffer : launch.buffers)
      bound.pointerBuffer.push_back(static_cast<int>(buffer));
    bound.scratchBytes =
        std::max(bound.scratchBytes, rounded(kernel.scratchBytes));
  }
  bound.pointers.resize(bound.pointerBuffer.size());
  bound.bufferData.resize(program.buffers.size());
  bound.argumentData.resize(program.arguments.size());
  bound.given.resize(program.arguments.size());
  bound.staged.resize(program.arguments.size());
  bound.resultData.resize(program.results.size());
  bound.wanted.resize(program.results.size());
  bound.internal.resize(program.results.size());
  bound.fresh.resize(program.results.size());
  bound.ranges.reserve(program.results.size());
}

BoundProgram *ModelCore::find(std::string_view name) {
  for (BoundProgram &bound : programs)
    if (bound.program->name == name)
      return &bound;
  return nullptr;
}

int ModelCore::findVariable(std::string_view name) const {
  auto found = std::lower_bound(byName.begin(), byName.end(), name,
                                [](const auto &entry, std::string_view key) {
                                  return entry.first < key;
                                });
  return found != byName.end() && found->first == name ? found->second : -1;
}

Status ModelCore::reserve(const BoundProgram &program) {
  if (Status status = grow(arena, program.program->arenaBytes, account);
      !status)
    return status;
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

Result<std::unique_ptr<SavedValues>> ModelCore::takeSaved() {
  {
    std::lock_guard lock(poolMutex);
    if (!freeSaved.empty()) {
      std::unique_ptr<SavedValues> saved = std::move(freeSaved.back());
      freeSaved.pop_back();
      return saved;
    }
    freeSaved.reserve(++savedMade);
  }
  auto saved = std::make_unique<SavedValues>();
  const artifact::Program &forward = *manifest().findProgram("forward");
  for (const artifact::Slot &slot : forward.results) {
    Tensor &tensor = saved->results.emplace_back();
    if (slot.role != Role::Saved)
      continue;
    Result<Tensor> made = Tensor::empty(slot.dtype, slot.shape, account);
    if (!made)
      return std::move(made).status().in("'" + slot.name + "'");
    tensor = std::move(*made);
  }
  if (const artifact::Program *backward = manifest().findProgram("backward"))
    saved->inputs.resize(backward->arguments.size());
  saved->versions.resize(variables.size());
  return saved;
}

void ModelCore::give(std::unique_ptr<SavedValues> saved) {
  for (SavedValues::Input &input : saved->inputs)
    input.given = Tensor();
  std::lock_guard lock(poolMutex);
  freeSaved.push_back(std::move(saved));
}

void ModelCore::give(std::shared_ptr<ContextState> context) {
  std::lock_guard lock(poolMutex);
  freeContexts.push_back(std::move(context));
}

} // namespace tandem::runtime
