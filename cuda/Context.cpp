//===- Context.cpp - one device, as the driver knows it -------------------===//
//
// See Context.h.
//
//===----------------------------------------------------------------------===//
#include "cuda/Context.h"

#include <cstdlib>
#include <cstring>

namespace tandem::cuda {

using namespace driver;
using runtime::Device;

Context::Scope::Scope(const Context &context) : context(context) {
  const Functions &call = context.call();
  result = call.ctxGetCurrent(&before);
  if (result || before == context.context)
    return;
  result = call.ctxSetCurrent(context.context);
  isChanged = result == CUDA_SUCCESS;
}

Context::Scope::~Scope() {
  if (isChanged)
    context.call().ctxSetCurrent(before);
}

Status Context::Scope::status() const {
  if (context.isLost())
    return context.lostStatus();
  return context.check(result, "cuCtxSetCurrent");
}

Context::Relaxed::Relaxed(const Context &context) : context(context) {
  context.call().threadExchangeStreamCaptureMode(&mode);
}

Context::Relaxed::~Relaxed() {
  context.call().threadExchangeStreamCaptureMode(&mode);
}

Result<std::unique_ptr<Context>>
Context::open(std::shared_ptr<const Driver> driver, Device device) {
  std::string called = "'" + toString(device) + "'";
  if (device.index < 0 || device.index >= driver->devices())
    return Status::noDevice("no device " + called + ": expected one of " +
                            driver->deviceNames(device.kind) +
                            (device.kind == runtime::DeviceKind::Cuda
                                 ? driver->visibleDevices()
                                 : ""));
  std::unique_ptr<Context> opened(new Context);
  opened->driver_ = std::move(driver);
  opened->device_ = device;
  const Functions &call = opened->call();
  auto fail = [&](CUresult result, const char *name) {
    return Status::noDevice("cannot use device " + called + ": " + name +
                            " failed: " + opened->driver().describe(result) +
                            adviceFor(result));
  };

  if (CUresult result = call.deviceGet(&opened->number, device.index))
    return fail(result, "cuDeviceGet");
  char name[256] = {};
  if (CUresult result =
          call.deviceGetName(name, sizeof(name) - 1, opened->number))
    return fail(result, "cuDeviceGetName");
  opened->name_ = name;
  if (CUresult result =
          call.deviceTotalMem(&opened->totalBytes_, opened->number))
    return fail(result, "cuDeviceTotalMem");
  int pools = 0, unified = 0;
  const std::pair<CUdevice_attribute, int *> attributes[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &opened->major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &opened->minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &opened->multiprocessors_},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       &opened->maxSharedBytes_},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &pools},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, &unified}};
  for (auto [attribute, value] : attributes)
    if (CUresult result =
            call.deviceGetAttribute(value, attribute, opened->number))
      return fail(result, "cuDeviceGetAttribute");
  opened->hasPools_ = pools != 0;
  if (const char *debug = std::getenv("TANDEM_CUDA_DEBUG"); debug && *debug) {
    if (std::strcmp(debug, "sync") != 0)
      return Status::usage(
          "expected TANDEM_CUDA_DEBUG to be 'sync', but got '" +
          std::string(debug) + "'");
    opened->waitsForEach_ = true;
  }
  // The builtin kernels need sm_80, and so does what the compiler emits.
  if (opened->capability() < 80 || !unified)
    return Status::noDevice("cannot use device " + called + " (" +
                            opened->name_ + "): expected sm_80 or later " +
                            "with unified addressing but got " +
                            opened->arch() + (unified ? "" : " without it"));
  if (CUresult result =
          call.devicePrimaryCtxRetain(&opened->context, opened->number))
    return fail(result, "cuDevicePrimaryCtxRetain");
  return Result<std::unique_ptr<Context>>(std::move(opened));
}

Context::~Context() {
  if (context)
    call().devicePrimaryCtxRelease(number);
}

Status Context::check(CUresult result, const char *call) const {
  if (result == CUDA_SUCCESS)
    return wasGivenUp.load(std::memory_order_acquire) ? lostStatus()
                                                      : Status::success();
  Status status = driver_->check(result, call);
  if (isFatal(result)) {
    std::lock_guard<std::mutex> lock(mutex);
    if (lost.load(std::memory_order_relaxed))
      return status;
    // What the driver says comes from any launch before.
    if (!waitsForEach_ && !lastQueued[0].empty()) {
      std::string last = "'" + lastQueued[0] + "'";
      if (!lastQueued[1].empty())
        last = "'" + lastQueued[1] + "' and " + last;
      status = Status(status.code(),
                      status.message() + "; queued last: " + last +
                          " (with TANDEM_CUDA_DEBUG=sync the launch is named)");
    }
    cause = status.message();
    lost.store(true, std::memory_order_release);
  }
  return status;
}

void Context::noteQueued(const std::string &program) const {
  std::lock_guard<std::mutex> lock(mutex);
  if (lastQueued[0] == program)
    return;
  lastQueued[1].swap(lastQueued[0]);
  lastQueued[0] = program;
}

Status Context::lostStatus() const {
  std::lock_guard<std::mutex> lock(mutex);
  if (!given.ok())
    return given;
  return Status::noDevice("device '" + toString(device_) +
                          "' is lost: " + cause);
}

void Context::lose(Status why) const {
  std::lock_guard<std::mutex> lock(mutex);
  if (lost.load(std::memory_order_relaxed))
    return;
  given = std::move(why);
  wasGivenUp.store(true, std::memory_order_release);
  lost.store(true, std::memory_order_release);
}

bool Context::isCapturing(CUstream stream) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = call().streamIsCapturing(stream, &status);
  // The default stream, while another that it must wait for is captured.
  return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
         (!result && status != CU_STREAM_CAPTURE_STATUS_NONE);
}

uint64_t Context::numberOf(CUstream stream) const {
  unsigned long long number = 0;
  return call().streamGetId(stream, &number) ? 0 : number;
}

uint64_t Context::captureOf(CUstream stream) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  uint64_t number = 0;
  CUresult result = call().streamGetCaptureInfo(stream, &status, &number,
                                                nullptr, nullptr, nullptr);
  return !result && status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? number : 0;
}

} // namespace tandem::cuda
