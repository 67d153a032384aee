//===- ShapeRows.cpp - calls that move elements ---------------------------===//
#include "tests/functions/Rows.h"

using namespace tandem::test;

static const RowOperand x{tensorOf("2x3x4")};

void tandem::test::addShapeFunctionRows(std::vector<FunctionRow> &rows) {
  RowOperand thin{tensorOf("2x1x3x1")}, integers{tensorOf("3", "i64"), 0, 5};
  auto add = [&](std::string function, std::string name,
                 std::vector<RowOperand> operands, std::string attributes) {
    rows.push_back({std::move(function), std::move(name), std::move(operands),
                    std::move(attributes)});
  };
  add("squeeze", "squeeze", {thin}, "");
  add("squeeze", "squeeze_some", {thin}, "{dim = array<i64: -1, 0>}");
  add("unsqueeze", "unsqueeze", {x}, "{dim = -1 : i64}");
  add("unsqueeze", "unsqueeze_some", {x}, "{dim = array<i64: 0, -2>}");
  add("flatten", "flatten", {x}, "{start_dim = 1 : i64}");
  add("flatten", "flatten_scalar", {{tensorOf("")}}, "");
  add("unflatten", "unflatten", {x},
      "{dim = -1 : i64, sizes = array<i64: 2, -1>}");
  add("view", "view", {x}, "{shape = array<i64: 4, -1>}");
  add("transpose", "transpose", {x}, "{dim0 = 0 : i64, dim1 = -1 : i64}");
  add("movedim", "movedim", {x}, "{destination = -1 : i64, source = 0 : i64}");
  add("expand", "expand", {thin}, "{shape = array<i64: 5, 2, 4, -1, 2>}");
  add("repeat", "repeat", {x}, "{repeats = array<i64: 2, 1, 3, 1>}");
  add("repeat_interleave", "repeat_interleave", {x},
      "{dim = 1 : i64, repeats = 2 : i64}");
  add("repeat_interleave", "repeat_interleave_flat", {x},
      "{repeats = 3 : i64}");
  add("flip", "flip", {x}, "{dim = array<i64: 0, -1>}");
  add("roll", "roll", {x},
      "{dim = array<i64: 0, -1>, shifts = array<i64: 1, -5>}");
  add("roll", "roll_flat", {x}, "{shifts = 7 : i64}");
  add("slice_along", "slice_along", {x},
      "{dim = -1 : i64, end = -1 : i64, start = 1 : i64}");
  add("slice_along", "slice_along_back", {x},
      "{dim = -1 : i64, start = 9 : i64, step = -2 : i64}");
  add("narrow", "narrow", {x},
      "{dim = 1 : i64, length = 2 : i64, start = -2 : i64}");
  add("select_index", "select_index", {x}, "{dim = 1 : i64, index = -1 : i64}");
  add("split", "split", {x}, "{dim = 1 : i64, sizes = 2 : i64}");
  add("split", "split_sizes", {x}, "{dim = 2 : i64, sizes = array<i64: 1, 3>}");
  add("chunk", "chunk", {x}, "{chunks = 2 : i64, dim = 1 : i64}");
  add("unbind", "unbind", {x}, "{dim = 1 : i64}");
  add("cat", "cat", {x, {tensorOf("2x2x4")}}, "{dim = -2 : i64}");
  add("stack", "stack", {x, x, x}, "{dim = -1 : i64}");
  add("select_scatter", "select_scatter", {x, {tensorOf("2x4")}},
      "{dim = 1 : i64, index = -1 : i64}");
  add("slice_scatter", "slice_scatter", {x, {tensorOf("2x3x2")}},
      "{dim = -1 : i64, end = -1 : i64, step = 2 : i64}");
}

void tandem::test::addPadFunctionRows(std::vector<FunctionRow> &rows) {
  const char *all = "{pad = array<i64: 2, 1, -1, 2>}";
  rows.push_back({"constant_pad",
                  "constant_pad",
                  {x},
                  "{pad = array<i64: 2, -1, -1, 2>, value = 0.5}"});
  rows.push_back(
      {"constant_pad", "constant_pad_tensor", {x, {tensorOf("")}}, all});
  for (const char *name :
       {"reflection_pad", "replication_pad", "circular_pad"}) {
    rows.push_back(
        {name, name, {{tensorOf("2x4x3")}}, "{pad = array<i64: 2, 1, -1, 2>}"});
    rows.push_back({name,
                    std::string(name) + "_far",
                    {{tensorOf("2x3")}},
                    "{pad = array<i64: 9, 8>}"});
  }
}

