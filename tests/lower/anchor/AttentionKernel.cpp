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
  double scale = heads.scale.value_or(1 / std::sqrt(heads.D));
  std::vector<std::string> operands = {q, k, v}, results;
  bool isForward = kernel == AttentionKernel::Forward;
  if (!isForward)
    operands.insert(operands.end(), {y, rows, rows});
  std::string body, made;
  auto add = [&](const std::string &op, const std::vector<std::string> &types) {
    std::string values = names(types.size(), "%" + op);
    body += values + " = tandem.attention_" + op + " " +
            names(operands.size(), "%") + " {scale = " + std::to_string(scale) +
            " : f64" + (heads.causal ? ", causal" : "") + "} : (" +
            joined(operands) + ") -> (" + joined(types) + ")\n";
    made += (made.empty() ? "" : ", ") + values;
    results.insert(results.end(), types.begin(), types.end());
  };
  if (isForward)
    add("forward", {y, rows});
  if (kernel == AttentionKernel::QueryGrad ||
      kernel == AttentionKernel::BothGrads)
    add("query_grad", {q});
  if (kernel == AttentionKernel::KeyGrad ||
      kernel == AttentionKernel::BothGrads)
    add("key_grad", {k, v});
  return kernelModule(operands, results,
                      body + "tandem.yield " + made + " : " + joined(results));
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
