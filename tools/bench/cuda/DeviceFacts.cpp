//===- DeviceFacts.cpp - what a device is, and how fast it copies ---------===//
#include "tools/bench/cuda/DeviceFacts.h"

#include <algorithm>
#include <chrono>
#include <functional>

using namespace tandem;
using namespace tandem::gpu;
using runtime::Backend;
using Clock = std::chrono::steady_clock;

namespace {

/// Memory of a device or of the host, given back at the end.
class Block {
public:
  Block(Backend &backend, bool isPinned)
      : backend(backend), isPinned(isPinned) {}
  Block(const Block &) = delete;
  ~Block() {
    if (data && isPinned)
      backend.releasePinned(data);
    else if (data)
      backend.release(data, nullptr, {});
  }
  Status allocate(int64_t bytes) {
    auto made = isPinned ? backend.allocatePinned(bytes)
                         : backend.allocate(bytes, nullptr);
    if (made)
      data = *made;
    return std::move(made).status();
  }
  void *data = nullptr;

private:
  Backend &backend;
  bool isPinned;
};

/// The fewest seconds of one of `count` times what `queue` queues.
Result<double> fastest(Backend &backend, int count,
                       const std::function<Status()> &queue) {
  double best = 0;
  for (int round = 0; round < 4; ++round) { // the first warms up
    Clock::time_point begin = Clock::now();
    for (int i = 0; i < count; ++i)
      if (Status status = queue(); !status)
        return status;
    if (Status status = backend.synchronize(nullptr); !status)
      return status;
    double seconds =
        std::chrono::duration<double>(Clock::now() - begin).count() / count;
    if (round > 0)
      best = round == 1 ? seconds : std::min(best, seconds);
  }
  return best;
}

} // namespace

Result<nlohmann::ordered_json> gpu::deviceFacts(runtime::Device device) {
  auto opened = runtime::backendOf(device);
  if (!opened)
    return std::move(opened).status();
  Backend &backend = **opened;
  bool isReal = device.kind == runtime::DeviceKind::Cuda;
  int64_t bytes = isReal ? int64_t(1) << 30 : 1 << 16;
  int64_t hostBytes = isReal ? int64_t(256) << 20 : 1 << 16;
  Block from(backend, false), to(backend, false), host(backend, true);
  for (Status status :
       {from.allocate(bytes), to.allocate(bytes), host.allocate(hostBytes),
        backend.zero(from.data, bytes, nullptr)})
    if (!status)
      return status;
  nlohmann::ordered_json facts = {{"check", "device"},
                                  {"description", backend.description()}};
  struct Row {
    const char *name;
    double bytes;
    std::function<Status()> queue;
  };
  const Row rows[] = {
      {"copy_gbytes_per_second", 2.0 * double(bytes),
       [&] { return backend.copy(to.data, from.data, bytes, nullptr); }},
      {"fill_gbytes_per_second", double(bytes),
       [&] { return backend.zero(to.data, bytes, nullptr); }},
      {"from_host_gbytes_per_second", double(hostBytes),
       [&] { return backend.copy(to.data, host.data, hostBytes, nullptr); }},
      {"to_host_gbytes_per_second", double(hostBytes),
       [&] { return backend.copy(host.data, to.data, hostBytes, nullptr); }}};
  for (const Row &row : rows) {
    auto seconds = fastest(backend, 10, row.queue);
    if (!seconds)
      return std::move(seconds).status();
    facts[row.name] = row.bytes / std::max(*seconds, 1e-9) * 1e-9;
  }
  return facts;
}
