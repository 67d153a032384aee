//===- Backend.cpp - devices by name, and who opens them ------------------===//
//
// The registry of backends and each thread's current streams. The registry is
// never destroyed: storages may outlive the end of `main`.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/Backend.h"
#include "runtime/device/HostBackend.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <vector>

namespace tandem::runtime {

namespace {

struct Name {
  DeviceKind kind;
  std::string_view name, target;
};
constexpr Name names[] = {{DeviceKind::Cpu, "cpu", "cpu"},
                          {DeviceKind::Cuda, "cuda", "cuda"},
                          {DeviceKind::CudaEmu, "cuda-emu", "cuda"}};

const Name *nameOf(DeviceKind kind) {
  for (const Name &name : names)
    if (name.kind == kind)
      return &name;
  return nullptr;
}

struct Registry {
  std::mutex mutex; ///< guards the members below
  std::vector<std::pair<DeviceKind, BackendFactory>> factories;
  std::vector<std::pair<Device, std::shared_ptr<Backend>>> open;
};

Registry &registry() {
  static auto *made = new Registry;
  return *made;
}

/// The current streams that are not the default ones.
thread_local CurrentStreams streams;

} // namespace

std::string toString(Device device) {
  if (device.isHost())
    return "cpu";
  const Name *found = nameOf(device.kind);
  return std::string(found ? found->name : "device") + ":" +
         std::to_string(device.index);
}

std::string_view targetOf(DeviceKind kind) {
  const Name *found = nameOf(kind);
  return found ? found->target : std::string_view();
}

Result<Device> parseDevice(std::string_view name) {
  size_t colon = name.find(':');
  std::string_view kind = name.substr(0, colon);
  for (const Name &one : names) {
    if (one.name != kind)
      continue;
    Device device{one.kind, 0};
    if (colon == std::string_view::npos)
      return device;
    std::string_view digits = name.substr(colon + 1);
    auto [end, error] = std::from_chars(
        digits.data(), digits.data() + digits.size(), device.index);
    bool isNumber = !digits.empty() && digits[0] >= '0' && digits[0] <= '9' &&
                    error == std::errc() &&
                    end == digits.data() + digits.size();
    if (isNumber && !device.isHost())
      return device;
  }
  return Status::usage("expected a device 'cpu', 'cuda[:N]' or 'cuda-emu[:N]' "
                       "but got '" +
                       std::string(name) + "'");
}

Stream currentStream(Device device) {
  if (device.isHost())
    return nullptr;
  for (const auto &[other, stream] : streams)
    if (other == device)
      return stream;
  return nullptr;
}

void setCurrentStream(Device device, Stream stream) {
  if (device.isHost())
    return;
  for (auto &entry : streams)
    if (entry.first == device) {
      entry.second = stream;
      return;
    }
  if (stream)
    streams.emplace_back(device, stream);
}

const CurrentStreams &currentStreams() { return streams; }
void swapCurrentStreams(CurrentStreams &other) { streams.swap(other); }

StreamScope::StreamScope(Device device, Stream stream)
    : device(device), before(currentStream(device)) {
  setCurrentStream(device, stream);
}

StreamScope::~StreamScope() { setCurrentStream(device, before); }

Status DeviceCode::clear(Storage &storage) {
  return storage.backend()->zero(storage.data(), storage.room(),
                                 currentStream(storage.device()));
}

Status Backend::limitMemory(int64_t /*bytes*/) {
  return Status::usage("memory limits are for GPUs, and the device is '" +
                       toString(device()) + "'");
}

Status Backend::registerHost(void * /*data*/, int64_t /*bytes*/) {
  return Status::unsupported("device '" + toString(device()) +
                             "' does not register host memory");
}

Status Backend::copyFrom(Backend &other, const void *from, Stream otherStream,
                         void *to, int64_t bytes, Stream stream) {
  if (Status status = other.synchronize(otherStream); !status)
    return status;
  Status status = copy(to, from, bytes, stream);
  return status ? synchronize(stream) : status;
}

Status Backend::choose(artifact::ArtifactReader & /*reader*/,
                       const std::string &variant) const {
  return variant.empty()
             ? Status::success()
             : Status::usage(
                   "variants are for processors, and the device is '" +
                   toString(device()) + "'");
}

void registerBackend(DeviceKind kind, BackendFactory factory) {
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  for (auto &entry : all.factories)
    if (entry.first == kind) {
      entry.second = factory;
      return;
    }
  all.factories.emplace_back(kind, factory);
}

Result<Backend *> backendOf(Device device) {
  if (device.isHost())
    return &hostBackend();
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  for (const auto &[open, backend] : all.open)
    if (open == device)
      return backend.get();
  for (const auto &[kind, factory] : all.factories) {
    if (kind != device.kind)
      continue;
    Result<std::shared_ptr<Backend>> made = factory(device.index);
    if (!made)
      return std::move(made).status().in("device '" + toString(device) + "'");
    all.open.emplace_back(device, std::move(*made));
    return all.open.back().second.get();
  }
  return Status::noDevice("device '" + toString(device) +
                          "': this program has no layer for such devices");
}

} // namespace tandem::runtime
