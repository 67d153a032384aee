//===- FakeDevice.cpp - a device without hardware -------------------------===//
//
// See FakeDevice.h.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/FakeDevice.h"
#include "runtime/device/CodeObject.h"
#include "runtime/device/HostBackend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace tandem::test {

using namespace runtime;

namespace {

constexpr size_t memoryBytes = size_t(64) << 20;
constexpr int64_t alignment = 256;

/// Marks the thread as being in the device: what is allocated here is no
/// allocation of the runtime.
struct Inside {
  Inside() { ++FakeDevice::inside; }
  ~Inside() { --FakeDevice::inside; }
};

/// The kernels of an artifact, run one after the other.
class FakeCode : public DeviceCode {
public:
  FakeCode(FakeDevice &device, const artifact::ArtifactReader &reader,
           CodeObject code)
      : device(device), reader(reader), code(std::move(code)) {}

  // What is queued needs the kernels.
  ~FakeCode() override { device.finishAll(); }

  Status run(const ProgramRun &run) override {
    Inside inside;
    if (device.lost)
      return Status::failed("CUDA_ERROR_DEVICE_LOST");
    if (device.failsLaunches)
      return Status::failed("launch 0: CUDA_ERROR_LAUNCH_FAILED");
    device.graphs.push_back(run.useGraph);
    const artifact::Manifest &manifest = reader.manifest();
    const artifact::Program &program = manifest.programs[run.program];
    for (size_t l = 0; l < program.launches.size(); ++l) {
      const artifact::Launch &launch = program.launches[l];
      const artifact::Kernel none;
      const artifact::Kernel &kernel =
          launch.hasKernel() ? manifest.kernels[launch.kernel] : none;
      std::vector<void *> pointers;
      for (int64_t buffer : launch.buffers)
        pointers.push_back(run.buffers[buffer]);
      Action action = run.actions[l];
      if (action == skipLaunch)
        continue;
      KernelFunction function = code.find(kernel.symbol.c_str());
      int64_t work = launch.work, scratch = kernel.scratchBytes;
      auto body = [=]() mutable {
        std::vector<std::max_align_t> memory(scratch / 16 + 1);
        function(pointers.data(), 0, work, memory.data());
      };
      if (action == runKernel) {
        if (Status status = device.enqueue(run.stream, body); !status)
          return status;
        continue;
      }
      void *to = pointers[launch.writes[0]];
      int64_t bytes = bytesOf(program, launch.buffers[launch.writes[0]]);
      Status status = action == writeZeros ? device.zero(to, bytes, run.stream)
                                           : device.copy(to, pointers[action],
                                                         bytes, run.stream);
      if (!status)
        return status;
    }
    return Status::success();
  }

private:
  static int64_t bytesOf(const artifact::Program &program, int64_t index) {
    using Place = artifact::Buffer::Place;
    const artifact::Buffer &buffer = program.buffers[index];
    if (buffer.place != Place::Argument && buffer.place != Place::Result)
      return buffer.bytes;
    const artifact::Slot &slot = buffer.place == Place::Argument
                                     ? program.arguments[buffer.index]
                                     : program.results[buffer.index];
    return *artifact::tensorBytes(slot.dtype, slot.shape);
  }

  FakeDevice &device;
  artifact::ArtifactReader reader;
  CodeObject code;
};

std::shared_ptr<FakeDevice> devices[2];

} // namespace

thread_local int FakeDevice::inside = 0;

FakeDevice &FakeDevice::at(int index) {
  static bool isRegistered = [] {
    for (int i = 0; i < 2; ++i)
      devices[i] = std::make_shared<FakeDevice>(i);
    registerBackend(DeviceKind::CudaEmu,
                    [](int index) -> Result<std::shared_ptr<Backend>> {
                      if (index > 1)
                        return Status::noDevice("there are 2 devices");
                      return std::shared_ptr<Backend>(devices[index]);
                    });
    return true;
  }();
  (void)isRegistered;
  return *devices[index];
}

