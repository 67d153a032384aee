//===- Exchanges.h - which collectives of a program go together -----------===//
//
// Small all-reduces that follow each other are one exchange, a bucket: ranks
// meet once for them, and wait for the slowest of them once. Which ones these
// are follows from the artifact alone, so that all ranks join the same ones.
// On processors sums have the same bits in any case: elements are added in the
// order of the ranks. On GPUs an exchange is one group of calls of NCCL, which
// chooses an order by the bytes of the group.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_EXCHANGES_H
#define TANDEM_RUNTIME_ARTIFACT_EXCHANGES_H

#include "runtime/artifact/Manifest.h"

namespace tandem::artifact {

/// Returns, for each launch of a program of a validated manifest, whether it is
/// a collective that goes in one exchange with the launch before it.
std::vector<bool> joinsTheOneBefore(const Manifest &manifest,
                                    const Program &program);

} // namespace tandem::artifact

#endif
