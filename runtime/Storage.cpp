//===- Storage.cpp - blocks of memory -------------------------------------===//
//
// See Storage.h. Host memory comes from the C library, a device's from its
// backend.
//
//===----------------------------------------------------------------------===//
#include "runtime/Storage.h"
#include "runtime/Backend.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace tandem::runtime {

namespace {

/// What of a storage fills huge pages is made of them, so that walking through
/// it misses no translations.
constexpr size_t hugePage = 2 << 20;
bool isLarge(int64_t bytes) { return bytes >= int64_t(hugePage); }

/// Large storages begin at different places of a page: kernels that read and
/// write at one place of several pages at a time take up to 1.1 times as long.
/// Tensors that are made one after the other are often a kernel's; of the steps
/// 64 to 3520 this one cost no kernel more than 1 % (docs/PERFORMANCE.md).
constexpr size_t page = 4096, nextPlace = 3072;

size_t placeInPage() {
  static std::atomic<size_t> count{0};
  return count.fetch_add(1, std::memory_order_relaxed) * nextPlace % page;
}

int64_t rounded(int64_t bytes) {
  auto align = static_cast<int64_t>(storageAlignment);
  return (bytes + align - 1) / align * align;
}

} // namespace

void MemoryAccount::add(int64_t bytes) {
  int64_t now = current.fetch_add(bytes) + bytes;
  int64_t highest = peak.load();
  while (now > highest && !peak.compare_exchange_weak(highest, now)) {
  }
}

/// Returns memory of a rounded size.
Result<void *> Storage::obtain(int64_t bytes, Stream stream) const {
  if (backend_)
    return backend_->allocate(bytes, stream);
  size_t place = isLarge(bytes) ? placeInPage() : 0;
  size_t whole = static_cast<size_t>(bytes) + place;
  void *data = nullptr;
  if (::posix_memalign(&data, isLarge(bytes) ? hugePage : storageAlignment,
                       whole))
    return Status::failed("out of memory: cannot allocate " +
                          std::to_string(bytes) + " bytes");
  // Advice: where it is not taken, pages are small. The rest of the last page
  // is somebody else's.
  if (isLarge(bytes))
    (void)::madvise(data, whole / hugePage * hugePage, MADV_HUGEPAGE);
  return static_cast<char *>(data) + place;
}

void Storage::giveBack() {
  if (whole_)
    return whole_.reset();
  if (!backend_) {
    auto place =
        isLarge(bytes_) ? reinterpret_cast<uintptr_t>(data_) % page : 0;
    return std::free(static_cast<char *>(data_) - place);
  }
  if (data_)
    backend_->release(data_, stream_,
                      {users_.data(), static_cast<size_t>(userCount_)});
}

Result<std::shared_ptr<Storage>>
Storage::allocate(int64_t bytes, std::shared_ptr<MemoryAccount> account,
                  Device device) {
  if (bytes < 0 || bytes > maxTensorBytes)
    return Status::failed("cannot allocate " + std::to_string(bytes) +
                          " bytes");
  Result<Backend *> backend = backendOf(device);
  if (!backend)
    return std::move(backend).status();
  std::shared_ptr<Storage> storage(new Storage);
  storage->device_ = device;
  storage->backend_ = *backend;
  storage->stream_ = currentStream(device);
  bytes = allocated(bytes);
  Result<void *> data = storage->obtain(bytes, storage->stream_);
  if (!data)
    return std::move(data).status();
  storage->data_ = *data;
  storage->bytes_ = bytes;
  storage->owned_ = true;
  storage->account_ = std::move(account);
  if (storage->account_)
    storage->account_->add(bytes);
  return storage;
}

int64_t Storage::allocated(int64_t bytes) {
  return rounded(std::max<int64_t>(bytes, 1));
}

std::shared_ptr<Storage> Storage::partOf(std::shared_ptr<Storage> whole,
                                         int64_t offset, int64_t bytes) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->data_ = static_cast<char *>(whole->data()) + offset;
  storage->bytes_ = bytes;
  storage->owned_ = storage->isFixed_ = true;
  storage->whole_ = std::move(whole);
  return storage;
}

std::shared_ptr<Storage> Storage::wrap(void *data, int64_t bytes, Device device,
                                       std::function<void()> release) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->device_ = device;
  if (Result<Backend *> backend = backendOf(device))
    storage->backend_ = *backend;
  storage->stream_ = currentStream(device);
  storage->release_ = std::move(release);
  return storage;
}

Storage::~Storage() {
  if (owned_)
    giveBack();
  if (account_)
    account_->remove(bytes_);
  // What fails here is a lost device: nothing uses the memory any more.
  for (int i = 0; !owned_ && i < userCount_; ++i)
    (void)backend_->wait(stream_, users_[i]).ok();
  if (release_)
    release_();
}

void Storage::noteUser(Stream stream) {
  while (usersLock.test_and_set(std::memory_order_acquire)) {
  }
  auto end = users_.begin() + userCount_;
  if (std::find(users_.begin(), end, stream) == end) {
    if (userCount_ < maxUsers) {
      users_[userCount_++] = stream;
    } else {
      // The list is full: the newcomer waits for the eldest, and so stands for
      // both.
      (void)backend_->wait(stream, users_[0]).ok();
      std::rotate(users_.begin(), users_.begin() + 1, users_.end());
      users_.back() = stream;
    }
  }
  usersLock.clear(std::memory_order_release);
}

Status Storage::checkResizable() const {
  if (!owned_)
    return Status::usage("expected storage that the runtime allocated but got "
                         "memory of somebody else");
  if (isFixed_)
    return Status::usage("expected storage that nobody else relies on but got "
                         "that of a model or of an exported tensor");
  return Status::success();
}

Status Storage::resize(int64_t bytes) {
  if (Status status = checkResizable(); !status)
    return status;
  if (bytes < 0 || bytes > maxTensorBytes)
    return Status::usage("expected a storage of 0 to 2^48 bytes but got " +
                         std::to_string(bytes));
  bytes = rounded(bytes);
  Stream stream = currentStream(device_);
  useOn(stream);
  void *larger = nullptr;
  if (bytes) {
    Result<void *> made = obtain(bytes, stream);
    if (!made)
      return std::move(made).status();
    larger = *made;
    int64_t kept = std::min(bytes_, bytes);
    if (kept && backend_) {
      if (Status status = backend_->copy(larger, data_, kept, stream);
          !status) {
        backend_->release(larger, stream, {});
        return status;
      }
    } else if (kept) {
      std::memcpy(larger, data_, kept);
    }
  }
  giveBack();
  stream_ = stream;
  userCount_ = 0;
  if (account_) {
    account_->remove(bytes_);
    account_->add(bytes);
  }
  data_ = larger;
  bytes_ = bytes;
  wasResized_ = true;
  bumpVersion();
  return Status::success();
}

} // namespace tandem::runtime
