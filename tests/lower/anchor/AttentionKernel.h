//===- AttentionKernel.h - kernels of attention, for tests ----------------===//
#ifndef TANDEM_TESTS_LOWER_ANCHOR_ATTENTIONKERNEL_H
#define TANDEM_TESTS_LOWER_ANCHOR_ATTENTIONKERNEL_H

#include "tests/lower/anchor/KernelCheck.h"

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

/// BothGrads is the kernel of both gradients, which processors have.
enum class AttentionKernel { Forward, QueryGrad, KeyGrad, BothGrads };
inline constexpr AttentionKernel kAttentionKernels[] = {
    AttentionKernel::Forward, AttentionKernel::QueryGrad,
    AttentionKernel::KeyGrad};

/// The module of a kernel (see kernelModule) of the op alone.
std::string attentionKernel(const Heads &heads, AttentionKernel kernel);

/// Products are summed in f32; weights have the error of the instruction that
/// makes exponentials, and are rounded to 16 bits, as the gradients of scores
/// are, before they are factors. They are a few units here, and the rounding
/// errors of a sum of n of them add up at random.
Tolerance toleranceOf(const Heads &heads);

} // namespace tandem::test

#endif
