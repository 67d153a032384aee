//===- Product.h - the sizes of a matrix product --------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_PRODUCT_H
#define TANDEM_TOOLS_BENCH_CPU_PRODUCT_H

#include <cstdint>

namespace tandem::bench {

/// y[b] = op(lhs[b]) op(rhs[b]), sizes M x N x K, row-major.
struct Product {
  int64_t batch = 1, m, n, k;
  bool transposeLhs = false, transposeRhs = false;
};

} // namespace tandem::bench

#endif
