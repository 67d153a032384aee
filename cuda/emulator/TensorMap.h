//===- TensorMap.h - what TMA copies are told about a tensor --------------===//
//
// The emulator's own contents of a CUtensorMap (128 bytes, 64-byte aligned):
// cuTensorMapEncodeTiled of the driver emulator writes it, the kernel emulator
// reads it. Fields are as in that call.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_TENSORMAP_H
#define TANDEM_CUDA_EMULATOR_TENSORMAP_H

#include <cstdint>

namespace tandem::emulator {

struct alignas(64) TensorMap {
  static constexpr uint32_t kMagic = 0x70414d54;
  /// An elementType: CU_TENSOR_MAP_DATA_TYPE_TFLOAT32.
  static constexpr uint8_t kTf32 = 11;

  uint32_t magic = kMagic;
  uint8_t elementType = 0; ///< CUtensorMapDataType
  uint8_t elementBytes = 0;
  uint8_t rank = 0;       ///< 1 to 5
  uint8_t interleave = 0; ///< CUtensorMapInterleave; 0 only
  uint8_t swizzle = 0;    ///< CUtensorMapSwizzle: 0, 32, 64, 128 bytes: 0 to 3
  uint8_t l2Promotion = 0;
  uint8_t nanFill = 0; ///< out of bounds reads give NaN instead of zero
  uint8_t zero[5] = {};
  uint64_t address = 0;     ///< of the tensor in global memory
  uint32_t sizes[5] = {};   ///< in elements, innermost first
  uint32_t boxes[5] = {};   ///< of one copy, in elements
  uint64_t strides[4] = {}; ///< in bytes, of dimensions 1 to 4
  uint8_t elementStrides[5] = {};
  uint8_t padding[3] = {};
};
static_assert(sizeof(TensorMap) == 128);

} // namespace tandem::emulator

#endif
