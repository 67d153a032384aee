//===- CheckValues.h - labels and indices of an input ---------------------===//
#ifndef TANDEM_RUNTIME_CALL_CHECKVALUES_H
#define TANDEM_RUNTIME_CALL_CHECKVALUES_H

#include "runtime/artifact/Manifest.h"
#include "runtime/comm/Shard.h"
#include "runtime/tensor/Tensor.h"

namespace tandem::runtime {

/// Returns what is wrong with the elements of a tensor of the host for the
/// input `value`, as "expected integers from 0 to 6 but row 3 is 9", or an
/// empty text. `rank`: whose piece of the value it is, if it is not all.
std::string valuesOutside(const Tensor &tensor, const artifact::Value &value,
                          const comm::MeshRank *rank = nullptr);

} // namespace tandem::runtime

#endif
