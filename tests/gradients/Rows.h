//===- Rows.h - the table of gradient checks ------------------------------===//
//
// One row is one op on operands of one shape: what it is called with, from
// which domain the operands are drawn (away from kinks), how often it is
// differentiated, and how close the numbers must be. The table of ops demands
// a row for every op that has a gradient, and for every composite.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_GRADIENTS_ROWS_H
#define TANDEM_TESTS_GRADIENTS_ROWS_H

#include <string>
#include <vector>

namespace tandem::test {

/// A value that the op is called with: %0, %1, ... in order.
struct RowOperand {
  std::string type; ///< "tensor<3x4xf64>"; integers are drawn below `high`
  double low = -2, high = 2;
  bool differentiate = true;
};

struct RowResult {
  std::string name; ///< "%y"
  std::string type;
};

struct GradientRow {
  std::string op;   ///< "tandem.tanh"
  std::string name; ///< unique, of letters, digits and underscores
  std::vector<RowOperand> operands;
  std::string body; ///< the ops that make the results from %0, %1, ...
  std::vector<RowResult> results;
  int order = 2; ///< how often it is differentiated
  double tolerance = 1e-6;
  bool fused = false;      ///< for a target with kernels that do much at once
  std::string module = {}; ///< the whole module, not one made from `body`
};

/// All rows.
std::vector<GradientRow> gradientRows();

// The parts of the table.
void addPointwiseRows(std::vector<GradientRow> &rows);
void addShapeRows(std::vector<GradientRow> &rows);
void addContractionRows(std::vector<GradientRow> &rows);
void addAttentionRows(std::vector<GradientRow> &rows);
void addWindowRows(std::vector<GradientRow> &rows);
void addCompositeRows(std::vector<GradientRow> &rows);
void addOptimizerRows(std::vector<GradientRow> &rows);
void addFlowRows(std::vector<GradientRow> &rows);

/// "tensor<3x4xf64>" from "3x4"; "tensor<f64>" from "".
std::string tensorOf(const std::string &shape,
                     const std::string &element = "f64");

} // namespace tandem::test

#endif
