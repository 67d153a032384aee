//===- ContextRowsTest.cpp - rows of contexts and gradients ---------------===//
//
// Over threads, on a network that keeps what it is given and on one that loses,
// doubles and reorders messages.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/distributed/Team.h"

namespace tandem::graph::distributed::testing {
namespace {

class Contexts : public ::testing::TestWithParam<bool> {
protected:
  LoopbackOptions network() const {
    return GetParam() ? LoopbackOptions{7, 0.2, 0.2, 0.3} : LoopbackOptions{};
  }
  Team team{3, network()};
};
INSTANTIATE_TEST_SUITE_P(, Contexts, ::testing::Bool(), [](const auto &info) {
  return info.param ? "Lossy" : "Kept";
});

TEST_P(Contexts, D05_GradientsLieInTheContext) {
  Value w = serveTimes(team[1], 3), x = leaf(2);
  uint64_t context = *team[0].begin();
  auto y = team[0].call(1, "times", {{x}});
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ((*y)[0].tensor.at(0), 6);
  ASSERT_EQ(team[0].backward(context, {{shown((*y)[0])}}).message(), "");
  EXPECT_EQ(at(team[0].gradient(context, *x.edge.node)), 3);
  EXPECT_EQ(at(team[1].gradient(context, *w.edge.node)), 2);
  EXPECT_FALSE(static_cast<Leaf &>(*x.edge.node).gradient().defined());
  EXPECT_FALSE(static_cast<Leaf &>(*w.edge.node).gradient().defined());
  team[0].release(context);
  EXPECT_TRUE(team.isIdle());
}

} // namespace
} // namespace tandem::graph::distributed::testing
