//===- Optimizers.h - the table of optimizers -----------------------------===//
//
// A row says what an optimizer is called, which numbers it takes, which
// variables it has for each parameter, where its formula is from, and the
// formula, once, on Expr (ParamUpdate.h). Parsing, help, the page of options,
// BuildUpdate and the tests read these rows. Each is compared with its source
// over 100 steps (tests/optimizers).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_OPTIMIZERS_OPTIMIZERS_H
#define TANDEM_PASSES_PARTITION_OPTIMIZERS_OPTIMIZERS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace tandem {

class ParamUpdate;

/// A named number of an optimizer or of a schedule, with its source's default.
struct OptimizerOption {
  llvm::StringLiteral name;
  double value; ///< NaN: it has to be given
  /// The values that it may have: [least, most], and 0 where `orZero`. A flag
  /// is 0 or 1, and written 'true' or 'false'; how a rate falls is the place of
  /// its name among kAnneals.
  double least, most;
  bool orZero;
  llvm::StringLiteral meaning;
  enum class Form { Number, Flag, Integer, Anneal } form = Form::Number;
};

/// A variable that an optimizer has for each parameter.
struct OptimizerState {
  using Shape = llvm::SmallVector<int64_t>;

  llvm::StringLiteral name;
  double init = 0;
  /// The option that `init` is taken from; empty: none.
  llvm::StringLiteral initOption = "";
  /// There is none where this option is 0; empty: there always is one.
  llvm::StringLiteral ifOption = "";
  /// Its shape for a parameter's, or nothing where that has none of it;
  /// null: the parameter's own.
  std::optional<Shape> (*shape)(llvm::ArrayRef<int64_t> param,
                                const llvm::StringMap<double> &options) =
      nullptr;
  /// Of its elements; `Compute` is f32, and f64 of a parameter of f64.
  enum class Element { Compute, F32, I8, U8 } element = Element::Compute;
};

/// An optimizer that can be compiled in.
struct OptimizerKind {
  llvm::StringLiteral name;
  llvm::ArrayRef<OptimizerOption> options;
  llvm::ArrayRef<OptimizerState> states;
  /// Its formulas need the number of the update: a state `step`.
  bool counts;
  /// lr * weight_decay is the part of a parameter that a step takes off.
  bool takesPart;
  void (*update)(ParamUpdate &);
  llvm::StringLiteral meaning;
  llvm::StringLiteral source; ///< whose formula and defaults these are
};

/// The curves between two rates.
inline constexpr llvm::StringLiteral kAnneals[] = {"cosine", "linear", "sqrt"};

/// Returns all optimizers, in the order in which messages name them.
llvm::ArrayRef<OptimizerKind> optimizerKinds();

// What the rows share.

/// The greatest number below 1 of f32: a decay of 1 would never forget its
/// start, and Adam would divide by 0.
inline constexpr double kBelowOne = 1.0 - 0x1p-24;
/// Numbers are computed with in f32, whatever the model's type is: what is
/// smaller than its least normal number is 0 there.
inline constexpr double kTiny = 0x1p-126;
/// Beyond it nothing trains: a gradient of f32's precision beside a parameter
/// of 1 moves that by more than a tenth.
inline constexpr double kMost = 1e6;

/// A rate of 0 is for experiments: states move, parameters do not.
constexpr OptimizerOption rateOption(double value) {
  return {"lr", value, kTiny, kMost, true, "learning rate"};
}
constexpr OptimizerOption decayOption(double value) {
  return {"weight_decay", value, kTiny, kMost, true, "pull towards 0"};
}
constexpr OptimizerOption epsOption(double value) {
  return {"eps", value, kTiny, kMost, false, "added to the divisor"};
}
constexpr OptimizerOption below1(llvm::StringLiteral name, double value,
                                 llvm::StringLiteral meaning) {
  return {name, value, kTiny, kBelowOne, true, meaning};
}
constexpr OptimizerOption flag(llvm::StringLiteral name,
                               llvm::StringLiteral meaning,
                               bool value = false) {
  return {name,    value ? 1.0 : 0.0,          1, 1, true,
          meaning, OptimizerOption::Form::Flag};
}
inline constexpr OptimizerOption kDecoupled =
    flag("decoupled", "take the decay from the parameter, as AdamW");

// The families; each is a part of the table.
llvm::ArrayRef<OptimizerKind> sgdKinds();
llvm::ArrayRef<OptimizerKind> adamKinds();
llvm::ArrayRef<OptimizerKind> adaptiveKinds();
llvm::ArrayRef<OptimizerKind> wholeKinds();
llvm::ArrayRef<OptimizerKind> quantizedKinds();
llvm::ArrayRef<OptimizerKind> scheduleFreeKinds();

} // namespace tandem

#endif
