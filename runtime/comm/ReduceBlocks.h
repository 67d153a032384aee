//===- ReduceBlocks.h - one block of numbers out of several ---------------===//
#ifndef TANDEM_RUNTIME_COMM_REDUCEBLOCKS_H
#define TANDEM_RUNTIME_COMM_REDUCEBLOCKS_H

#include "runtime/comm/Communicator.h"

#include <span>

namespace tandem::comm {

/// Writes ((b0 + b1) + b2) + ... of `blocks`, of `elements` each, to `to`,
/// which may be one of them. Integers wrap around. Fails for a sum of bools.
Status reduceBlocks(artifact::DType type, Reduce reduce,
                    std::span<const void *const> blocks, void *to,
                    int64_t elements);

} // namespace tandem::comm

#endif
