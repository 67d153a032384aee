//===- Emulation.h - the format of emulation images -----------------------===//
//
// What the section "emulation" holds: an ELF shared object with one
// exported symbol, `tandem_emulation`, an EmulatedImage. The compiler writes
// it (compiler/emit/Emulation.h), the kernel emulator loads it. The kernels
// reach the emulator through `functions` only, which the loader fills in.
//
// A function of the emulator is called by the name of the intrinsic that it
// stands for, without "llvm.nvvm." (EmulatedFunctions.def). Its arguments are
// those of the intrinsic: integers of up to 32 bits as uint32_t, 16-bit floats
// and vectors of up to 64 bits as integers of their size. What is not a pure
// function of its arguments gets the thread first; a result that is no scalar
// is written through a pointer that comes next.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_EMULATION_H
#define TANDEM_RUNTIME_ARTIFACT_EMULATION_H

#include <cstddef>
#include <cstdint>

namespace tandem::artifact {

constexpr uint32_t kEmulationVersion = 1;
constexpr const char *kEmulationSymbol = "tandem_emulation";

/// What kernels read of the thread that runs them, inline; the emulator's own
/// state of the thread follows it in memory. Offsets are part of the format.
struct EmulatedThread {
  uint32_t tid[3];    ///< at 0
  uint32_t ntid[3];   ///< at 12
  uint32_t ctaid[3];  ///< at 24
  uint32_t nctaid[3]; ///< at 36
  uint32_t lane;      ///< at 48
  uint32_t warp;      ///< at 52
  uint32_t warps;     ///< at 56: warps of the block
  uint32_t site;      ///< at 60: the place of the running operation, written by
                      ///< the kernel
  std::byte *shared;  ///< at 64: the block's shared memory, at a multiple of
                      ///< 256 KiB, so that the low 18 bits are the offset
  uint32_t dynamicShared; ///< at 72: bytes of it
  uint32_t totalShared;   ///< at 76
};

/// Bits of EmulatedKernel::flags.
enum : uint32_t {
  kEmulatedSynchronizes = 1, ///< threads wait for one another
  kEmulatedPartialSync = 2,  ///< also by less than barriers of the whole block
  kEmulatedHandsOver = 4,    ///< has atomic accesses to global memory
};

/// Bits of the last argument of the check functions.
enum : uint32_t {
  kAccessWrite = 1,
  kAccessAtomic = 2,
  kAccessShared = 4,     ///< the address is known to be one in shared memory
  kAccessModifies = 8,   ///< an atomic write that reads, too
  kAccessAlignShift = 8, ///< bits 8 and up: the logarithm of the alignment
};

/// Types of elements of a matrix product.
enum class MmaType : uint8_t {
  F16,
  BF16,
  TF32,
  F32,
  F64,
  S8,
  U8,
  S32,
  E4M3,
  E5M2
};

/// What a matrix product is: D (m x n) = A (m x k) B (k x n) + C, C of D's
/// type.
struct MmaCode {
  uint8_t m = 0, n = 0;
  uint8_t k = 0;
  MmaType a = MmaType::F16, b = MmaType::F16, d = MmaType::F32;
  uint8_t saturates = 0; ///< integers
  uint8_t zero = 0;
};
static_assert(sizeof(MmaCode) == 8);

/// wgmma.mma_async: D (64 x n) = A B + D, k of 32 bytes. The operands are D's
/// registers; scale-d; A's descriptor or four registers; B's descriptor.
struct WgmmaCode {
  enum : uint8_t {
    kARegisters = 1,
    kTransposeA = 2,
    kTransposeB = 4,
    kNegateA = 8,
    kNegateB = 16
  };
  uint8_t n8 = 0; ///< n / 8
  MmaType a = MmaType::F16, b = MmaType::F16, d = MmaType::F32;
  uint8_t flags = 0;
  uint8_t zero[3] = {};
};
static_assert(sizeof(WgmmaCode) == 8);

/// An ldmatrix: the lane's row, how many matrices, whether they are transposed.
struct MatrixLoad {
  const void *row;
  uint32_t number, transposed;
};

struct EmulatedKernel {
  const char *name;
  void (*run)(EmulatedThread *thread, void **parameters);
  const uint32_t *parameterBytes;
  uint32_t parameterCount;
  uint32_t flags;
  uint64_t sharedBytes; ///< static
  uint64_t localBytes;  ///< of one thread: its variables in local memory
};

/// Constant data of the image that kernels may read.
struct EmulatedConstant {
  const void *data;
  uint64_t bytes;
};

/// Kernels that were compiled together; a site is a number in their list.
struct EmulatedChunk {
  uint32_t kernelCount;
  uint32_t constantCount;
  const EmulatedKernel *kernels;
  const char *const *functionNames;
  void **functions;
  uint32_t functionCount;
  uint32_t siteCount;
  const char *const *sites; ///< what is done where, for messages
  const EmulatedConstant *constants;
};

struct EmulatedImage {
  uint32_t version;
  uint32_t chunkCount;
  const EmulatedChunk *const *chunks;
};

} // namespace tandem::artifact

#endif
