//===- ContractionRows.cpp - gradient checks of products and windows ------===//
#include "tests/gradients/Rows.h"

using namespace tandem::test;

/// An op of two operands: `middle` stands between them and the types.
static void pair(std::vector<GradientRow> &rows, const std::string &op,
                 const std::string &name, const std::string &lhs,
                 const std::string &rhs, const std::string &middle,
                 const std::string &result) {
  std::string a = tensorOf(lhs), b = tensorOf(rhs), y = tensorOf(result);
  rows.push_back({"tandem." + op,
                  op + "_" + name,
                  {{a}, {b}},
                  "%y = tandem." + op + " %0, %1 " + middle + " : " + a + ", " +
                      b + " -> " + y,
                  {{"%y", y}}});
}

void tandem::test::addContractionRows(std::vector<GradientRow> &rows) {
  pair(rows, "matmul", "nn", "2x3", "3x4", "", "2x4");
  pair(rows, "matmul", "tn", "3x2", "3x4", "{transpose_lhs}", "2x4");
  pair(rows, "matmul", "nt", "2x3", "4x3", "{transpose_rhs}", "2x4");
  pair(rows, "matmul", "tt", "3x2", "4x3", "{transpose_lhs, transpose_rhs}",
       "2x4");
  pair(rows, "matmul", "batched", "2x2x2x3", "2x2x3x1", "", "2x2x2x1");
  pair(rows, "matmul", "ones", "1x1", "1x1", "", "1x1");

  pair(rows, "conv2d", "plain", "1x2x4x5", "3x2x3x2", "", "1x3x2x4");
  pair(rows, "conv2d", "strided", "2x2x5x6", "2x2x3x3",
       "strides [2, 1] padding [1, 0, 1, 2]", "2x2x2x7");
  pair(rows, "conv2d", "dilated", "1x1x6x6", "2x1x2x3",
       "padding [0, 1, 1, 1] dilation [2, 2]", "1x2x5x4");
  pair(rows, "conv2d", "grouped", "1x4x3x3", "6x2x2x2",
       "padding [1, 1, 1, 1] groups 2", "1x6x4x4");
  pair(rows, "conv2d", "depthwise", "1x3x4x4", "3x1x3x3",
       "strides [2, 2] padding [1, 1, 1, 1] groups 3", "1x3x2x2");
  pair(rows, "conv2d", "pointwise", "1x2x1x1", "1x2x1x1", "", "1x1x1x1");
  pair(rows, "conv2d_input_grad", "strided", "2x2x2x7", "2x2x3x3",
       "to [2, 2, 5, 6] strides [2, 1] padding [1, 0, 1, 2]", "2x2x5x6");
  pair(rows, "conv2d_input_grad", "grouped", "1x6x4x4", "6x2x2x2",
       "to [1, 4, 3, 3] padding [1, 1, 1, 1] groups 2", "1x4x3x3");
  pair(rows, "conv2d_filter_grad", "strided", "2x2x5x6", "2x2x2x7",
       "to [2, 2, 3, 3] strides [2, 1] padding [1, 0, 1, 2]", "2x2x3x3");
  pair(rows, "conv2d_filter_grad", "grouped", "1x4x3x3", "1x6x4x4",
       "to [6, 2, 2, 2] padding [1, 1, 1, 1] groups 2", "6x2x2x2");
}

/// Attention at once; its gradients have none.
static void attention(std::vector<GradientRow> &rows, const std::string &name,
                      const std::string &leading, int64_t T, int64_t S,
                      int64_t D, int64_t E, const std::string &attributes) {
  auto shape = [&](int64_t last, int64_t before) {
    return tensorOf(leading + std::to_string(before) + "x" +
                    std::to_string(last));
  };
  std::string q = shape(D, T), k = shape(D, S), v = shape(E, S),
              y = shape(E, T), lse = tensorOf(leading + std::to_string(T));
  rows.push_back({"tandem.attention_forward",
                  "attention_forward_" + name,
                  {{q}, {k}, {v}},
                  "%y, %lse = tandem.attention_forward %0, %1, %2 {" +
                      attributes + "} : (" + q + ", " + k + ", " + v +
                      ") -> (" + y + ", " + lse + ")",
                  {{"%y", y}},
                  /*order=*/1});
}

