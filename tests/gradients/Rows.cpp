//===- Rows.cpp - gradient checks of primitive ops ------------------------===//
#include "tests/gradients/Rows.h"

#include <tuple>

using namespace tandem::test;

std::string tandem::test::tensorOf(const std::string &shape,
                                   const std::string &element) {
  return "tensor<" + (shape.empty() ? "" : shape + "x") + element + ">";
}

std::vector<GradientRow> tandem::test::gradientRows() {
  std::vector<GradientRow> rows;
  addPointwiseRows(rows);
  addShapeRows(rows);
  addContractionRows(rows);
  addAttentionRows(rows);
  addWindowRows(rows);
  addCompositeRows(rows);
  addOptimizerRows(rows);
  addFlowRows(rows);
  return rows;
}

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

static void unary(std::vector<GradientRow> &rows, const std::string &op,
                  double low, double high) {
  for (std::string shape : {"3x4", "1", ""}) {
    std::string type = tensorOf(shape);
    rows.push_back({"tandem." + op,
                    op + "_" + (shape.empty() ? "scalar" : shape),
                    {{type, low, high}},
                    "%y = tandem." + op + " %0 : " + type,
                    {{"%y", type}}});
  }
}

static void binary(std::vector<GradientRow> &rows, const std::string &op,
                   double low, double high) {
  for (std::string shape : {"2x3", "1x1"}) {
    std::string type = tensorOf(shape);
    rows.push_back({"tandem." + op,
                    op + "_" + shape,
                    {{type, low, high}, {type, low, high}},
                    "%y = tandem." + op + " %0, %1 : " + type,
                    {{"%y", type}}});
    rows.push_back({"tandem." + op,
                    op + "_same_" + shape,
                    {{type, low, high}},
                    "%y = tandem." + op + " %0, %0 : " + type,
                    {{"%y", type}}});
  }
}

void tandem::test::addPointwiseRows(std::vector<GradientRow> &rows) {
  unary(rows, "neg", -2, 2);
  unary(rows, "abs", -2, 2);
  unary(rows, "exp", -2, 2);
  unary(rows, "log", 0.2, 3);
  unary(rows, "log1p", -0.7, 3);
  unary(rows, "sqrt", 0.2, 3);
  unary(rows, "rsqrt", 0.2, 3);
  unary(rows, "sin", -3, 3);
  unary(rows, "cos", -3, 3);
  unary(rows, "tanh", -2, 2);
  unary(rows, "sigmoid", -4, 4);
  unary(rows, "erf", -2, 2);
  unary(rows, "expm1", -2, 2);
  unary(rows, "tan", -1.2, 1.2);
  unary(rows, "asin", -0.8, 0.8);
  unary(rows, "acos", -0.8, 0.8);
  unary(rows, "atan", -3, 3);
  unary(rows, "sinh", -2, 2);
  unary(rows, "cosh", -2, 2);
  unary(rows, "relu", -2, 2);
  binary(rows, "add", -2, 2);
  binary(rows, "sub", -2, 2);
  binary(rows, "mul", -2, 2);
  binary(rows, "div", 0.5, 2);
  binary(rows, "pow", 0.5, 2);
  binary(rows, "atan2", 0.3, 2);
  binary(rows, "accumulate", -2, 2);
  std::string type = tensorOf("2x3");
  // Quotients from 1.1 to 1.9, and from 7.2 to 7.8: away from the jumps.
  for (auto [name, low, high] :
       {std::tuple{"near", 1.1, 1.85}, std::tuple{"far", 7.2, 7.75}})
    rows.push_back({"tandem.rem",
                    std::string("rem_") + name,
                    {{type, low, high}, {type, 0.99, 1.0}},
                    "%y = tandem.rem %0, %1 : " + type,
                    {{"%y", type}}});
  std::string square = "%s = tandem.mul %0, %0 : " + type + "\n";
  // The value has a part that the gradient does not see.
  rows.push_back({"tandem.pass_grad",
                  "pass_grad_2x3",
                  {{type}, {type, -2, 2, false}},
                  square + "%f = tandem.add %s, %1 : " + type +
                      "\n%y = tandem.pass_grad %s, %f : " + type,
                  {{"%y", type}}});
  rows.push_back({"tandem.or_zero",
                  "or_zero_2x3",
                  {{type}},
                  square + "%y = tandem.or_zero %s needs [] : " + type,
                  {{"%y", type}}});
  rows.push_back(
      {"tandem.if_defined",
       "if_defined_2x3",
       {{type}, {type, -2, 2, false}},
       square + "%y = tandem.if_defined %s else %1 when [] : " + type,
       {{"%y", type}}});
  for (std::string op : {"maximum", "minimum"})
    rows.push_back({"tandem." + op,
                    op + "_2x3",
                    {{type}, {type}},
                    "%y = tandem." + op + " %0, %1 : " + type,
                    {{"%y", type}}});
  rows.push_back({"tandem.select",
                  "select_2x3",
                  {{type}, {type}},
                  "%c = tandem.compare gt %0, %1 : " + type + "\n" +
                      "%y = tandem.select %c, %0, %1 : tensor<2x3xi1>, " + type,
                  {{"%y", type}}});
  rows.push_back({"tandem.cast",
                  "cast_2x3",
                  {{type}},
                  "%f = tandem.cast %0 : " + type + " to tensor<2x3xf32>\n" +
                      "%s = tandem.mul %f, %f : tensor<2x3xf32>\n" +
                      "%y = tandem.cast %s : tensor<2x3xf32> to " + type,
                  {{"%y", type}}});
}

