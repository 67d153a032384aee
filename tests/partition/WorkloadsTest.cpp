//===- WorkloadsTest.cpp - the models of the benchmark save what they must ===//
//
// The least that a partition can save if it repeats no contraction, in bytes,
// by the formulas of the benchmark; outputs count there, though a saved value
// that is an output takes no memory of its own. A normalization adds two
// numbers a row or channel, attention one a row, and a loss some: within 5 %.
//
//===----------------------------------------------------------------------===//
#include "tests/partition/Partitioned.h"
#include "tools/bench/workloads/Models.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::workloads;

namespace {

/// Every layer's output: relu's derivative follows from it.
int64_t fullyConnected(int64_t batch, std::vector<int64_t> widths) {
  int64_t sum = 0;
  for (int64_t width : widths)
    sum += width;
  return 4 * batch * sum;
}

/// Every convolution's output and every block's, and the logits. A block has
/// two convolutions; the first of a stage but the first halves the image and
/// has a third one, of the shortcut.
int64_t resnet(int64_t width, int64_t stages, int64_t blocks) {
  const int64_t batch = 32, image = 32;
  int64_t bytes = 4 * batch * width * image * image;
  for (int64_t s = 0; s < stages; ++s) {
    int64_t plane = 4 * batch * (width << s) * (image >> s) * (image >> s);
    bytes += blocks * 3 * plane + (s > 0 ? plane : 0);
  }
  return bytes + 4 * batch * 10;
}

/// Of a layer the stream before each norm, the three projections, attention's
/// output and the wide product; the last stream and the logits.
int64_t gpt(const GptSize &size) {
  return 4 * size.batch * size.time *
         (size.layers * (2 + 3 + 1 + 4) * size.width + size.width +
          size.vocabulary);
}

struct Case {
  const char *workload;
  int64_t leastBytes;
};

const Case cases[] = {
    {"mlp", fullyConnected(256, {1024, 1024, 10})},
    {"mnist-fc", fullyConnected(500, {500, 10})},
    {"resnet8", resnet(16, 3, 1)},
    {"resnet18", resnet(64, 4, 2)},
    {"gpt", gpt(kGpt)},
    {"gpt2-124m", gpt(kGpt2)},
    // The stream before each norm but the first, which is a parameter.
    {"normchain", 4 * kRows *kColumns * 3},
};

class Workloads : public testing::TestWithParam<const char *> {};

} // namespace

TEST(WorkloadFormulas, AreThoseOfTheBenchmark) {
  const int64_t bytes[] = {2107392,  1020000,   14681344, 110101760,
                           47185920, 146621440, 50331648};
  for (size_t i = 0; i < std::size(cases); ++i)
    EXPECT_EQ(cases[i].leastBytes, bytes[i]) << cases[i].workload;
}

TEST_P(Workloads, P04_P05_SaveTheLeastAndRepeatNoContraction) {
  for (const Case &c : cases) {
    SCOPED_TRACE(c.workload);
    Partitioned p = partition(
        [&](Trace &t) { workloads::trace(*find(c.workload), t, DType::F32); },
        GetParam());
    EXPECT_LE(p.savedBytes, c.leastBytes * 105 / 100);
    EXPECT_GT(p.contractions, c.workload == std::string("normchain") ? -1 : 0);
    EXPECT_EQ(p.contractionsAfter, p.contractions);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Workloads,
                         testing::Values("cpu:x86-64", "cpu:x86-64-v4",
                                         "cuda:sm_80", "cuda:sm_90"),
                         [](const auto &info) {
                           std::string name = info.param;
                           for (char &c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c)))
                               c = '_';
                           return name;
                         });
