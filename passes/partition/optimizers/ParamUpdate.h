//===- ParamUpdate.h - one update of one parameter ------------------------===//
//
// What the formula of an optimizer reads and gives. Tensors are in the compute
// type (f32; f64 of an f64 parameter), and are rounded once, at the end; rates,
// counts and what follows from them alone are scalars of f64: in f32 a
// correction as 1 - beta^step would lose four digits in the first steps.
//
// A new value that does not follow from the gradient is not made where the
// gradient is undefined either: BuildUpdate sees to that.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_OPTIMIZERS_PARAMUPDATE_H
#define TANDEM_PASSES_PARTITION_OPTIMIZERS_PARAMUPDATE_H

#include "passes/partition/OptimizerSpec.h"

#include "ir/Expr.h"

#include "llvm/ADT/StringSet.h"

namespace tandem {

class ParamUpdate {
public:
  /// `rate` and `step` are scalars of f32; `step` is null where the kind does
  /// not count.
  ParamUpdate(mlir::OpBuilder &builder, mlir::Location loc,
              const OptimizerSpec &spec, mlir::Value param,
              mlir::Value gradient, mlir::Value rate, mlir::Value step,
              llvm::StringMap<mlir::Value> states);

  double option(llvm::StringRef name) const {
    use(name);
    return spec.values.lookup(name);
  }
  /// Says that a state's shape or first value follows from an option.
  void use(llvm::StringRef name) const { usedOptions.insert(name); }
  bool isOn(llvm::StringRef flag) const { return option(flag) != 0; }

  Expr param() const { return in(oldParam); }
  Expr gradient() const { return in(oldGradient); }
  /// The old value of a state; of a scalar one in f64.
  Expr state(llvm::StringRef name) const;
  Expr rate() const { return exact(rateValue); }
  /// Counts from 1.
  Expr step() const { return exact(stepValue); }
  int64_t rank() const;
  llvm::ArrayRef<int64_t> shape() const;
  /// All dimensions of the parameter.
  llvm::SmallVector<int64_t> dims() const;

  /// A scalar for every element of the parameter.
  Expr spread(const Expr &scalar) const;
  /// The Euclidean norm of a tensor, in f64.
  Expr norm(const Expr &tensor) const;
  /// The root of the mean of squares, in f64.
  Expr rms(const Expr &tensor) const;

  /// The gradient, with the decay that is added to it; the parameter, without
  /// what the decay takes off. By the flag `decoupled` it is one or the other.
  Expr decayedGradient() const;
  Expr decayedParam() const;

  /// New values, which are rounded to the type of the old ones.
  void setParam(const Expr &value);
  void put(llvm::StringRef name, const Expr &value);

  // For rows whose formula is an op of the dialect (ir/ops/Optimizer.td).
  llvm::APFloat number(llvm::StringRef name) const {
    return llvm::APFloat(option(name));
  }
  mlir::Value oldState(llvm::StringRef name) const {
    return states.lookup(name);
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const OptimizerSpec &spec;
  mlir::Value oldParam, oldGradient, rateValue, stepValue;
  /// What came of it.
  mlir::Value newParam;
  llvm::StringMap<mlir::Value> newStates;
  /// The options that the update follows from.
  mutable llvm::StringSet<> usedOptions;

private:
  Expr in(mlir::Value value) const;
  Expr exact(mlir::Value value) const;

  llvm::StringMap<mlir::Value> states;
};

/// value + factor * other, which is value if factor is 0.
Expr plusScaled(const Expr &value, double factor, const Expr &other);
/// a + weight * (b - a).
Expr lerp(const Expr &a, const Expr &b, double weight);
/// base^step for a step of at least 1. An exponential takes a third of the time
/// of a power, and each parameter has two of them.
Expr powerOf(double base, const Expr &step);

} // namespace tandem

#endif
