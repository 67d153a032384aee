//===- Roofs.h - what the machine can do ----------------------------------===//
//
// The rates that kernels are compared with: fused multiply-adds on registers
// alone, in the widest vectors that this processor has, and bytes that are
// copied. They take part in the rounds of a case like any contender, because
// the clock of a machine moves with its temperature and its neighbours.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_ROOFS_H
#define TANDEM_TOOLS_BENCH_CPU_ROOFS_H

#include "tools/bench/cpu/Case.h"

namespace tandem::bench {

/// Multiplies and adds on `threads` threads. A call is `roofFlops` operations
/// a thread; it is timed from when all threads are there.
Contender fmaRoof(int threads, DType dtype);
double roofFlops(DType dtype);

/// Copies so that `bytes` are read or written in all.
Contender copyOf(double bytes, int threads);

/// a[i] = b[i] + s * c[i] over arrays that fill no cache; 12 bytes an element.
Contender triad(int64_t elements, int threads);

} // namespace tandem::bench

#endif
