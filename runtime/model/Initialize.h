//===- Initialize.h - the first values of parameters and states -----------===//
//
// A counter-based generator: element i of a stream is a pure function of (seed,
// stream, i), so that any language, any order and any number of threads give
// the same bits. It is SplitMix64's finalizer over a Weyl sequence:
//
//   mix(z): z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
//           z = (z ^ (z >> 27)) * 0x94D049BB133111EB
//           z ^ (z >> 31)                                     (modulo 2^64)
//   key     = mix(seed * 2^32 + stream)
//   bits(i) = mix(key + (i + 1) * 0x9E3779B97F4A7C15)
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_MODEL_INITIALIZE_H
#define TANDEM_RUNTIME_MODEL_INITIALIZE_H

#include "runtime/artifact/Manifest.h"
#include "runtime/comm/Shard.h"
#include "runtime/tensor/Tensor.h"

#include <cstdint>
#include <string_view>

namespace tandem::runtime {

class CounterStream {
public:
  CounterStream(uint64_t seed, uint64_t stream)
      : key(mix((seed << 32) + stream)) {}

  uint64_t bits(uint64_t i) const {
    return mix(key + (i + 1) * 0x9E3779B97F4A7C15u);
  }
  /// Returns element `i` of a uniform f32 in [-0.5, 0.5), exactly
  /// representable.
  float centered(uint64_t i) const {
    return static_cast<float>(bits(i) >> 40) * 0x1p-24f - 0.5f;
  }
  /// Returns element `i` of a uniform double in [0, 1).
  double unit(uint64_t i) const {
    return static_cast<double>(bits(i) >> 11) * 0x1p-53;
  }

private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint64_t key;
};

/// Returns the stream of a name: its 64-bit FNV-1a hash.
uint64_t streamOf(std::string_view name);

/// Fills the dense tensor of the parameter or state `name`.
///
/// `counter`: element i is centered(i) * (f32)scale of stream (seed, stream).
/// `uniform`: low + (high - low) * unit(i) of stream (seed, streamOf(name)).
/// `normal`: Box-Muller in double over pairs of that stream, elements 2k and
/// 2k + 1 from bits 2k and 2k + 1: r = sqrt(-2 ln(1 - unit(2k))) and
/// mean + std * r * (cos, sin)(2 pi unit(2k + 1)).
/// All are rounded to the tensor's type once.
/// `seed`: the low 53 bits of the seed, then zeros; of i64.
/// With `shard`, the tensor is that piece of the parameter, and has what the
/// whole would have there.
void initialize(Tensor &tensor, const artifact::Init &init, uint64_t seed,
                std::string_view name, const comm::Shard *shard = nullptr);

} // namespace tandem::runtime

#endif