void tandem::test::addDiagonalFunctionRows(std::vector<FunctionRow> &rows) {
  RowOperand square{tensorOf("3x3")}, images{tensorOf("2x2x4x5")};
  rows.push_back({"tril", "tril", {x}, ""});
  rows.push_back({"triu", "triu", {x}, "{diagonal = -1 : i64}"});
  rows.push_back({"diagonal", "diagonal", {x}, ""});
  rows.push_back({"diagonal",
                  "diagonal_offset",
                  {x},
                  "{dim1 = -1 : i64, dim2 = 1 : i64, offset = -1 : i64}"});
  rows.push_back({"trace", "trace", {square}, ""});
  rows.push_back({"diag_embed",
                  "diag_embed",
                  {{tensorOf("2x3")}},
                  "{dim1 = 0 : i64, dim2 = 2 : i64, offset = 1 : i64}"});
  RowOperand channels{tensorOf("2x8x2x3")};
  rows.push_back({"pixel_shuffle",
                  "pixel_shuffle",
                  {channels},
                  "{upscale_factor = 2 : i64}"});
  rows.push_back({"pixel_unshuffle",
                  "pixel_unshuffle",
                  {{tensorOf("2x4x6")}},
                  "{downscale_factor = 2 : i64}"});
  rows.push_back({"depth_to_space",
                  "depth_to_space",
                  {channels},
                  "{blocksize = 2 : i64}"});
  rows.push_back({"space_to_depth",
                  "space_to_depth",
                  {{tensorOf("2x4x6")}},
                  "{blocksize = 2 : i64}"});
  rows.push_back(
      {"unfold",
       "unfold",
       {images},
       "{dilation = array<i64: 1, 2>, kernel_size = array<i64: 2, "
       "2>, padding = array<i64: 1, 0>, stride = array<i64: 2, 1>}"});
  rows.push_back({"fold",
                  "fold",
                  {{tensorOf("2x8x6")}},
                  "{kernel_size = array<i64: 2, 2>, output_size = array<i64: "
                  "3, 4>}"});
  rows.push_back({"unfold",
                  "unfold_1d",
                  {{tensorOf("1x2x5")}},
                  "{kernel_size = 3 : i64, padding = array<i64: 0, 2>}"});
  rows.push_back({"fold",
                  "fold_padded",
                  {{tensorOf("1x8x4")}},
                  "{kernel_size = array<i64: 2, 2>, output_size = array<i64: "
                  "3, 4>, padding = array<i64: 1, 0, 0, 0>, stride = "
                  "array<i64: 2, 2>}"});
  rows.push_back(
      {"unfold_dim", "unfold_dim", {x}, "{dim = 2 : i64, size = 3 : i64}"});
}

void tandem::test::addGatherFunctionRows(std::vector<FunctionRow> &rows) {
  auto index = [](std::string shape, double high) {
    return RowOperand{tensorOf(shape, "i64"), -high, high};
  };
  rows.push_back(
      {"gather", "gather", {x, index("2x2x4", 3)}, "{dim = 1 : i64}"});
  rows.push_back({"take_along_dim",
                  "take_along_dim",
                  {x, index("1x2x1", 3)},
                  "{dim = 1 : i64}"});
  rows.push_back(
      {"take_along_dim", "take_along_dim_flat", {x, index("5", 24)}, ""});
  rows.push_back({"index_select",
                  "index_select",
                  {x, index("2x3", 4)},
                  "{dim = 2 : i64}"});
  rows.push_back({"gather_nd", "gather_nd", {x, index("5x2", 2)}, ""});
  rows.push_back({"gather_nd",
                  "gather_nd_batch",
                  {x, index("2x3x1", 3)},
                  "{batch_dims = 1 : i64}"});
  rows.push_back({"index", "index", {x, index("5", 2), index("2x1", 3)}, ""});
  rows.push_back(
      {"index", "index_inner", {x, index("5", 3)}, "{dims = array<i64: 1>}"});
  rows.push_back({"index",
                  "index_apart",
                  {x, index("5", 2), index("5", 4)},
                  "{dims = array<i64: 0, 2>}"});
  rows.push_back({"one_hot",
                  "one_hot",
                  {{tensorOf("2x3", "i64"), 0, 4}},
                  "{num_classes = 4 : i64}",
                  0});
  rows.push_back({"reverse_sequence",
                  "reverse_sequence",
                  {{tensorOf("4x2x3")}, {tensorOf("2", "i64"), 0, 5}},
                  "{batch_dim = 1 : i64, time_dim = 0 : i64}"});
  RowOperand table{tensorOf("5x3")}, bags{tensorOf("2x4", "i64"), 0, 5};
  rows.push_back({"embedding_bag", "embedding_bag", {table, bags}, ""});
  rows.push_back({"embedding_bag",
                  "embedding_bag_sum",
                  {table, bags, {tensorOf("2x4")}},
                  "{mode = \"sum\"}"});
  rows.push_back({"embedding_bag",
                  "embedding_bag_max",
                  {table, bags},
                  "{mode = \"max\"}"});
}

