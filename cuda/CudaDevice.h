//===- CudaDevice.h - a GPU for the runtime -------------------------------===//
//
// Implements runtime/device/Backend.h over the driver: memory, copies, the
// layer's own kernels, waits between streams, and loading of code. Errors carry
// the driver's name and words. What would disturb the capture of a graph (to
// allocate, to wait on the host) is refused while its stream captures, and ends
// the capture as the driver does: it cannot be made into a graph any more.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_CUDADEVICE_H
#define TANDEM_CUDA_CUDADEVICE_H

#include "cuda/Libraries.h"
#include "cuda/MemoryCache.h"
#include "cuda/Profile.h"
#include "cuda/Staging.h"

namespace tandem::cuda {

class CudaDevice final : public runtime::Backend {
public:
  static Result<std::shared_ptr<runtime::Backend>>
  open(std::shared_ptr<const Driver> driver, runtime::Device device,
       LibraryFiles libraries = LibraryFiles::installed());
  ~CudaDevice() override;

  runtime::Device device() const override { return context->device(); }
  std::string description() const override;
  bool isLost() const override { return context->isLost(); }

  Result<void *> allocate(int64_t bytes, runtime::Stream stream) override;
  void release(void *data, runtime::Stream stream,
               std::span<const runtime::Stream> others) override;
  Status limitMemory(int64_t bytes) override;
  int64_t memoryLimit() const override { return memory->limitSet(); }
  Result<void *> allocatePinned(int64_t bytes) override;
  void releasePinned(void *data) override;
  Status registerHost(void *data, int64_t bytes) override;
  void unregisterHost(void *data) override;
  bool isPinned(const void *data) const override;
  void usePinned(const void *data, int64_t bytes, bool isWrite) override;

  Status copy(void *to, const void *from, int64_t bytes,
              runtime::Stream stream) override;
  Status copyFrom(runtime::Backend &other, const void *from,
                  runtime::Stream otherStream, void *to, int64_t bytes,
                  runtime::Stream stream) override;
  Status copyStrided(const runtime::StridedCopy &copy,
                     runtime::Stream stream) override;
  Status zero(void *to, int64_t bytes, runtime::Stream stream) override;
  Status add(artifact::DType dtype, void *to, const void *x, const void *y,
             int64_t elements, runtime::Stream stream) override;
  Status fill(artifact::DType dtype, void *to, double value, int64_t elements,
              runtime::Stream stream) override;

  bool owns(const void *pointer) const override;

  Status wait(runtime::Stream waiter, runtime::Stream producer) override;
  Status waitFor(runtime::Stream waiter, runtime::Fence fence) override;
  Status record(runtime::Fence &fence, runtime::Stream stream) override;
  Status await(runtime::Fence fence) override;
  void releaseFence(runtime::Fence fence) override;
  Status synchronize(runtime::Stream stream) override;
  bool isCapturing(runtime::Stream stream) const override;
  void breakCapture(runtime::Stream stream) override;
  Result<runtime::Stream> side(int number) override;

  Status choose(artifact::ArtifactReader &reader,
                const std::string &variant) const override;
  Result<std::unique_ptr<runtime::DeviceCode>>
  load(const artifact::ArtifactReader &reader,
       const runtime::LoadOptions &options) override;

  Status startProfile() override;
  Result<std::string> stopProfile() override;
  void beginPhase(const char *name) override;
  void endPhase() override;

  MemoryCache::Usage memoryUsage() const { return memory->usage(); }

private:
  CudaDevice() = default;
  enum class MemoryKind { Device, Pinned, Pageable };
  MemoryKind kindOf(const void *pointer) const;
  Status loadBuiltins();
  Status connect(CudaDevice &other);
  Status copyThroughHost(CudaDevice &other, const void *from,
                         runtime::Stream otherStream, void *to, int64_t bytes,
                         runtime::Stream stream);
  Status copyOverlapping(void *to, const void *from, int64_t bytes,
                         runtime::Stream stream);
  Status launch(const char *kernel, int64_t threads, void **parameters,
                driver::CUstream stream);
  Status forbid(const std::string &what, driver::CUstream stream);

  // In the order of their making: each uses those before it.
  std::unique_ptr<Context> context;
  std::unique_ptr<EventPool> events;
  std::unique_ptr<SideStreams> streams;
  std::unique_ptr<MemoryCache> memory;
  std::unique_ptr<Staging> staging;
  std::unique_ptr<Libraries> libraries;
  CurrentProfile profile;
  std::mutex peersMutex; ///< of the member below
  /// Other devices whose memory this one was given access to, or cannot be.
  std::vector<driver::CUcontext> peers;
  driver::CUmodule builtins = nullptr;
  std::map<std::string, driver::CUfunction, std::less<>> builtinFunctions;
};

} // namespace tandem::cuda

#endif