void tandem::test::addAttentionRows(std::vector<GradientRow> &rows) {
  attention(rows, "cross", "2x2x", 3, 5, 4, 2, "scale = 0.5 : f64");
  attention(rows, "causal", "2x", 4, 4, 3, 3, "causal, scale = 0.7 : f64");
  attention(rows, "fewer_keys", "", 5, 2, 2, 3, "causal, scale = -1.0 : f64");
  attention(rows, "fewer_queries", "", 2, 5, 2, 3, "causal, scale = 1.0 : f64");
  attention(rows, "one", "1x", 1, 1, 1, 1, "scale = 1.0 : f64");
}

/// Pooling, of a square, so that the second order is not zero.
static void pool(std::vector<GradientRow> &rows, const std::string &op,
                 const std::string &name, const std::string &from,
                 const std::string &attributes, const std::string &to) {
  std::string source = tensorOf(from), result = tensorOf(to);
  bool indexed = op == "max_pool2d";
  rows.push_back({"tandem." + op,
                  op + "_" + name,
                  {{source}},
                  "%s = tandem.mul %0, %0 : " + source + "\n%y" +
                      (indexed ? ", %i" : "") + " = tandem." + op + " %s " +
                      attributes + " : " + source + " -> " + result +
                      (indexed ? ", " + tensorOf(to, "i32") : ""),
                  {{"%y", result}}});
}