void tandem::test::addScatterFunctionRows(std::vector<FunctionRow> &rows) {
  RowOperand index{tensorOf("2x2x3", "i64"), -3, 3};
  RowOperand source{tensorOf("2x2x4")};
  auto each = [&](std::string function, std::vector<std::string> words,
                  std::string more) {
    for (const std::string &word : words)
      rows.push_back({function,
                      function + "_" + word,
                      {x, index, source},
                      "{dim = 1 : i64, reduce = \"" + word + "\"" + more + "}",
                      word == "prod" || word == "mul" ? 1 : 2});
  };
  each("scatter_elements", {"none", "add", "mul", "min", "max"}, "");
  each("scatter_reduce", {"sum", "prod", "mean", "amin", "amax"}, "");
  for (const char *word : {"sum", "prod", "mean", "amin", "amax"})
    rows.push_back({"scatter_reduce",
                    std::string("scatter_reduce_alone_") + word,
                    {x, index, source},
                    std::string("{dim = 1 : i64, include_self = false, reduce "
                                "= \"") +
                        word + "\"}",
                    1});
  rows.push_back(
      {"scatter_add", "scatter_add", {x, index, source}, "{dim = 1 : i64}"});
  rows.push_back({"scatter_nd",
                  "scatter_nd",
                  {x, {tensorOf("5x2", "i64"), -2, 2}, {tensorOf("5x4")}},
                  ""});
  rows.push_back({"scatter_nd",
                  "scatter_nd_add",
                  {x, {tensorOf("5x2", "i64"), -2, 2}, {tensorOf("5x4")}},
                  "{reduce = \"add\"}"});
  RowOperand at{tensorOf("5", "i64"), -2, 2};
  rows.push_back({"index_put", "index_put", {x, {tensorOf("5x1x4")}, at}, ""});
  rows.push_back({"index_put",
                  "index_put_inner",
                  {x, {tensorOf("2x5x1")}, at},
                  "{accumulate = true, dims = array<i64: 1>}"});
  rows.push_back({"index_add",
                  "index_add",
                  {x, at, {tensorOf("2x5x4")}},
                  "{alpha = 2.0, dim = 1 : i64}"});
  rows.push_back({"index_copy",
                  "index_copy",
                  {x, at, {tensorOf("2x5x4")}},
                  "{dim = 1 : i64}"});
  rows.push_back({"masked_scatter",
                  "masked_scatter",
                  {x, {tensorOf("3x4", "i1"), 0, 2}, {tensorOf("30")}},
                  ""});
}

void tandem::test::addCreationFunctionRows(std::vector<FunctionRow> &rows) {
  rows.push_back({"arange",
                  "arange",
                  {},
                  "{end = 3 : i64, start = 9 : i64, step = -2 : i64}",
                  0});
  rows.push_back({"linspace", "linspace", {}, "{steps = 5 : i64}", 0});
  rows.push_back({"full_like", "full_like", {x}, "{value = 2.5}", 0});
  rows.push_back(
      {"eye", "eye", {}, "{diagonal = 1 : i64, m = 4 : i64, n = 3 : i64}", 0});
  rows.push_back({"meshgrid",
                  "meshgrid",
                  {{tensorOf("2")}, {tensorOf("3")}},
                  "{indexing = \"xy\"}"});
}
