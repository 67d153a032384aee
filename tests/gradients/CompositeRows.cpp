//===- CompositeRows.cpp - gradient checks of composites ------------------===//
//
// A composite is checked through its decomposition; that the decomposition
// means what the composite's own reference says is checked with the same rows.
//
//===----------------------------------------------------------------------===//
#include "tests/gradients/Rows.h"

#include <algorithm>

using namespace tandem::test;

namespace {

/// Puts rows of composites together. `%0, %1` and so on, the types and the
/// arrow are written by it.
class Composites {
public:
  explicit Composites(std::vector<GradientRow> &rows) : rows(rows) {}

  /// `op operands attributes : (types) -> result`, or without parentheses.
  void add(const std::string &op, const std::string &name,
           std::vector<RowOperand> operands, const std::string &attributes,
           const std::string &result, bool parentheses) {
    std::string values, types;
    for (size_t i = 0; i < operands.size(); ++i) {
      values += (i ? ", %" : "%") + std::to_string(i);
      types += (i ? ", " : "") + operands[i].type;
    }
    if (parentheses)
      types = "(" + types + ")";
    rows.push_back({"tandem." + op,
                    op + "_" + name,
                    std::move(operands),
                    "%y = tandem." + op + " " + values + " " + attributes +
                        " : " + types + " -> " + result,
                    {{"%y", result}}});
  }

  /// One operand, the result of its type.
  void addSame(const std::string &op, const std::string &name,
               const std::string &shape, const std::string &attributes) {
    std::string type = tensorOf(shape);
    rows.push_back({"tandem." + op,
                    op + "_" + name,
                    {{type}},
                    "%y = tandem." + op + " %0 " + attributes + " : " + type,
                    {{"%y", type}}});
  }

  std::vector<GradientRow> &rows;
};

} // namespace

static void addNormalizations(Composites &table) {
  std::string x = tensorOf("2x3x4"), c = tensorOf("4"), cc = tensorOf("3x4");
  table.add("layer_norm", "last", {{x}, {c}, {c}}, "axis 2", x, false);
  table.add("layer_norm", "two", {{x}, {cc}, {cc}}, "axis 1 {epsilon = 0.01}",
            x, false);
  std::string image = tensorOf("2x3x2x2"), channels = tensorOf("3");
  std::string types = "(" + image + ", " + channels + ", " + channels + ", " +
                      channels + ", " + channels + ") -> (" + image + ", " +
                      channels + ", " + channels + ")";
  for (std::string training : {"", "{training} "})
    table.rows.push_back(
        {"tandem.batch_norm",
         training.empty() ? "batch_norm_inference" : "batch_norm_training",
         {{image}, {channels}, {channels}, {channels}, {channels, 0.3, 2}},
         "%y, %m, %v = tandem.batch_norm %0, %1, %2, %3, %4 " + training +
             ": " + types,
         {{"%y", image}, {"%m", channels}, {"%v", channels}}});
}

static void addLosses(Composites &table) {
  std::string logits = tensorOf("2x3x5"), labels = tensorOf("2x3", "i64");
  for (std::string reduction : {"mean", "sum", "none"}) {
    std::string result = tensorOf(reduction == "none" ? "2x3" : "");
    std::string text = "reduction = \"" + reduction + "\"";
    table.add("cross_entropy", reduction, {{logits}, {labels, 0, 5}},
              "{" + text + "}", result, false);
    table.add("cross_entropy", "ignore_" + reduction,
              {{logits}, {labels, 0, 5}},
              "{ignore_index = 2 : i64, " + text + "}", result, false);
    std::string pair = tensorOf("2x3");
    table.add("mse_loss", reduction, {{pair}, {pair}}, "{" + text + "}", result,
              false);
  }
}

