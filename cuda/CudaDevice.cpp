//===- CudaDevice.cpp - a GPU for the runtime -----------------------------===//
//
// Opening, memory, streams and events; CudaCopies.cpp has what moves bytes.
//
//===----------------------------------------------------------------------===//
#include "cuda/CudaDevice.h"

#include "cuda/BuiltinKernels.h"
#include "cuda/CudaCode.h"
#include "cuda/Handles.h"
#include "cuda/Module.h"
#include "cuda/RegisteredMemory.h"

#include <cstdio>

namespace tandem::cuda {

using namespace driver;
using runtime::Fence;
using runtime::Stream;

Result<std::shared_ptr<runtime::Backend>>
CudaDevice::open(std::shared_ptr<const Driver> driver, runtime::Device device,
                 LibraryFiles libraries) {
  Result<std::unique_ptr<Context>> context =
      Context::open(std::move(driver), device);
  if (!context)
    return std::move(context).status();
  std::shared_ptr<CudaDevice> opened(new CudaDevice);
  opened->context = std::move(*context);
  const Context &its = *opened->context;
  Context::Scope scope(its);
  opened->events = std::make_unique<EventPool>(its);
  opened->streams = std::make_unique<SideStreams>(its);
  opened->memory = std::make_unique<MemoryCache>(its, *opened->events);
  opened->staging = std::make_unique<Staging>(its, *opened->events);
  opened->libraries = std::make_unique<Libraries>(its, std::move(libraries));
  Status status = scope.status();
  if (status.ok())
    status = opened->memory->open();
  if (status.ok())
    status = opened->loadBuiltins();
  if (!status)
    return Status::noDevice("cannot use device '" + toString(device) +
                            "': " + status.message());
  return std::shared_ptr<runtime::Backend>(std::move(opened));
}

CudaDevice::~CudaDevice() {
  if (context)
    forgetCopies(*context);
  if (!builtins)
    return;
  Context::Scope scope(*context);
  context->call().moduleUnload(builtins);
  libraries.reset();
}

Status CudaDevice::loadBuiltins() {
  Result<CUmodule> module =
      loadModule(*context, builtinKernels().c_str(), "the built-in kernels");
  if (!module)
    return std::move(module).status();
  builtins = *module;
  for (const char *name :
       {"tandem_add_f64", "tandem_add_f32", "tandem_add_f16", "tandem_add_bf16",
        "tandem_fill_b64", "tandem_copy_b8", "tandem_copy_b16",
        "tandem_copy_b32", "tandem_copy_b64"}) {
    CUfunction function = nullptr;
    if (Status status = context->check(
            context->call().moduleGetFunction(&function, builtins, name),
            "cuModuleGetFunction");
        !status)
      return std::move(status).in(name);
    builtinFunctions.emplace(name, function);
  }
  return Status::success();
}

std::string CudaDevice::description() const {
  char memory[32];
  std::snprintf(memory, sizeof(memory), "%.1f GiB",
                static_cast<double>(context->totalBytes()) / 0x1p30);
  return context->name() + ", " + context->arch() + ", " +
         std::to_string(context->multiprocessors()) + " multiprocessors, " +
         memory + ", driver " + context->driver().versionText();
}

Result<void *> CudaDevice::allocate(int64_t bytes, Stream stream) {
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  if (context->isCapturing(cu(stream))) {
    if (void *data = memory->allocateCaptured(bytes, cu(stream)))
      return data;
    return forbid("for " + std::to_string(bytes) + " bytes of new memory",
                  cu(stream));
  }
  return memory->allocate(bytes, cu(stream));
}

void CudaDevice::release(void *data, Stream stream,
                         std::span<const Stream> others) {
  Context::Scope scope(*context);
  memory->release(data, cu(stream), others);
}

Status CudaDevice::limitMemory(int64_t bytes) {
  if (bytes < 0)
    return Status::usage("device '" + toString(device()) +
                         "': expected a memory limit of at least 0 bytes but "
                         "got " +
                         std::to_string(bytes));
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  return memory->setLimit(bytes).in("device '" + toString(device()) + "'");
}

Result<void *> CudaDevice::allocatePinned(int64_t bytes) {
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  Context::Relaxed relaxed(*context);
  void *data = nullptr;
  if (Status status = context->check(
          context->call().memHostAlloc(&data, static_cast<size_t>(bytes),
                                       CU_MEMHOSTALLOC_PORTABLE),
          "cuMemHostAlloc");
      !status)
    return std::move(status).in("cannot allocate " + std::to_string(bytes) +
                                " bytes of pinned host memory");
  return data;
}

void CudaDevice::releasePinned(void *data) {
  Context::Scope scope(*context);
  Context::Relaxed relaxed(*context);
  context->call().memFreeHost(data);
}

Status CudaDevice::registerHost(void *data, int64_t bytes) {
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  Context::Relaxed relaxed(*context);
  // For all devices. A file that was mapped to be read is read-only memory,
  // which the driver takes by that name alone.
  const Functions &call = context->call();
  auto size = static_cast<size_t>(bytes);
  CUresult result =
      call.memHostRegister(data, size, CU_MEMHOSTREGISTER_PORTABLE);
  if (result && !isFatal(result) &&
      result != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED &&
      !call.memHostRegister(data, size,
                            CU_MEMHOSTREGISTER_PORTABLE |
                                CU_MEMHOSTREGISTER_READ_ONLY))
    result = CUDA_SUCCESS;
  if (!result)
    addRegistered(context->driver(), data, bytes);
  return context->check(result, "cuMemHostRegister")
      .in("device '" + toString(device()) + "': cannot register " +
          std::to_string(bytes) + " bytes of host memory");
}

void CudaDevice::unregisterHost(void *data) {
  finishRegistered(context->driver(), data); // copies of it may be queued
  Context::Scope scope(*context);
  Context::Relaxed relaxed(*context);
  context->call().memHostUnregister(data);
}

void CudaDevice::usePinned(const void *data, int64_t bytes, bool isWrite) {
  context->driver().noteHostAccess(data, bytes, isWrite);
}

CudaDevice::MemoryKind CudaDevice::kindOf(const void *pointer) const {
  if (memory->owns(pointer))
    return MemoryKind::Device;
  auto address = reinterpret_cast<CUdeviceptr>(pointer);
  unsigned type = 0;
  if (context->call().pointerGetAttribute(
          &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address))
    return MemoryKind::Pageable;
  if (type == CU_MEMORYTYPE_DEVICE)
    return MemoryKind::Device;
  return type == CU_MEMORYTYPE_HOST ? MemoryKind::Pinned : MemoryKind::Pageable;
}

bool CudaDevice::isPinned(const void *data) const {
  Context::Scope scope(*context);
  return kindOf(data) == MemoryKind::Pinned;
}

bool CudaDevice::owns(const void *pointer) const {
  if (memory->owns(pointer))
    return true;
  Context::Scope scope(*context);
  auto address = reinterpret_cast<CUdeviceptr>(pointer);
  unsigned type = 0, managed = 0;
  int ordinal = -1;
  const Functions &call = context->call();
  if (call.pointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                               address))
    return false;
  if (!call.pointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                address) &&
      managed)
    return true;
  return type == CU_MEMORYTYPE_DEVICE &&
         !call.pointerGetAttribute(
             &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) &&
         ordinal == context->device().index;
}

