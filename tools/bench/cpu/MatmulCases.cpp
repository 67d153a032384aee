//===- MatmulCases.cpp - matrix products ----------------------------------===//
#include "tools/bench/cpu/OpenBlas.h"

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

static Case product(const Product &p, DType dtype = DType::F32) {
  Case c;
  std::string form = p.transposeLhs ? "tn" : p.transposeRhs ? "nt" : "nn";
  c.name = std::string(dtype == DType::F32 ? "matmul" : "matmul-bf16") + "-" +
           form + "-" + sizes(p);
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
  c.program = programText(c.inputs, c.outputs,
                          "%y = tandem.matmul %lhs, %rhs" + attributes + " : " +
                              c.inputs[0].type() + ", " + c.inputs[1].type() +
                              " -> " + c.outputs[0].type());
  c.flops = 2.0 * static_cast<double>(p.batch * p.m * p.n * p.k);
  c.bytes = allBytes(c);
  c.expected = [p](const std::vector<Tensor> &inputs, int, int64_t element) {
    return dot(p, inputs[0], inputs[1], element);
  };
  if (dtype == DType::F32)
    c.peers = {openBlas(p)};
  else
    c.tolerance = 1e-2;
  return c;
}

void bench::addMatmuls(std::vector<Case> &cases) {
  auto add = [&](Product p, DType dtype) {
    cases.push_back(product(p, dtype));
    p.transposeLhs = true;
    cases.push_back(product(p, dtype));
    p.transposeLhs = false;
    p.transposeRhs = true;
    cases.push_back(product(p, dtype));
  };
  for (int64_t n : {512, 1024, 2048})
    add({.m = n, .n = n, .k = n}, DType::F32);
  add({.m = 768, .n = 3072, .k = 768}, DType::F32);
  add({.m = 64, .n = 1024, .k = 1024}, DType::F32);
  add({.m = 1024, .n = 1024, .k = 64}, DType::F32);
  add({.batch = 96, .m = 128, .n = 128, .k = 64}, DType::F32);
  for (int64_t n : {512, 1024})
    cases.push_back(product({.m = n, .n = n, .k = n}, DType::BF16));
}
