//===- AugmentTest.cpp - images that are another each pass ----------------===//
#include "tools/commands/Augment.h"

#include <gtest/gtest.h>
#include <map>

using namespace tandem;
using namespace tandem::commands;

namespace {

constexpr int64_t kPlanes = 2, kHeight = 3, kWidth = 4;
using Image = std::vector<uint16_t>;

/// Numbers from 1 on: 0 is what lies around.
Image image() {
  Image all(kPlanes * kHeight * kWidth);
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = uint16_t(i + 1);
  return all;
}

/// The window whose corner is at (down, right), mirrored or not.
Image moved(const Image &from, int64_t down, int64_t right, bool isFlipped) {
  Image to(from.size());
  for (int64_t p = 0; p < kPlanes; ++p)
    for (int64_t y = 0; y < kHeight; ++y)
      for (int64_t x = 0; x < kWidth; ++x) {
        int64_t sy = y + down, sx = (isFlipped ? kWidth - 1 - x : x) + right;
        if (sy >= 0 && sy < kHeight && sx >= 0 && sx < kWidth)
          to[size_t((p * kHeight + y) * kWidth + x)] =
              from[size_t((p * kHeight + sy) * kWidth + sx)];
      }
  return to;
}

Image applied(const char *text, uint64_t draw) {
  auto made = Augmentation::parse(text);
  EXPECT_TRUE(made) << made.status().message();
  Image all = image();
  std::vector<std::byte> scratch;
  made->apply(std::as_writable_bytes(std::span(all)), kHeight, kWidth, 2, draw,
              scratch);
  return all;
}

TEST(Augment, imagesAreWindowsAndMirrored) {
  std::map<Image, int> seen, wanted;
  for (int64_t down = -1; down <= 1; ++down)
    for (int64_t right = -1; right <= 1; ++right)
      for (bool isFlipped : {false, true})
        wanted[moved(image(), down, right, isFlipped)] = 1;
  ASSERT_EQ(wanted.size(), 18u);
  constexpr int rows = 3600;
  for (int64_t row = 0; row < rows; ++row)
    ++seen[applied("x:flip,crop=1", drawOf(3, 5, row))];
  for (const auto &[one, count] : seen) {
    EXPECT_TRUE(wanted.count(one));
    EXPECT_NEAR(count, rows / 18, 60); // 4 standard deviations
  }
  EXPECT_EQ(seen.size(), 18u);
}

TEST(Augment, eachIsAlone) {
  std::map<Image, int> flips, crops;
  for (int64_t row = 0; row < 200; ++row) {
    ++flips[applied("x:flip", drawOf(0, 0, row))];
    ++crops[applied("x:crop=1", drawOf(0, 0, row))];
  }
  EXPECT_EQ(flips.size(), 2u);
  EXPECT_TRUE(flips.count(image()));
  EXPECT_EQ(crops.size(), 9u);
}

// Of seed, pass and row; not of the input, so that masks move along.
TEST(Augment, drawsFollowFromSeedPassAndRow) {
  EXPECT_EQ(drawOf(1, 2, 3), drawOf(1, 2, 3));
  EXPECT_NE(drawOf(1, 2, 3), drawOf(2, 2, 3));
  EXPECT_NE(drawOf(1, 2, 3), drawOf(1, 3, 3));
  EXPECT_NE(drawOf(1, 2, 3), drawOf(1, 2, 4));
}

TEST(Augment, whatIsNoAugmentationIsRefused) {
  for (const char *text :
       {"", "x", ":flip", "x:", "x:flop", "x:flip,flip", "x:crop",
        "x:crop=", "x:crop=0", "x:crop=-1", "x:crop=1.5", "x:crop=4097",
        "x:flip,", "x:crop=1,crop=2"})
    EXPECT_NE(Augmentation::parse(text).status().message().find("--augment"),
              std::string::npos)
        << text;
}

} // namespace
