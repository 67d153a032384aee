//===- NearestNameTest.cpp - which name was meant -------------------------===//
//
// No message about an unknown name used to say which one is near.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/NearestName.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

constexpr std::string_view names[] = {"sgd",   "momentum", "adam",
                                      "adamw", "--lr",     "embedding"};

TEST(NearestName, isTheOneWithTheFewestChanges) {
  EXPECT_EQ(nearestName("AdamW", names), "adamw");
  EXPECT_EQ(nearestName("adma", names), "adam");
  EXPECT_EQ(nearestName("momentun", names), "momentum");
  EXPECT_EQ(nearestName("embeding", names), "embedding");
  EXPECT_EQ(nearestName("--le", names), "--lr");
}

TEST(NearestName, isNoneWhereNoneIsNear) {
  EXPECT_EQ(nearestName("rprop", names), "");
  EXPECT_EQ(nearestName("", names), "");
  EXPECT_EQ(nearestName("x", names), "");
  EXPECT_EQ(nearestName(std::string(100000, 'a'), names), "");
  EXPECT_EQ(nearestName("sgd", {}), "");
}

TEST(NearestName, isPutIntoWords) {
  EXPECT_EQ(didYouMean("sdg", names), " (did you mean 'sgd'?)");
  EXPECT_EQ(didYouMean("rprop", names), "");
}

} // namespace
} // namespace tandem
