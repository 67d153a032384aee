//===- AttentionKernel.h - kernels of attention, for tests ----------------===//
#ifndef TANDEM_TESTS_LOWER_ANCHOR_ATTENTIONKERNEL_H
#define TANDEM_TESTS_LOWER_ANCHOR_ATTENTIONKERNEL_H

#include <cstdint>
#include <optional>
#include <string>

namespace tandem::test {

struct Heads {
  std::string leading; ///< "2x3x"
  int64_t T, S, D, E;
  bool causal = false;
  std::string element = "f32";
  std::optional<double> scale = {}; ///< else 1 / sqrt(D)
};

enum class AttentionKernel { Forward, QueryGrad, KeyGrad };
inline constexpr AttentionKernel kAttentionKernels[] = {
    AttentionKernel::Forward, AttentionKernel::QueryGrad,
    AttentionKernel::KeyGrad};

/// The module of a kernel (see kernelModule) of the op alone.
std::string attentionKernel(const Heads &heads, AttentionKernel kernel);

} // namespace tandem::test

#endif
