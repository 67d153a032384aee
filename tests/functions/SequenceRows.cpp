//===- SequenceRows.cpp - calls of attention and recurrent layers ---------===//
#include "tests/functions/Rows.h"

using namespace tandem::test;

void tandem::test::addAttentionFunctionRows(std::vector<FunctionRow> &rows) {
  RowOperand q{tensorOf("1x2x3x2")}, k{tensorOf("1x2x4x2")};
  RowOperand one{tensorOf("1x1x4x2")}, state{tensorOf("2", "i64"), 0, 9};
  std::string name = "scaled_dot_product_attention";
  rows.push_back({name, "attention_mask", {q, k, k, {tensorOf("3x4")}}, ""});
  rows.push_back({name,
                  "attention_causal_mask",
                  {q, k, k, {tensorOf("3x4", "i1"), 1, 2}},
                  "{is_causal = true, scale = 0.3}"});
  rows.push_back({name,
                  "attention_grouped",
                  {q, one, one},
                  "{enable_gqa = true, is_causal = true}"});
  rows.push_back({name,
                  "attention_dropout",
                  {q, k, k, {""}, state},
                  "{dropout_p = 0.4, draw = 3}"});
  RowOperand x{tensorOf("1x3x4")};
  rows.push_back({"multi_head_attention",
                  "multi_head_attention",
                  {x,
                   x,
                   x,
                   {tensorOf("12x4")},
                   {tensorOf("4x4")},
                   {tensorOf("12")},
                   {tensorOf("4")}},
                  "{num_heads = 2}",
                  2,
                  1e-5});
  // Three steps are written out, nine are a loop.
  auto linear = [&](std::string name, std::vector<RowOperand> operands,
                    std::string rule, int order) {
    rows.push_back(
        {"linear_attention", "linear_attention_" + name, std::move(operands),
         "{heads = 2, groups = 1, rule = \"" + rule + "\"}", order, 1e-5});
  };
  RowOperand wide{tensorOf("1x3x4")}, narrow{tensorOf("1x3x2")};
  RowOperand rate{tensorOf("1x3x1"), 0.1, 0.9}, none{""};
  RowOperand start{tensorOf("1x1x2x2")};
  linear("linear", {wide, narrow, narrow}, "linear", 2);
  linear("gated", {wide, narrow, narrow, start, {tensorOf("1x3x2"), -1, 0}},
         "gated", 1);
  linear("delta", {wide, narrow, narrow, none, none, rate}, "delta", 1);
  linear("gated_delta",
         {{tensorOf("1x9x4")},
          {tensorOf("1x9x2")},
          {tensorOf("1x9x2")},
          start,
          {tensorOf("1x9x1"), -1, 0},
          {tensorOf("1x9x1"), 0.1, 0.9}},
         "gated_delta", 1);
}

void tandem::test::addRecurrentFunctionRows(std::vector<FunctionRow> &rows) {
  auto of = [](std::string shape) {
    return RowOperand{tensorOf(shape), -1, 1};
  };
  RowOperand lengths{tensorOf("2", "i64"), 1, 4}, none{""};
  auto row = [&](std::string function, std::string name,
                 std::vector<RowOperand> operands, std::string attributes) {
    rows.push_back({function, name, std::move(operands), attributes, 1, 1e-5});
  };
  // Three steps are written out, nine are a loop.
  row("rnn_layer", "rnn_layer",
      {of("3x2x2"), of("2x3x2"), of("2x3x3"), of("2x6"), lengths},
      "{direction = \"bidirectional\", activations = \"affine,elu\", alphas = "
      "array<f64: 0.5, 0.7>}");
  row("rnn_layer", "rnn_layer_long", {of("9x1x2"), of("1x2x2"), of("1x2x2")},
      "{direction = \"reverse\"}");
  row("gru_layer", "gru_layer",
      {of("3x2x2"), of("1x6x2"), of("1x6x2"), of("1x12"), lengths, of("1x2x2")},
      "{direction = \"reverse\"}");
  row("gru_layer", "gru_layer_linear",
      {of("2x3x2"), of("1x6x2"), of("1x6x2"), of("1x12")},
      "{linear_before_reset = true, layout = 1}");
  row("lstm_layer", "lstm_layer",
      {of("3x2x2"), of("1x8x2"), of("1x8x2"), of("1x16"), lengths, of("1x2x2"),
       of("1x2x2"), of("1x6")},
      "{clip = 0.9}");
  row("lstm_layer", "lstm_layer_coupled",
      {of("3x2x2"), of("2x8x2"), of("2x8x2")},
      "{direction = \"bidirectional\", input_forget = true}");
  row("rnn", "rnn",
      {of("3x2x2"), of("1x2x2"), of("2x2"), of("2x2"), of("2"), of("2")},
      "{nonlinearity = \"tanh\"}");
  row("gru", "gru",
      {of("2x3x2"), of("2x2x2"), of("6x2"), of("6x2"), of("6x2"), of("6x2")},
      "{num_layers = 2, batch_first = true, bias = false}");
  row("lstm", "lstm",
      {of("3x2x2"), of("2x2x2"), of("2x2x2"), of("8x2"), of("8x2"), of("8"),
       of("8"), of("8x2"), of("8x2"), of("8"), of("8")},
      "{bidirectional = true}");
}

void tandem::test::addRandomFunctionRows(std::vector<FunctionRow> &rows) {
  RowOperand x{tensorOf("3x4")}, state{tensorOf("2", "i64"), 0, 9};
  rows.push_back(
      {"native_dropout", "native_dropout", {x, state}, "{p = 0.4, draw = 1}"});
  rows.push_back({"native_dropout",
                  "native_dropout_inference",
                  {x, state},
                  "{training = false}"});
  for (const char *name :
       {"bernoulli_like", "uniform_like", "normal_like", "multinomial"})
    rows.push_back({name, name, {{tensorOf("3x4"), 0, 1}, state}, "", 0});
}
