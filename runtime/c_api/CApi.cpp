//===- CApi.cpp - the C API: models ---------------------------------------===//
//
// Loading, describing and running models. See CApi.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/c_api/CApi.h"
#include "runtime/checkpoint/SaveShards.h"
#include "runtime/io/Elements.h"
#include "runtime/io/FileKind.h"
#include "runtime/io/Tensors.h"
#include "runtime/model/Predict.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::capi;

namespace {

static_assert(int(TDM_F64) == int(DType::F64));
static_assert(int(TDM_F8E5M2) == int(artifact::kLastDType));
static_assert(int(TDM_OUTPUT) == int(artifact::Role::Output));
static_assert(int(TDM_NO_DEVICE) == int(Code::NoDevice));
// No struct that may grow ends in padding: a member that a later header put
// there would lie within the size of a caller that knows nothing of it.
static_assert(sizeof(tdm_options) ==
              offsetof(tdm_options, memory_limit) + sizeof(int64_t));
static_assert(sizeof(tdm_value) ==
              offsetof(tdm_value, shape) + sizeof(int64_t *));
static_assert(sizeof(tdm_memory) ==
              offsetof(tdm_memory, peak_bytes) + sizeof(int64_t));
static_assert(sizeof(tdm_saved_hooks) ==
              offsetof(tdm_saved_hooks, release) + sizeof(void *));

/// What a hook failed with, a status of the API, whatever number it returned;
/// and what the call that failed in it says, if one did.
Status hookStatus(const char *hook, std::string_view name, tdm_status status) {
  bool isKnown = status > TDM_OK && status <= TDM_NO_DEVICE;
  std::string text = capi::lastError;
  if (text.empty())
    text = "the " + std::string(hook) + " hook of '" + std::string(name) +
           "' gave status " + std::to_string(status);
  return Status(isKnown ? static_cast<Code>(status) : Code::Failed, text);
}

/// The lists of a call in the runtime's form; kept for each thread, so that a
/// call allocates nothing once they have their size.
struct Lists {
  std::vector<Argument> inputs;
  std::vector<Destination> outputs;

  Status fill(const tdm_argument *in, size_t inCount, const tdm_argument *out,
              size_t outCount, const char *inName, const char *outName,
              bool inMayBeNull = false) {
    if (Status status = checkList(in, inCount, inName, inMayBeNull); !status)
      return status;
    if (Status status = checkList(out, outCount, outName); !status)
      return status;
    inputs.clear();
    outputs.clear();
    for (size_t i = 0; i < inCount; ++i)
      inputs.emplace_back(in[i].name,
                          in[i].tensor ? &in[i].tensor->tensor : nullptr);
    for (size_t i = 0; i < outCount; ++i)
      outputs.push_back({out[i].name, &out[i].tensor->tensor});
    given = {out, outCount};
    return Status::success();
  }

