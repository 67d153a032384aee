//===- GradientCheck.h - derivatives against differences ------------------===//
#ifndef TANDEM_TESTS_GRADIENTS_GRADIENTCHECK_H
#define TANDEM_TESTS_GRADIENTS_GRADIENTCHECK_H

#include "tests/gradients/Rows.h"

#include "mlir/IR/BuiltinOps.h"

namespace tandem::test {

/// Checks one row, and returns everything that is wrong, or "".
///
/// For each order: the outputs of the joint against those of the graph (whose
/// composites evaluate themselves), and for each operand x, a random direction
/// u and random cotangents v: <gradient, u> against <v, f(x + h u) - f(x - h
/// u)> / 2h. An operand without a gradient counts as one whose gradient is
/// zero.
std::string checkGradients(const GradientRow &row);

/// Returns the module of a row: one graph with its operands and results.
std::string textOf(const GradientRow &row);

/// Turns a module at the phase `joint` into one at `functionalize`, whose graph
/// is the joint: cotangents are inputs ("cotangent of y"), gradients outputs
/// ("grad of x"), both of which can be differentiated.
void makeJointTheGraph(mlir::ModuleOp module);

/// Runs a pipeline ("tandem-build-joint,tandem-optimize-joint") over `module`.
bool runPasses(mlir::ModuleOp module, llvm::StringRef pipeline);

} // namespace tandem::test

#endif
