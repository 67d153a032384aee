//===- ActivationRows.cpp - calls of activation functions -----------------===//
#include "tests/functions/Rows.h"

using namespace tandem::test;

void tandem::test::addActivationFunctionRows(std::vector<FunctionRow> &rows) {
  std::string type = tensorOf("3x4");
  rows.push_back({"leaky_relu", "leaky_relu", {{type}}, ""});
  rows.push_back({"leaky_relu",
                  "leaky_relu_steep",
                  {{type}},
                  "{negative_slope = 0.5 : f64}"});
}
