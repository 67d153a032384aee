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

std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
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
  auto variableOf = [this](std::string_view name) {
    return findVariable(name);
  };
  for (const artifact::Program &program : manifest().programs)
    bindProgram(programs.emplace_back(), manifest(), program, functions,
                variableOf);
  const std::pair<const char *, const char *> pairs[] = {
      {"forward", "backward"},
      {"forward", "grad_forward"},
      {"grad_forward", "grad_backward"}};
  for (auto [first, second] : pairs)
    if (BoundProgram *from = find(first), *to = find(second); from && to)
      bindContext(*from, *to);
  return Status::success();
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
