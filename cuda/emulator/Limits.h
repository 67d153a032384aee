//===- Limits.h - what a device can do ------------------------------------===//
//
// The numbers of an H200.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_LIMITS_H
#define TANDEM_CUDA_EMULATOR_LIMITS_H

#include <cstddef>

namespace tandem::emulator {

inline constexpr unsigned kThreadsPerBlock = 1024;
inline constexpr unsigned kBlockX = 1024, kBlockY = 1024, kBlockZ = 64;
inline constexpr unsigned kGridX = 0x7fffffff, kGridY = 65535, kGridZ = 65535;
inline constexpr size_t kSharedPerBlock = 48 << 10;
/// Of a kernel that asked for it by cuFuncSetAttribute.
inline constexpr size_t kSharedPerBlockOptIn = 227 << 10;
inline constexpr size_t kSharedPerMultiprocessor = 228 << 10;
/// What the system takes of it for each block.
inline constexpr size_t kSharedReserved = 1 << 10;
inline constexpr unsigned kMultiprocessors = 132;
inline constexpr unsigned kThreadsPerMultiprocessor = 2048;
inline constexpr unsigned kBlocksPerMultiprocessor = 32;

} // namespace tandem::emulator

#endif
