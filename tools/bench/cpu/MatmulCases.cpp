//===- MatmulCases.cpp - matrix products ----------------------------------===//
#include "tools/bench/cpu/Dnnl.h"
#include "tools/bench/cpu/OpenBlas.h"
#include "tools/bench/cpu/Xsmm.h"

#include <cmath>

using namespace tandem;
using namespace tandem::bench;

static std::string sizes(const Product &p) {
  std::string text = p.batch > 1 ? std::to_string(p.batch) + "of" : "";
  return text + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" +
         std::to_string(p.k);
}

static std::vector<int64_t> shape(int64_t batch, int64_t rows,
                                  int64_t columns) {
  if (batch == 1)
    return {rows, columns};
  return {batch, rows, columns};
}

/// An element of the product.
static double dot(const Product &p, const Tensor &lhs, const Tensor &rhs,
                  int64_t element) {
  int64_t b = element / (p.m * p.n), i = element / p.n % p.m, j = element % p.n;
  double sum = 0;
  for (int64_t k = 0; k < p.k; ++k)
    sum +=
        read(lhs,
             b * p.m * p.k + (p.transposeLhs ? k * p.m + i : i * p.k + k)) *
        read(rhs, b * p.k * p.n + (p.transposeRhs ? j * p.k + k : k * p.n + j));
  return sum;
}

/// With the operands as they are, and with a rhs that was packed before.
static Peer dnnlProduct(const Product &p, DType dtype, bool isFused) {
  return [=](const std::vector<Tensor> &inputs,
             const std::vector<Tensor> &outputs, int) {
    std::vector<Contender> all;
    for (const auto &dnnl : dnnlLibraries()) {
      if (!dnnl->problem.empty())
        continue;
      auto desc = [&](int64_t rows, int64_t columns, bool isTransposed) {
        std::vector<int64_t> strides = {isTransposed ? 1 : columns,
                                        isTransposed ? rows : 1};
        if (p.batch > 1)
          strides.insert(strides.begin(), rows * columns);
        return dnnl->dense(shape(p.batch, rows, columns), dtype, strides);
      };
      auto lhs = desc(p.m, p.k, p.transposeLhs);
      auto rhs = desc(p.k, p.n, p.transposeRhs);
      auto y = desc(p.m, p.n, false);
      auto bias = isFused ? dnnl->dense({1, p.n}, dtype) : nullptr;
      std::vector<DnnlOperand> operands = {{kSrc, lhs, inputs[0]},
                                           {kWeights, rhs, inputs[1]},
                                           {kDst, y, outputs[0], true}};
      if (isFused)
        operands.push_back({kBias, bias, inputs[2]});
      for (const auto &layout :
           {rhs, dnnl->any(shape(p.batch, p.k, p.n), dtype)})
        for (Contender &contender :
             dnnl->contenders("", dnnl->matmul(lhs, layout, bias, y, isFused),
                              operands, outputs))
          if (layout == rhs || contender.group == Contender::OwnLayout)
            all.push_back(std::move(contender));
    }
    return all;
  };
}

