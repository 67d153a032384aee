//===- MaxPoolLines.h - maxima of small windows, a line at a time ---------===//
//
// The maxima of a line of outputs, and their positions, are made in scratch by
// vectors of neighbouring outputs. A loop over single outputs is no loop over
// vectors where lines are short: what is left of 27 behind a vector of 16 takes
// longer than that. Here the last vector begins where it ends with the line,
// and makes some outputs once more.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_MAXPOOLLINES_H
#define TANDEM_PASSES_LOWER_CPU_MAXPOOLLINES_H

#include "passes/lower/common/Anchor.h"

#include "ir/ops/Window.h"

namespace tandem::lower::cpu {

using namespace lower;

/// Whether a maximum `best` gives way to `x`: a greater one, or the first NaN.
/// Of scalars or vectors.
mlir::Value isAbove(Code &code, mlir::Value x, mlir::Value best);

class MaxPoolLines {
public:
  using Value = mlir::Value;

  /// Of outputs [low, high) of each line all taps are inside of the input.
  MaxPoolLines(AnchorKernel &kernel, const Window2d &window, int64_t low,
               int64_t high);
  /// Whether neighbours are one or two apart in memory, and fill a vector.
  bool fits() const { return lanes >= kFewest; }
  void takeScratch();
  /// Outputs [low, high) of line `oh`, whose taps of these rows are inside.
  void emit(Value image, Value channel, Value oh, llvm::ArrayRef<int64_t> rows);
  /// Sets an output of the line, and reads it: a maximum and its position.
  void set(Value ow, Value best, Value where);
  std::pair<Value, Value> get(Value ow);

private:
  static constexpr int64_t kFewest = 4;

  Value seen(Value from);
  void emitVector(Value image, Value channel, Value oh, Value ow,
                  llvm::ArrayRef<int64_t> rows);

  AnchorKernel &kernel;
  Code &code;
  Window2d window;
  int64_t low, high;
  int64_t lanes = 0; ///< 0 where vectors can't be loaded
  Operand input;
  mlir::Type type;         ///< in which elements are compared
  Value maxima, positions; ///< of a line
};

} // namespace tandem::lower::cpu

#endif
