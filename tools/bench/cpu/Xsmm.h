//===- Xsmm.h - small matrix products of libxsmm --------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_XSMM_H
#define TANDEM_TOOLS_BENCH_CPU_XSMM_H

#include "tools/bench/cpu/Case.h"
#include "tools/bench/cpu/Product.h"

namespace tandem::bench {

/// Where libxsmm is looked for, beside the loader's places.
void setXsmm(const std::string &path);
/// Returns "" if it was found, else why not.
std::string xsmmProblem();

/// Its kernels over tiles of the result, with the whole of K, the tiles
/// divided among threads of OpenMP; tiles of several sizes.
Peer xsmm(const Product &product);

} // namespace tandem::bench

#endif
