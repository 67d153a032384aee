//===- TensorMaps.h - tensors as bulk copies see them ---------------------===//
#ifndef TANDEM_CUDA_TENSORMAPS_H
#define TANDEM_CUDA_TENSORMAPS_H

#include "cuda/Context.h"
#include "runtime/artifact/Manifest.h"

namespace tandem::cuda {

/// Encodes the map of a tensor in the buffer at `address`. The map has passed
/// `artifact::validate`.
Status encodeTensorMap(const Context &context, const artifact::TensorMap &map,
                       void *address, driver::CUtensorMap &encoded);

} // namespace tandem::cuda

#endif
