//===- ActivationRows.cpp - calls of activation functions -----------------===//
#include "tests/functions/Rows.h"

using namespace tandem::test;

void tandem::test::addActivationFunctionRows(std::vector<FunctionRow> &rows) {
  std::string type = tensorOf("3x4");
  for (const char *name :
       {"leaky_relu", "elu", "celu", "selu", "threshold", "shrink",
        "softshrink", "hardshrink", "hardtanh", "relu6", "hardsigmoid",
        "hardswish", "softplus", "logsigmoid", "softsign", "mish", "tanhshrink",
        "glu", "softmin"})
    rows.push_back({name, name, {{type}}, ""});
  rows.push_back({"leaky_relu",
                  "leaky_relu_steep",
                  {{type}},
                  "{negative_slope = 0.5 : f64}"});
  rows.push_back({"elu",
                  "elu_scaled",
                  {{type}},
                  "{alpha = 2.0, scale = 1.5, input_scale = 0.5}"});
  rows.push_back({"softplus",
                  "softplus_beyond",
                  {{type, -9, 9}},
                  "{beta = 2.0, threshold = 6.0}"});
  rows.push_back(
      {"shrink", "shrink_biased", {{type}}, "{lambd = 0.7, bias = 0.3}"});
  rows.push_back({"prelu", "prelu", {{type}, {tensorOf("1")}}, ""});
  rows.push_back(
      {"prelu", "prelu_channels", {{tensorOf("2x3x2")}, {tensorOf("3")}}, ""});
  rows.push_back({"clamp", "clamp", {{type}}, "{min = -1.0, max = 0.5}"});
  rows.push_back({"clamp",
                  "clamp_tensors",
                  {{type}, {tensorOf("4"), -2, 0}, {tensorOf("3x1"), 0, 2}},
                  ""});
  rows.push_back({"clamp", "clamp_above", {{type}, {""}, {tensorOf("")}}, ""});
  rows.push_back({"hardmax", "hardmax", {{type}}, "{dim = 0}", 0});
}
