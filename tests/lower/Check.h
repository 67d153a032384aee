//===- Check.h - programs on all targets against the reference ------------===//
#ifndef TANDEM_TESTS_LOWER_CHECK_H
#define TANDEM_TESTS_LOWER_CHECK_H

#include "tests/lower/Machine.h"

#include <gtest/gtest.h>

namespace tandem::test {

/// A module with one function: `signature` without roles, as in
/// "x: tensor<4xf32>, y: tensor<4xf32> -> tensor<4xf32>".
std::string program(const std::string &signature, const std::string &body);

struct Options {
  double tolerance = 2e-6; ///< relative to the largest of |expected| and 1
  double low = -2, high = 2;
  unsigned seed = 1;
  size_t kernels = 0; ///< how many there shall be; 0: not checked
  std::string target = "cpu";
};

void compare(const Arrays &got, const Arrays &expected, double tolerance);

/// Runs the program on the target with its items in one range, in ranges of one
/// and of three, and compares with the reference, and, bit for bit, with each
/// other; if the target is `cpu`, on `cuda` too, with threads in several
/// orders.
void check(const std::string &text, const Options &options = {},
           const Arrays *given = nullptr);

} // namespace tandem::test

#endif
