//===- Control.cpp - how tests steer and question the emulator ------------===//
#include "cuda/emulator/Control.h"

#include "cuda/emulator/Graphs.h"
#include "cuda/emulator/Machine.h"
#include "cuda/emulator/Modules.h"

#include <cstring>

using namespace tandem::emulator;
using namespace tandem::cuda::driver;

namespace {
/// The machine, with its lock.
struct Locked {
  Machine &m = machine();
  std::lock_guard<std::recursive_mutex> guard{m.lock};
  Machine *operator->() { return &m; }
};

Stream *streamOf(Locked &m, void *handle) {
  return m->stream(static_cast<CUstream>(handle));
}
} // namespace

void tandemEmulatorReset() {
  Locked m;
  m->restart();
  m->readEnvironment();
  m->report.clear();
  m->report.setLogging(false);
}

int tandemEmulatorSetPolicy(const char *policy) {
  Locked m;
  return policy && m->scheduler.setPolicy(policy) ? 0 : 1;
}

int tandemEmulatorSetConsistency(const char *consistency) {
  Locked m;
  return consistency && m->setConsistency(consistency) ? 0 : 1;
}

int tandemEmulatorFail(const char *failure) {
  Locked m;
  if (!failure) {
    m->failures.clear();
    return 0;
  }
  return m->failures.add(failure) ? 0 : 1;
}

void tandemEmulatorSetDevices(int count) {
  Locked m;
  m->traits.count = std::clamp(count, 0, 16);
}

void tandemEmulatorSetCapability(int major, int minor) {
  Locked m;
  m->traits.major = major;
  m->traits.minor = minor;
}

void tandemEmulatorSetMemory(size_t bytes) {
  Locked m;
  m->traits.memory = bytes;
}

int tandemEmulatorSetTraits(const char *traits) {
  Locked m;
  return traits && m->traits.set(traits) ? 0 : 1;
}

int tandemEmulatorDelay(void *stream, uint64_t nanoseconds) {
  Locked m;
  Stream *on = streamOf(m, stream);
  if (!on)
    return CUDA_ERROR_INVALID_HANDLE;
  Command command;
  command.kind = Command::Kind::Delay;
  command.what = "delay";
  command.duration = nanoseconds;
  return m->push(*on, std::move(command));
}

int tandemEmulatorDelayNext(void *stream, uint64_t nanoseconds) {
  Locked m;
  Stream *on = streamOf(m, stream);
  if (!on)
    return CUDA_ERROR_INVALID_HANDLE;
  on->delay += nanoseconds;
  return CUDA_SUCCESS;
}

uint64_t tandemEmulatorEndTime() {
  Locked m;
  return m->endTime;
}

uint64_t tandemEmulatorHostTime() {
  Locked m;
  return m->hostTime;
}

void tandemEmulatorDrain() {
  Locked m;
  m->scheduler.drain();
}

uint64_t tandemEmulatorErrorCount() {
  Locked m;
  m->scheduler.drain();
  return m->report.errorCount();
}

const char *tandemEmulatorError(size_t index) {
  Locked m;
  return m->report.errorText(index);
}

void tandemEmulatorClearErrors() {
  Locked m;
  m->report.clearErrors();
}

const char *tandemEmulatorFirstError() {
  Locked m;
  m->scheduler.drain();
  return m->report.errorText(0);
}

void tandemEmulatorHostAccess(const void *data, size_t bytes, int isWrite) {
  Locked m;
  m->hostAccess(reinterpret_cast<uintptr_t>(data), bytes, isWrite != 0);
}

void tandemEmulatorLookOn(int on) { Machine::thread().isLookingOn = on != 0; }

void tandemEmulatorSetLogging(int on) {
  Locked m;
  m->report.setLogging(on != 0);
}

size_t tandemEmulatorLogSize() {
  Locked m;
  return m->report.logSize();
}

const char *tandemEmulatorLogLine(size_t index) {
  Locked m;
  return m->report.logLine(index);
}

void tandemEmulatorClearLog() {
  Locked m;
  m->report.clearLog();
}

const char *tandemEmulatorStreamName(void *stream) {
  Locked m;
  const Stream *found = streamOf(m, stream);
  return found ? found->name.c_str() : nullptr;
}

TandemEmulatorCounts tandemEmulatorGetCounts() {
  Locked m;
  return m->report.counts;
}

size_t tandemEmulatorLiveAllocations() {
  Locked m;
  m->scheduler.drain();
  return m->memory.allocations().size();
}

size_t tandemEmulatorLiveBytes() {
  Locked m;
  m->scheduler.drain();
  size_t bytes = 0;
  for (const auto &[begin, allocation] : m->memory.allocations())
    bytes += allocation.bytes;
  return bytes;
}

size_t tandemEmulatorLiveHandles(const char *kind) {
  Locked m;
  const std::string_view name = kind;
  if (name == "stream")
    return m->streams.size() - m->devices.size();
  if (name == "event")
    return m->events.size();
  if (name == "module")
    return m->modules.size();
  if (name == "graph")
    return m->graphs.size();
  if (name == "exec")
    return m->execs.size();
  return name == "pool" ? m->pools.size() : 0;
}

void tandemEmulatorRegisterKernel(const char *name,
                                  const size_t *parameterBytes, size_t count,
                                  TandemEmulatorKernel kernel) {
  Locked m;
  setTwin(name, Twin{{parameterBytes, parameterBytes + count}, kernel});
}
