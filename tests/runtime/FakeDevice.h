//===- FakeDevice.h - a device without hardware ---------------------------===//
//
// A backend for the runtime's tests, registered as "cuda-emu". Its memory is a
// region of the host that nobody may touch but its own work: the pages are
// opened while that runs, so a host access ends the test. Its streams are
// queues that run only as far as somebody waits for them: what is not ordered
// does not happen, and memory that was not written yet is NaN. Waits and what
// stops the host are logged.
//
// Programs are the kernels of TestKernels.c, in artifacts for the target "cuda"
// (forDevice). A stream can be captured; failures can be asked for.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_FAKEDEVICE_H
#define TANDEM_TESTS_RUNTIME_FAKEDEVICE_H

#include "runtime/device/Backend.h"

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace tandem::test {

class FakeDevice : public runtime::Backend {
public:
  using Stream = runtime::Stream;
  using Fence = runtime::Fence;

  /// Returns device number `index` (0 or 1); registers both at first.
  static FakeDevice &at(int index);
  explicit FakeDevice(int index);
  ~FakeDevice() override;

  /// Returns a new stream, called "s1", "s2", ... The default one is "s0".
  Stream makeStream();

  /// What was logged since the last call: "s1 waits for s2", "synchronize s1",
  /// "await s1", "copy to host on s1".
  std::vector<std::string> takeLog();
  /// Runs all that is queued on a stream, without a trace in the log.
  void finish(Stream stream);
  void finishAll();
  /// Returns the number of operations that wait on the stream.
  size_t pending(Stream stream);

  void beginCapture(Stream stream);
  /// Returns the operations captured, or an error if something forbidden was
  /// asked for meanwhile.
  Result<std::vector<std::function<void()>>> endCapture(Stream stream);
  void replay(Stream stream, std::vector<std::function<void()>> graph);

  int64_t bytesInUse = 0, pinnedInUse = 0, fencesInUse = 0;
  int64_t allocations = 0;     ///< calls of `allocate`
  int64_t failAllocation = -1; ///< how many more succeed; -1: all
  bool failsLaunches = false;  ///< runs fail in their checks
  bool lost = false;
  std::vector<bool> graphs; ///< `useGraph` of each run

  /// Greater than 0 while this thread is in a function of a fake device.
  static thread_local int inside;

  runtime::Device device() const override;
  std::string description() const override { return "fake"; }
  bool isLost() const override { return lost; }
  Result<void *> allocate(int64_t bytes, Stream stream) override;
  void release(void *data, Stream stream,
               std::span<const Stream> others) override;
  Result<void *> allocatePinned(int64_t bytes) override;
  void releasePinned(void *data) override;
  Status copy(void *to, const void *from, int64_t bytes,
              Stream stream) override;
  Status copyStrided(const runtime::StridedCopy &copy, Stream stream) override;
  Status zero(void *to, int64_t bytes, Stream stream) override;
  Status add(artifact::DType dtype, void *to, const void *x, const void *y,
             int64_t elements, Stream stream) override;
  Status fill(artifact::DType dtype, void *to, double value, int64_t elements,
              Stream stream) override;
  bool owns(const void *pointer) const override;
  Status wait(Stream waiter, Stream producer) override;
  Status record(Fence &fence, Stream stream) override;
  Status waitFor(Stream waiter, Fence fence) override;
  Status await(Fence fence) override;
  void releaseFence(Fence fence) override;
  Status synchronize(Stream stream) override;
  bool isCapturing(Stream stream) const override;
  void breakCapture(Stream stream) override;
  Result<Stream> side(int number) override;
  Result<std::unique_ptr<runtime::DeviceCode>>
  load(const artifact::ArtifactReader &reader,
       const runtime::LoadOptions &options) override;

  /// Queues work on a stream; what it touches of the memory is open meanwhile.
  Status enqueue(Stream stream, std::function<void()> work);

private:
  struct Queue {
    std::string name;
    std::deque<std::function<void()>> work;
    size_t done = 0;
    bool isCaptured = false;
    std::string forbidden; ///< what was asked for during the capture
    std::vector<std::function<void()>> captured;
  };
  struct Point {
    Queue *queue = nullptr;
    size_t position = 0;
  };
  struct Block {
    int64_t bytes;
    std::vector<Point> users; ///< of a free one
  };

  Queue &queueOf(Stream stream) const;
  Point now(Stream stream) const;
  void runTo(Point point);
  Status forbid(const std::string &what, Stream stream);
  bool isInside(const void *pointer) const;

  int index;
  char *memory = nullptr;
  size_t used = 0;
  mutable std::recursive_mutex mutex; ///< guards everything
  int open = 0;                       ///< work that runs now
  std::map<char *, Block> blocks, freed;
  std::map<char *, int64_t> pinned;
  mutable Queue defaultQueue;
  std::deque<Queue> queues;
  std::map<int, Stream> sides;
  std::vector<std::string> log;
};

} // namespace tandem::test

#endif