static double geluTanh(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/// `isFused`: with a bias and gelu (by tanh), in one kernel.
static Case product(const Product &p, DType dtype = DType::F32,
                    bool isFused = false) {
  Case c;
  std::string form = p.transposeLhs ? "tn" : p.transposeRhs ? "nt" : "nn";
  c.name = std::string(dtype == DType::F32 ? "matmul" : "matmul-bf16") +
           (isFused ? "-fused-" : "-") + form + "-" + sizes(p);
  c.inputs = {
      {"lhs",
       p.transposeLhs ? shape(p.batch, p.k, p.m) : shape(p.batch, p.m, p.k),
       dtype},
      {"rhs",
       p.transposeRhs ? shape(p.batch, p.n, p.k) : shape(p.batch, p.k, p.n),
       dtype}};
  c.outputs = {{"y", shape(p.batch, p.m, p.n), dtype}};
  std::string attributes = p.transposeLhs   ? " {transpose_lhs}"
                           : p.transposeRhs ? " {transpose_rhs}"
                                            : "";
  std::string y = c.outputs[0].type();
  std::string matmul = "tandem.matmul %lhs, %rhs" + attributes + " : " +
                       c.inputs[0].type() + ", " + c.inputs[1].type() + " -> " +
                       y + "\n";
  std::string body = "%y = " + matmul;
  if (isFused) {
    c.inputs.push_back({"bias", {p.n}, dtype});
    body = "%product = " + matmul + "%rows = tandem.broadcast %bias to [" +
           std::to_string(p.m) + ", " + std::to_string(p.n) +
           "] along [1] : " + c.inputs[2].type() + " -> " + y +
           "\n%sum = tandem.add %product, %rows : " + y +
           "\n%y = tandem.gelu %sum {approximate = \"tanh\"} : " + y;
  }
  c.program = programText(c.inputs, c.outputs, body);
  c.flops = 2.0 * static_cast<double>(p.batch * p.m * p.n * p.k);
  c.bytes = allBytes(c);
  c.expected = [=](const std::vector<Tensor> &inputs, int, int64_t element) {
    double sum = dot(p, inputs[0], inputs[1], element);
    return isFused ? geluTanh(sum + read(inputs[2], element % p.n)) : sum;
  };
  c.peers = {dnnlProduct(p, dtype, isFused)};
  if (dtype != DType::F32)
    c.tolerance = 1e-2;
  else if (!isFused)
    c.peers.push_back(openBlas(p));
  // Larger ones are not what libxsmm is for.
  if (dtype == DType::F32 && !isFused && std::min(p.m, p.k) < 128)
    c.peers.push_back(xsmm(p));
  return c;
}

/// A weight's gradient that ends with its update: v' = v + g, w' = w - v'.
static Case updated(const Product &p) {
  Case c = product(p);
  c.name = "matmul-update-tn-" + sizes(p);
  c.peers.clear();
  c.inputs.push_back({"v", {p.m, p.n}});
  c.inputs.push_back({"w", {p.m, p.n}});
  c.outputs = {{"y", {p.m, p.n}}, {"z", {p.m, p.n}}};
  std::string y = c.outputs[0].type();
  c.program = programText(c.inputs, c.outputs,
                          "%g = tandem.matmul %lhs, %rhs {transpose_lhs} : " +
                              c.inputs[0].type() + ", " + c.inputs[1].type() +
                              " -> " + y + "\n%y = tandem.add %v, %g : " + y +
                              "\n%z = tandem.sub %w, %y : " + y);
  c.bytes = allBytes(c);
  c.expected = [=](const std::vector<Tensor> &inputs, int output,
                   int64_t element) {
    double v = read(inputs[2], element) + dot(p, inputs[0], inputs[1], element);
    return output == 0 ? v : read(inputs[3], element) - v;
  };
  return c;
}

void bench::addMatmuls(std::vector<Case> &cases) {
  auto add = [&](Product p, bool isFused = false, DType dtype = DType::F32) {
    cases.push_back(product(p, dtype, isFused));
    p.transposeLhs = true;
    cases.push_back(product(p, dtype, isFused));
    p.transposeLhs = false;
    p.transposeRhs = true;
    cases.push_back(product(p, dtype, isFused));
  };
  for (bool isFused : {false, true}) {
    for (int64_t n : {512, 1024, 2048})
      add({.m = n, .n = n, .k = n}, isFused);
    add({.m = 768, .n = 3072, .k = 768}, isFused);
  }
  add({.m = 64, .n = 1024, .k = 1024});
  add({.m = 1024, .n = 1024, .k = 64});
  add({.batch = 96, .m = 128, .n = 128, .k = 64});
  for (int64_t k : {256, 1024})
    cases.push_back(
        updated({.m = 1024, .n = 1024, .k = k, .transposeLhs = true}));
  // A long k, and few rows.
  cases.push_back(product({.m = 256, .n = 768, .k = 16384}));
  for (int64_t n : {512, 1024})
    add({.m = n, .n = n, .k = n}, false, DType::BF16);
}
