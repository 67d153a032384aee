//===- ConvolutionRows.cpp - calls of convolutions ------------------------===//
#include "tests/functions/Rows.h"

using namespace tandem::test;

void tandem::test::addConvolutionFunctionRows(std::vector<FunctionRow> &rows) {
  auto row = [&](std::string function, std::string name, std::string x,
                 std::string w, std::string bias, std::string attributes) {
    FunctionRow row{function, name, {{tensorOf(x)}, {tensorOf(w)}}, attributes};
    if (!bias.empty())
      row.operands.push_back({tensorOf(bias)});
    row.tolerance = 1e-5;
    rows.push_back(row);
  };
  row("conv", "conv_2d", "1x2x4x4", "3x2x2x2", "3",
      "{padding = array<i64: 1, 0, 0, 2>}");
  row("conv1d", "conv1d", "2x2x6", "4x1x3", "4",
      "{groups = 2, strides = array<i64: 2>, padding = array<i64: 1>}");
  row("conv3d", "conv3d", "1x2x4x3x3", "2x2x2x2x2", "2",
      "{strides = array<i64: 2, 1, 1>, padding = array<i64: 1>}");
  row("conv3d", "conv3d_grouped", "1x4x4x2x3", "4x2x2x1x2", "",
      "{groups = 2, dilation = array<i64: 2, 1, 1>}");
  row("conv_transpose", "conv_transpose_cut", "1x2x3x3", "2x2x2x2", "",
      "{strides = array<i64: 2>, padding = array<i64: 1, -1, 0, 2>}");
  row("conv_transpose1d", "conv_transpose1d", "1x2x4", "2x2x3", "2",
      "{strides = array<i64: 2>, output_padding = array<i64: 1>}");
  row("conv_transpose2d", "conv_transpose2d", "1x2x3x3", "2x1x3x2", "2",
      "{groups = 2, padding = array<i64: 1, 0>, dilation = array<i64: 1, 2>}");
  row("conv_transpose3d", "conv_transpose3d", "1x2x2x2x3", "2x2x2x1x2", "2",
      "{strides = array<i64: 2, 1, 2>, padding = array<i64: 1, 0, 0>, "
      "output_padding = array<i64: 1, 0, 1>}");
}
