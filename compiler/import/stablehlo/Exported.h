//===- Exported.h - what jax.export serializes ----------------------------===//
//
// `exported.serialize()` is a flatbuffer around a portable artifact: the
// function's name, for which platforms it was exported, and its signature. What
// arguments are called and which were donated stands in the artifact too, and
// is taken from there.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_STABLEHLO_EXPORTED_H
#define TANDEM_COMPILER_IMPORT_STABLEHLO_EXPORTED_H

#include "runtime/artifact/Status.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::stablehlo {

struct Exported {
  llvm::StringRef module; ///< MLIR's bytecode, in the bytes that were read
  std::string function;
  /// "cpu", "cuda", ...; of several the first argument says which.
  std::vector<std::string> platforms;
  int64_t devices = 1;      ///< over how many it was sharded
  bool hasBackward = false; ///< serialized with vjp_order=1 or more
};

/// Reads what `bytes` hold. Failed if they are no such flatbuffer; Unsupported
/// if they are of another calling convention.
Result<Exported> readExported(llvm::StringRef bytes);

} // namespace tandem::stablehlo

#endif
