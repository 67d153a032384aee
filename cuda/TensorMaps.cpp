//===- TensorMaps.cpp - tensors as bulk copies see them -------------------===//
#include "cuda/TensorMaps.h"

#include <algorithm>

namespace tandem::cuda {

using namespace driver;

namespace {
CUtensorMapDataType typeOf(const std::string &element) {
  return element == "i8"     ? CU_TENSOR_MAP_DATA_TYPE_UINT8
         : element == "f16"  ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
         : element == "bf16" ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
         : element == "tf32" ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                             : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

CUtensorMapSwizzle swizzleOf(int64_t bytes) {
  return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
         : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
         : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                       : CU_TENSOR_MAP_SWIZZLE_NONE;
}
} // namespace

Status encodeTensorMap(const Context &context, const artifact::TensorMap &map,
                       void *address, CUtensorMap &encoded) {
  constexpr size_t most = 5;
  uint64_t sizes[most] = {}, strides[most] = {};
  unsigned box[most] = {}, steps[most] = {1, 1, 1, 1, 1};
  std::copy(map.sizes.begin(), map.sizes.end(), sizes);
  std::copy(map.strides.begin(), map.strides.end(), strides);
  std::copy(map.box.begin(), map.box.end(), box);
  // Tiles of both factors are read again and again: L2 fetches whole lines.
  return context.check(context.call().tensorMapEncodeTiled(
                           &encoded, typeOf(map.element),
                           static_cast<unsigned>(map.sizes.size()),
                           static_cast<char *>(address) + map.offset, sizes,
                           strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                           swizzleOf(map.swizzle),
                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                       "cuTensorMapEncodeTiled");
}

} // namespace tandem::cuda
