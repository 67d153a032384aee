//===- Control.h - how tests steer and question the emulator ----*- C -*---===//
//
// The driver emulator (libtandem-cuda-emulator.so) stands in for libcuda.so.1.
// Beside the driver's functions it exports these, for the tests of what uses
// it. They may be called at any time from any thread, before cuInit as well;
// texts are valid until the next tandemEmulatorReset, ClearErrors or
// ClearLog.
//
// Nothing runs before something needs it, except under the policy "eager".
// Whatever the policy, operations that touch the same memory, one of them
// writing, must be ordered by streams, events or waits of the host; what is not
// is an error that names both. So are uses of freed memory and accesses outside
// of allocations. Errors that nobody has cleared by tandemEmulatorReset are
// printed when the process ends.
//
// Environment, read when the library is loaded:
//   TANDEM_EMULATOR_POLICY=eager|lazy|others-first|random:SEED   (eager)
//   TANDEM_EMULATOR_CONSISTENCY=weak|strong|every                (weak)
//   TANDEM_EMULATOR_FAIL=KIND:N[,KIND:N...]     see tandemEmulatorFail
//   TANDEM_EMULATOR_DEVICES=N                   (1)
//   TANDEM_EMULATOR_MEMORY=BYTES                of each device (16 GiB)
//   TANDEM_EMULATOR_TRAITS=TRAIT[,TRAIT...]     see tandemEmulatorSetTraits
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_CONTROL_H
#define TANDEM_CUDA_EMULATOR_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#define TANDEM_EMULATOR_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/// How often what was called. Nodes of a graph count when they are launched.
typedef struct TandemEmulatorCounts {
  uint64_t allocations;     ///< of device memory, in stream order or not
  uint64_t hostAllocations; ///< of pinned memory
  uint64_t frees, hostFrees;
  uint64_t launches; ///< of kernels
  uint64_t graphLaunches;
  uint64_t graphInstantiations;
  uint64_t graphUploads; ///< that were asked for, before a launch
  uint64_t copies, memsets, hostFunctions;
  uint64_t syncs; ///< waits of the host, those inside of other calls included
  uint64_t queries;
  uint64_t eventRecords, eventWaits;
  uint64_t captures;
  uint64_t tensorMaps; ///< that were encoded
  /// Operations submitted to a default stream.
  uint64_t defaultStreamOperations;
} TandemEmulatorCounts;

/// Puts everything back to how the process found it, the environment's settings
/// included: errors, log, counts, failures to come, lost devices, delays. What
/// is queued runs first, and counts as waited for. Streams, events, memory,
/// modules and graphs stay; where there are none, numbers and virtual time
/// begin anew.
TANDEM_EMULATOR_API void tandemEmulatorReset(void);

/// Sets when queued work runs. "eager": at once. "lazy": only what is awaited
/// and what it waits for. "others-first": before that, all that can run on
/// other streams. "random:SEED": any order that the waits allow. Returns 0, or
/// 1 for another text.
TANDEM_EMULATOR_API int tandemEmulatorSetPolicy(const char *policy);

/// Sets what a block of a kernel sees of what blocks before it wrote. "weak":
/// what they handed over by fences and atomics, in kernels that have atomics on
/// global memory; uses of anything else are errors. "every": so in all kernels,
/// which is slow and finds every race between blocks. "strong": all of it.
/// Returns 0, or 1 for another text.
TANDEM_EMULATOR_API int tandemEmulatorSetConsistency(const char *consistency);

/// Asks for a failure, counted from now on (n from 1): "alloc:N", the n-th
/// allocation of device memory is out of memory; "refuse:N", the n-th kernel
/// launch is refused for lack of resources; "launch:N", the n-th kernel fails
/// when it runs, and with it the context; "lost:N", the device is lost at the
/// n-th kernel launch; "module:N", the n-th module is not loaded; "driver:V",
/// the driver has version V (1000 * major + 10 * minor); "init:CODE", cuInit
/// returns CODE; "blas:V", "dnn:V", "nccl:V", cuBLASLt, cuDNN or NCCL has
/// version V (10000 * major + 100 * minor); "algorithm:N", these find none for
/// the n-th shape; "library:N", their n-th call fails; "fill:N", the n-th fill
/// of memory is refused. Returns 0, or 1 for another text. Null: none.
TANDEM_EMULATOR_API int tandemEmulatorFail(const char *failure);

/// Sets what the machine has; before cuInit. 0 devices: none.
TANDEM_EMULATOR_API void tandemEmulatorSetDevices(int count);
TANDEM_EMULATOR_API void tandemEmulatorSetCapability(int major, int minor);
/// Sets the bytes of memory of each device.
TANDEM_EMULATOR_API void tandemEmulatorSetMemory(size_t bytes);