void tandem::test::addCompositeRows(std::vector<GradientRow> &rows) {
  Composites table(rows);
  table.addSame("gelu", "erf", "3x4", "");
  table.addSame("gelu", "tanh", "3x4", "{approximate = \"tanh\"}");
  table.addSame("silu", "3x4", "3x4", "");
  for (std::string op : {"softmax", "log_softmax"}) {
    table.addSame(op, "last", "3x4", "dim 1");
    table.addSame(op, "first", "3x4", "dim 0");
    table.addSame(op, "one", "3x1", "dim 1");
  }
  addNormalizations(table);
  addLosses(table);

  table.add("linear", "bias",
            {{tensorOf("2x3x4")}, {tensorOf("5x4")}, {tensorOf("5")}}, "",
            tensorOf("2x3x5"), true);
  table.add("linear", "plain", {{tensorOf("3x4")}, {tensorOf("1x4")}}, "",
            tensorOf("3x1"), true);
  std::string q = tensorOf("1x2x3x4"), k = tensorOf("1x2x5x4"),
              v = tensorOf("1x2x5x2"), y = tensorOf("1x2x3x2");
  table.add("attention", "cross", {{q}, {k}, {v}}, "", y, false);
  table.add("attention", "causal", {{q}, {q}, {q}}, "{causal}", q, false);
  table.add("attention", "scaled", {{q}, {k}, {v}}, "{scale = 0.3 : f64}", y,
            false);
  std::string mask = tensorOf("1x2x3x5");
  table.add("attention", "biased", {{q}, {k}, {v}, {mask}}, "", y, false);
  table.add("attention", "masked",
            {{q}, {k}, {v}, {tensorOf("1x2x3x5", "i1"), 0, 2, false}},
            "{causal}", y, false);
  // The same as one op, which is differentiated once.
  for (std::string kind : {"cross", "causal", "scaled"}) {
    GradientRow row =
        *std::find_if(rows.begin(), rows.end(), [&](const GradientRow &other) {
          return other.name == "attention_" + kind;
        });
    row.name = "attention_fused_" + kind;
    row.order = 1;
    row.fused = true;
    rows.push_back(row);
  }

  for (std::string p : {"0.0", "0.4", "1.0"})
    rows.push_back({"tandem.dropout",
                    "dropout_" + p.substr(0, 1) + "_" + p.substr(2),
                    {{tensorOf("3x4")}, {tensorOf("2", "i64"), 0, 5}},
                    "%s = tandem.mul %0, %0 : tensor<3x4xf64>\n"
                    "%y = tandem.dropout %s, %1 draw 2 p " +
                        p + " {training} : tensor<3x4xf64>",
                    {{"%y", tensorOf("3x4")}}});
  rows.push_back({"tandem.reduce_mean",
                  "reduce_mean_rows",
                  {{tensorOf("3x4")}},
                  "%s = tandem.mul %0, %0 : tensor<3x4xf64>\n"
                  "%y = tandem.reduce_mean %s over [1] : tensor<3x4xf64> -> "
                  "tensor<3xf64>",
                  {{"%y", tensorOf("3")}}});
  rows.push_back({"tandem.concat",
                  "concat_three",
                  {{tensorOf("2x3")}, {tensorOf("2x1")}},
                  "%s = tandem.mul %0, %0 : tensor<2x3xf64>\n"
                  "%y = tandem.concat %s, %1, %s dim 1 : tensor<2x3xf64>, "
                  "tensor<2x1xf64>, tensor<2x3xf64> -> tensor<2x7xf64>",
                  {{"%y", tensorOf("2x7")}}});
}

/// Parameters, gradients and moments are differentiated; the rate and the step
/// are numbers of f32.
void tandem::test::addOptimizerRows(std::vector<GradientRow> &rows) {
  std::string t = tensorOf("2x3"), s = tensorOf("", "f32");
  RowOperand value{t}, positive{t, 0.3, 2}, rate{s, 0.01, 0.1, false},
      step{s, 1, 9, false};
  auto add = [&](const std::string &op, const std::string &name,
                 std::vector<RowOperand> operands,
                 const std::string &attributes,
                 std::vector<RowResult> results) {
    std::string values, types, names, resultTypes;
    for (size_t i = 0; i < operands.size(); ++i) {
      values += (i ? ", %" : "%") + std::to_string(i);
      types += (i ? ", " : "") + operands[i].type;
    }
    for (const RowResult &result : results) {
      names += (names.empty() ? "" : ", ") + result.name;
      resultTypes += (resultTypes.empty() ? "" : ", ") + result.type;
    }
    rows.push_back({"tandem." + op, op + "_" + name, std::move(operands),
                    names + " = tandem." + op + " " + values + " " +
                        attributes + " : (" + types + ") -> (" + resultTypes +
                        ")",
                    std::move(results)});
  };
  add("sgd", "plain", {value, value, rate}, "", {{"%y", t}});
  add("sgd", "decay", {value, value, rate}, "{weight_decay = 0.1 : f64}",
      {{"%y", t}});
  add("momentum", "plain", {value, value, value, rate}, "",
      {{"%y", t}, {"%b", t}});
  add("momentum", "nesterov", {value, value, value, rate},
      "{nesterov, weight_decay = 0.1 : f64}", {{"%y", t}, {"%b", t}});
  for (std::string op : {"adam", "adamw"})
    add(op, "decay", {value, value, value, positive, step, rate},
        "{weight_decay = 0.1 : f64}", {{"%y", t}, {"%m", t}, {"%v", t}});
}