FakeDevice::FakeDevice(int index) : index(index) {
  memory = static_cast<char *>(mmap(nullptr, memoryBytes, PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED)
    std::abort();
  defaultQueue.name = "s0";
}

FakeDevice::~FakeDevice() { munmap(memory, memoryBytes); }

runtime::Device FakeDevice::device() const {
  return {DeviceKind::CudaEmu, index};
}

FakeDevice::Queue &FakeDevice::queueOf(Stream stream) const {
  return stream ? *static_cast<Queue *>(stream) : defaultQueue;
}

FakeDevice::Point FakeDevice::now(Stream stream) const {
  Queue &queue = queueOf(stream);
  return {&queue, queue.done + queue.work.size()};
}

runtime::Stream FakeDevice::makeStream() {
  Inside inside;
  std::lock_guard lock(mutex);
  Queue &made = queues.emplace_back();
  made.name = "s" + std::to_string(queues.size());
  return &made;
}

std::vector<std::string> FakeDevice::takeLog() {
  std::lock_guard lock(mutex);
  return std::exchange(log, {});
}

void FakeDevice::runTo(Point point) {
  while (point.queue->done < point.position) {
    std::function<void()> work = std::move(point.queue->work.front());
    point.queue->work.pop_front();
    ++point.queue->done;
    if (open++ == 0)
      mprotect(memory, memoryBytes, PROT_READ | PROT_WRITE);
    work();
    if (--open == 0)
      mprotect(memory, memoryBytes, PROT_NONE);
  }
}

void FakeDevice::finish(Stream stream) {
  std::lock_guard lock(mutex);
  runTo(now(stream));
}

void FakeDevice::finishAll() {
  std::lock_guard lock(mutex);
  finish(nullptr);
  for (Queue &queue : queues)
    finish(&queue);
}

size_t FakeDevice::pending(Stream stream) {
  std::lock_guard lock(mutex);
  return queueOf(stream).work.size();
}

Status FakeDevice::enqueue(Stream stream, std::function<void()> work) {
  Inside inside;
  std::lock_guard lock(mutex);
  if (lost)
    return Status::failed("CUDA_ERROR_DEVICE_LOST");
  Queue &queue = queueOf(stream);
  if (queue.isCaptured)
    queue.captured.push_back(std::move(work));
  else
    queue.work.push_back(std::move(work));
  return Status::success();
}

void FakeDevice::beginCapture(Stream stream) {
  std::lock_guard lock(mutex);
  Queue &queue = queueOf(stream);
  queue.isCaptured = true;
  queue.forbidden.clear();
  queue.captured.clear();
}

Result<std::vector<std::function<void()>>>
FakeDevice::endCapture(Stream stream) {
  std::lock_guard lock(mutex);
  Queue &queue = queueOf(stream);
  queue.isCaptured = false;
  if (!queue.forbidden.empty())
    return Status::failed(queue.forbidden);
  return std::move(queue.captured);
}

void FakeDevice::replay(Stream stream,
                        std::vector<std::function<void()>> graph) {
  for (auto &work : graph)
    (void)enqueue(stream, work).ok();
}

bool FakeDevice::isCapturing(Stream stream) const {
  std::lock_guard lock(mutex);
  return queueOf(stream).isCaptured;
}

/// Ends the capture of every stream that is captured, as the driver does.
Status FakeDevice::forbid(const std::string &what, Stream stream) {
  Queue &queue = queueOf(stream);
  if (!queue.isCaptured)
    return Status::success();
  queue.forbidden = what + " in a capture";
  return Status::failed(queue.forbidden);
}

void FakeDevice::breakCapture(Stream stream) {
  std::lock_guard lock(mutex);
  (void)forbid("what was refused", stream).ok();
}

Result<void *> FakeDevice::allocate(int64_t bytes, Stream stream) {
  Inside inside;
  std::lock_guard lock(mutex);
  ++allocations;
  if (failAllocation == 0)
    return Status::failed("out of memory: cannot allocate " +
                          std::to_string(bytes) + " bytes; 0 are free");
  if (failAllocation > 0)
    --failAllocation;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  bool isCaptured = queueOf(stream).isCaptured;
  auto isFree = [&](const auto &entry) {
    auto isDone = [](const Point &p) { return p.queue->done >= p.position; };
    const Block &block = entry.second;
    return block.bytes == bytes &&
           (!isCaptured ||
            std::all_of(block.users.begin(), block.users.end(), isDone));
  };
  auto found = std::find_if(freed.begin(), freed.end(), isFree);
  if (isCaptured && found == freed.end())
    return forbid("cannot allocate " + std::to_string(bytes) + " bytes",
                  stream);
  char *data;
  if (found != freed.end()) {
    data = found->first;
    for (Point point : found->second.users)
      (void)enqueue(stream, [this, point] { runTo(point); }).ok();
    freed.erase(found);
  } else {
    if (used + bytes > memoryBytes)
      return Status::failed("out of memory");
    data = memory + used;
    used += bytes;
  }
  blocks[data] = {bytes, {}};
  bytesInUse += bytes;
  // Memory that was not written yet is NaN.
  (void)enqueue(stream, [=] { std::memset(data, 0xff, bytes); }).ok();
  return static_cast<void *>(data);
}

void FakeDevice::release(void *data, Stream stream,
                         std::span<const Stream> others) {
  Inside inside;
  std::lock_guard lock(mutex);
  auto found = blocks.find(static_cast<char *>(data));
  if (found == blocks.end())
    std::abort();
  Block block = found->second;
  blocks.erase(found);
  bytesInUse -= block.bytes;
  block.users = {now(stream)};
  for (Stream other : others)
    block.users.push_back(now(other));
  freed[static_cast<char *>(data)] = block;
}

Result<void *> FakeDevice::allocatePinned(int64_t bytes) {
  Inside inside;
  std::lock_guard lock(mutex);
  void *data = std::malloc(bytes);
  pinned[static_cast<char *>(data)] = bytes;
  pinnedInUse += bytes;
  return data;
}

void FakeDevice::releasePinned(void *data) {
  Inside inside;
  std::lock_guard lock(mutex);
  auto found = pinned.find(static_cast<char *>(data));
  if (found == pinned.end())
    std::abort();
  pinnedInUse -= found->second;
  pinned.erase(found);
  std::free(data);
}

bool FakeDevice::isInside(const void *pointer) const {
  auto *at = static_cast<const char *>(pointer);
  for (const auto &device : devices)
    if (at >= device->memory && at < device->memory + memoryBytes)
      return true;
  auto found = pinned.upper_bound(const_cast<char *>(at));
  return found != pinned.begin() &&
         at < std::prev(found)->first + std::prev(found)->second;
}

Status FakeDevice::copy(void *to, const void *from, int64_t bytes,
                        Stream stream) {
  Inside inside;
  std::lock_guard lock(mutex);
  if (isInside(to) && isInside(from))
    return enqueue(stream, [=, this] {
      // Of another device, too.
      for (const auto &device : devices)
        mprotect(device->memory, memoryBytes, PROT_READ | PROT_WRITE);
      std::memmove(to, from, bytes);
      for (const auto &device : devices)
        if (device.get() != this)
          mprotect(device->memory, memoryBytes, PROT_NONE);
    });
  if (Status status = forbid("copy of the host's memory", stream); !status)
    return status;
  if (isInside(to)) {
    std::string copied(static_cast<const char *>(from), bytes);
    return enqueue(stream, [=] { std::memcpy(to, copied.data(), bytes); });
  }
  log.push_back("copy to host on " + queueOf(stream).name);
  Status status = enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  runTo(now(stream));
  return status;
}

Status FakeDevice::copyStrided(const StridedCopy &copy, Stream stream) {
  Inside inside;
  std::vector<int64_t> sizes(copy.sizes.begin(), copy.sizes.end());
  std::vector<int64_t> ts(copy.toStrides.begin(), copy.toStrides.end());
  std::vector<int64_t> fs(copy.fromStrides.begin(), copy.fromStrides.end());
  return enqueue(
      stream, [=, to = copy.to, from = copy.from, bytes = copy.elementBytes] {
        EXPECT_TRUE(hostBackend()
                        .copyStrided({to, from, sizes, ts, fs, bytes}, nullptr)
                        .ok());
      });
}

Status FakeDevice::zero(void *to, int64_t bytes, Stream stream) {
  Inside inside;
  return enqueue(stream, [=] { std::memset(to, 0, bytes); });
}

Status FakeDevice::add(artifact::DType dtype, void *to, const void *x,
                       const void *y, int64_t elements, Stream stream) {
  Inside inside;
  if (!artifact::isFloat(dtype))
    return Status::usage("the fake device adds floating-point elements only");
  return enqueue(stream, [=] {
    EXPECT_TRUE(hostBackend().add(dtype, to, x, y, elements, nullptr).ok());
  });
}

Status FakeDevice::fill(artifact::DType dtype, void *to, double value,
                        int64_t elements, Stream stream) {
  Inside inside;
  return enqueue(stream, [=] {
    EXPECT_TRUE(hostBackend().fill(dtype, to, value, elements, nullptr).ok());
  });
}

bool FakeDevice::owns(const void *pointer) const {
  std::lock_guard lock(mutex);
  auto *at = static_cast<const char *>(pointer);
  auto found = blocks.upper_bound(const_cast<char *>(at));
  return found != blocks.begin() &&
         at < std::prev(found)->first + std::prev(found)->second.bytes;
}

Status FakeDevice::wait(Stream waiter, Stream producer) {
  Inside inside;
  std::lock_guard lock(mutex);
  if (waiter == producer)
    return Status::success();
  if (queueOf(waiter).isCaptured != queueOf(producer).isCaptured) {
    queueOf(waiter).forbidden = queueOf(producer).forbidden =
        "wait across a capture";
    return Status::failed("wait across a capture");
  }
  log.push_back(queueOf(waiter).name + " waits for " + queueOf(producer).name);
  return enqueue(waiter, [this, point = now(producer)] { runTo(point); });
}

Status FakeDevice::record(Fence &fence, Stream stream) {
  Inside inside;
  std::lock_guard lock(mutex);
  if (Status status = forbid("record", stream); !status)
    return status;
  if (!fence) {
    fence = new Point;
    ++fencesInUse;
  }
  *static_cast<Point *>(fence) = now(stream);
  return lost ? Status::failed("CUDA_ERROR_DEVICE_LOST") : Status::success();
}

Status FakeDevice::waitFor(Stream waiter, Fence fence) {
  Inside inside;
  std::lock_guard lock(mutex);
  if (!fence)
    return Status::success();
  Point point = *static_cast<Point *>(fence);
  log.push_back(queueOf(waiter).name + " waits for " + point.queue->name);
  return enqueue(waiter, [this, point] { runTo(point); });
}

Status FakeDevice::await(Fence fence) {
  Inside inside;
  std::lock_guard lock(mutex);
  if (!fence)
    return Status::success();
  Point point = *static_cast<Point *>(fence);
  if (point.queue->done < point.position)
    log.push_back("await " + point.queue->name);
  runTo(point);
  return lost ? Status::failed("CUDA_ERROR_DEVICE_LOST") : Status::success();
}

void FakeDevice::releaseFence(Fence fence) {
  Inside inside;
  if (!fence)
    return;
  delete static_cast<Point *>(fence);
  --fencesInUse;
}

Status FakeDevice::synchronize(Stream stream) {
  Inside inside;
  std::lock_guard lock(mutex);
  if (Status status = forbid("synchronize", stream); !status)
    return status;
  log.push_back("synchronize " + queueOf(stream).name);
  runTo(now(stream));
  return lost ? Status::failed("CUDA_ERROR_DEVICE_LOST") : Status::success();
}

Result<runtime::Stream> FakeDevice::side(int number) {
  std::lock_guard lock(mutex);
  auto [found, isNew] = sides.emplace(number, nullptr);
  if (isNew)
    found->second = makeStream();
  return found->second;
}

Result<std::unique_ptr<DeviceCode>>
FakeDevice::load(const artifact::ArtifactReader &reader,
                 const runtime::LoadOptions & /*options*/) {
  auto code = CodeObject::load(reader.section("object.cpu"));
  if (!code)
    return std::move(code).status();
  return std::unique_ptr<DeviceCode>(
      std::make_unique<FakeCode>(*this, reader, std::move(*code)));
}

} // namespace tandem::test