  /// What a call made has no history of a graph.
  Status made(Status status) const {
    for (const tdm_argument &one : given)
      if (status)
        one.tensor->edge = {};
    return status;
  }

private:
  std::span<const tdm_argument> given;
};

thread_local Lists lists;

/// Fails if tensors written to `path` would replace something else.
Status checkReplaced(const char *path) {
  io::FileKind kind = io::fileKind(path);
  bool isIndex = io::isIndexName(path);
  if ((isIndex ? io::isIndex(kind) : io::isSafetensors(kind)) ||
      kind == io::FileKind::Missing || kind == io::FileKind::Empty ||
      kind == io::FileKind::Special)
    return Status::success();
  return Status::usage(
      "would replace " + io::inQuotes(path) + ": expected " +
      std::string(io::describe(isIndex ? io::FileKind::TensorIndex
                                       : io::FileKind::Safetensors)) +
      " but got " + std::string(io::describe(kind)));
}

Status save(const Model &model, const char *path) {
  Result<Hold> hold = model.hold();
  if (!hold)
    return std::move(hold).status();
  const comm::MeshCommunicators *ranks = model.communicators();
  bool writes = !ranks || ranks->world().rank() == 0;
  if (Status status = writes ? checkReplaced(path) : Status(); !status)
    return status;
  std::map<std::string, std::string> metadata = {
      {"tandem.model", model.manifest().model}};
  if (io::isIndexName(path))
    return checkpoint::saveShards(model, path, metadata);
  std::vector<Tensor> kept; // dense, as all of the model's own
  std::map<std::string, io::ArrayView> views;
  std::vector<const artifact::Value *> saved = checkpoint::savedOf(model);
  kept.reserve(saved.size()); // views look at their shapes
  for (const artifact::Value *value : saved) {
    Result<Tensor> tensor = model.getWhole(value->name);
    if (!tensor)
      return std::move(tensor).status();
    if (!writes)
      continue;
    kept.push_back(std::move(*tensor));
    std::span<const int64_t> shape = kept.back().shape();
    views.emplace(value->name,
                  io::ArrayView(value->dtype, {shape.begin(), shape.end()},
                                {kept.back().data<std::byte>(),
                                 static_cast<size_t>(kept.back().bytes())}));
  }
  if (!writes)
    return Status::success();
  return io::writeSafetensors(path, views, metadata);
}

Status load(Model &model, const char *path) {
  Result<Hold> hold = model.hold();
  if (!hold)
    return std::move(hold).status();
  Result<io::TensorFiles> files = io::TensorFiles::open(path);
  if (!files)
    return std::move(files).status();
  if (Status status = checkpoint::refuseAdapters(*files, model.manifest());
      !status)
    return std::move(status).in("'" + std::string(path) + "'");
  std::string problems;
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const artifact::Value *variable : checkpoint::variablesOf(model)) {
    const artifact::Value &value = *variable;
    checkpoint::Part part = checkpoint::ownPart(model, value);
    std::string expected = describe(value.dtype, part.whole), got = "none";
    auto name = checkpoint::nameIn(*files, value);
    if (!name)
      return std::move(name).status().in("'" + std::string(path) + "'");
    auto found = files->entries().find(*name);
    if (found != files->entries().end()) {
      got = describe(found->second.dtype, found->second.shape);
      if (checkpoint::mayBecome(found->second.dtype, value.dtype) &&
          part.fits(found->second.shape)) {
        auto array = checkpoint::readPart(*files, *name, part);
        if (!array)
          return std::move(array).status().in("'" + std::string(path) + "'");
        if (array->dtype != value.dtype)
          array = io::convertExactly(*array, value.dtype);
        if (!array)
          return std::move(array).status().in("'" + std::string(path) + "'");
        auto tensor = io::toTensor(*array);
        if (!tensor)
          return std::move(tensor).status();
        tensors.emplace_back(value.name, std::move(*tensor));
        continue;
      }
    } else if (part.dimsOfRanks) {
      auto nothing = Tensor::zeros(value.dtype, value.shape);
      if (!nothing)
        return std::move(nothing).status();
      tensors.emplace_back(value.name, std::move(*nothing));
      continue;
    } else if (value.role == artifact::Role::State) {
      continue;
    }
    problems += (problems.empty() ? "'" : "; '") + value.name + "': expected " +
                expected + " but got " + got;
  }
  if (!problems.empty())
    return Status::failed("'" + std::string(path) + "': " + problems);
  for (const auto &[name, tensor] : tensors)
    if (Status status = model.set(name, tensor); !status)
      return status;
  return Status::success();
}

/// Fails if the artifact is one stage of a model.
Status checkWhole(const artifact::Manifest &manifest, const char *path) {
  if (!manifest.pipeline)
    return Status::success();
  const artifact::Pipeline &stage = *manifest.pipeline;
  return Status::unsupported(
      io::inQuotes(path) + " is stage " + std::to_string(stage.stage) +
      " of the " + std::to_string(stage.stages) +
      " of a model that was compiled with --parallel=pp. The C API runs no "
      "stages: 'tandem-run train' and 'tandem-run predict' do, as " +
      std::to_string(stage.ranks * comm::ranksOf(manifest.mesh)) +
      " processes");
}

} // namespace