/// Sets what the devices are like, as a list with commas: "name=TEXT" and
/// "multiprocessors=N", as slices of a GPU (MIG) have them; "no-peers", no
/// device may use another one's memory, and copies go through the host;
/// "no-peer-copies", such copies are refused; "no-pools", there is no memory in
/// stream order; "no-registering", host memory cannot be registered (some
/// virtual GPUs). Returns 0, or 1 for another text.
TANDEM_EMULATOR_API int tandemEmulatorSetTraits(const char *traits);

/// Queues an operation on a stream (a CUstream) that takes this long in virtual
/// time and does nothing. Returns a CUresult.
TANDEM_EMULATOR_API int tandemEmulatorDelay(void *stream, uint64_t nanoseconds);
/// Makes the next operation of the stream take this much longer.
TANDEM_EMULATOR_API int tandemEmulatorDelayNext(void *stream,
                                                uint64_t nanoseconds);
/// Returns the virtual time (ns) when all queued work has ended; when the host
/// is now, which moves when it waits.
TANDEM_EMULATOR_API uint64_t tandemEmulatorEndTime(void);
TANDEM_EMULATOR_API uint64_t tandemEmulatorHostTime(void);

/// Says that this thread looks on (1), or no longer (0): that it asks whether
/// work is done is no wait of the host.
TANDEM_EMULATOR_API void tandemEmulatorLookOn(int on);

/// Runs all that is queued, so that every race of it has been seen.
TANDEM_EMULATOR_API void tandemEmulatorDrain(void);
/// Drains, and returns the number of errors since the last reset.
TANDEM_EMULATOR_API uint64_t tandemEmulatorErrorCount(void);
/// Returns error number `index` (from 0), or null; does not drain.
TANDEM_EMULATOR_API const char *tandemEmulatorError(size_t index);
/// Forgets the errors.
TANDEM_EMULATOR_API void tandemEmulatorClearErrors(void);
/// Drains, and returns the first error since the last reset, or null. A layer
/// above calls it after it has waited for the device.
TANDEM_EMULATOR_API const char *tandemEmulatorFirstError(void);
/// Says that the host reads or writes pinned memory now; an error if queued
/// work uses it that the host has not waited for. Drains.
TANDEM_EMULATOR_API void tandemEmulatorHostAccess(const void *data,
                                                  size_t bytes, int isWrite);

/// The log of calls, off at first. Lines such as "s1: kernel 'add'", "s2: wait
/// e3 of s1", "host: synchronize s1", "default: copy to host, 64 bytes";
/// streams and events are named in the order of their creation, of a second
/// device "default@1" and "s4@1".
TANDEM_EMULATOR_API void tandemEmulatorSetLogging(int on);
TANDEM_EMULATOR_API size_t tandemEmulatorLogSize(void);
TANDEM_EMULATOR_API const char *tandemEmulatorLogLine(size_t index);
TANDEM_EMULATOR_API void tandemEmulatorClearLog(void);
/// Returns the stream's name in the log.
TANDEM_EMULATOR_API const char *tandemEmulatorStreamName(void *stream);

TANDEM_EMULATOR_API TandemEmulatorCounts tandemEmulatorGetCounts(void);

/// Allocations that are live: how many, of device and pinned memory together,
/// and their bytes.
TANDEM_EMULATOR_API size_t tandemEmulatorLiveAllocations(void);
TANDEM_EMULATOR_API size_t tandemEmulatorLiveBytes(void);
/// Handles that are live, by kind: "stream" (without default ones), "event",
/// "module", "graph", "exec", "pool" (without default ones).
TANDEM_EMULATOR_API size_t tandemEmulatorLiveHandles(const char *kind);

/// A kernel written for the host, in the place of one of a PTX module. Memory
/// must be named by `access` before it is used; 0: it must not be used.
typedef struct TandemEmulatorLaunch {
  unsigned grid[3], block[3];
  int (*access)(const struct TandemEmulatorLaunch *launch, const void *data,
                size_t bytes, int isWrite);
} TandemEmulatorLaunch;
typedef void (*TandemEmulatorKernel)(void **parameters,
                                     const TandemEmulatorLaunch *launch);
/// Registers the twin of the kernels called `name`, with the sizes of its
/// parameters.
TANDEM_EMULATOR_API void
tandemEmulatorRegisterKernel(const char *name, const size_t *parameterBytes,
                             size_t count, TandemEmulatorKernel kernel);

#ifdef __cplusplus
}
#endif

#endif