Status CudaDevice::wait(Stream waiter, Stream producer) {
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  return events->wait(cu(waiter), cu(producer));
}

Status CudaDevice::waitFor(Stream waiter, Fence fence) {
  if (!fence)
    return Status::success();
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  return context->check(context->call().streamWaitEvent(
                            cu(waiter), static_cast<CUevent>(fence), 0),
                        "cuStreamWaitEvent");
}

Status CudaDevice::record(Fence &fence, Stream stream) {
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  if (!fence) {
    Result<CUevent> event = events->take();
    if (!event)
      return std::move(event).status();
    fence = *event;
  }
  return context->check(
      context->call().eventRecord(static_cast<CUevent>(fence), cu(stream)),
      "cuEventRecord");
}

Status CudaDevice::await(Fence fence) {
  if (!fence)
    return Status::success();
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  Context::Relaxed relaxed(*context);
  return context->check(
      context->call().eventSynchronize(static_cast<CUevent>(fence)),
      "cuEventSynchronize");
}

void CudaDevice::releaseFence(Fence fence) {
  if (fence)
    events->give(static_cast<CUevent>(fence));
}

Status CudaDevice::synchronize(Stream stream) {
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  if (context->isCapturing(cu(stream)))
    return forbid("to wait on the host", cu(stream));
  Context::Relaxed relaxed(*context);
  Status status = context->check(context->call().streamSynchronize(cu(stream)),
                                 "cuStreamSynchronize");
  // What the emulator is asked for is to be right: a race that did no harm this
  // time is a failure.
  if (status.ok() && device().kind == runtime::DeviceKind::CudaEmu)
    if (const char *found = context->driver().complaint())
      return Status::failed("device '" + toString(device()) +
                            "': the emulator found: " + found);
  return status;
}

