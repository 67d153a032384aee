//===- Where.h - an op and its place in the source, as text ---------------===//
#ifndef TANDEM_IR_WHERE_H
#define TANDEM_IR_WHERE_H

#include "mlir/IR/Operation.h"

#include <string>

namespace tandem {

/// "'tandem.write' at model.mlir:7:5": the file without its folders, so that
/// the text is the same wherever the model lies. Without a place in a file, the
/// name of the location, or the op alone.
std::string whereIs(mlir::Operation *op);

} // namespace tandem

#endif
