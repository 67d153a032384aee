//===- Evaluator.h - runs whole functions in double -----------------------===//
//
// Evaluates a function of the dialect at any phase before `lower`: captured
// programs, whose refs are storage that is really shared and really written;
// graphs, joints, the programs made by partition, and kernels. Slow and
// readable: the oracle that every other way to run a program is compared with.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_REFERENCE_EVALUATOR_H
#define TANDEM_IR_REFERENCE_EVALUATOR_H

#include "ir/reference/Memory.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <functional>
#include <map>

namespace tandem::reference {

/// Returns the results of `func` for these arguments. An argument or result of
/// ref type stands for the value that it shows at the call or at the return.
/// `refsAfter`, where given, receives one array per argument: what a ref
/// argument's handle shows at the return, the argument itself otherwise.
///
/// Fails, with a diagnostic at the function or op, where an argument has the
/// wrong shape, where ops have no reference (all of them are named), where
/// storage is read that nobody filled, and where a result is undefined.
mlir::FailureOr<llvm::SmallVector<Array>>
evaluate(mlir::func::FuncOp func, llvm::ArrayRef<Array> arguments,
         llvm::SmallVectorImpl<Array> *refsAfter = nullptr);

/// What a program is called with.
struct Call {
  /// One per argument. Nothing: a cotangent that is undefined; a ref that is an
  /// alias, of which the base says all; a ref whose storage is freed at the
  /// call.
  llvm::SmallVector<std::optional<Array>> arguments;
  /// What declared storages hold that are no argument themselves; zeros, where
  /// arguments do not say otherwise.
  std::map<std::string, Array> storages;
  /// Called with what an op computed, before it is read, instead of rounding
  /// it to its type: may change it, to ask what other roundings would give.
  std::function<void(mlir::Operation *, llvm::MutableArrayRef<Array>)> computed;
  /// Called at a collective with this rank's operand and, to be filled, its
  /// result (null where there is none); fails where the run ends. Without it a
  /// group has one rank (Ranks.h).
  std::function<mlir::LogicalResult(CollectiveOpInterface, const Array *,
                                    Array *)>
      meet;
};

/// What a handle shows: a storage and, for each of its elements, the position
/// there.
struct Handle {
  /// The steps in storage between neighbours along each dimension; 0 along one
  /// of size 1. Of handles whose elements are at such equal distances.
  llvm::SmallVector<int64_t> strides() const;

  unsigned storage = 0; ///< in Outcome::storages
  Array positions;
};

/// How a program ended. Values are missing where they are undefined or where
/// their storage was not filled, handles where there is no ref.
struct Outcome {
  llvm::SmallVector<std::optional<Array>> results, arguments;
  llvm::SmallVector<std::optional<Handle>> resultHandles, argumentHandles;
  /// Those of the arguments at the call, in order (named after the argument or
  /// as declared), then those that only the ends of handles show.
  std::vector<std::shared_ptr<Memory>> storages;
};

/// Runs `func`. Arguments of ref type whose roles declare an `alias` share the
/// storage of the argument or storage that it names. Ops that know undefined
/// gradients (`accumulate`, `or_zero`, `if_defined`) see which of the arguments
/// with the role `cotangent` are there; every other op is undefined if an
/// operand is. Fails as evaluate() does, but an undefined result is none.
mlir::FailureOr<Outcome> run(mlir::func::FuncOp func, const Call &call);

} // namespace tandem::reference

#endif
