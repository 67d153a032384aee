//===- LibraryTable.cpp - where a library is expected to be faster --------===//
//
// Source of the rows: arithmetic, no measurement. None of these choices has
// been timed on a device. A library call cannot hold what plan fuses around a
// product, keeps a launch of its own, and its choice of algorithm is not ours;
// so it is chosen only where Tandem's kernel leaves much of the machine idle:
//
// - bf16, f16 and tf32 on sm_90 and later: kernels for "sm_90" use mma.sync,
//   whose rate on that machine is well below wgmma's (about 60 % of it, by the
//   instruction tables of the architecture); only "sm_90a" code has wgmma.
//   Below some 10^9 operations (a few microseconds at 600 Tflop/s) a launch
//   costs as much as there is to gain.
// - f32 and f64: Tandem's kernels use the same instructions as the library's,
//   fused multiply-adds; there is at most a part to gain (register blocking,
//   f64's tensor cores), so that only large products go to the library, and
//   f64 on machines with f64 tensor cores (sm_80, sm_90).
// - convolutions: never. cuDNN's fast kernels want channels last, and images
//   here have channels first: it would transpose them.
// - products with relu: never. What cuBLASLt's relu makes of NaN is not said,
//   and Tandem's keeps it.
//
// A row that was measured says so in `source`.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/LibraryTable.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

#include <limits>

using namespace tandem;

namespace {
/// From `fromSm` up to `toSm`, products of this type of at least `flops`
/// operations, whose m, n and k are at least `size` and multiples of
/// `multiple`.
struct Row {
  llvm::StringLiteral type; ///< "tf32" for f32 that may be rounded
  int64_t fromSm, toSm;
  bool alsoExact; ///< for "sm_90a" and the like too
  double flops;
  int64_t size, multiple;
  llvm::StringLiteral source;
};
} // namespace

static constexpr int64_t kLatestSm = std::numeric_limits<int64_t>::max();

static constexpr Row rows[] = {
    {"bf16", 90, kLatestSm, false, 4e9, 512, 8,
     "arithmetic: wgmma against mma.sync"},
    {"f16", 90, kLatestSm, false, 4e9, 512, 8,
     "arithmetic: wgmma against mma.sync"},
    {"tf32", 90, kLatestSm, false, 4e9, 512, 4,
     "arithmetic: wgmma against mma.sync"},
    {"f32", 80, kLatestSm, true, 3e10, 1024, 4,
     "arithmetic: register blocking"},
    {"f64", 80, 80, true, 4e9, 512, 2, "arithmetic: tensor cores of f64"},
    {"f64", 90, 90, true, 4e9, 512, 2, "arithmetic: tensor cores of f64"},
};

bool tandem::prefersLibrary(const LibraryCase &product) {
  if (product.isConvolution || product.hasRelu)
    return false;
  llvm::StringRef type = product.tf32 ? "tf32" : product.dtype;
  return llvm::any_of(rows, [&](const Row &row) {
    auto fits = [&](int64_t size) {
      return size >= row.size && size % row.multiple == 0;
    };
    return row.type == type && product.sm >= row.fromSm &&
           product.sm <= row.toSm && (row.alsoExact || !product.isExact) &&
           product.flops() >= row.flops && fits(product.m) && fits(product.n) &&
           fits(product.k);
  });
}

int64_t tandem::workspaceOf(const LibraryCase &product) {
  // Room for parts of sums over k where there are too few tiles for a device of
  // some 130 multiprocessors; a convolution's for its rearranged operands. No
  // more than the operands have, so that the arena's peak at most doubles here.
  constexpr int64_t least = int64_t(1) << 16, most = int64_t(32) << 20;
  if (!product.isConvolution) {
    auto tiles = [](int64_t size) { return (size + 127) / 128; };
    if (product.batch * tiles(product.m) * tiles(product.n) >= 132 ||
        product.k < 512)
      return 0;
  }
  return std::clamp(product.bytes / 256 * 256, least, most);
}