bool CudaDevice::isCapturing(Stream stream) const {
  Context::Scope scope(*context);
  return context->isCapturing(cu(stream));
}

/// The driver refuses to synchronize a stream that captures, and the capture is
/// invalid from then on.
void CudaDevice::breakCapture(Stream stream) {
  Context::Scope scope(*context);
  if (context->isCapturing(cu(stream)))
    (void)context->call().streamSynchronize(cu(stream));
}

Result<Stream> CudaDevice::side(int number) {
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  Result<CUstream> stream = streams->at(number);
  if (!stream)
    return std::move(stream).status();
  return static_cast<Stream>(*stream);
}

/// Ends the capture, as `breakCapture` does, and says why.
Status CudaDevice::forbid(const std::string &what, CUstream stream) {
  CUresult result = context->call().streamSynchronize(stream);
  return Status::usage("device '" + toString(device()) +
                       "': a stream that records a graph must not be asked " +
                       what + " (" + context->driver().describe(result) + ")");
}

Result<std::unique_ptr<runtime::DeviceCode>>
CudaDevice::load(const artifact::ArtifactReader &reader,
                 const runtime::LoadOptions &options) {
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  Context::Relaxed relaxed(*context);
  return CudaCode::load(
      {*context, *events, *streams, *memory, *staging, profile, *libraries},
      reader, options);
}

Status CudaDevice::startProfile() {
  Context::Scope scope(*context);
  if (Status status = scope.status(); !status)
    return status;
  Result<CUstream> stream = streams->at(0);
  if (!stream)
    return std::move(stream).status();
  auto made = std::make_shared<Profile>(*context);
  if (Status status = made->start(*stream); !status)
    return status;
  profile.exchange(std::move(made));
  return Status::success();
}

Result<std::string> CudaDevice::stopProfile() {
  Context::Scope scope(*context);
  std::shared_ptr<Profile> made = profile.exchange(nullptr);
  if (!made)
    return Status::usage("no profile of device '" + toString(device()) +
                         "' was started");
  if (Status status = scope.status(); !status)
    return status;
  return made->stop();
}

namespace {

struct OpenPhase {
  std::string name;
  std::chrono::steady_clock::time_point since;
};
/// Of this thread, the innermost last.
thread_local std::vector<OpenPhase> phases;

} // namespace

void CudaDevice::beginPhase(const char *name) {
  phases.push_back({name, std::chrono::steady_clock::now()});
  pushRange(name);
}

void CudaDevice::endPhase() {
  if (phases.empty())
    return;
  popRange();
  if (std::shared_ptr<Profile> current = profile.get())
    current->addPhase(std::move(phases.back().name), phases.back().since);
  phases.pop_back();
}

} // namespace tandem::cuda
