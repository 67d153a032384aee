//===- Initialize.cpp - the first values of parameters and states ---------===//
//
// See Initialize.h for the formulas.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Initialize.h"
#include "runtime/tensor/Half.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

namespace tandem::runtime {

using artifact::Init;

namespace {

/// The place of one element after the other in the whole.
class Next {
public:
  explicit Next(const comm::Shard *shard) {
    if (shard)
      places.emplace(*shard);
  }
  int64_t operator()() { return places ? places->next() : whole++; }

private:
  std::optional<comm::Places> places;
  int64_t whole = 0;
};

/// Sets the element of a dense floating point tensor at place i, or at place i
/// of the whole that it is a piece of, to `value(i)`.
template <typename Fn>
void generate(Tensor &tensor, const comm::Shard *shard, Fn valueAt) {
  int64_t count = tensor.elements();
  Next next(shard);
  // Padding is zeros.
  auto value = [&](int64_t i) -> double { return i < 0 ? 0 : valueAt(i); };
  switch (tensor.dtype()) {
  case DType::F32: {
    auto *to = tensor.mutableData<float>();
    for (int64_t i = 0; i < count; ++i)
      to[i] = static_cast<float>(value(next()));
    return;
  }
  case DType::F64: {
    auto *to = tensor.mutableData<double>();
    for (int64_t i = 0; i < count; ++i)
      to[i] = value(next());
    return;
  }
  default: {
    bool isHalf = tensor.dtype() == DType::F16;
    auto *to = tensor.mutableData<uint16_t>();
    for (int64_t i = 0; i < count; ++i) {
      float rounded = floatRoundedToOdd(value(next()));
      to[i] = isHalf ? f16FromFloat(rounded) : bf16FromFloat(rounded);
    }
    return;
  }
  }
}

double normal(const CounterStream &stream, int64_t i) {
  auto pair = static_cast<uint64_t>(i) & ~uint64_t(1);
  // 1 - unit is in (0, 1]: the logarithm is finite.
  double r = std::sqrt(-2 * std::log(1 - stream.unit(pair)));
  double angle = 2 * std::numbers::pi * stream.unit(pair + 1);
  return r * (i & 1 ? std::sin(angle) : std::cos(angle));
}

} // namespace

uint64_t streamOf(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

void initialize(Tensor &tensor, const Init &init, uint64_t seed,
                std::string_view name, const comm::Shard *shard) {
  if (init.kind == Init::Kind::Counter) {
    CounterStream stream(seed, static_cast<uint64_t>(init.stream));
    auto scale = static_cast<float>(init.a);
    // One rounding to f32 first: that is the generator's definition.
    generate(tensor, shard, [&](int64_t i) -> double {
      return static_cast<float>(stream.centered(i) * scale);
    });
    return;
  }
  if (init.kind == Init::Kind::Seed) {
    auto *to = tensor.mutableData<int64_t>();
    std::fill_n(to, tensor.elements(), 0);
    if (shard && comm::Places(*shard).next() != 0)
      return;
    // 53 bits are integers that the reference, in double, has exactly.
    to[0] = static_cast<int64_t>(seed & ((uint64_t(1) << 53) - 1));
    return;
  }
  CounterStream stream(seed, streamOf(name));
  switch (init.kind) {
  case Init::Kind::Uniform:
    generate(tensor, shard, [&](int64_t i) {
      return init.a + (init.b - init.a) * stream.unit(i);
    });
    return;
  case Init::Kind::Normal:
    generate(tensor, shard,
             [&](int64_t i) { return init.a + init.b * normal(stream, i); });
    return;
  default:
    // The tensor is the model's own, on the host: filling cannot fail.
    (void)tensor.fill(init.a).ok();
    return;
  }
}

} // namespace tandem::runtime