/// Wraps hooks of a C program. Handles given to them end with the hook.
std::shared_ptr<const SavedHooks>
capi::hooksFrom(const tdm_saved_hooks &hooks) {
  auto made = std::make_shared<SavedHooks>();
  made->pack = [hooks](std::string_view name,
                       const Tensor &value) -> Result<std::shared_ptr<void>> {
    tdm_tensor handle{value};
    void *packed = nullptr;
    std::string text(name);
    capi::lastError.clear();
    if (tdm_status status =
            hooks.pack(hooks.user, text.c_str(), &handle, &packed))
      return hookStatus("pack", name, status);
    auto release = [hooks](void *made) {
      if (hooks.release)
        hooks.release(hooks.user, made);
    };
    return std::shared_ptr<void>(packed, release);
  };
  made->unpack =
      [hooks](std::string_view name,
              const std::shared_ptr<void> &packed) -> Result<Tensor> {
    tdm_tensor handle;
    std::string text(name);
    capi::lastError.clear();
    if (tdm_status status =
            hooks.unpack(hooks.user, text.c_str(), packed.get(), &handle))
      return hookStatus("unpack", name, status);
    return handle.tensor;
  };
  return made;
}

const char *tdm_last_error(void) { return capi::lastError.c_str(); }

const char *tdm_version(void) { return TANDEM_VERSION; }

tdm_status tdm_model_load(const char *path, const tdm_options *options,
                          tdm_model **model) {
  return call([&]() -> Status {
    if (!path || !model)
      return null(path ? "place for the model" : "path");
    tdm_options known = TDM_OPTIONS_INIT;
    if (options)
      if (Status status = takeStruct("tdm_options", *options, known); !status)
        return status;
    Options given;
    given.threads = known.threads;
    given.seed = known.seed;
    given.useGraphs = !known.no_graphs;
    given.useLibraries = !known.no_libraries;
    given.memoryLimit = known.memory_limit;
    if (known.require_signature)
      given.requireSignature = known.require_signature;
    if (known.device) {
      Result<Device> device = parseDevice(known.device);
      if (!device)
        return std::move(device).status();
      given.device = *device;
    }
    Result<Model> loaded = Model::load(std::string(path), given);
    if (!loaded)
      return std::move(loaded).status();
    if (Status status = checkWhole(loaded->manifest(), path); !status)
      return status;
    *model = new tdm_model{std::move(*loaded)};
    return Status::success();
  });
}

void tdm_model_free(tdm_model *model) { delete model; }

size_t tdm_value_count(const tdm_model *model) {
  return model ? model->model.manifest().values.size() : 0;
}

static Status describeValue(const artifact::Manifest &manifest, size_t index,
                            tdm_value &value) {
  const auto &values = manifest.values;
  if (index >= values.size())
    return Status::usage("expected a value below " +
                         std::to_string(values.size()) + " but got " +
                         std::to_string(index));
  const artifact::Value &found = values[index];
  tdm_value known = TDM_VALUE_INIT;
  known.name = found.name.c_str();
  known.role = static_cast<tdm_role>(found.role);
  known.dtype = static_cast<tdm_dtype>(found.dtype);
  known.rank = static_cast<int>(found.shape.size());
  known.requires_grad = found.requiresGrad;
  known.shape = found.shape.data();
  return giveStruct("tdm_value", known, value);
}

tdm_status tdm_value_at(const tdm_model *model, size_t index,
                        tdm_value *value) {
  return call([&]() -> Status {
    if (!model || !value)
      return null(model ? "place for the value" : "model");
    return describeValue(model->model.manifest(), index, *value);
  });
}

static Status checkSize(const tdm_model &model, size_t size) {
  size_t count = model.model.manifest().sizes.size();
  return size < count
             ? Status::success()
             : Status::usage("expected a size below " + std::to_string(count) +
                             " but got " + std::to_string(size));
}

size_t tdm_size_count(const tdm_model *model) {
  return model ? model->model.manifest().sizes.size() : 0;
}

const char *tdm_size_at(const tdm_model *model, size_t size) {
  const char *name = nullptr;
  call([&]() -> Status {
    if (!model)
      return null("model");
    if (Status status = checkSize(*model, size); !status)
      return status;
    name = model->model.manifest().sizes[size].name.c_str();
    return Status::success();
  });
  return name;
}

