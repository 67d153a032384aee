//===- DemoteRefs.h - storage of captured programs ------------------------===//
//
// What the tracer and the importers share: both record everything as refs; at
// the end the refs that nobody writes or returns become plain values, so that
// what is left of refs in a captured module is what is mutated or aliased.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_CAPTURE_DEMOTEREFS_H
#define TANDEM_COMPILER_CAPTURE_DEMOTEREFS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace tandem {

/// Returns the `make_ref` result or block argument whose storage `ref` shows.
mlir::Value storageOf(mlir::Value ref);

/// Ends `func` with a return of what the refs `outputs` show at the end. An
/// output that shows the storage of an argument, or of another output, is
/// returned as the ref itself; others are read.
void returnOutputs(mlir::OpBuilder &builder, mlir::func::FuncOp func,
                   llvm::ArrayRef<mlir::Value> outputs);

/// Turns into values the refs of `block` that nobody writes, those among
/// `arguments` included.
void demoteRefs(mlir::Block &block,
                llvm::ArrayRef<mlir::BlockArgument> arguments);
/// The same for a function: an argument stays a ref as long as one that is
/// declared to alias it does.
void demoteRefs(mlir::func::FuncOp func);

/// Records `transpose_`, `set_` or `resize_` on `operands` and returns the ref
/// that the handle is then. A view of a ref is a handle that nobody outside
/// sees: what changes is which view it is.
mlir::FailureOr<mlir::Value>
changeHandle(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef op,
             mlir::ValueRange operands,
             llvm::ArrayRef<mlir::NamedAttribute> attributes);

/// True if an op of `func` changes an argument: its data, or what its handle
/// shows.
bool changesArguments(mlir::func::FuncOp func);

/// The refs that `op` itself changes.
llvm::SmallVector<mlir::Value> changedRefs(mlir::Operation *op);

} // namespace tandem

#endif
