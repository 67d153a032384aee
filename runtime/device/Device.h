//===- Device.h - devices, and the stream a call relates to ---------------===//
//
// What a device is called and numbered, and which of its streams this thread's
// calls relate to. What devices do is in Backend.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_DEVICE_H
#define TANDEM_RUNTIME_DEVICE_DEVICE_H

#include "runtime/artifact/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::runtime {

/// Where a storage lies; the numbers are DLPack's. `CudaEmu` is the emulator of
/// a CUDA device.
enum class DeviceKind : int32_t { Other = 0, Cpu = 1, Cuda = 2, CudaEmu = 12 };
struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  int32_t index = 0;

  bool isHost() const { return kind == DeviceKind::Cpu; }
  bool operator==(const Device &) const = default;
};

/// Returns "cpu", "cuda:1", "cuda-emu:0", or "device:0".
std::string toString(Device device);

/// Returns the device named "cpu", "cuda", "cuda:1", "cuda-emu", ... It need
/// not exist.
Result<Device> parseDevice(std::string_view name);

/// Returns the kind of target whose code runs on such devices: "cpu", "cuda";
/// empty if none does.
std::string_view targetOf(DeviceKind kind);

/// A queue of a device's work (a CUstream), or null: the default stream. A
/// stream must live as long as the tensors and models that were used on it.
using Stream = void *;

/// Returns the stream of `device` that this thread's calls relate to: the
/// default stream unless something else was said. Null for the host.
Stream currentStream(Device device);

/// Makes `stream` the current one of `device` on this thread.
void setCurrentStream(Device device, Stream stream);

/// The current streams of devices; the default one of those that are not there.
using CurrentStreams = std::vector<std::pair<Device, Stream>>;

/// Returns the current streams of this thread.
const CurrentStreams &currentStreams();
/// Exchanges them with `other`: work of another thread goes on on this one.
void swapCurrentStreams(CurrentStreams &other);

/// Makes `stream` the current one of `device` on this thread until it ends.
class StreamScope {
public:
  StreamScope(Device device, Stream stream);
  ~StreamScope();
  StreamScope(const StreamScope &) = delete;
  StreamScope &operator=(const StreamScope &) = delete;

private:
  Device device;
  Stream before;
};

} // namespace tandem::runtime

#endif
