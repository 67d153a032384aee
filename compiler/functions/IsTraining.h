//===- IsTraining.h - whether a program trains ----------------------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_ISTRAINING_H
#define TANDEM_COMPILER_FUNCTIONS_ISTRAINING_H

#include "ir/Expr.h"

namespace tandem {

/// A bool of rank 0: true in programs that train, false in those that evaluate
/// (CompositeOpInterface::setInference). For what has two meanings and is no op
/// of its own. It costs nothing, since both are constants.
Expr isTraining(mlir::OpBuilder &builder, mlir::Location loc);

} // namespace tandem

#endif
