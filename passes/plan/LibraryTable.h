//===- LibraryTable.h - where a library is expected to be faster ----------===//
#ifndef TANDEM_PASSES_PLAN_LIBRARYTABLE_H
#define TANDEM_PASSES_PLAN_LIBRARYTABLE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace tandem {

/// A product, or a convolution as a product (m filters or channels, n pixels,
/// k channels and taps of a group; one batch a group).
struct LibraryCase {
  bool isConvolution = false;
  llvm::StringRef dtype; ///< "f32", "f16", "bf16", "f64"
  bool tf32 = false;
  bool hasRelu = false; ///< after it
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t sm = 90;      ///< 90 for sm_90
  bool isExact = false; ///< sm_90a: own code may use all of this architecture
  /// Bytes of the operands and the result.
  int64_t bytes = 0;

  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) *
           static_cast<double>(n) * static_cast<double>(k);
  }
};

/// True if the library is expected to be faster than Tandem's own kernel.
bool prefersLibrary(const LibraryCase &product);

/// The bytes of memory, beside its operands, that the library may use.
int64_t workspaceOf(const LibraryCase &product);

} // namespace tandem

#endif
