//===- Signature.h - the roles of a graph function, as a view -------------===//
//
// A Signature is parsed from a function's attributes when needed and thrown
// away: the attributes are the truth.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_SIGNATURE_H
#define TANDEM_IR_SIGNATURE_H

#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Returns the role of an argument or result; null if it has none.
RoleAttr roleOfArgument(mlir::func::FuncOp func, unsigned index);
RoleAttr roleOfResult(mlir::func::FuncOp func, unsigned index);
void setRoleOfArgument(mlir::func::FuncOp func, unsigned index, RoleAttr role);
void setRoleOfResult(mlir::func::FuncOp func, unsigned index, RoleAttr role);
/// Sets the role of every result: at once, for one by one takes quadratic time.
void setRolesOfResults(mlir::func::FuncOp func, llvm::ArrayRef<RoleAttr> roles);

/// Returns the memory that the program needs; null before plan.
PlanAttr planOf(mlir::func::FuncOp func);

/// Returns the index of the argument or result with that kind and name.
std::optional<unsigned> findArgument(mlir::func::FuncOp func, RoleKind kind,
                                     llvm::StringRef name);
std::optional<unsigned> findResult(mlir::func::FuncOp func, RoleKind kind,
                                   llvm::StringRef name);
/// Returns the index of the input, param or state with that name.
std::optional<unsigned> findValue(mlir::func::FuncOp func,
                                  llvm::StringRef name);

/// The arguments and results of a function by role, for many searches: what is
/// first found there, until roles change.
class RoleIndex {
public:
  explicit RoleIndex(mlir::func::FuncOp func);
  std::optional<unsigned> argument(RoleKind kind, llvm::StringRef name) const;
  std::optional<unsigned> result(RoleKind kind, llvm::StringRef name) const;
  /// The input, param or state with that name.
  std::optional<unsigned> value(llvm::StringRef name) const;

private:
  using Positions =
      llvm::DenseMap<std::pair<unsigned, llvm::StringRef>, unsigned>;
  static std::optional<unsigned> find(const Positions &positions, RoleKind kind,
                                      llvm::StringRef name);
  Positions arguments, results;
};

/// Checks the roles of a function against each other: each argument and result
/// has one, names are unique, kinds stand where they may, links lead somewhere,
/// linked types agree. Emits every problem.
mlir::LogicalResult verifySignature(mlir::func::FuncOp func);

/// The positions, among the arguments of the graph, of those that require grad
/// and that the backward updates: what the roles of @joint (or of @forward and
/// @backward) say.
llvm::SmallVector<int64_t> mutatedInBackward(mlir::ModuleOp module);
/// Fails unless the module's list `tandem.mutated_in_backward` agrees with the
/// roles. There is none before the joint is built.
mlir::LogicalResult verifyMutatedInBackward(mlir::ModuleOp module);

/// One argument or result of a function that is being put together.
struct Slot {
  mlir::Type type;
  RoleAttr role;
  mlir::Location loc;
};

/// Creates an empty function with these arguments and results (roles set, an
/// entry block, no terminator) at the builder.
mlir::func::FuncOp createGraphFunction(mlir::OpBuilder &builder,
                                       mlir::Location loc, llvm::StringRef name,
                                       llvm::ArrayRef<Slot> arguments,
                                       llvm::ArrayRef<Slot> results);

} // namespace tandem

#endif
