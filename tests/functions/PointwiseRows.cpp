//===- PointwiseRows.cpp - calls of math, arithmetic and logic ------------===//
#include "tests/functions/Rows.h"

using namespace tandem::test;

static const RowOperand x{tensorOf("3x4")};
static const RowOperand positive{tensorOf("3x4"), 0.3, 2};
static const RowOperand row{tensorOf("4"), 0.5, 2};
static const RowOperand bits{tensorOf("3x4", "i64"), 0, 9};
static const RowOperand mask{tensorOf("3x4", "i1"), 0, 2};

void tandem::test::addMathFunctionRows(std::vector<FunctionRow> &rows) {
  rows.push_back({"reciprocal", "reciprocal", {positive}, ""});
  rows.push_back({"square", "square", {x}, ""});
  rows.push_back({"log2", "log2", {positive}, ""});
  rows.push_back({"log10", "log10", {positive}, ""});
  rows.push_back({"exp2", "exp2", {x}, ""});
  rows.push_back({"asinh", "asinh", {x}, ""});
  rows.push_back({"asinh", "asinh_large", {{tensorOf("3"), 2e10, 3e10}}, ""});
  rows.push_back({"acosh", "acosh", {{tensorOf("3x4"), 1.2, 3}}, ""});
  rows.push_back({"atanh", "atanh", {{tensorOf("3x4"), -0.8, 0.8}}, ""});
  rows.push_back({"erfc", "erfc", {x}, ""});
  rows.push_back({"erfc", "erfc_small", {{tensorOf("3x4"), 1.1, 4}}, ""});
  rows.push_back({"erfc", "erfc_smaller", {{tensorOf("3"), 8.5, 12}}, ""});
  rows.push_back({"erfinv", "erfinv", {{tensorOf("3x4"), -0.9, 0.9}}, ""});
  rows.push_back({"frac", "frac", {{tensorOf("3"), 1.1, 1.9}}, "", 1});
  rows.push_back({"nan_to_num", "nan_to_num", {x}, "{posinf = 3.0}", 1});
  rows.push_back({"isnan", "isnan", {x}, "", 0});
  rows.push_back({"isnan", "isnan_of_integers", {bits}, "", 0});
  rows.push_back({"isinf", "isinf", {x}, "{detect_negative = false}", 0});
  rows.push_back({"isfinite", "isfinite", {x}, "", 0});
}

void tandem::test::addArithmeticFunctionRows(std::vector<FunctionRow> &rows) {
  RowOperand low{tensorOf("4"), -1.9, -1.1}, high{tensorOf("4"), 1.1, 1.9};
  rows.push_back({"add_scaled", "add_scaled", {x, row}, "{alpha = 2.0}"});
  rows.push_back({"subtract", "subtract", {x, row}, "{alpha = 2.0}"});
  rows.push_back({"multiply", "multiply", {x, row}, ""});
  rows.push_back({"divide", "divide", {x, row}, ""});
  rows.push_back({"divide",
                  "divide_integers",
                  {bits, {tensorOf("4", "i64"), 1, 9}},
                  "{rounding_mode = \"floor\"}",
                  0});
  rows.push_back(
      {"divide", "divide_trunc", {x, row}, "{rounding_mode = \"trunc\"}", 0});
  rows.push_back({"floor_divide", "floor_divide", {x, row}, "", 0});
  rows.push_back({"fmod", "fmod", {{tensorOf("4"), 1.1, 1.4}, row}, "", 0});
  rows.push_back({"fmod",
                  "fmod_gradient",
                  {{tensorOf("4"), 2.1, 2.4}, {tensorOf("4"), 0.9, 1}},
                  "",
                  1});
  rows.push_back({"remainder",
                  "remainder",
                  {{tensorOf("4"), -2.4, -2.1}, {tensorOf("4"), 0.9, 1}},
                  "",
                  1});
  rows.push_back({"power", "power", {positive, row}, ""});
  rows.push_back({"power", "power_of_integers", {bits, bits}, "", 0});
  rows.push_back({"logaddexp", "logaddexp", {x, row}, ""});
  rows.push_back({"xlogy", "xlogy", {x, row}, ""});
  rows.push_back({"hypot", "hypot", {positive, row}, ""});
  rows.push_back({"fmax", "fmax", {low, high}, ""});
  rows.push_back({"fmin", "fmin", {low, high}, ""});
  rows.push_back({"lerp", "lerp", {x, row, {tensorOf("4"), 0.6, 0.9}}, ""});
  rows.push_back({"lerp", "lerp_number", {x, row}, "{weight = 0.25}"});
  rows.push_back({"addcmul", "addcmul", {x, row, positive}, "{value = 0.5}"});
  rows.push_back({"addcdiv", "addcdiv", {x, row, positive}, "{value = 0.5}"});
}

void tandem::test::addLogicFunctionRows(std::vector<FunctionRow> &rows) {
  for (const char *name : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    rows.push_back({name, name, {x, row}, "", 0});
    rows.push_back({name, std::string(name) + "_bools", {mask, mask}, "", 0});
  }
  for (const char *name : {"both", "either", "logical_xor"})
    rows.push_back({name, name, {mask, bits}, "", 0});
  for (const char *name : {"bitwise_and", "bitwise_or", "bitwise_xor"}) {
    rows.push_back({name, name, {bits, bits}, "", 0});
    rows.push_back({name, std::string(name) + "_bools", {mask, mask}, "", 0});
  }
  rows.push_back({"bitwise_not", "bitwise_not", {bits}, "", 0});
  rows.push_back({"bitwise_left_shift", "left_shift", {bits, bits}, "", 0});
  rows.push_back({"bitwise_right_shift", "right_shift", {bits, bits}, "", 0});
  rows.push_back({"where", "where", {mask, x, row}, ""});
  rows.push_back({"masked_fill", "masked_fill", {x, mask}, "{value = 2.0}"});
  rows.push_back(
      {"masked_fill", "masked_fill_tensor", {x, mask, {tensorOf("")}}, ""});
}
