//===- EntryTensorMaps.cpp - the driver's functions: tensor maps ----------===//
//
// cuTensorMapEncodeTiled refuses what the driver's documentation says that it
// does. The emulator's maps have a format of their own (TensorMap.h).
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/Entry.h"
#include "cuda/emulator/TensorMap.h"

#include <cstring>

using namespace tandem::emulator;

namespace tandem::cuda::driver {

static uint64_t bytesOf(CUtensorMapDataType type) {
  switch (type) {
  case CU_TENSOR_MAP_DATA_TYPE_UINT8:
    return 1;
  case CU_TENSOR_MAP_DATA_TYPE_UINT16:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
  case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
    return 2;
  case CU_TENSOR_MAP_DATA_TYPE_UINT32:
  case CU_TENSOR_MAP_DATA_TYPE_INT32:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
  case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
  case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
    return 4;
  case CU_TENSOR_MAP_DATA_TYPE_UINT64:
  case CU_TENSOR_MAP_DATA_TYPE_INT64:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
    return 8;
  }
  return 0;
}

CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, unsigned rank, void *address,
    const uint64_t *sizes, const uint64_t *strides, const unsigned *box,
    const unsigned *elementStrides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  return withDriver([&](Machine &m) {
    const uint64_t bytes = bytesOf(type);
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (!map || reinterpret_cast<uintptr_t>(map) % 64 || !bytes || rank < 1 ||
        rank > 5 || !address || at % 16 || !sizes || !box || !elementStrides ||
        (rank > 1 && !strides) || swizzle < CU_TENSOR_MAP_SWIZZLE_NONE ||
        swizzle > CU_TENSOR_MAP_SWIZZLE_128B ||
        promotion < CU_TENSOR_MAP_L2_PROMOTION_NONE ||
        promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
        fill < CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
        fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
      return CUDA_ERROR_INVALID_VALUE;
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
      return CUDA_ERROR_NOT_SUPPORTED;
    TensorMap made;
    made.elementType = static_cast<uint8_t>(type);
    made.elementBytes = static_cast<uint8_t>(bytes);
    made.rank = static_cast<uint8_t>(rank);
    made.swizzle = static_cast<uint8_t>(swizzle);
    made.l2Promotion = static_cast<uint8_t>(promotion);
    made.nanFill = fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    made.address = at;
    for (unsigned d = 0; d < rank; ++d) {
      if (sizes[d] < 1 || sizes[d] > uint64_t(1) << 32 || box[d] < 1 ||
          box[d] > 256 || elementStrides[d] < 1 || elementStrides[d] > 8)
        return CUDA_ERROR_INVALID_VALUE;
      if (d + 1 < rank && (strides[d] % 16 || strides[d] >= uint64_t(1) << 40))
        return CUDA_ERROR_INVALID_VALUE;
      if (sizes[d] == uint64_t(1) << 32) // one more than the emulator holds
        return CUDA_ERROR_NOT_SUPPORTED;
      made.sizes[d] = static_cast<uint32_t>(sizes[d]);
      made.boxes[d] = box[d];
      made.elementStrides[d] = static_cast<uint8_t>(elementStrides[d]);
      if (d + 1 < rank)
        made.strides[d] = strides[d];
    }
    // The rows of a box: pieces of 16 bytes, within the permuted span.
    const uint64_t row = box[0] * bytes;
    const uint64_t spans[] = {row, 32, 64, 128};
    if (row % 16 || row > spans[swizzle])
      return CUDA_ERROR_INVALID_VALUE;
    ++m.report.counts.tensorMaps;
    static_assert(sizeof(made) == sizeof(*map));
    std::memcpy(map, &made, sizeof(made));
    return CUDA_SUCCESS;
  });
}

} // namespace tandem::cuda::driver
