//===- CheckModel.h - the gradients of a model, three ways ----------------===//
#ifndef TANDEM_TOOLS_TANDEM_CHECKMODEL_H
#define TANDEM_TOOLS_TANDEM_CHECKMODEL_H

#include "compiler/Compile.h"

#include <string>
#include <vector>

namespace tandem {

/// How far the gradient of one input or parameter is from the reference's.
struct GradientCheck {
  std::string name;
  double norm = 0; ///< Euclidean, of the reference's gradient
  /// |compiled - reference| / |reference|, Euclidean; where the gradient is
  /// (nearly) zero, relative to the largest gradient of the model instead.
  double compiledError = 0;
  /// The same for the derivative along one random direction, against central
  /// differences of the reference's loss.
  double numericError = 0;
};

/// Compiles the model, draws parameters and inputs, and compares.
Result<std::vector<GradientCheck>> checkGradients(const std::string &path,
                                                  const CompileOptions &options,
                                                  uint64_t seed);

} // namespace tandem

#endif
