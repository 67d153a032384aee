//===- Storage.h - blocks of memory ---------------------------------------===//
//
// A block of memory on the host or on a device, with a count of its writes.
// Memory of a device is allocated for a stream and given back to it; the
// storage remembers which other streams used it, so that its bytes are not used
// anew before they are done with it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_TENSOR_STORAGE_H
#define TANDEM_RUNTIME_TENSOR_STORAGE_H

#include "runtime/artifact/Status.h"
#include "runtime/device/Device.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace tandem::runtime {

class Backend;

/// The alignment in bytes of every storage that the runtime allocates.
inline constexpr size_t storageAlignment = 64;

/// The most bytes of a tensor or a storage.
inline constexpr int64_t maxTensorBytes = int64_t(1) << 48;

/// Counts the bytes of the storages charged to it; thread-safe.
struct MemoryAccount {
  std::atomic<int64_t> current{0};
  std::atomic<int64_t> peak{0};

  void add(int64_t bytes);
  void remove(int64_t bytes) { current -= bytes; }
};

class Storage {
public:
  /// Allocates `bytes` uninitialised bytes, aligned to `storageAlignment`, on
  /// the device's current stream, charged to `account` (may be null).
  static Result<std::shared_ptr<Storage>>
  allocate(int64_t bytes, std::shared_ptr<MemoryAccount> account = nullptr,
           Device device = {});

  /// The `bytes` of `whole`, memory of the host, from `offset` on: a storage
  /// like one that was allocated and fixed, which keeps `whole` alive, and is
  /// charged with it.
  static std::shared_ptr<Storage> partOf(std::shared_ptr<Storage> whole,
                                         int64_t offset, int64_t bytes);

  /// The bytes that are allocated for `bytes`: whole lines of a cache, at least
  /// one, so that no storage has a null or shared address.
  static int64_t allocated(int64_t bytes);

  /// Wraps memory of somebody else, for use on the device's current stream;
  /// `release` runs when the last user is gone: that stream then waits for all
  /// others that used the memory.
  static std::shared_ptr<Storage> wrap(void *data, int64_t bytes, Device device,
                                       std::function<void()> release);

  Storage(const Storage &) = delete;
  Storage &operator=(const Storage &) = delete;
  ~Storage();

  /// Frees the memory (`bytes` 0) or makes it this large, keeping the bytes
  /// that fit. Only memory that the runtime allocated, and that is neither a
  /// model's nor exported, can be resized. Bumps the version.
  Status resize(int64_t bytes);
  /// Refuses `resize` from now on.
  void fix() { isFixed_ = true; }
  /// Why `resize` cannot be, or success; allocates nothing on success.
  Status checkResizable() const;
  bool wasResized() const { return wasResized_; }

  /// Null if the storage is freed.
  void *data() const { return data_; }
  /// The bytes that tensors may reach.
  int64_t bytes() const { return bytes_; }
  /// Those that are allocated: whole lines.
  int64_t room() const { return room_; }
  Device device() const { return device_; }
  /// Null for devices that this program cannot open: foreign memory that it
  /// only passes on.
  Backend *backend() const { return backend_; }
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  void bumpVersion() { version_.fetch_add(1, std::memory_order_acq_rel); }
  /// Notes that the caller's code has the address: from now on versions do not
  /// tell of every write.
  void expose() { isExposed_ = true; }
  bool isExposed() const { return isExposed_; }

  /// Notes that a device may read the memory, which is of the host, after calls
  /// that copy it: the caller has said so (Tensor::wrapRegistered).
  void allowDirect() { isDirect_ = true; }
  bool isDirect() const { return isDirect_; }

  /// Notes that work queued on `stream`, before or after, uses the memory.
  /// Thread-safe; allocates nothing.
  void useOn(Stream stream) {
    if (backend_ && stream != stream_)
      noteUser(stream);
  }

private:
  Storage() = default;
  void giveBack();
  void noteUser(Stream stream);

  static constexpr int maxUsers = 6;

  void *data_ = nullptr;
  int64_t bytes_ = 0, room_ = 0;
  Device device_;
  Backend *backend_ = nullptr;
  Stream stream_ = nullptr; ///< that the memory was allocated for
  std::atomic<uint64_t> version_{0};
  std::atomic<bool> isExposed_{false};
  bool owned_ = false, isFixed_ = false, wasResized_ = false, isDirect_ = false;
  std::atomic_flag usersLock; ///< guards the two members below
  int userCount_ = 0;
  std::array<Stream, maxUsers> users_{}; ///< other streams that used it
  std::shared_ptr<MemoryAccount> account_;
  std::shared_ptr<Storage> whole_; ///< that this is a part of
  std::function<void()> release_;
};

} // namespace tandem::runtime

#endif
