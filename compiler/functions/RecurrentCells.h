//===- RecurrentCells.h - one step of a recurrent layer -------------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_RECURRENTCELLS_H
#define TANDEM_COMPILER_FUNCTIONS_RECURRENTCELLS_H

#include "compiler/functions/Call.h"

namespace tandem {

/// What a step calculates with.
struct CellStep {
  Expr fromX;     ///< [N, gates * H], with its bias
  Expr r;         ///< [gates * H, H]
  Expr bias;      ///< [gates * H] of the products with the state, or null
  Expr peepholes; ///< [3 * H] or null
  llvm::ArrayRef<Expr> states; ///< [N, H]: the output, then an LSTM's cell
};

/// An activation function by ONNX's name.
struct CellActivation {
  std::string name; ///< in lower case
  double alpha = 0, beta = 0;

  Expr operator()(const Expr &x) const;
};

class Cell {
public:
  enum class Kind { Rnn, Gru, Lstm };
  Cell() = default;
  explicit Cell(Kind kind) : kind(kind) {}

  int64_t gates() const {
    return kind == Kind::Rnn ? 1 : kind == Kind::Gru ? 3 : 4;
  }
  size_t states() const { return kind == Kind::Lstm ? 2 : 1; }
  size_t activationsPerDirection() const {
    return kind == Kind::Rnn ? 1 : kind == Kind::Gru ? 2 : 3;
  }

  /// Reads activations (for both directions), clip and the cell's flags.
  mlir::LogicalResult readAttributes(Call &call);
  /// The new states; empty after a mistake.
  llvm::SmallVector<Expr> step(Call &call, const CellStep &now) const;

  llvm::ArrayRef<CellActivation> activations;

private:
  Expr activate(size_t i, const Expr &x) const;
  llvm::SmallVector<Expr> stepGru(Call &call, const CellStep &now) const;
  llvm::SmallVector<Expr> stepLstm(Call &call, const CellStep &now) const;

  Kind kind = Kind::Rnn;
  std::shared_ptr<llvm::SmallVector<CellActivation>> owned;
  double clip = 0; ///< 0: none
  bool linearBeforeReset = false, inputForget = false;
};

} // namespace tandem

#endif
