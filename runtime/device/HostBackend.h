//===- HostBackend.h - the host as a device -------------------------------===//
//
// Internal to the runtime. Memory comes from the C library, elements are copied
// by loops, and all work is done on return: there is one stream, the default
// one, whatever is given as another; fences stay null and nothing is waited
// for. Kernels run on a pool of threads (HostCode.h). Beside `load`, `choose`
// and `allocate`, nothing here can fail.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_HOSTBACKEND_H
#define TANDEM_RUNTIME_DEVICE_HOSTBACKEND_H

#include "runtime/device/Backend.h"

#include <map>
#include <mutex>

namespace tandem::runtime {

class HostBackend final : public Backend {
public:
  Device device() const override { return {}; }
  std::string description() const override { return "cpu"; }
  bool isLost() const override { return false; }
  bool isQueued() const override { return false; }

  Result<void *> allocate(int64_t bytes, Stream stream) override;
  void release(void *data, Stream stream,
               std::span<const Stream> others) override;
  Result<void *> allocatePinned(int64_t bytes) override;
  void releasePinned(void *data) override;

  Status copy(void *to, const void *from, int64_t bytes,
              Stream stream) override;
  Status copyStrided(const StridedCopy &copy, Stream stream) override;
  Status zero(void *to, int64_t bytes, Stream stream) override;
  Status add(artifact::DType dtype, void *to, const void *x, const void *y,
             int64_t elements, Stream stream) override;
  Status fill(artifact::DType dtype, void *to, double value, int64_t elements,
              Stream stream) override;
  bool owns(const void * /*pointer*/) const override { return true; }

  Status wait(Stream /*waiter*/, Stream /*producer*/) override { return {}; }
  Status record(Fence & /*fence*/, Stream /*stream*/) override { return {}; }
  Status waitFor(Stream /*waiter*/, Fence /*fence*/) override { return {}; }
  Status await(Fence /*fence*/) override { return {}; }
  void releaseFence(Fence /*fence*/) override {}
  Status synchronize(Stream /*stream*/) override { return {}; }
  bool isCapturing(Stream /*stream*/) const override { return false; }
  void breakCapture(Stream /*stream*/) override {}
  Result<Stream> side(int /*number*/) override {
    return static_cast<Stream>(nullptr);
  }

  /// Of the variants that this processor can run, the one that uses most of it;
  /// or the one that is wanted.
  Status choose(artifact::ArtifactReader &reader,
                const std::string &variant) const override;
  Result<std::unique_ptr<DeviceCode>>
  load(const artifact::ArtifactReader &reader,
       const LoadOptions &options) override;

private:
  std::mutex mutex; ///< guards `moved`
  /// Of memory that does not begin where the C library put it: where that is.
  std::map<void *, void *> moved;
};

/// Returns the host's backend, which is never destroyed.
HostBackend &hostBackend();

} // namespace tandem::runtime

#endif
