//===- Storage.cpp - blocks of memory -------------------------------------===//
//
// See Storage.h. Memory comes from the device's backend.
//
//===----------------------------------------------------------------------===//
#include "runtime/tensor/Storage.h"
#include "runtime/device/Backend.h"

#include <algorithm>
#include <atomic>

namespace tandem::runtime {

namespace {

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

void Storage::giveBack() {
  if (whole_)
    return whole_.reset();
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
  storage->bytes_ = bytes;
  storage->room_ = allocated(bytes);
  Result<void *> data =
      storage->backend_->allocate(storage->room_, storage->stream_);
  if (!data)
    return std::move(data).status();
  storage->data_ = *data;
  storage->owned_ = true;
  storage->account_ = std::move(account);
  if (storage->account_)
    storage->account_->add(storage->room_);
  return storage;
}

int64_t Storage::allocated(int64_t bytes) {
  return rounded(std::max<int64_t>(bytes, 1));
}

std::shared_ptr<Storage> Storage::partOf(std::shared_ptr<Storage> whole,
                                         int64_t offset, int64_t bytes) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->data_ = static_cast<char *>(whole->data()) + offset;
  storage->bytes_ = storage->room_ = bytes;
  storage->backend_ = whole->backend_;
  storage->owned_ = storage->isFixed_ = true;
  storage->whole_ = std::move(whole);
  return storage;
}

std::shared_ptr<Storage> Storage::wrap(void *data, int64_t bytes, Device device,
                                       std::function<void()> release) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->data_ = data;
  storage->bytes_ = storage->room_ = bytes;
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
    account_->remove(room_);
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
  const int64_t room = rounded(bytes);
  Stream stream = currentStream(device_);
  useOn(stream);
  void *larger = nullptr;
  if (room) {
    Result<void *> made = backend_->allocate(room, stream);
    if (!made)
      return std::move(made).status();
    larger = *made;
    int64_t kept = std::min(bytes_, bytes);
    Status status;
    if (kept)
      status = backend_->copy(larger, data_, kept, stream);
    if (!status) {
      backend_->release(larger, stream, {});
      return status;
    }
  }
  giveBack();
  stream_ = stream;
  userCount_ = 0;
  if (account_) {
    account_->remove(room_);
    account_->add(room);
  }
  data_ = larger;
  bytes_ = bytes;
  room_ = room;
  wasResized_ = true;
  bumpVersion();
  return Status::success();
}

} // namespace tandem::runtime
