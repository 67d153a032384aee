//===- CheckGradients.h - the gradients of an ONNX model
//-------------------===//
#ifndef TANDEM_TOOLS_ONNX_CHECKGRADIENTS_H
#define TANDEM_TOOLS_ONNX_CHECKGRADIENTS_H

#include "tools/onnx/TestCase.h"

namespace tandem::onnx {

/// Checks the gradients of the case in `folder`, in double on the reference:
/// for every float input and parameter x, a random direction u and random
/// cotangents v, <gradient, u> against <v, f(x + h u) - f(x - h u)> / 2h.
///
/// The point is the first data set's, moved a little, so that it is at no kink
/// or tie (ONNX's data likes whole numbers): another one is taken where
/// differences with h and h / 2 disagree. `Excluded` are models without a float
/// input or parameter or without a float output, and those that are smooth at
/// none of the points.
Outcome checkGradients(const std::string &folder);

} // namespace tandem::onnx

#endif
