//===- Regression.h - a model whose update is tested by hand --------------===//
#ifndef TANDEM_TESTS_SEMANTICS_REGRESSION_H
#define TANDEM_TESTS_SEMANTICS_REGRESSION_H

#include "tests/semantics/Harness.h"

namespace tandem::test {

/// The mean over rows of the squares of w . x + b.
inline Source regression(int64_t rows) {
  return {nullptr, [rows](Trace &t) {
            Tensor x = t.input("x", {rows, 3});
            Tensor w = t.parameter("w", {1, 3}, Init::constant(0.5));
            Tensor b = t.parameter("b", {1}, Init::constant(0.25));
            Tensor y = linear(x, w, b);
            t.output("loss", mean(y * y));
          }};
}

inline Numbers rowsOf(int64_t first, int64_t count) {
  Numbers numbers;
  for (int64_t i = 3 * first; i < 3 * (first + count); ++i)
    numbers.push_back(double(i * 37 % 23) / 11 - 1);
  return numbers;
}

/// Runs a program on these rows.
inline void runOnRows(CompiledMachine &m, const char *program,
                      const Numbers &rows) {
  m.set("x", rows);
  runtime::Argument inputs[] = {{"x", &m.tensors["x"]}};
  Status status = m.model.run(program, inputs, {});
  ASSERT_TRUE(status.ok()) << status.message();
}

} // namespace tandem::test

#endif
