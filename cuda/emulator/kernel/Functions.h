//===- Functions.h - what kernels call ------------------------------------===//
//
// One C++ function per entry of runtime/artifact/EmulatedFunctions.def, by the
// calling convention of runtime/artifact/Emulation.h. They run on the fiber of
// the thread that calls them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNEL_FUNCTIONS_H
#define TANDEM_CUDA_EMULATOR_KERNEL_FUNCTIONS_H

#include "cuda/emulator/kernel/Block.h"

#include <string_view>

namespace tandem::emulator::kernel {

/// Returns the function called `name`, or null.
void *findFunction(std::string_view name);

inline Thread &threadOf(artifact::EmulatedThread *thread) {
  return *static_cast<Thread *>(thread);
}

namespace functions {

/// Fails unless the thread's warp has 32 threads.
void requireWholeWarp(Thread &thread, const char *name);

using T = artifact::EmulatedThread *;
using u32 = uint32_t;
using u64 = uint64_t;

// Checks.
void checkAccess(T, const void *pointer, u32 bytes, u32 flags, u32 site);
void checkRange(T, const void *pointer, u64 bytes, u32 flags, u32 site);
void checkLocal(T, const void *pointer, u32 bytes, const void *variable,
                u64 variableBytes, u32 site);
void trap(T);

// Fences for the other blocks of the device.
void fenceBoth(T);
void fenceAcquire(T);
void fenceRelease(T);
// Fences for the asynchronous proxy: of all that was written, of mbarriers that
// were initialized.
void fenceProxy(T);
void fenceMbarriers(T);

// Barriers.
void barrierSyncAll(T, u32 id);
void barrierSyncAlignedAll(T, u32 id);
void barrierSyncCount(T, u32 id, u32 count);
void barrierSyncAlignedCount(T, u32 id, u32 count);
void barrierArriveCount(T, u32 id, u32 count);
u32 barrierRedPopcAll(T, u32 id, u32 value);
u32 barrierRedAndAll(T, u32 id, u32 value);
u32 barrierRedOrAll(T, u32 id, u32 value);
void barWarpSync(T, u32 mask);

// Warp collectives.
u32 shflBfly(T, u32 mask, u32 value, u32 b, u32 c);
u32 shflIdx(T, u32 mask, u32 value, u32 b, u32 c);
u32 shflUp(T, u32 mask, u32 value, u32 b, u32 c);
u32 shflDown(T, u32 mask, u32 value, u32 b, u32 c);
void shflBflyP(T, u32 *out, u32 mask, u32 value, u32 b, u32 c);
void shflIdxP(T, u32 *out, u32 mask, u32 value, u32 b, u32 c);
void shflUpP(T, u32 *out, u32 mask, u32 value, u32 b, u32 c);
void shflDownP(T, u32 *out, u32 mask, u32 value, u32 b, u32 c);
u32 voteAll(T, u32 mask, u32 value);
u32 voteAny(T, u32 mask, u32 value);
u32 voteUni(T, u32 mask, u32 value);
u32 voteBallot(T, u32 mask, u32 value);
u32 matchAny32(T, u32 mask, u32 value);
u32 matchAny64(T, u32 mask, u64 value);
void matchAll32(T, u32 *out, u32 mask, u32 value);
void matchAll64(T, u32 *out, u32 mask, u64 value);
u32 reduxAdd(T, u32 value, u32 mask);
u32 reduxUmin(T, u32 value, u32 mask);
u32 reduxUmax(T, u32 value, u32 mask);
u32 reduxMin(T, u32 value, u32 mask);
u32 reduxMax(T, u32 value, u32 mask);
u32 reduxAnd(T, u32 value, u32 mask);
u32 reduxOr(T, u32 value, u32 mask);
u32 reduxXor(T, u32 value, u32 mask);
void electSync(T, u32 *out, u32 mask);
u32 activeMask(T);
void nanosleep(T, u32 time);
u64 threadClock(T);

// Asynchronous copies (cp.async).
void cpAsync4(T, std::byte *to, const std::byte *from);
void cpAsync8(T, std::byte *to, const std::byte *from);
void cpAsync16(T, std::byte *to, const std::byte *from);
void cpAsync4Some(T, std::byte *to, const std::byte *from, u32 read);
void cpAsync8Some(T, std::byte *to, const std::byte *from, u32 read);
void cpAsync16Some(T, std::byte *to, const std::byte *from, u32 read);
void cpAsyncCommit(T);
void cpAsyncWait(T, u32 most);
void cpAsyncWaitAll(T);

// Matrices. `code` is artifact::MmaCode; several calls come as one. stmatrix
// gets the number of matrices and whether they are transposed.
using artifact::MatrixLoad;
void mma(T, u32 *out, const u32 *in, u64 code, u32 count);
void ldmatrix(T, u32 *out, const MatrixLoad *loads, u32 count);
void stmatrix(T, void *row, const u32 *in, u32 number, u32 transposed);

// Barriers in shared memory. try_wait waits as long as it takes.
void mbarrierInit(T, void *barrier, u32 count);
void mbarrierInval(T, void *barrier);
u64 mbarrierArrive(T, void *barrier);
u64 mbarrierArriveCount(T, void *barrier, u32 count);
u64 mbarrierArriveExpect(T, void *barrier, u32 bytes);
void mbarrierExpect(T, void *barrier, u32 bytes);
u32 mbarrierTest(T, void *barrier, u64 state);
u32 mbarrierTestParity(T, void *barrier, u32 parity);
u32 mbarrierWait(T, void *barrier, u64 state);
u32 mbarrierWaitParity(T, void *barrier, u32 parity);
u32 mbarrierWaitParityFor(T, void *barrier, u32 parity, u32 time);
void mbarrierLoopParity(T, void *barrier, u32 parity, u32 time);

// Bulk copies.
void tmaLoad(T, std::byte *to, void *barrier, const void *map,
             const u32 *coordinates, u32 rank);
void tmaStore(T, const std::byte *from, const void *map, const u32 *coordinates,
              u32 rank);
void bulkLoad(T, std::byte *to, void *barrier, const std::byte *from, u32 bytes,
              u32 multicast, u64 hint, u32 isMulticast, u32 hasHint);
void bulkStore(T, std::byte *to, const std::byte *from, u32 bytes, u64 hint,
               u32 hasHint);
void bulkCommit(T);
void bulkWait(T, u32 most);

// Products of a warpgroup (artifact::WgmmaCode).
void wgmma(T, u32 *out, const u32 *in, u64 code);
void wgmmaFence(T);
void wgmmaCommit(T);
void wgmmaWait(T, u64 most);

// Mathematics; ...Ftz flush denormals to zero.
float ex2(float x);
float ex2Ftz(float x);
float lg2(float x);
float lg2Ftz(float x);
float sine(float x);
float sineFtz(float x);
float cosine(float x);
float cosineFtz(float x);
float hyperbolicTangent(float x);
float reciprocal(float x);
float reciprocalFtz(float x);
double reciprocalDouble(double x);
float reciprocalRoot(float x);
float reciprocalRootFtz(float x);
double reciprocalRootDouble(double x);
float squareRoot(float x);
float squareRootFtz(float x);
double squareRootDouble(double x);
float quotient(float x, float y);
float quotientFtz(float x, float y);
double quotientDouble(double x, double y);
float sum(float x, float y);
double sumDouble(double x, double y);
float product(float x, float y);
double productDouble(double x, double y);
float fusedRn(float x, float y, float z);
double fusedRnDouble(double x, double y, double z);
float fusedRm(float x, float y, float z);
float fusedRp(float x, float y, float z);
float saturate(float x);
float saturateFtz(float x);
double saturateDouble(double x);
float absoluteFtz(float x);
float least(float x, float y);
float leastFtz(float x, float y);
float leastNan(float x, float y);
double leastDouble(double x, double y);
float greatest(float x, float y);
float greatestFtz(float x, float y);
float greatestNan(float x, float y);
double greatestDouble(double x, double y);
float down(float x);
double downDouble(double x);
float up(float x);
double upDouble(double x);
float toward(float x);
double towardDouble(double x);
float nearest(float x);
double nearestDouble(double x);

// Conversions.
u32 toIntRn(float x);
u32 toIntRz(float x);
u32 toIntRm(float x);
u32 toIntRp(float x);
u32 toUnsignedRn(float x);
u32 toUnsignedRz(float x);
u64 toLongRn(float x);
u64 toLongRz(float x);
u64 toUnsignedLongRz(float x);
u32 toTf32Rna(float x);
u32 toTf32Rn(float x);
u32 toBFloatRn(float x);
u32 toBFloatRnRelu(float x);
u32 toBFloatRz(float x);
u32 toBFloatPairRn(float high, float low);
u32 toBFloatPairRnRelu(float high, float low);
u32 toBFloatPairRz(float high, float low);
u32 toHalfRn(float x);
u32 toHalfPairRn(float high, float low);
u32 toHalfPairRnRelu(float high, float low);
u32 toE4M3Pair(float high, float low);
u32 toE4M3PairRelu(float high, float low);
u32 toE5M2Pair(float high, float low);
u32 toE5M2PairRelu(float high, float low);
u32 halfToE4M3Pair(u32 pair);
u32 halfToE5M2Pair(u32 pair);
u32 fromE4M3Pair(u32 pair);
u32 fromE5M2Pair(u32 pair);

// Integers.
u32 permute(u32 a, u32 b, u32 selector);
u32 highProduct(u32 a, u32 b);
u32 highProductUnsigned(u32 a, u32 b);
u64 highProductLong(u64 a, u64 b);
u64 highProductUnsignedLong(u64 a, u64 b);
u32 dotSigned(u32 a, u32 b, u32 c);
u32 dotUnsigned(u32 a, u32 b, u32 c);
u32 lowHalf(double x);
u32 highHalf(double x);
double fromHalves(u32 low, u32 high);

} // namespace functions
} // namespace tandem::emulator::kernel

#endif
