//===- BuiltinTwins.cpp - the device layer's own kernels, for the host ----===//
//
// The same results, bit for bit, as the kernels of cuda/BuiltinKernels.cpp.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/BuiltinTwins.h"

#include "cuda/BuiltinKernels.h"
#include "runtime/tensor/Half.h"

#include <cstring>

using namespace tandem::cuda;
using namespace tandem::emulator;
using namespace tandem::runtime;

namespace {
template <typename T> T *at(uint64_t address) {
  return reinterpret_cast<T *>(address);
}

template <typename T> T value(void **parameters, int index) {
  T result;
  std::memcpy(&result, parameters[index], sizeof(result));
  return result;
}

bool use(const TandemEmulatorLaunch *launch, const void *data, size_t bytes,
         bool isWrite) {
  return launch->access(launch, data, bytes, isWrite);
}

// A sum of floats, rounded once more to 16 bits, is the sum rounded once: a
// float has more than twice the digits.
float sum(float x, float y) { return x + y; }
double sum(double x, double y) { return x + y; }
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
F16 sum(F16 x, F16 y) {
  return {f16FromFloat(floatFromF16(x.bits) + floatFromF16(y.bits))};
}
BF16 sum(BF16 x, BF16 y) {
  return {bf16FromFloat(floatFromBF16(x.bits) + floatFromBF16(y.bits))};
}

template <typename T>
void add(void **parameters, const TandemEmulatorLaunch *launch) {
  auto *to = at<T>(value<uint64_t>(parameters, 0));
  const auto *x = at<T>(value<uint64_t>(parameters, 1));
  const auto *y = at<T>(value<uint64_t>(parameters, 2));
  const auto count = value<uint64_t>(parameters, 3);
  const size_t bytes = count * sizeof(T);
  if (!use(launch, x, bytes, false) || !use(launch, y, bytes, false) ||
      !use(launch, to, bytes, true))
    return;
  for (uint64_t i = 0; i < count; ++i)
    to[i] = sum(x[i], y[i]);
}

void fill(void **parameters, const TandemEmulatorLaunch *launch) {
  auto *to = at<uint64_t>(value<uint64_t>(parameters, 0));
  const auto bits = value<uint64_t>(parameters, 1);
  const auto count = value<uint64_t>(parameters, 2);
  if (use(launch, to, count * sizeof(bits), true))
    std::fill(to, to + count, bits);
}

template <typename T>
void copy(void **parameters, const TandemEmulatorLaunch *launch) {
  const auto to = value<uint64_t>(parameters, 0);
  const auto from = value<uint64_t>(parameters, 1);
  const auto count = value<uint64_t>(parameters, 2);
  const auto layout = value<StridedLayout>(parameters, 3);
  int64_t index[stridedRank] = {};
  for (uint64_t i = 0; i < count; ++i) {
    int64_t toOffset = 0, fromOffset = 0;
    for (int d = 0; d < stridedRank; ++d) {
      toOffset += index[d] * layout.toStrides[d];
      fromOffset += index[d] * layout.fromStrides[d];
    }
    auto *target = at<T>(to + static_cast<uint64_t>(toOffset));
    const auto *source = at<T>(from + static_cast<uint64_t>(fromOffset));
    if (!use(launch, source, sizeof(T), false) ||
        !use(launch, target, sizeof(T), true))
      return;
    *target = *source;
    for (int d = 0; d < stridedRank && ++index[d] == layout.sizes[d]; ++d)
      index[d] = 0;
  }
}
} // namespace

std::map<std::string, Twin> tandem::emulator::builtinTwins() {
  const std::vector<size_t> four(4, sizeof(uint64_t));
  const std::vector<size_t> three(3, sizeof(uint64_t));
  const std::vector<size_t> strided{sizeof(uint64_t), sizeof(uint64_t),
                                    sizeof(uint64_t), sizeof(StridedLayout)};
  return {
      {"tandem_add_f64", {four, add<double>}},
      {"tandem_add_f32", {four, add<float>}},
      {"tandem_add_f16", {four, add<F16>}},
      {"tandem_add_bf16", {four, add<BF16>}},
      {"tandem_fill_b64", {three, fill}},
      {"tandem_copy_b8", {strided, copy<uint8_t>}},
      {"tandem_copy_b16", {strided, copy<uint16_t>}},
      {"tandem_copy_b32", {strided, copy<uint32_t>}},
      {"tandem_copy_b64", {strided, copy<uint64_t>}},
  };
}
