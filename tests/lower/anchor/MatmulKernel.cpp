//===- MatmulKernel.cpp - kernels of matrix products, for tests -----------===//
#include "tests/lower/anchor/MatmulKernel.h"

#include "tests/lower/anchor/KernelCheck.h"

using namespace tandem::test;

static std::string tensor(const std::vector<int64_t> &shape,
                          const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

static std::string list(const std::vector<int64_t> &numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text;
}

std::string tandem::test::productKernel(const Product &p, ProductEnd end) {
  auto sizes = [&](int64_t rows, int64_t columns, bool transposed) {
    std::vector<int64_t> shape = p.batch;
    shape.push_back(transposed ? columns : rows);
    shape.push_back(transposed ? rows : columns);
    return shape;
  };
  std::string lhs = tensor(sizes(p.M, p.K, p.transposeLhs), p.element);
  std::string rhs = tensor(sizes(p.K, p.N, p.transposeRhs), p.element);
  std::vector<int64_t> shape = sizes(p.M, p.N, false);
  std::string y = tensor(shape, p.element), bias = tensor({p.N}, p.element);
  std::string attributes = std::string(p.transposeLhs ? "transpose_lhs" : "") +
                           (p.transposeLhs && p.transposeRhs ? ", " : "") +
                           (p.transposeRhs ? "transpose_rhs" : "");
  std::string body = "%y = tandem.matmul %0, %1 {" + attributes + "} : " + lhs +
                     ", " + rhs + " -> " + y;
  switch (end) {
  case ProductEnd::None:
    break;
  case ProductEnd::Bias:
    return kernelModule(
        {lhs, rhs, bias}, {y},
        body + "\n%b = tandem.broadcast %2 to [" + list(shape) + "] along [" +
            std::to_string(shape.size() - 1) + "] : " + bias + " -> " + y +
            "\n%s = tandem.add %y, %b : " + y + "\n%t = tandem.tanh %s : " + y +
            "\ntandem.yield %t : " + y);
  case ProductEnd::Update:
    return kernelModule({lhs, rhs, y, y}, {y, y},
                        body + "\n%v = tandem.add %2, %y : " + y +
                            "\n%w = tandem.sub %3, %v : " + y +
                            "\ntandem.yield %w, %v : " + y + ", " + y);
  }
  return kernelModule({lhs, rhs}, {y}, body + "\ntandem.yield %y : " + y);
}

std::string tandem::test::panelProductKernel(const Product &p,
                                             int64_t columns) {
  int64_t panels = (p.N + columns - 1) / columns, padded = panels * columns;
  std::string lhs = tensor(p.transposeLhs ? std::vector<int64_t>{p.K, p.M}
                                          : std::vector<int64_t>{p.M, p.K},
                           p.element);
  std::string in = tensor({panels, p.K, columns}, p.element);
  std::string turned = tensor({p.K, panels, columns}, p.element);
  std::string rows = tensor({p.K, padded}, p.element);
  std::string rhs = tensor({p.K, p.N}, p.element);
  std::string y = tensor({p.M, p.N}, p.element);
  return kernelModule({lhs, in, y}, {y},
                      "%t = tandem.permute %1 by [1, 0, 2] : " + in + " -> " +
                          turned + "\n%r = tandem.reshape %t to [" +
                          list({p.K, padded}) + "] : " + turned + " -> " +
                          rows + "\n%w = tandem.slice %r from [0, 0] to [" +
                          list({p.K, p.N}) + "] step [1, 1] : " + rows +
                          " -> " + rhs + "\n%p = tandem.matmul %0, %w" +
                          (p.transposeLhs ? " {transpose_lhs}" : "") + " : " +
                          lhs + ", " + rhs + " -> " + y +
                          "\n%y = tandem.add %p, %2 : " + y +
                          "\ntandem.yield %y : " + y);
}
