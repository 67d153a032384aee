//===- ContextRowsTest.cpp - what rows see inside of workers --------------===//
//
// Of rows D02, D09, D13, D16, D17 and D19 what the public API does not show.
// Over threads, on a network that keeps what it is given and on one that loses,
// doubles and reorders messages.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/distributed/Team.h"

#include "runtime/graph/Hooks.h"

#include <random>

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

/// The part of a backward that runs. A worker answers while it ends its own, so
/// that whoever asks sooner waits for it.
static std::shared_ptr<Session> sessionOf(const Context &context) {
  std::lock_guard lock(context.mutex);
  return context.session;
}

/// Nodes of a message on both sides have its number.
TEST_P(Contexts, D02_MessagesTieTheirNodes) {
  serveTimes(team[1], 3);
  Value x = leaf(2);
  uint64_t id = *team[0].begin();
  auto y = team[0].call(1, "times", {{x}});
  ASSERT_TRUE(y.ok()) << y.status().message();
  auto here = *team[0].find(id), there = *team[1].find(id);
  ASSERT_EQ(here->sends.size(), 1u);
  ASSERT_EQ(there->sends.size(), 1u);
  const auto *received =
      dynamic_cast<const ReceiveNode *>((*y)[0].edge.node.get());
  ASSERT_NE(received, nullptr);
  EXPECT_EQ(received->message, there->sends.begin()->first);
  EXPECT_EQ(workerOf(received->message), 1u);
  EXPECT_EQ(received->peer, 1u);
  std::set<Node *> seen;
  std::vector<const ReceiveNode *> below;
  findReceives(there->sends.begin()->second, seen, below);
  ASSERT_EQ(below.size(), 1u);
  EXPECT_EQ(below[0]->message, here->sends.begin()->first);
  EXPECT_EQ(here->knownPeers(), std::vector<uint64_t>{1});
  EXPECT_EQ(there->knownPeers(), std::vector<uint64_t>{0});
  team[0].release(id);
  EXPECT_TRUE(team.isIdle());
}

/// The search looks at each node once, whatever number of gradients comes.
TEST_P(Contexts, D09_DependenciesAreCountedOnce) {
  serveTimes(team[1], 3);
  Value x = leaf(1);
  std::vector<size_t> visited;
  std::mutex mutex;
  Value counted = leaf(1);
  addPostHook(*counted.edge.node, [&](Gradients &, const Gradients &) {
    std::lock_guard lock(mutex);
    visited.push_back(0);
    return Status::success();
  });
  ASSERT_TRUE(team[1]
                  .serve("counted",
                         [&](std::vector<Value> &inputs,
                             std::vector<Value> &outputs) -> Status {
                           Result<Value> made = ops::mul(inputs[0], counted);
                           if (!made)
                             return std::move(made).status();
                           outputs[0] = *made;
                           return Status::success();
                         })
                  .ok());
  uint64_t id = *team[0].begin();
  Value sum = x;
  for (int i = 0; i < 10; ++i)
    sum = *ops::add(sum, (*team[0].call(1, "counted", {{x}}))[0]);
  ASSERT_EQ(team[0].backward(id, {{shown(sum)}}).message(), "");
  // The leaf waits for all ten, and runs once.
  EXPECT_EQ(visited.size(), 1u);
  EXPECT_EQ(at(team[1].gradient(id, *counted.edge.node)), 10);
  EXPECT_EQ(sessionOf(**team[1].find(id)), nullptr);
  team[0].release(id);
  EXPECT_TRUE(team.isIdle());
}

/// What came first, and nobody else has, is taken over.
TEST_P(Contexts, D15_AnUnsharedBufferIsAdopted) {
  Value w = leaf(3);
  const void *given = nullptr;
  Value node = FunctionNode::make("gives", number(0), {w.edge},
                                  [&](Tensors inputs, Tensors &outputs) {
                                    outputs[0] = *inputs[0].copyTo(Device());
                                    given = outputs[0].data();
                                    return Status::success();
                                  });
  uint64_t id = *team[0].begin();
  ASSERT_EQ(team[0].backward(id, {{shown(node)}}).message(), "");
  EXPECT_EQ(team[0].gradient(id, *w.edge.node)->tensor.data(), given);
  team[0].release(id);
}

