//===- Sharder.h - a program of one process as a rank runs it -------------===//
//
// Walks a function in order and makes its body anew, with the sizes of a rank.
// Of each op it chooses a strategy for every axis (passes/shard/Strategies.h):
// the one for which the least bytes are sent to bring the operands where they
// are needed. The distributions of arguments and results are those of their
// roles, between which all others follow.
//
// What is known of every value is a list of versions: where its elements are,
// and the new value that has them so. A version that is missing is made of
// another one, by communication, or, where all ranks could compute the value
// themselves, by computing the piece alone. Where a piece is made of a whole
// value whose dimension does not divide, zeros are put behind it first, and
// where pieces are gathered, their padding is cut off.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_SHARD_SHARDER_H
#define TANDEM_PASSES_SHARD_SHARDER_H

#include "passes/shard/Strategies.h"

#include "ir/Expr.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <tuple>

namespace tandem {

class Sharder {
public:
  Sharder(mlir::func::FuncOp func, MeshAttr mesh);

  /// Makes the function local: `tandem.local`. Fails, with every problem at its
  /// value, where a role's sharding does not fit.
  mlir::LogicalResult run();

  unsigned collectives() const { return made; }

private:
  struct Version {
    Distribution where;
    mlir::Value value;
    /// Of a parameter that is stored in pieces and gathered for its use: the
    /// pass, forward or backward, that it was gathered in.
    llvm::StringRef pass;
  };
  /// What an op does along each axis.
  using Choice = llvm::SmallVector<Strategy, 2>;

  mlir::LogicalResult readRoles();
  void sayWholeSizes(llvm::ArrayRef<mlir::RankedTensorType> globalResults);
  void visit(mlir::Operation *op);
  Choice choose(mlir::Operation *op);
  /// The strategies of `op`, and those with the units in which its operands are
  /// there along `axis`.
  llvm::SmallVector<Strategy>
  withUnits(mlir::Operation *op, llvm::ArrayRef<Strategy> all, unsigned axis);
  /// True if the pieces that `choice` needs and makes exist, and padding that
  /// must not be there is not.
  bool fits(mlir::Operation *op, const Choice &choice) const;
  /// The bytes that a rank sends to have `value` so along `axis`; nothing where
  /// that cannot be.
  std::optional<double> cost(mlir::Value value, unsigned axis,
                             const Placement &to);
  /// The same from one version.
  std::optional<double> cost(mlir::Value value, const Placement &from,
                             unsigned axis, const Placement &to) const;

  /// The new value that is `value`, distributed like that.
  mlir::Value bring(mlir::Value value, const Distribution &to);
  mlir::Value resolve(mlir::Value value, Version from, const Distribution &to);
  /// True if the pieces of `dim` in `outer` are those of `inner` side by side,
  /// where `inner` has more axes that cut it.
  bool nests(mlir::Value value, int64_t dim, const Distribution &outer,
             const Distribution &inner) const;
  /// Zeros behind dimension `dim`, or no more than its first elements, so that
  /// it has `size`.
  mlir::Value resized(mlir::Value made, int64_t dim, int64_t size);
  /// The piece of `value` with `fill` in place of the padding of `dim`.
  mlir::Value filled(mlir::Value value, mlir::Value piece,
                     const Distribution &where, int64_t dim, Fill fill);
  /// The piece of a whole value, computed for itself if that is cheap; null if
  /// not.
  mlir::Value computePiece(mlir::Value value, const Distribution &to);
  bool isGenerated(mlir::Value value, int64_t depth) const;
  /// Makes the results of `op` as `choice` says.
  llvm::SmallVector<mlir::Value> build(mlir::Operation *op,
                                       const Choice &choice);
  mlir::Value buildIota(IotaOp op, const Distribution &where,
                        mlir::RankedTensorType type);
  mlir::Value buildPositions(ReshapeOp op, const Distribution &where);
  mlir::Value buildTake(TakeOp op, mlir::Value table, mlir::Value indices,
                        llvm::ArrayRef<unsigned> axes);
  mlir::Value buildTakeGrad(TakeGradOp op, mlir::Value dy, mlir::Value indices,
                            mlir::RankedTensorType type,
                            llvm::ArrayRef<unsigned> axes);
  /// The first index of this rank's piece of a dimension that `axes` cut, each
  /// piece `size` long: a scalar i64.
  mlir::Value offsetOf(llvm::ArrayRef<unsigned> axes, int64_t size);

  Distribution useOf(mlir::Value value, const Distribution &stored) const;
  Distribution resultOf(mlir::Operation *op, const Choice &choice,
                        unsigned result) const;
  Distribution operandOf(mlir::Operation *op, const Choice &choice,
                         unsigned operand) const;
  mlir::ArrayAttr names(llvm::ArrayRef<unsigned> axes);
  mlir::RankedTensorType typeOf(mlir::Value value) const;
  mlir::RankedTensorType pieceOf(mlir::Value value,
                                 const Distribution &where) const {
    return where.local(mesh, typeOf(value));
  }

  mlir::func::FuncOp func;
  MeshAxes mesh;
  mlir::OpBuilder builder;
  mlir::Location loc;
  llvm::StringRef pass; ///< of the op that is being visited
  std::string reason;   ///< for collectives that are being made
  llvm::SmallVector<Distribution> arguments, results;
  llvm::SmallVector<mlir::RankedTensorType> globalArguments;
  /// The axes that inputs are cut over: parameters that these cut are stored
  /// so, and gathered where they are used.
  llvm::SmallVector<bool> isData;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Version, 2>> versions;
  llvm::DenseMap<mlir::Operation *, Choice> choices;
  /// Pieces without padding: by the piece, the dimension, and the fill.
  llvm::DenseMap<std::tuple<mlir::Value, int64_t, int>, mlir::Value> fills;
  unsigned made = 0;
};

} // namespace tandem

#endif
