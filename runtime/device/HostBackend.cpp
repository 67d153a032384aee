//===- HostBackend.cpp - the host as a device -----------------------------===//
#include "runtime/device/HostBackend.h"
#include "runtime/device/CpuFeatures.h"
#include "runtime/device/HostCode.h"
#include "runtime/tensor/ElementRows.h"
#include "runtime/tensor/Half.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sys/mman.h>

namespace tandem::runtime {

namespace {

/// What of a storage fills huge pages is made of them, so that walking through
/// it misses no translations.
constexpr size_t hugePage = 2 << 20;

/// Large storages begin at different places of a page: kernels that read and
/// write at one place of several pages at a time take up to 1.1 times as long.
/// Tensors that are made one after the other are often a kernel's; of the steps
/// 64 to 3520 this one cost no kernel more than 1 %.
constexpr size_t page = 4096, nextPlace = 3072;

size_t placeInPage() {
  static std::atomic<size_t> count{0};
  return count.fetch_add(1, std::memory_order_relaxed) * nextPlace % page;
}

template <typename T>
void addElements(void *to, const void *x, const void *y, int64_t count) {
  auto *sum = static_cast<T *>(to);
  const auto *a = static_cast<const T *>(x), *b = static_cast<const T *>(y);
  for (int64_t i = 0; i < count; ++i)
    sum[i] = a[i] + b[i];
}

template <float (*widen)(uint16_t), uint16_t (*narrow)(float)>
void addHalves(void *to, const void *x, const void *y, int64_t count) {
  auto *sum = static_cast<uint16_t *>(to);
  const auto *a = static_cast<const uint16_t *>(x),
             *b = static_cast<const uint16_t *>(y);
  for (int64_t i = 0; i < count; ++i)
    sum[i] = narrow(widen(a[i]) + widen(b[i]));
}

} // namespace

HostBackend &hostBackend() {
  static auto *made = new HostBackend;
  return *made;
}

Result<void *> HostBackend::allocate(int64_t bytes, Stream /*stream*/) {
  bool isLarge = bytes >= int64_t(hugePage);
  size_t place = isLarge ? placeInPage() : 0;
  size_t whole = static_cast<size_t>(bytes) + place;
  void *data = nullptr;
  if (::posix_memalign(&data, isLarge ? hugePage : storageAlignment, whole))
    return Status::failed("out of memory: cannot allocate " +
                          std::to_string(bytes) + " bytes");
  // Advice: where it is not taken, pages are small. The rest of the last page
  // is somebody else's.
  if (isLarge)
    (void)::madvise(data, whole / hugePage * hugePage, MADV_HUGEPAGE);
  if (!place)
    return data;
  void *begin = static_cast<char *>(data) + place;
  std::lock_guard lock(mutex);
  moved.emplace(begin, data);
  return begin;
}

void HostBackend::release(void *data, Stream /*stream*/,
                          std::span<const Stream> /*others*/) {
  // What was moved begins in a page, at a multiple of 1024.
  constexpr uintptr_t step = page - nextPlace;
  if (auto place = reinterpret_cast<uintptr_t>(data) % page;
      place && place % step == 0) {
    std::lock_guard lock(mutex);
    if (auto found = moved.find(data); found != moved.end()) {
      data = found->second;
      moved.erase(found);
    }
  }
  std::free(data);
}

Result<void *> HostBackend::allocatePinned(int64_t bytes) {
  return allocate(bytes, nullptr);
}

void HostBackend::releasePinned(void *data) { release(data, nullptr, {}); }

Status HostBackend::copy(void *to, const void *from, int64_t bytes,
                         Stream /*stream*/) {
  if (bytes)
    std::memmove(to, from, static_cast<size_t>(bytes));
  return Status::success();
}

Status HostBackend::copyStrided(const StridedCopy &copy, Stream /*stream*/) {
  runtime::copyStrided(copy.to, copy.toStrides, copy.from, copy.fromStrides,
                       copy.sizes, copy.elementBytes);
  return Status::success();
}

Status HostBackend::zero(void *to, int64_t bytes, Stream /*stream*/) {
  if (bytes)
    std::memset(to, 0, static_cast<size_t>(bytes));
  return Status::success();
}

Status HostBackend::add(artifact::DType dtype, void *to, const void *x,
                        const void *y, int64_t elements, Stream /*stream*/) {
  switch (dtype) {
  case artifact::DType::F32:
    addElements<float>(to, x, y, elements);
    return Status::success();
  case artifact::DType::F64:
    addElements<double>(to, x, y, elements);
    return Status::success();
  case artifact::DType::F16:
    addHalves<floatFromF16, f16FromFloat>(to, x, y, elements);
    return Status::success();
  case artifact::DType::BF16:
    addHalves<floatFromBF16, bf16FromFloat>(to, x, y, elements);
    return Status::success();
  default:
    return Status::usage("gradients of type '" + std::string(spelling(dtype)) +
                         "' cannot be added");
  }
}

Status HostBackend::fill(artifact::DType dtype, void *to, double value,
                         int64_t elements, Stream /*stream*/) {
  const int64_t one = 1;
  fillElements(dtype, to, {&elements, 1}, {&one, 1}, value);
  return Status::success();
}

Status HostBackend::choose(artifact::ArtifactReader &reader,
                           const std::string &variant) const {
  std::span<const artifact::Manifest> manifests = reader.manifests();
  std::string names, problems;
  std::optional<size_t> best;
  for (size_t i = 0; i < manifests.size(); ++i) {
    const artifact::Target &target = manifests[i].target;
    if (target.kind != "cpu")
      continue;
    names += (names.empty() ? "'" : ", '") + target.arch + "'";
    if (!variant.empty() && target.arch != variant)
      continue;
    std::string problem = cpuProblem(target.features);
    if (!problem.empty())
      problems += (problems.empty() ? "the artifact's code is for '"
                                    : "; other code is for '") +
                  target.arch + "' and " + problem;
    else if (!best ||
             target.features.size() > manifests[*best].target.features.size())
      best = i;
  }
  if (!best && problems.empty())
    return Status::usage("the artifact has no code for '" + variant +
                         "'; it has the variants " + names);
  if (!best)
    return Status::noDevice(problems);
  reader.choose(*best);
  return Status::success();
}

Result<std::unique_ptr<DeviceCode>>
HostBackend::load(const artifact::ArtifactReader &reader,
                  const LoadOptions &options) {
  return HostCode::load(reader, options);
}

} // namespace tandem::runtime
