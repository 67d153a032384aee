//===- Rows.h - the table of calls of functions ---------------------------===//
//
// One row is one call: operands of given types and domains (away from kinks),
// attributes, and how often it is differentiated. Every function has a row.
// What the numbers ought to be is not said here: that is PyTorch's business
// (tests/oracle). A row says that the derivatives are those of the values.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_FUNCTIONS_ROWS_H
#define TANDEM_TESTS_FUNCTIONS_ROWS_H

#include "tests/gradients/Rows.h"

namespace tandem::test {

struct FunctionRow {
  std::string function;
  std::string name; ///< unique, of letters, digits and underscores
  /// An operand of type "" is absent.
  std::vector<RowOperand> operands;
  std::string attributes; ///< as MLIR writes them: "{alpha = 2.0 : f64}"
  /// How often it is differentiated; 0: it has no gradient, and is evaluated.
  int order = 2;
  double tolerance = 1e-6;
};

std::vector<FunctionRow> functionRows();

// The families.
void addActivationFunctionRows(std::vector<FunctionRow> &rows);
void addConvolutionFunctionRows(std::vector<FunctionRow> &rows);
void addPoolingFunctionRows(std::vector<FunctionRow> &rows);
void addMathFunctionRows(std::vector<FunctionRow> &rows);
void addArithmeticFunctionRows(std::vector<FunctionRow> &rows);
void addLogicFunctionRows(std::vector<FunctionRow> &rows);
void addReductionFunctionRows(std::vector<FunctionRow> &rows);
void addOrderFunctionRows(std::vector<FunctionRow> &rows);
void addProductFunctionRows(std::vector<FunctionRow> &rows);
void addShapeFunctionRows(std::vector<FunctionRow> &rows);
void addPadFunctionRows(std::vector<FunctionRow> &rows);
void addDiagonalFunctionRows(std::vector<FunctionRow> &rows);
void addGatherFunctionRows(std::vector<FunctionRow> &rows);
void addScatterFunctionRows(std::vector<FunctionRow> &rows);
void addCreationFunctionRows(std::vector<FunctionRow> &rows);
void addInterpolationFunctionRows(std::vector<FunctionRow> &rows);
void addSamplingFunctionRows(std::vector<FunctionRow> &rows);
void addSignalFunctionRows(std::vector<FunctionRow> &rows);
void addQuantizationFunctionRows(std::vector<FunctionRow> &rows);
void addNormalizationFunctionRows(std::vector<FunctionRow> &rows);
void addLossFunctionRows(std::vector<FunctionRow> &rows);
void addAttentionFunctionRows(std::vector<FunctionRow> &rows);
void addRecurrentFunctionRows(std::vector<FunctionRow> &rows);
void addRandomFunctionRows(std::vector<FunctionRow> &rows);

} // namespace tandem::test

#endif