/// Nobody but the context has its gradients, and no message is kept.
TEST_P(Contexts, D17_NobodyElseHoldsTheResult) {
  Value w = serveTimes(team[1], 3), x = leaf(2);
  uint64_t id = *team[0].begin();
  auto y = team[0].call(1, "times", {{x}});
  ASSERT_EQ(team[0].backward(id, {{shown((*y)[0])}}).message(), "");
  for (auto [worker, node] : {std::pair(0, x.edge.node), {1, w.edge.node}}) {
    auto context = *team[size_t(worker)].find(id);
    EXPECT_EQ(sessionOf(*context), nullptr) << worker;
    Value gradient = *team[size_t(worker)].gradient(id, *node);
    EXPECT_EQ(gradient.tensor.storage().use_count(), 2) << worker; // and ours
    EXPECT_TRUE(context->sends.empty()) << worker;
    EXPECT_EQ(context->gradients.all().size(), 1u) << worker;
  }
  std::weak_ptr<Context> here = *team[0].find(id), there = *team[1].find(id);
  team[0].release(id);
  EXPECT_TRUE(team.isIdle());
  y = std::vector<Value>();
  EXPECT_TRUE(here.expired());
  for (int i = 0; i < 1000 && !there.expired(); ++i)
    std::this_thread::sleep_for(Milliseconds(2));
  EXPECT_TRUE(there.expired());
}

