//===- PrintTest.cpp - numbers on a terminal ------------------------------===//
//
// Lines of progress said "loss -nan".
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Print.h"

#include <cmath>
#include <gtest/gtest.h>

namespace tandem::commands::test {
namespace {

TEST(Print, numbersThatAreNoneHaveNoSign) {
  EXPECT_EQ(roundedText(-std::nan("")), "nan");
  EXPECT_EQ(roundedText(std::nan("")), "nan");
  EXPECT_EQ(roundedText(-INFINITY), "-inf");
  EXPECT_EQ(roundedText(-0.25), "-0.25");
}

} // namespace
} // namespace tandem::commands::test
