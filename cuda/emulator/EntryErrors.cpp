//===- EntryErrors.cpp - names of errors ----------------------------------===//
#include "cuda/emulator/Entry.h"

namespace {
using namespace tandem::cuda::driver;

struct ErrorName {
  CUresult error;
  const char *name, *text;
};

#define ERROR(name, text)                                                      \
  { CUDA_##name, "CUDA_" #name, text }
// Texts are the driver's.
constexpr ErrorName errors[] = {
    ERROR(SUCCESS, "no error"),
    ERROR(ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(ERROR_DEINITIALIZED, "driver shutting down"),
    ERROR(ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
    ERROR(ERROR_DEVICE_UNAVAILABLE,
          "CUDA-capable device(s) is/are busy or unavailable"),
    ERROR(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(ERROR_DEVICE_NOT_LICENSED, "device doesn't have valid Grid license"),
    ERROR(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(ERROR_NO_BINARY_FOR_GPU,
          "no kernel image is available for execution on the device"),
    ERROR(ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    ERROR(ERROR_PEER_ACCESS_UNSUPPORTED,
          "peer access is not supported between these two devices"),
    ERROR(ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    ERROR(ERROR_JIT_COMPILER_NOT_FOUND, "PTX JIT compiler library not found"),
    ERROR(ERROR_UNSUPPORTED_PTX_VERSION,
          "the provided PTX was compiled with an unsupported toolchain."),
    ERROR(ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(ERROR_ILLEGAL_STATE,
          "the operation cannot be performed in the present state"),
    ERROR(ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(ERROR_NOT_READY, "device not ready"),
    ERROR(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(ERROR_LAUNCH_OUT_OF_RESOURCES,
          "too many resources requested for launch"),
    ERROR(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ERROR(ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    ERROR(ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    ERROR(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ERROR(ERROR_HOST_MEMORY_ALREADY_REGISTERED,
          "part or all of the requested memory range is already mapped"),
    ERROR(ERROR_HOST_MEMORY_NOT_REGISTERED,
          "pointer does not correspond to a registered memory region"),
    ERROR(ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    ERROR(ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    ERROR(ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(ERROR_NOT_PERMITTED, "operation not permitted"),
    ERROR(ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    ERROR(ERROR_SYSTEM_DRIVER_MISMATCH,
          "system has unsupported display driver / cuda driver combination"),
    ERROR(ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
          "forward compatibility was attempted on non supported HW"),
    ERROR(ERROR_STREAM_CAPTURE_UNSUPPORTED,
          "operation not permitted when stream is capturing"),
    ERROR(ERROR_STREAM_CAPTURE_INVALIDATED,
          "operation failed due to a previous error during capture"),
    ERROR(ERROR_STREAM_CAPTURE_MERGE,
          "operation would result in a merge of separate capture sequences"),
    ERROR(ERROR_STREAM_CAPTURE_UNMATCHED,
          "capture was not ended in the same stream as it began"),
    ERROR(ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    ERROR(ERROR_STREAM_CAPTURE_ISOLATION,
          "dependency created on uncaptured work in another stream"),
    ERROR(ERROR_STREAM_CAPTURE_IMPLICIT,
          "operation would make the legacy stream depend on a capturing "
          "blocking stream"),
    ERROR(ERROR_CAPTURED_EVENT,
          "operation not permitted on an event last recorded in a capturing "
          "stream"),
    ERROR(ERROR_STREAM_CAPTURE_WRONG_THREAD,
          "attempt to terminate a thread-local capture sequence from another "
          "thread"),
    ERROR(ERROR_GRAPH_EXEC_UPDATE_FAILURE,
          "the graph update was not performed because it included changes "
          "which violated constraints specific to instantiated graph update"),
    ERROR(ERROR_UNKNOWN, "unknown error"),
};
#undef ERROR

const ErrorName *find(CUresult error) {
  for (const ErrorName &entry : errors)
    if (entry.error == error)
      return &entry;
  return nullptr;
}
} // namespace

namespace tandem::cuda::driver {

CUresult cuGetErrorName(CUresult error, const char **text) {
  const ErrorName *entry = find(error);
  if (!text)
    return CUDA_ERROR_INVALID_VALUE;
  *text = entry ? entry->name : nullptr;
  return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  const ErrorName *entry = find(error);
  if (!text)
    return CUDA_ERROR_INVALID_VALUE;
  *text = entry ? entry->text : nullptr;
  return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

} // namespace tandem::cuda::driver
