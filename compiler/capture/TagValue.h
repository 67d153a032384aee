//===- TagValue.h - tags of values that are still storage -----------------===//
#ifndef TANDEM_COMPILER_CAPTURE_TAGVALUE_H
#define TANDEM_COMPILER_CAPTURE_TAGVALUE_H

#include "mlir/IR/Value.h"

namespace tandem {

/// Tags what made the value that `ref` shows at the end of its block: the op
/// behind its storage, or behind the last write to that. Fails, with an error
/// at `loc`, if that is no op, or none that `tag` can be about.
mlir::LogicalResult tagValue(mlir::Value ref, llvm::StringRef tag,
                             mlir::Location loc);

} // namespace tandem

#endif
