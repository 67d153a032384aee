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

/// Says at the arguments of `program`, which stand for `sources` and outlive
/// the program that they come from, who reads them first; and which of them
/// are `unchecked`.
void setReaders(mlir::func::FuncOp program, llvm::ArrayRef<mlir::Value> sources,
                const llvm::DenseSet<mlir::Value> &unchecked);

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Builds @forward in front of the joint: its arguments but those of the
/// backward; its outputs and updates, then what is saved.
mlir::func::FuncOp buildForward(const JointView &view, const SavedValues &saved,
                                const SavedNames &names);

/// Builds a backward in front of the joint: the arguments that it needs, what
/// is saved, the cotangents, what it finds in arguments; the gradients, what it
/// writes. What is neither an argument nor saved is computed again, just before
/// its first use. `repeated` receives the ops of the joint that both programs
/// have, but for constants. What it reads by reference says who reads it.
mlir::func::FuncOp
buildBackward(const JointView &view, const SavedValues &saved,
              const SavedNames &names,
              llvm::SmallVectorImpl<mlir::Operation *> &repeated);

/// Copies to the saved results of `forward` what the arguments of `backward` of
/// the same names say about who reads them.
void copyReaders(mlir::func::FuncOp forward, mlir::func::FuncOp backward);

/// Gives the programs copies (`to_host`, `to_device`) for the saved values that
/// lie in the host's memory: their roles say `host`.
void copyOverHost(mlir::func::FuncOp func);

/// Takes the outputs that are views out of the results of `func`.
void dropAliasOutputs(mlir::func::FuncOp func);

/// Builds @step, one whole training step, behind @update: forward, backward
/// with a cotangent of 1 for `loss` and no other, update of the params that
/// then have a gradient. Its arguments are forward's and the states that only
/// update has; its results the outputs and all updates.
mlir::func::FuncOp buildStep(mlir::func::FuncOp forward,
                             mlir::func::FuncOp backward,
                             mlir::func::FuncOp update, llvm::StringRef loss);

} // namespace tandem

#endif
