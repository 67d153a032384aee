//===- MatmulKernel.h - kernels of matrix products, for tests -------------===//
#ifndef TANDEM_TESTS_LOWER_ANCHOR_MATMULKERNEL_H
#define TANDEM_TESTS_LOWER_ANCHOR_MATMULKERNEL_H

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::test {

struct Product {
  std::vector<int64_t> batch;
  int64_t M, N, K;
  bool transposeLhs = false, transposeRhs = false;
  std::string element = "f32";
};

/// What stands behind a product: nothing; a bias and tanh; or a momentum and
/// what it is subtracted from, both of which are results.
enum class ProductEnd { None, Bias, Update };

/// The module of a kernel (see kernelModule) of the product and its end.
std::string productKernel(const Product &product,
                          ProductEnd end = ProductEnd::None);

/// The same of a product without a batch whose right factor lies in panels
/// of so many columns (passes/common/PackedWeights.h), and to which a tensor is
/// added.
std::string panelProductKernel(const Product &product, int64_t columns);

} // namespace tandem::test

#endif
