//===- AttentionCases.cpp - attention, and with its gradients -------------===//
#include "tools/bench/cpu/Case.h"

#include <algorithm>
#include <cmath>

using namespace tandem;
using namespace tandem::bench;

namespace {

/// Causal attention of `heads` times `time` rows of `width` numbers.
struct Shape {
  int64_t heads, time, width;
  double scale() const { return 1 / std::sqrt(static_cast<double>(width)); }
};

using Matrix = std::vector<double>;

/// One head's probabilities p[t, s], and the gradients of the scores.
struct Head {
  Head(const Shape &shape, const std::vector<Tensor> &inputs, int64_t head);
  const Shape s;
  int64_t number;
  Matrix p, ds;
};

double dot(const Shape &s, const Tensor &a, int64_t row, const Tensor &b,
           int64_t column) {
  double sum = 0;
  for (int64_t i = 0; i < s.width; ++i)
    sum += read(a, row * s.width + i) * read(b, column * s.width + i);
  return sum;
}

Head::Head(const Shape &shape, const std::vector<Tensor> &in, int64_t head)
    : s(shape), number(head), p(s.time * s.time), ds(s.time * s.time) {
  int64_t first = head * s.time;
  for (int64_t t = 0; t < s.time; ++t) {
    double *row = &p[t * s.time], *grad = &ds[t * s.time], sum = 0, mean = 0;
    for (int64_t i = 0; i <= t; ++i)
      sum += row[i] =
          std::exp(dot(s, in[0], first + t, in[1], first + i) * s.scale());
    for (int64_t i = 0; i <= t; ++i) {
      row[i] /= sum;
      grad[i] = in.size() > 3 ? dot(s, in[3], first + t, in[2], first + i) : 0;
      mean += row[i] * grad[i];
    }
    for (int64_t i = 0; i <= t; ++i)
      grad[i] = row[i] * (grad[i] - mean) * s.scale();
  }
}

/// An element of y, dq, dk or dv.
double expected(const Head &h, const std::vector<Tensor> &in, int output,
                int64_t row, int64_t column) {
  const int64_t time = h.s.time;
  // y = p v; dq = ds k; dk = ds^T q; dv = p^T dy.
  const Tensor *factors[] = {&in[2], &in[1], &in[0], &in.back()};
  const Matrix &matrix = output == 0 || output == 3 ? h.p : h.ds;
  double sum = 0;
  for (int64_t i = 0; i < time; ++i)
    sum += matrix[output < 2 ? row * time + i : i * time + row] *
           read(*factors[output], (h.number * time + i) * h.s.width + column);
  return sum;
}

Case attention(const Shape &s, bool withGradients) {
  Case c;
  c.name = std::string("attention-") +
           (withGradients ? "and-gradients-" : "forward-") +
           std::to_string(s.heads) + "x" + std::to_string(s.time) + "x" +
           std::to_string(s.width);
  auto operand = [&](const char *name) {
    return Operand{name, {s.heads, s.time, s.width}, DType::F32, -1, 1};
  };
  c.inputs = {operand("q"), operand("k"), operand("v")};
  c.outputs = {operand("y")};
  std::string x = c.inputs[0].type(), three = x + ", " + x + ", " + x;
  std::string body =
      "%y = tandem.attention %q, %k, %v {causal} : " + three + " -> " + x;
  if (withGradients) {
    c.inputs.push_back(operand("dy"));
    for (const char *name : {"dq", "dk", "dv"})
      c.outputs.push_back(operand(name));
    body += "\n%product = tandem.mul %y, %dy : " + x +
            "\n%dq, %dk, %dv = tandem.grad %product wrt (%q, %k, %v) : " + x +
            ", " + three + " -> " + three;
  }
  c.program = programText(c.inputs, c.outputs, body);
  // Products with as many sums as there are scores that somebody sees: two
  // forward; backward the scores again, and one for each of their factors.
  double scores = static_cast<double>(s.heads * s.time * (s.time + 1) / 2);
  c.flops = 2 * (withGradients ? 7 : 2) * scores * static_cast<double>(s.width);
  c.bytes = allBytes(c);
  auto head = std::make_shared<std::unique_ptr<Head>>();
  c.expected = [=](const std::vector<Tensor> &inputs, int output,
                   int64_t element) {
    int64_t row = element / s.width, number = row / s.time;
    if (!*head || (*head)->number != number)
      *head = std::make_unique<Head>(s, inputs, number);
    return expected(**head, inputs, output, row % s.time, element % s.width);
  };
  return c;
}

} // namespace

void bench::addAttentions(std::vector<Case> &cases) {
  for (const Shape &s : {Shape{32, 128, 64}, {48, 64, 64}, {8, 1024, 64}})
    for (bool withGradients : {false, true})
      cases.push_back(attention(s, withGradients));
}
