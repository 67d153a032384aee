//===- NcclApi.h - the part of NCCL that is used --------------------------===//
//
// Own declarations of NCCL's C interface, so that nothing of it is needed to
// build. Names and values are those of its public header (nccl.h, 2.18 to
// 2.30); they stand in a namespace of their own. The functions are listed in
// NcclFunctions.def under the names by which the library exports them.
//
// The same declarations are what the driver emulator (cuda/emulator)
// implements. Needs NCCL 2.18 or later of major version 2.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_NCCLAPI_H
#define TANDEM_CUDA_NCCLAPI_H

#include "cuda/DriverApi.h"

#include <climits>
#include <cstddef>

namespace tandem::cuda::nccl {

using driver::CUstream;

/// As NCCL counts: 10000 * major + 100 * minor + patch. From `floats8` on it
/// reduces floats of 8 bits.
inline constexpr int oldest = 21800, tooNew = 30000, floats8 = 22400;

struct ncclComm;
using ncclComm_t = ncclComm *;

inline constexpr size_t NCCL_UNIQUE_ID_BYTES = 128;
/// Given by value, as in C.
struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
};

enum ncclResult_t : int {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};

enum ncclDataType_t : int {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
};

enum ncclRedOp_t : int {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
};

/// As it was in 2.18: `size` and `version` say so, and later libraries take
/// their defaults for what they have beside it. (Up to `splitShare`.)
struct ncclConfig_t {
  size_t size = sizeof(ncclConfig_t);
  unsigned magic = 0xcafebeef;
  unsigned version = oldest;
  int blocking = INT_MIN; ///< INT_MIN and null: the library's choice
  int cgaClusterSize = INT_MIN;
  int minCTAs = INT_MIN;
  int maxCTAs = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN;
};

/// The functions; of the library that was opened none is null.
struct Functions {
#define TANDEM_LIBRARY_FUNCTION(member, symbol, result, parameters)            \
  result(*member) parameters = nullptr;
#include "cuda/NcclFunctions.def"
#undef TANDEM_LIBRARY_FUNCTION
};

} // namespace tandem::cuda::nccl

#endif