tdm_status tdm_size_value_at(const tdm_model *model, size_t size, size_t index,
                             tdm_value *value) {
  return call([&]() -> Status {
    if (!model || !value)
      return null(model ? "place for the value" : "model");
    if (Status status = checkSize(*model, size); !status)
      return status;
    return describeValue(model->model.manifestOfSize(size), index, *value);
  });
}

/// The programs of the first size have all names.
static std::span<const artifact::Program>
namedPrograms(const tdm_model &model) {
  std::span<const artifact::Program> programs = model.model.manifest().programs;
  return programs.first(size_t(
      std::ranges::count(programs, int64_t(0), &artifact::Program::size)));
}

size_t tdm_program_count(const tdm_model *model) {
  return model ? namedPrograms(*model).size() : 0;
}

const char *tdm_program_at(const tdm_model *model, size_t index) {
  const char *name = nullptr;
  call([&]() -> Status {
    if (!model)
      return null("model");
    auto programs = namedPrograms(*model);
    if (index >= programs.size())
      return Status::usage("expected a number of a program, 0 to " +
                           std::to_string(int64_t(programs.size()) - 1) +
                           ", but got " + std::to_string(index));
    name = programs[index].name.c_str();
    return Status::success();
  });
  return name;
}

tdm_status tdm_memory_use(const tdm_model *model, tdm_memory *memory) {
  return call([&]() -> Status {
    if (!model || !memory)
      return null(model ? "place for the numbers" : "model");
    MemoryUse use = model->model.memory();
    return giveStruct("tdm_memory",
                      {sizeof(tdm_memory), use.planned, use.current, use.peak},
                      *memory);
  });
}

tdm_status tdm_get(const tdm_model *model, const char *name,
                   tdm_tensor **tensor) {
  return call([&]() -> Status {
    if (!model || !name || !tensor)
      return null(!model ? "model" : !name ? "name" : "place for the tensor");
    return give(model->model.get(name), tensor);
  });
}

tdm_status tdm_set(tdm_model *model, const char *name,
                   const tdm_tensor *tensor) {
  return call([&]() -> Status {
    if (!model || !name || !tensor)
      return null(!model ? "model" : !name ? "name" : "tensor");
    return model->model.set(name, tensor->tensor);
  });
}

tdm_status tdm_initialize(tdm_model *model, uint64_t seed) {
  return call([&]() -> Status {
    return model ? model->model.initialize(seed) : null("model");
  });
}

tdm_status tdm_save(const tdm_model *model, const char *path) {
  return call([&]() -> Status {
    return model && path ? save(model->model, path)
                         : null(model ? "path" : "model");
  });
}

tdm_status tdm_load(tdm_model *model, const char *path) {
  return call([&]() -> Status {
    return model && path ? load(model->model, path)
                         : null(model ? "path" : "model");
  });
}

tdm_status tdm_run(tdm_model *model, const char *program,
                   const tdm_argument *inputs, size_t input_count,
                   const tdm_argument *outputs, size_t output_count) {
  return call([&]() -> Status {
    if (!model || !program)
      return null(model ? "program" : "model");
    if (Status status = lists.fill(inputs, input_count, outputs, output_count,
                                   "input", "output");
        !status)
      return status;
    return lists.made(model->model.run(program, lists.inputs, lists.outputs));
  });
}

tdm_status tdm_predict(tdm_model *model, const tdm_argument *inputs,
                       size_t input_count, const tdm_argument *outputs,
                       size_t output_count) {
  return call([&]() -> Status {
    if (!model)
      return null("model");
    if (Status status = lists.fill(inputs, input_count, outputs, output_count,
                                   "input", "output");
        !status)
      return status;
    return lists.made(predict(model->model, lists.inputs, lists.outputs));
  });
}

tdm_status tdm_step(tdm_model *model, const tdm_argument *inputs,
                    size_t input_count, const tdm_argument *outputs,
                    size_t output_count) {
  return tdm_run(model, "step", inputs, input_count, outputs, output_count);
}

