//===- Programs.h - the functions that a joint falls into -----------------===//
//
// Outputs that are views of arguments or of other outputs are no results of a
// program; its attribute `tandem.aliases` lists them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_PROGRAMS_H
#define TANDEM_PASSES_PARTITION_PROGRAMS_H

#include "passes/partition/SavedValues.h"

#include "ir/Signature.h"

#include "mlir/IR/IRMapping.h"

namespace tandem {

/// Names of saved values: the fourth relu of the joint is "relu.3"; an argument
/// keeps its name. Each name begins with `prefix`.
class SavedNames {
public:
  SavedNames(mlir::func::FuncOp joint, const SavedValues &saved,
             llvm::StringRef prefix = "");
  llvm::StringRef of(mlir::Value value) const { return names.at(value); }

private:
  llvm::DenseMap<mlir::Value, std::string> names;
};

//===----------------------------------------------------------------------===//
// Pieces of programs
//===----------------------------------------------------------------------===//

/// The ops of a joint that `wanted` needs and that are not in `map`.
llvm::DenseSet<mlir::Operation *> neededOps(mlir::ValueRange wanted,
                                            const mlir::IRMapping &map);

/// The roles of saved values. One that is also an output of the program shares
/// its storage; one that is to be offloaded says `host`.
llvm::SmallVector<Slot> savedSlots(const JointView &view,
                                   const SavedValues &saved,
                                   const SavedNames &names);

/// Builds the function `name` in front of the joint, with the ops of it that
/// `wanted` needs: its arguments stand for the values `sources`, its results
/// are `wanted`.
mlir::func::FuncOp copyProgram(mlir::func::FuncOp joint, llvm::StringRef name,
                               llvm::ArrayRef<Slot> arguments,
                               llvm::ArrayRef<mlir::Value> sources,
                               llvm::ArrayRef<Slot> results,
                               llvm::ArrayRef<mlir::Value> wanted);

/// The role of an argument in a program that runs later than the one that it
/// comes from: without what is about its handle, and `unchecked` as told.
RoleAttr heldRole(RoleAttr role, bool isUnchecked);

/// Lists on `func` the outputs of `source` that are views.
void setAliases(mlir::func::FuncOp func, mlir::func::FuncOp source);

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Builds @forward in front of the joint: its arguments but those of the
/// backward; its outputs and updates, then what is saved.
mlir::func::FuncOp buildForward(const JointView &view, const SavedValues &saved,
                                const SavedNames &names);

/// The ops of the joint that a backward runs, in its order: what is neither an
/// argument nor saved is computed again, just before its first use.
llvm::SmallVector<mlir::Operation *> backwardOps(const JointView &view,
                                                 const SavedValues &saved);

/// True if `op`, of those that a backward runs, is one that the forward runs
/// too; false for constants.
bool isRepeated(mlir::Operation *op);

/// Builds a backward in front of the joint: the arguments that it needs, what
/// is saved, the cotangents, what it finds in arguments; the gradients, what it
/// writes. The locations of its repeated ops say so (ir/Where.h).
mlir::func::FuncOp buildBackward(const JointView &view,
                                 const SavedValues &saved,
                                 const SavedNames &names);

} // namespace tandem

#endif
