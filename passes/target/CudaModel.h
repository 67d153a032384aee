//===- CudaModel.h - NVIDIA's GPUs as passes reckon with them -------------===//
#ifndef TANDEM_PASSES_TARGET_CUDAMODEL_H
#define TANDEM_PASSES_TARGET_CUDAMODEL_H

#include <cstdint>

namespace tandem {

/// A row of the table of GPUs. Rates are of data sheets, flops of dense
/// products; those of tensor cores for f16, bf16 and tf32.
struct CudaModel {
  int64_t sm;              ///< compute capability: 90 for sm_90
  int64_t multiprocessors; ///< of the largest machine that is common
  int64_t sharedBytes;     ///< the most shared memory that a block can ask for
  double memory;           ///< bytes in a second
  double f32;              ///< flops in a second
  double narrow;           ///< flops of tensor cores in a second
  double host;             ///< bytes in a second to or from the host's memory

  /// The row of compute capability `sm`, or the nearest one before it.
  static const CudaModel &of(int64_t sm);
};

} // namespace tandem

#endif
