//===- CheckModel.h - the gradients of a model, three ways ----------------===//
#ifndef TANDEM_TOOLS_TANDEM_CHECKMODEL_H
#define TANDEM_TOOLS_TANDEM_CHECKMODEL_H

#include "compiler/Compile.h"
#include "tools/commands/Anomaly.h"
#include "tools/tandem/CheckLaws.h"

#include <string>
#include <vector>

namespace tandem {

/// How far the gradient of one input or parameter is from the reference's.
/// So many times what the roundings that are tried change is explained by
/// rounding: the roundings that are made are as many, and others.
inline constexpr double kOfRounding = 4;
/// And this relative error is that of f32.
inline constexpr double kRelative = 1e-4;
/// Of the model's largest gradient: what is smaller is compared with so much.
inline constexpr double kOfLargest = 1e-4;

struct GradientCheck {
  std::string name;
  double norm = 0; ///< Euclidean, of the reference's gradient
  /// |compiled - reference| / |reference|, Euclidean; where the gradient is
  /// (nearly) zero, relative to the largest gradient of the model instead.
  double compiledError = 0;
  /// The same of what the rounding of every result to its type may change
  /// (RoundingNoise.h): a gradient that is zero because its terms cancel is off
  /// by so much, and one of narrow types.
  double roundingError = 0;
  /// As compiledError for the derivative along one random direction, against
  /// central differences of the reference's loss, less what the rounding of
  /// doubles explains.
  double numericError = 0;
  /// The custom_vjp that is trusted and that the gradient goes through; its
  /// derivative was not compared then.
  std::string trusted;
};

/// What the whole step left, beside what the reference does.
struct StepCheck {
  std::string name;
  double error = 0;    ///< Euclidean distance
  double size = 0;     ///< of the result, or of what an update changes
  double rounding = 0; ///< what rounding explains of the error
};

struct ModelCheck {
  std::vector<GradientCheck> gradients;
  std::vector<StepCheck> step; ///< empty without an optimizer
  /// Empty unless they were asked for.
  std::vector<LawCheck> linear, rows;
  /// On the emulated GPU: the kernels that ran, and their launches, once in
  /// each order.
  size_t kernels = 0, launches = 0;
};

struct CheckSettings {
  uint64_t seed = 0;
  std::string trust;
  commands::AnomalyOptions anomaly;
  bool differences = true; ///< compare with central differences, too
  bool linear = false;     ///< look whether the backward is, in cotangents
  bool rowsAlike = false;  ///< permute the rows of inputs
};

/// Compiles the model, draws parameters and inputs, and compares. `trust` is an
/// expression over the names of custom_vjps whose backward is no derivative
/// of their forward, and is not meant to be (straight-through estimators);
/// empty: none. If `anomaly` is on, a NaN that the reference makes fails, with
/// the op that made it. With `options.emulation` the programs run on the
/// emulated GPU, in several orders that must give the same bits.
Result<ModelCheck> checkGradients(const std::string &path,
                                  const CompileOptions &options,
                                  const CheckSettings &settings);

} // namespace tandem

#endif
