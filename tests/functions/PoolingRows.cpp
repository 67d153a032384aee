//===- PoolingRows.cpp - calls of pooling functions -----------------------===//
#include "tests/functions/Rows.h"

using namespace tandem::test;

void tandem::test::addPoolingFunctionRows(std::vector<FunctionRow> &rows) {
  auto row = [&](std::string function, std::string name, std::string x,
                 std::string attributes) {
    rows.push_back({function, name, {{tensorOf(x)}}, attributes});
  };
  std::string line = "1x2x7", plane = "1x2x5x4", cube = "1x1x4x3x5";
  row("max_pool", "max_pool_beyond", plane,
      "{kernel = array<i64: 2, 3>, strides = array<i64: 2>, padding = "
      "array<i64: 0, 2, 1, 1>, ceil_mode = true}");
  row("max_pool1d", "max_pool1d", line,
      "{kernel = array<i64: 3>, strides = array<i64: 2>}");
  row("max_pool3d", "max_pool3d", cube,
      "{kernel = array<i64: 2>, strides = array<i64: 1, 1, 2>}");
  rows.push_back({"max_unpool",
                  "max_unpool",
                  {{tensorOf("1x2x2x2")}, {tensorOf("1x2x2x2", "i64"), 0, 9}},
                  "{output_size = array<i64: 3, 3>}"});
  row("global_max_pool", "global_max_pool", cube, "");
  row("avg_pool", "avg_pool_beyond", plane,
      "{kernel = array<i64: 3, 2>, strides = array<i64: 2, 3>, padding = "
      "array<i64: 1>, ceil_mode = true, count_include_pad = false}");
  row("avg_pool", "avg_pool_dilated", plane,
      "{kernel = array<i64: 2>, dilation = array<i64: 2>, strides = array<i64: "
      "1>}");
  row("avg_pool1d", "avg_pool1d", line,
      "{kernel = array<i64: 3>, padding = array<i64: 1>}");
  row("avg_pool3d", "avg_pool3d", cube,
      "{kernel = array<i64: 2>, divisor_override = 5}");
  rows.push_back({"lp_pool",
                  "lp_pool",
                  {{tensorOf(plane), 0.1, 2}},
                  "{kernel = array<i64: 2>, norm_type = 3.0}"});
  row("lp_pool", "lp_pool_beyond", plane,
      "{kernel = array<i64: 3>, strides = array<i64: 2>, ceil_mode = true}");
  row("global_avg_pool", "global_avg_pool", plane, "");
  row("global_lp_pool", "global_lp_pool", plane, "");
  row("adaptive_avg_pool", "adaptive_avg_pool_even", plane,
      "{output_size = array<i64: 5, 2>}");
  row("adaptive_avg_pool1d", "adaptive_avg_pool1d", line,
      "{output_size = array<i64: 3>}");
  row("adaptive_avg_pool2d", "adaptive_avg_pool2d", plane,
      "{output_size = array<i64: 3, 2>}");
  row("adaptive_avg_pool3d", "adaptive_avg_pool3d", cube,
      "{output_size = array<i64: 3, 2, 2>}");
  row("adaptive_max_pool", "adaptive_max_pool_even", plane,
      "{output_size = array<i64: 1, 2>}");
  row("adaptive_max_pool1d", "adaptive_max_pool1d", line,
      "{output_size = array<i64: 3>}");
  row("adaptive_max_pool2d", "adaptive_max_pool2d", plane,
      "{output_size = array<i64: 2, 3>}");
  row("adaptive_max_pool3d", "adaptive_max_pool3d", cube,
      "{output_size = array<i64: 3, 2, 2>}");
}