tdm_status tdm_forward(tdm_model *model, const tdm_argument *inputs,
                       size_t input_count, const tdm_argument *outputs,
                       size_t output_count, tdm_context **context) {
  return tdm_forward_with_hooks(model, inputs, input_count, outputs,
                                output_count, nullptr, context);
}

tdm_status tdm_forward_with_hooks(tdm_model *model, const tdm_argument *inputs,
                                  size_t input_count,
                                  const tdm_argument *outputs,
                                  size_t output_count,
                                  const tdm_saved_hooks *hooks,
                                  tdm_context **context) {
  if (!context)
    return tdm_run(model, "forward", inputs, input_count, outputs,
                   output_count);
  return call([&]() -> Status {
    if (!model)
      return null("model");
    if (Status status = lists.fill(inputs, input_count, outputs, output_count,
                                   "input", "output");
        !status)
      return status;
    tdm_saved_hooks known = TDM_SAVED_HOOKS_INIT;
    if (hooks)
      if (Status status = takeStruct("tdm_saved_hooks", *hooks, known); !status)
        return status;
    if (hooks && (!known.pack || !known.unpack))
      return null(known.pack ? "hook 'unpack'" : "hook 'pack'");
    std::unique_ptr<tdm_context> made;
    if (!*context)
      made = std::make_unique<tdm_context>();
    else
      (*context)->context = Context(); // its buffers serve this forward
    Result<Context> kept = model->model.forward(
        lists.inputs, lists.outputs, hooks ? hooksFrom(known) : nullptr);
    if (!kept)
      return std::move(kept).status();
    if (made)
      *context = made.release();
    (*context)->context = std::move(*kept);
    return lists.made(Status::success());
  });
}

/// `graph` is null, or where the context of the gradients goes.
static tdm_status runBackward(tdm_model *model, tdm_context *context,
                              const tdm_argument *cotangents,
                              size_t cotangent_count, const tdm_argument *grads,
                              size_t grad_count, unsigned flags,
                              tdm_context **graph) {
  return call([&]() -> Status {
    if (!model || !context)
      return null(model ? "context" : "model");
    if (flags & ~unsigned(TDM_RETAIN_GRAPH | TDM_CREATE_GRAPH))
      return Status::usage("expected flags TDM_RETAIN_GRAPH and "
                           "TDM_CREATE_GRAPH only but got " +
                           std::to_string(flags));
    if (Status status = lists.fill(cotangents, cotangent_count, grads,
                                   grad_count, "cotangent", "gradient", true);
        !status)
      return status;
    BackwardOptions options{(flags & TDM_RETAIN_GRAPH) != 0,
                            (flags & TDM_CREATE_GRAPH) != 0};
    if (!graph)
      return lists.made(model->model.backward(context->context, lists.inputs,
                                              lists.outputs, options));
    if (*graph == context)
      return Status::usage("expected another place for the graph than the "
                           "context");
    std::unique_ptr<tdm_context> made;
    if (!*graph)
      made = std::make_unique<tdm_context>();
    Status status = model->model.backward(
        context->context, lists.inputs, lists.outputs, options,
        made ? &made->context : &(*graph)->context);
    if (status && made)
      *graph = made.release();
    return lists.made(std::move(status));
  });
}

tdm_status tdm_backward(tdm_model *model, tdm_context *context,
                        const tdm_argument *cotangents, size_t cotangent_count,
                        const tdm_argument *grads, size_t grad_count,
                        unsigned flags) {
  return runBackward(model, context, cotangents, cotangent_count, grads,
                     grad_count, flags, nullptr);
}

tdm_status tdm_backward_graph(tdm_model *model, tdm_context *context,
                              const tdm_argument *cotangents,
                              size_t cotangent_count, const tdm_argument *grads,
                              size_t grad_count, unsigned flags,
                              tdm_context **graph) {
  if (!graph)
    return call([] { return null("place for the graph"); });
  return runBackward(model, context, cotangents, cotangent_count, grads,
                     grad_count, flags, graph);
}

void tdm_context_free(tdm_context *context) { delete context; }

tdm_status tdm_update(tdm_model *model, const tdm_argument *grads,
                      size_t grad_count) {
  return tdm_run(model, "update", grads, grad_count, nullptr, 0);
}