void tandem::test::addWindowRows(std::vector<GradientRow> &rows) {
  pool(rows, "max_pool2d", "plain", "1x2x4x4", "kernel [2, 2] strides [2, 2]",
       "1x2x2x2");
  pool(rows, "max_pool2d", "overlapping", "2x1x5x5",
       "kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1]", "2x1x3x3");
  pool(rows, "max_pool2d", "dilated", "1x1x5x5",
       "kernel [2, 2] dilation [2, 2]", "1x1x3x3");
  pool(rows, "avg_pool2d", "plain", "1x2x4x4", "kernel [2, 2] strides [2, 2]",
       "1x2x2x2");
  pool(rows, "avg_pool2d", "padded", "2x1x5x4",
       "kernel [3, 2] strides [2, 2] padding [1, 1, 1, 1]", "2x1x3x3");
  pool(rows, "avg_pool2d", "uncounted", "2x1x5x4",
       "kernel [3, 2] strides [2, 2] padding [1, 1, 1, 1] "
       "{count_include_pad = false}",
       "2x1x3x3");
  pool(rows, "avg_pool2d", "whole", "1x2x3x3", "kernel [3, 3]", "1x2x1x1");
  pool(rows, "avg_pool2d_grad", "padded", "2x1x3x3",
       "to [2, 1, 5, 4] kernel [3, 2] strides [2, 2] padding [1, 1, 1, 1] "
       "{count_include_pad = false}",
       "2x1x5x4");

  std::string index = tensorOf("1x2x2x2", "i32"), big = tensorOf("1x2x3x3"),
              small = tensorOf("1x2x2x2");
  rows.push_back({"tandem.max_pool2d_take",
                  "max_pool2d_take",
                  {{big}, {index, 0, 9}},
                  "%s = tandem.mul %0, %0 : " + big +
                      "\n%y = tandem.max_pool2d_take %s, %1 : " + big + ", " +
                      index + " -> " + small,
                  {{"%y", small}}});
  rows.push_back({"tandem.max_pool2d_grad",
                  "max_pool2d_grad",
                  {{small}, {index, 0, 9}},
                  "%s = tandem.mul %0, %0 : " + small +
                      "\n%y = tandem.max_pool2d_grad %s, %1 to [1, 2, 3, 3] "
                      ": " +
                      small + ", " + index + " -> " + big,
                  {{"%y", big}}});

  // Equal indices are drawn: six of four rows.
  std::string table = tensorOf("4x3"), rowsOf = tensorOf("2x3x3"),
              which = tensorOf("2x3", "i32");
  rows.push_back({"tandem.take",
                  "take",
                  {{table}, {which, 0, 4}},
                  "%s = tandem.mul %0, %0 : " + table +
                      "\n%y = tandem.take %s, %1 : " + table + ", " + which +
                      " -> " + rowsOf,
                  {{"%y", rowsOf}}});
  rows.push_back({"tandem.take_grad",
                  "take_grad",
                  {{rowsOf}, {which, 0, 4}},
                  "%s = tandem.mul %0, %0 : " + rowsOf +
                      "\n%y = tandem.take_grad %s, %1 to [4, 3] : " + rowsOf +
                      ", " + which + " -> " + table,
                  {{"%y", table}}});

  for (std::string combine : {"set", "add", "mul", "min", "max"})
    rows.push_back({"tandem.scatter",
                    "scatter_" + combine,
                    {{table, 0.5, 2}, {which, 0, 4}, {rowsOf, 0.5, 2}},
                    "%s = tandem.mul %0, %0 : " + table +
                        "\n%u = tandem.mul %2, %2 : " + rowsOf +
                        "\n%y = tandem.scatter " + combine + " %s, %1, %u : " +
                        table + ", " + which + ", " + rowsOf + " -> " + table,
                    {{"%y", table}}});
  // A 0 in the table, or one among the rows.
  std::string one = tensorOf("1");
  for (bool inTable : {true, false})
    rows.push_back(
        {"tandem.scatter",
         std::string("scatter_mul_zero_in_") + (inTable ? "table" : "rows"),
         {{one, inTable ? 0.0 : 0.5, inTable ? 0.0 : 2.0},
          {tensorOf("1", "i32"), 0, 1},
          {one, inTable ? 0.5 : 0.0, inTable ? 2.0 : 0.0},
          {one, 0.5, 2}},
         "%t = tandem.scatter mul %0, %1, %3 : " + one + ", tensor<1xi32>, " +
             one + " -> " + one +
             "\n%i = tandem.constant dense<0> : tensor<2xi32>"
             "\n%a = tandem.pad %2 low [0] high [1] interior [0] "
             "with 0.0 : f64 : " +
             one +
             " -> tensor<2xf64>\n%b = tandem.pad %3 low [1] high "
             "[0] interior [0] with 0.0 : f64 : " +
             one +
             " -> tensor<2xf64>\n%u = tandem.add %a, %b : "
             "tensor<2xf64>\n%y = tandem.scatter mul %t, %i, %u : " +
             one + ", tensor<2xi32>, tensor<2xf64> -> " + one,
         {{"%y", one}}});

  for (std::string how : {"", "exclusive ", "reverse ", "exclusive reverse "})
    for (auto [shape, dim] : {std::pair{"2x4x3", "1"}, std::pair{"1x5", "1"}}) {
      std::string type = tensorOf(shape), name = "cumsum_";
      for (char c : how + shape)
        name += c == ' ' ? '_' : c;
      rows.push_back({"tandem.cumsum",
                      name,
                      {{type}},
                      "%s = tandem.mul %0, %0 : " + type +
                          "\n%y = tandem.cumsum %s dim " + dim + " " + how +
                          ": " + type + " -> " + type,
                      {{"%y", type}}});
    }
  for (std::string how : {"", "descending "})
    for (auto [shape, dim] : {std::pair{"2x4x3", "1"}, std::pair{"3x5", "1"}}) {
      std::string type = tensorOf(shape), indices = tensorOf(shape, "i64");
      rows.push_back({"tandem.sort",
                      "sort_" + how.substr(0, 4) + shape,
                      {{type}},
                      "%s = tandem.mul %0, %0 : " + type +
                          "\n%y, %i = tandem.sort %s dim " + dim + " " + how +
                          ": " + type + " -> " + type + ", " + indices,
                      {{"%y", type}}});
    }
}
