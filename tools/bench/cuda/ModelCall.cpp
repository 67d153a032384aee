//===- ModelCall.cpp - a model that is called again and again -------------===//
#include "tools/bench/cuda/ModelCall.h"
#include "cuda/Driver.h"
#include "cuda/Register.h"
#include "runtime/device/Backend.h"

#include <algorithm>

using namespace tandem;
using namespace tandem::gpu;
using namespace tandem::cuda::driver;
using artifact::Slot;
using runtime::Tensor;

bool ModelCall::isTrained() const {
  return model->manifest().findProgram("backward");
}

bool ModelCall::isPure() const {
  return std::ranges::none_of(model->manifest().values,
                              [](const artifact::Value &value) {
                                return value.role == artifact::Role::State;
                              });
}

Result<ModelCall> ModelCall::make(runtime::Model &model, DType rounding) {
  ModelCall call(model);
  const artifact::Manifest &manifest = model.manifest();
  const artifact::Program *program =
      manifest.findProgram(call.isTrained() ? "forward" : "evaluate");
  if (!program)
    return Status::usage("the artifact has no program 'evaluate'");
  auto samples = makeSamples(manifest, *program, rounding);
  if (!samples)
    return std::move(samples).status();
  for (NamedTensor &sample : *samples) {
    auto there = sample.tensor.copyTo(model.device());
    if (!there)
      return std::move(there).status();
    call.inputs.push_back({sample.name, std::move(*there)});
  }
  for (const Slot &slot : artifact::outputsOf(*program))
    if (slot.role == artifact::Role::Output && slot.name != manifest.loss)
      call.forward.push_back({slot.name, {}});
  if (!call.isTrained())
    return call;
  for (const Slot &slot : manifest.findProgram("backward")->results)
    call.gradients.push_back({slot.name, {}});
  auto one = Tensor::empty(manifest.findOutput(manifest.loss)->dtype, {},
                           model.device());
  if (!one)
    return std::move(one).status();
  call.one = std::move(*one);
  if (Status status = call.one.fill(1.0); !status)
    return status;
  return call;
}

static std::vector<runtime::Destination>
destinationsOf(std::vector<NamedTensor> &tensors) {
  std::vector<runtime::Destination> destinations;
  for (NamedTensor &tensor : tensors)
    destinations.push_back({tensor.name, &tensor.tensor});
  return destinations;
}

Status ModelCall::run() {
  std::vector<runtime::Argument> arguments;
  for (const NamedTensor &input : inputs)
    arguments.push_back({input.name, &input.tensor});
  if (!isPure())
    if (Status status = model->initialize(0); !status)
      return status;
  if (!isTrained())
    return model->run("evaluate", arguments, destinationsOf(forward));
  auto context = model->forward(arguments, destinationsOf(forward));
  if (!context)
    return std::move(context).status();
  std::vector<runtime::Argument> cotangents = {{model->manifest().loss, &one}};
  return model->backward(*context, cotangents, destinationsOf(gradients));
}

Status ModelCall::clear() {
  for (std::vector<NamedTensor> *tensors : {&forward, &gradients})
    for (NamedTensor &tensor : *tensors)
      if (tensor.tensor.defined())
        if (Status status = tensor.tensor.fill(0); !status)
          return status;
  return Status::success();
}

Result<std::vector<NamedTensor>> ModelCall::outputs() const {
  std::vector<NamedTensor> all;
  auto add = [&](const std::string &name, const Tensor &tensor) -> Status {
    auto host = tensor.onHost();
    auto dense = host ? host->dense() : std::move(host);
    if (!dense)
      return std::move(dense).status();
    all.push_back({name, std::move(*dense)});
    return Status::success();
  };
  for (const NamedTensor &output : forward)
    if (Status status = add(output.name, output.tensor); !status)
      return status;
  for (const NamedTensor &gradient : gradients)
    if (Status status = add("d_" + gradient.name, gradient.tensor); !status)
      return status;
  return all;
}

Result<std::vector<NamedTensor>> ModelCall::outputsOfRun() {
  if (Status status = clear(); !status)
    return status;
  if (Status status = run(); !status)
    return status;
  return outputs();
}

//===----------------------------------------------------------------------===//
// Captures
//===----------------------------------------------------------------------===//

/// Opens the driver's functions, with the device's context current.
static Result<cuda::Driver> enterContext(runtime::Device device) {
  auto driver = cuda::Driver::open(
      cuda::driverOf(device.kind == runtime::DeviceKind::CudaEmu));
  if (!driver)
    return driver;
  CUcontext context = nullptr;
  if ((*driver)->devicePrimaryCtxRetain(&context, device.index) ||
      (*driver)->ctxSetCurrent(context))
    return Status::failed("the device's context cannot be used");
  return driver;
}

static Status checkCall(const char *name, CUresult result) {
  return result ? Status::failed(std::string(name) + " returned " +
                                 std::to_string(int(result)))
                : Status::success();
}

Result<std::vector<NamedTensor>> ModelCall::outputsOfCapture() {
  runtime::Device device = model->device();
  auto backend = runtime::backendOf(device);
  auto stream = backend ? (*backend)->side(40) : backend.status();
  auto driver = stream ? enterContext(device) : stream.status();
  if (!driver)
    return std::move(driver).status();
  const cuda::Driver &call = *driver;
  auto own = static_cast<CUstream>(*stream);
  runtime::StreamScope scope(device, *stream);
  // Calls leave the memory that the capture may not make.
  for (int warm = 0; warm < 2; ++warm)
    if (Status status = run(); !status)
      return status;
  if (Status status = (*backend)->synchronize(*stream); !status)
    return status;
  if (Status status = checkCall(
          "cuStreamBeginCapture",
          call->streamBeginCapture(own, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
      !status)
    return status;
  Status recorded = run();
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  Status ended =
      checkCall("cuStreamEndCapture", call->streamEndCapture(own, &graph));
  if (!recorded)
    return std::move(recorded).in("while it is captured");
  if (!ended)
    return ended;
  if (Status status = checkCall("cuGraphInstantiate",
                                call->graphInstantiate(&exec, graph, 0));
      !status)
    return status;
  if (Status status = clear(); !status)
    return status;
  if (Status status = checkCall("cuGraphLaunch", call->graphLaunch(exec, own));
      !status)
    return status;
  auto given = outputs();
  call->graphExecDestroy(exec);
  call->graphDestroy(graph);
  return given;
}
