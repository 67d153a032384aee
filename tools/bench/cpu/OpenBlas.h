//===- OpenBlas.h - matrix products of OpenBLAS ---------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_OPENBLAS_H
#define TANDEM_TOOLS_BENCH_CPU_OPENBLAS_H

#include "tools/bench/cpu/Case.h"

namespace tandem::bench {

/// y[b] = op(lhs[b]) op(rhs[b]), sizes M x N x K, row-major.
struct Product {
  int64_t batch = 1, m, n, k;
  bool transposeLhs = false, transposeRhs = false;
};

/// Where OpenBLAS is looked for, beside the loader's places.
void setOpenBlas(const std::string &path);
/// Returns "" if it was found, else why not.
std::string openBlasProblem();

/// cblas_sgemm, once for each product of the batch.
Peer openBlas(const Product &product);

} // namespace tandem::bench

#endif
