//===- CudaModel.h - NVIDIA's GPUs as passes reckon with them -------------===//
#ifndef TANDEM_PASSES_TARGET_CUDAMODEL_H
#define TANDEM_PASSES_TARGET_CUDAMODEL_H

#include "passes/target/Machines.h"

#include "llvm/ADT/StringRef.h"

namespace tandem {

/// What "sm_90a" or "cuda:sm_90a" names; 0 where it is no such name.
struct CudaName {
  explicit CudaName(llvm::StringRef name);

  int64_t sm = 0;             ///< compute capability: 90
  bool isForOneAlone = false; ///< code for it runs nowhere else
};

/// What emitters ask of a GPU. Its rates are in the table of devices.
struct CudaModel {
  int64_t sm;              ///< compute capability: 90 for sm_90
  int64_t multiprocessors; ///< of the largest machine that is common
  int64_t sharedBytes;     ///< the most shared memory that a block can ask for
  const char *name;        ///< of that machine (Machines.h)

  /// The row of compute capability `sm`, or the nearest one before it.
  static const CudaModel &of(int64_t sm);
  /// The row of that machine.
  const DeviceRow &device() const;
};

/// mma.sync on sm_90: 62.9 % of what wgmma has, as we remember Luo et al.,
/// "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via
/// Microbenchmarking" (arXiv:2402.13499).
inline constexpr double mmaOnHopper = 0.62;

/// How many times as fast as f16 wgmma multiplies elements of 8 bits.
inline constexpr double byteRateOfWarpgroups = 2;
/// How many times as fast as f16 mma.sync multiplies elements of 8 bits on a
/// GPU of compute capability `sm`.
double byteRateByWarps(int64_t sm, bool isFloat);

} // namespace tandem

#endif