//===----------------------------------------------------------------------===//
// Views and reductions
//===----------------------------------------------------------------------===//

/// A view or reduction; squared first, so that the second order is not zero.
static void move(std::vector<GradientRow> &rows, const std::string &op,
                 const std::string &name, const std::string &from,
                 const std::string &attributes, const std::string &to) {
  std::string source = tensorOf(from), result = tensorOf(to);
  rows.push_back({"tandem." + op,
                  op + "_" + name,
                  {{source}},
                  "%s = tandem.mul %0, %0 : " + source + "\n%y = tandem." + op +
                      " %s " + attributes + " : " + source + " -> " + result,
                  {{"%y", result}}});
}

void tandem::test::addShapeRows(std::vector<GradientRow> &rows) {
  move(rows, "broadcast", "new", "3", "to [2, 3, 4] along [1]", "2x3x4");
  move(rows, "broadcast", "stretched", "2x1", "to [2, 3] along [0, 1]", "2x3");
  move(rows, "broadcast", "scalar", "", "to [2] along []", "2");
  move(rows, "broadcast", "one", "1", "to [1, 1] along [1]", "1x1");
  move(rows, "reshape", "split", "6", "to [2, 3]", "2x3");
  move(rows, "reshape", "join", "2x1x3", "to [6]", "6");
  move(rows, "reshape", "scalar", "1x1", "to []", "");
  move(rows, "permute", "3d", "2x3x4", "by [2, 0, 1]", "4x2x3");
  move(rows, "permute", "ones", "1x3", "by [1, 0]", "3x1");
  move(rows, "slice", "steps", "5x4", "from [1, 0] to [5, 3] step [2, 1]",
       "2x3");
  move(rows, "slice", "one", "5", "from [4] to [5] step [1]", "1");
  move(rows, "pad", "all", "2x3",
       "low [1, 0] high [0, 2] interior [1, 0] with 0.5 : f64", "4x5");
  move(rows, "reverse", "2d", "2x3x2", "along [0, 1]", "2x3x2");
  move(rows, "reverse", "one", "1x3", "along [0]", "1x3");
  move(rows, "as_strided", "diagonal", "3x4", "sizes [3] strides [5] offset 0",
       "3");
  // Windows: an element is in up to three of them.
  move(rows, "as_strided", "overlapping", "2x3",
       "sizes [4, 3] strides [1, 1] offset 0", "4x3");
  move(rows, "reduce_sum", "rows", "3x4", "over [1]", "3");
  move(rows, "reduce_sum", "all", "3x4", "over [0, 1]", "");
  move(rows, "reduce_sum", "one", "1x3", "over [0]", "3");
  move(rows, "reduce_prod", "rows", "3x4", "over [1]", "3");
  move(rows, "reduce_prod", "middle", "2x3x2", "over [1]", "2x2");
  move(rows, "reduce_prod", "outer", "2x2x3", "over [0, 2]", "2");
  move(rows, "reduce_prod", "all", "1x5", "over [0, 1]", "");
  move(rows, "reduce_prod", "groups", "2x21", "over [1]", "2");
  move(rows, "reduce_prod", "one", "1x3", "over [0]", "3");
  // Of five factors the first one, two or four are 0.
  for (int zeros : {1, 2, 4}) {
    std::string none = std::to_string(zeros), some = std::to_string(5 - zeros);
    rows.push_back(
        {"tandem.reduce_prod",
         "reduce_prod_zeros_" + none,
         {{tensorOf(none), 0, 0}, {tensorOf(some), 0.5, 2}},
         "%a = tandem.pad %0 low [0] high [" + some +
             "] interior [0] with 0.0 : f64 : " + tensorOf(none) +
             " -> tensor<5xf64>\n%b = tandem.pad %1 low [" + none +
             "] high [0] interior [0] with 0.0 : f64 : " + tensorOf(some) +
             " -> tensor<5xf64>\n%f = tandem.add %a, %b : "
             "tensor<5xf64>\n%y = tandem.reduce_prod %f over [0] : "
             "tensor<5xf64> -> tensor<f64>",
         {{"%y", "tensor<f64>"}}});
  }
  move(rows, "reduce_max", "columns", "3x4", "over [0]", "4");
  move(rows, "reduce_max", "all", "3x4", "over [0, 1]", "");
  move(rows, "reduce_min", "rows", "3x4", "over [1]", "3");
  move(rows, "reduce_min", "one", "1x3", "over [0]", "3");
}