/// Workers that find others gone soon.
class Silence : public ::testing::Test {
protected:
  Team team{3, {}, {Milliseconds(400), Milliseconds(20'000)}};
  std::chrono::steady_clock::time_point began =
      std::chrono::steady_clock::now();
  bool isInTime() const {
    return std::chrono::steady_clock::now() - began < std::chrono::seconds(15);
  }
};

/// A worker ends in the middle of the backward, without a word.
TEST_F(Silence, D16_APeerThatDiesIsAnErrorInTime) {
  Value w = leaf(3), x = leaf(2);
  ASSERT_TRUE(team[1]
                  .serve("dying",
                         [&](std::vector<Value> &inputs,
                             std::vector<Value> &outputs) -> Status {
                           outputs[0] = *ops::mul(inputs[0], w);
                           return Status::success();
                         })
                  .ok());
  serveTimes(team[2], 5);
  uint64_t id = *team[0].begin();
  Value y = (*team[0].call(2, "times", {{x}}))[0];
  y = (*team[0].call(1, "dying", {{y}}))[0];
  team.workers[1] = nullptr;
  std::string message = team[0].backward(id, {{shown(y)}}).message();
  EXPECT_EQ(message, "worker 1 gave no sign of life for 400 ms");
  EXPECT_TRUE(isInTime());
  EXPECT_FALSE(team[2].gradient(id, *x.edge.node)->defined());
  EXPECT_EQ(team[0].counts().backwards, 0u);
  message = team[0].call(1, "dying", {{x}}).status().message();
  EXPECT_EQ(message, "worker 1 gave no sign of life for 400 ms");
  // The others go on.
  team[0].release(id);
  id = *team[0].begin();
  y = (*team[0].call(2, "times", {{x}}))[0];
  EXPECT_EQ(team[0].backward(id, {{shown(y)}}).message(), "");
  EXPECT_EQ(at(team[0].gradient(id, *x.edge.node)), 5);
  team[0].release(id);
  EXPECT_TRUE(team.isIdle());
}

/// Whoever began a context dies: the others drop their parts.
TEST_F(Silence, D19_ContextsOfADeadWorkerEnd) {
  serveTimes(team[1], 3);
  Value x = leaf(2);
  std::thread([&] {
    ASSERT_TRUE(team[0].begin().ok());
    ASSERT_TRUE(team[0].call(1, "times", {{x}}).ok());
    exchangeContext(nullptr);
  }).join();
  EXPECT_EQ(team[1].counts().contexts, 1u);
  team.workers[0] = nullptr;
  EXPECT_TRUE(team.isIdle());
  EXPECT_TRUE(isInTime());
}

/// A worker ends while it runs its part, and while others wait for it.
TEST_F(Silence, D13_EndingIsSafeAtAnyTime) {
  for (int i = 0; i < 20; ++i) {
    Team pair(2, {}, {Milliseconds(400), Milliseconds(20'000)});
    Value w = leaf(3), x = leaf(2);
    std::atomic<bool> runs{false};
    Value slow = FunctionNode::make(
        "slow", number(0), {w.edge}, [&](Tensors inputs, Tensors &outputs) {
          runs = true;
          std::this_thread::sleep_for(Milliseconds(5));
          outputs[0] = inputs[0];
          return Status::success();
        });
    ASSERT_TRUE(pair[1]
                    .serve("slow",
                           [&](std::vector<Value> &inputs,
                               std::vector<Value> &outputs) -> Status {
                             outputs[0] = *ops::mul(inputs[0], slow);
                             return Status::success();
                           })
                    .ok());
    uint64_t id = *pair[0].begin();
    Value y = shown((*pair[0].call(1, "slow", {{x}}))[0]);
    std::thread caller([&] { (void)pair[0].backward(id, {{y}}); });
    while (!runs)
      std::this_thread::yield();
    pair.workers[1] = nullptr; // joins its threads
    caller.join();
    pair[0].release(id);
    EXPECT_EQ(pair[0].counts().backwards, 0u);
  }
}

/// Any bytes at all are answered, or dropped.
TEST(Messages, BrokenOnesAreErrors) {
  Team team(2);
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes(random() % 40);
    for (unsigned char &byte : bytes)
      byte = static_cast<unsigned char>(random());
    if (!bytes.empty())
      bytes[0] %= 12;
    if (!bytes.empty() && (bytes[0] == 7 || bytes[0] == 8))
      continue; // a meeting waits, and who leaves is gone
    (void)team[0].messages().ask(1, bytes, Milliseconds(5000), "bytes");
  }
  Value x = leaf(2);
  serveTimes(team[1], 3);
  uint64_t id = *team[0].begin();
  auto y = team[0].call(1, "times", {{x}});
  ASSERT_EQ(team[0].backward(id, {{shown((*y)[0])}}).message(), "");
  EXPECT_EQ(at(team[0].gradient(id, *x.edge.node)), 3);
  team[0].release(id);
}

/// It crashed, or an answer without a code was a success.
TEST(Messages, AnAnswerWithoutACodeIsAnError) {
  auto transports = makeLoopback(2);
  Messenger own(std::move(transports[0]), Milliseconds(5000),
                {[](Asker, Bytes) {}, [](uint32_t) {}});
  std::thread other([&] {
    Result<std::optional<Envelope>> came =
        transports[1]->receive(Milliseconds(5000));
    ASSERT_TRUE(came.ok() && *came);
    // Its head says which request it is; an answer is of kind 1.
    Bytes head((*came)->bytes.begin(), (*came)->bytes.begin() + 17);
    head[0] = 1;
    EXPECT_TRUE(transports[1]->send(0, head).ok());
  });
  Result<Bytes> answer = own.ask(1, Bytes(3), Milliseconds(5000), "bytes");
  other.join();
  EXPECT_EQ(answer.status().message(), "worker 1: an answer without a code");
}

/// Less than a message's head was taken for no limit at all.
TEST(Messages, ATransportThatCarriesNothing) {
  class Narrow : public Transport {
  public:
    uint32_t worker() const override { return 0; }
    uint32_t workers() const override { return 1; }
    size_t mostBytes() const override { return 10; }
    Status send(uint32_t, Bytes) override { return Status::success(); }
    Result<std::optional<Envelope>> receive(Milliseconds wait) override {
      std::this_thread::sleep_for(wait);
      return std::optional<Envelope>();
    }
  };
  Messenger own(std::make_unique<Narrow>(), Milliseconds(5000),
                {[](Asker, Bytes) {}, [](uint32_t) {}});
  EXPECT_EQ(own.ask(0, Bytes(3), Milliseconds(5000), "bytes").status().code(),
            Code::Unsupported);
}

/// Who had waited in vain, and came again, counted for two.
TEST(Meetings, AWorkerCountsOnce) {
  Team team(2, {}, {Milliseconds(20'000), Milliseconds(200)});
  EXPECT_FALSE(team[0].meet("here").ok());
  EXPECT_FALSE(team[0].meet("here").ok());
  EXPECT_FALSE(team[1].meet("there").ok());
}

} // namespace
} // namespace tandem::graph::distributed::testing
