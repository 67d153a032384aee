//===- AttentionKernel.cpp - kernels of attention, for tests --------------===//
#include "tests/lower/anchor/AttentionKernel.h"

#include <algorithm>
#include <cmath>

using namespace tandem::test;

/// "%0, %1"
static std::string names(size_t n, const std::string &sign) {
  std::string text;
  for (size_t i = 0; i < n; ++i)
    text += (i ? ", " : "") + sign + std::to_string(i);
  return text;
}

static std::string joined(const std::vector<std::string> &types) {
  std::string text;
  for (const std::string &type : types)
    text += (text.empty() ? "" : ", ") + type;
  return text;
}

std::string tandem::test::attentionKernel(const Heads &heads,
                                          AttentionKernel kernel) {
  auto tensor = [&](int64_t rows, int64_t columns) {
    return "tensor<" + heads.leading + std::to_string(rows) + "x" +
           std::to_string(columns) + "x" + heads.element + ">";
  };
  std::string q = tensor(heads.T, heads.D), k = tensor(heads.S, heads.D),
              v = tensor(heads.S, heads.E), y = tensor(heads.T, heads.E);
  std::string rows = "tensor<" + heads.leading + std::to_string(heads.T) + "x" +
                     (heads.element == "f64" ? "f64" : "f32") + ">";
  std::vector<std::string> operands = {q, k, v}, results = {y, rows};
  std::string op = "attention_forward";
  if (kernel != AttentionKernel::Forward) {
    operands.insert(operands.end(), {y, rows, rows});
    results = {q};
    op = "attention_query_grad";
  }
  if (kernel == AttentionKernel::KeyGrad) {
    results = {k, v};
    op = "attention_key_grad";
  }
  double scale = heads.scale.value_or(1 / std::sqrt(heads.D));
  std::string made = names(results.size(), "%r");
  return kernelModule(operands, results,
                      made + " = tandem." + op + " " +
                          names(operands.size(), "%") +
                          " {scale = " + std::to_string(scale) + " : f64" +
                          (heads.causal ? ", causal" : "") + "} : (" +
                          joined(operands) + ") -> (" + joined(results) +
                          ")\ntandem.yield " + made + " : " + joined(results));
}

Tolerance tandem::test::toleranceOf(const Heads &heads) {
  double rows = std::max(heads.T, heads.S);
  Tolerance tolerance{heads.D + heads.E + rows};
  double rounding = heads.element == "f16"    ? 1.0 / 2048
                    : heads.element == "bf16" ? 1.0 / 256
                                              : 0;
  tolerance.factors = rounding == 0 ? std::ldexp(1.0, -22)
                                    : rounding * 2 * (1 + std::sqrt(rows)) /
                                          (4 + tolerance.terms / 2);
  return tolerance;
}
