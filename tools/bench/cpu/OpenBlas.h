//===- OpenBlas.h - matrix products of OpenBLAS ---------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_OPENBLAS_H
#define TANDEM_TOOLS_BENCH_CPU_OPENBLAS_H

#include "tools/bench/cpu/Case.h"
#include "tools/bench/cpu/Product.h"

namespace tandem::bench {

/// Where OpenBLAS is looked for, beside the loader's places.
void setOpenBlas(const std::string &path);
/// Returns "" if it was found, else why not.
std::string openBlasProblem();

/// cblas_sgemm, once for each product of the batch.
Peer openBlas(const Product &product);

} // namespace tandem::bench

#endif
