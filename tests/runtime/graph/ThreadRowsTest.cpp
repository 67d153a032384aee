//===- ThreadRowsTest.cpp - what threads may do with one graph ------------===//
//
// Row N30 and what of N13 and N29 belongs to threads, through the public API.
// A test that waits for itself has failed.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/ApiNodes.h"

#include <atomic>
#include <thread>

using namespace tdm;
using namespace tdm::testing;

namespace {

void runThreads(int count, const std::function<void(int)> &body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back(body, t);
  for (std::thread &thread : threads)
    thread.join();
}

/// A point that two threads reach together.
class Meeting {
public:
  void arrive() {
    ++arrived;
    while (arrived < 2)
      std::this_thread::yield();
  }

private:
  std::atomic<int> arrived{0};
};

thread_local int depth = 0; ///< of backwards on this thread

/// x * x, whose backward meets the other thread and then runs `inner`, at the
/// outermost level.
Tensor meeting(const Tensor &x, Meeting &place, Tensor &inner) {
  return call(
      {"meeting",
       [](Node &node, const TensorList &given, TensorList &outputs) {
         node.save(given[0]);
         outputs[0] = mul(given[0], given[0]);
       },
       [&](Node &node, const TensorList &gradients, TensorList &results) {
         if (depth++ == 0) {
           place.arrive();
           backward({inner}, {}, TDM_RETAIN_GRAPH);
         }
         --depth;
         results[0] = scale(mul(gradients[0], node.saved(0)), 2);
       }},
      {x})[0];
}

} // namespace

TEST(GraphRows, N30_ThreadsShareALeaf) {
  constexpr int kThreads = 8, kTimes = 200;
  Tensor w = leaf({0, 0});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kTimes; ++i) {
        Tensor y = scale(w, 2);
        backward({y}, {numbers({1, 3})});
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(gradient(w),
            (Floats{2 * kThreads * kTimes, 6 * kThreads * kTimes}));
}

TEST(GraphRows, N30_OfTwoBackwardsThroughSavedValuesOneSucceeds) {
  for (int round = 0; round < 50; ++round) {
    Tensor w = leaf(3), v = leaf(4), y = mul(w, v);
    std::atomic<int> succeeded{0}, refused{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        std::string message = messageOf([&] { backward({y}); });
        if (message.empty())
          ++succeeded;
        else
          refused +=
              message.find("freed by an earlier backward") != std::string::npos;
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(succeeded, 1);
    EXPECT_EQ(refused, 3);
    EXPECT_EQ(gradient(w), (Floats{4}));
  }
}

/// A profiler's end comes after a node has run and before its values are freed.
TEST(GraphRows, N30_WhatABackwardUsedIsUsedAtOnce) {
  Tensor y;
  Log messages;
  struct Seen {
    Tensor *y;
    Log *messages;
  } seen{&y, &messages};
  auto again = [](void *user, const tdm_node *node) {
    auto *to = static_cast<Seen *>(user);
    if (tdm_node_edge_count(node) == 0)
      return;
    std::thread([to] {
      GradMode on(true);
      to->messages->push_back(messageOf([&] { backward({*to->y}); }));
    }).join();
  };
  auto runTwice = [&] {
    tdm_profiler profiler = TDM_PROFILER_INIT;
    profiler.user = &seen;
    profiler.end = again;
    check(tdm_set_profiler(&profiler));
    backward({y});
    check(tdm_set_profiler(nullptr));
    ASSERT_EQ(messages.size(), 1u);
    expectMessage(messages[0], "freed by an earlier backward");
    messages.clear();
  };
  Tensor w = leaf(3), v = leaf(4);
  y = mul(w, v);
  runTwice();
  EXPECT_EQ(gradient(w), (Floats{4}));
  Function saves{"saves",
                 [](Node &node, const TensorList &inputs, TensorList &outputs) {
                   node.save(inputs[0]);
                   outputs[0] = scale(inputs[0], 2);
                 },
                 [](Node &node, const TensorList &gradients,
                    TensorList &results) { passOn(node, gradients, results); }};
  Tensor x = leaf(5);
  y = call(saves, {x})[0];
  runTwice();
  EXPECT_EQ(gradient(x), (Floats{1}));
}

// Each thread kept its node's lock during the backward inside of the node, and
// waited for the other's.
TEST(GraphRows, N29_N30_BackwardsThatNestTheOtherWayRoundDoNotWait) {
  Meeting place;
  Tensor v = leaf(3), w = leaf(5), first, second;
  first = meeting(v, place, second);
  second = meeting(w, place, first);
  runThreads(2, [&](int t) {
    backward({t == 0 ? first : second}, {}, TDM_RETAIN_GRAPH);
  });
  EXPECT_EQ(gradient(v), (Floats{12}));
  EXPECT_EQ(gradient(w), (Floats{20}));
}

// The same with an unpack hook, which runs where a saved value is used.
TEST(GraphRows, C12_N30_UnpackHooksThatNestTheOtherWayRoundDoNotWait) {
  struct Packing {
    Meeting place;
    Tensor other[2];
    int packed = 0;
  } packing;
  struct Packed {
    Packing *packing;
    Tensor value;
    int index;
  };
  tdm_saved_hooks hooks = TDM_SAVED_HOOKS_INIT;
  hooks.user = &packing;
  hooks.pack = [](void *user, const char *, const tdm_tensor *value,
                  void **packed) {
    auto *to = static_cast<Packing *>(user);
    Tensor kept;
    tdm_tensor_assign(kept.get(), value);
    *packed = new Packed{to, kept, to->packed++};
    return TDM_OK;
  };
  hooks.unpack = [](void *, const char *, void *packed, tdm_tensor *value) {
    auto *from = static_cast<Packed *>(packed);
    return tdm::detail::guarded([&] {
      if (depth++ == 0) {
        from->packing->place.arrive();
        backward({from->packing->other[from->index]}, {}, TDM_RETAIN_GRAPH);
      }
      --depth;
      check(tdm_tensor_assign(value, from->value.get()));
    });
  };
  hooks.release = [](void *, void *packed) {
    delete static_cast<Packed *>(packed);
  };
  Function square{
      "square",
      [](Node &node, const TensorList &given, TensorList &outputs) {
        node.save(given[0]);
        outputs[0] = mul(given[0], given[0]);
      },
      [](Node &node, const TensorList &gradients, TensorList &results) {
        results[0] = scale(mul(gradients[0], node.saved(0)), 2);
      }};
  Tensor v = leaf(3), w = leaf(5);
  {
    check(tdm_set_saved_hooks(&hooks));
    Tensor first = call(square, {v})[0], second = call(square, {w})[0];
    check(tdm_set_saved_hooks(nullptr));
    packing.other[0] = second;
    packing.other[1] = first;
    runThreads(2, [&](int t) {
      backward({t == 0 ? first : second}, {}, TDM_RETAIN_GRAPH);
    });
  }
  EXPECT_EQ(gradient(v), (Floats{12}));
  EXPECT_EQ(gradient(w), (Floats{20}));
  packing.other[0] = packing.other[1] = Tensor();
}

TEST(GraphRows, N30_BackwardsOfOneNodeDoNotRunSideBySide) {
  int inside = 0, most = 0, calls = 0; // of the node, without a lock of its own
  Tensor w = leaf(1);
  Tensor y =
      call({"alone",
            [](Node &, const TensorList &given, TensorList &outputs) {
              outputs[0] = scale(given[0], 1);
            },
            [&](Node &, const TensorList &gradients, TensorList &results) {
              most = std::max(most, ++inside);
              std::this_thread::yield();
              ++calls;
              --inside;
              results[0] = gradients[0];
            }},
           {w})[0];
  runThreads(4, [&](int) {
    for (int i = 0; i < 100; ++i)
      backward({y}, {}, TDM_RETAIN_GRAPH);
  });
  EXPECT_EQ(most, 1);
  EXPECT_EQ(calls, 400);
  EXPECT_EQ(gradient(w), (Floats{400}));
}

// What one thread releases stays until the other, which is inside of the same
// node, has used it.
TEST(GraphRows, N13_AReleaseWaitsForWhoRunsTheNode) {
  std::atomic<bool> isInside{false}, isReleased{false};
  Tensor w = leaf(3);
  Tensor nothing = scale(leaf(1), 1);
  Tensor y =
      call({"square",
            [](Node &node, const TensorList &given, TensorList &outputs) {
              node.save(given[0]);
              outputs[0] = mul(given[0], given[0]);
            },
            [&](Node &node, const TensorList &gradients, TensorList &results) {
              if (!isInside.exchange(true)) {
                // Its own backward lets the other thread in.
                addHook(nothing, [&](Tensor &) {
                  while (!isReleased)
                    std::this_thread::yield();
                });
                backward({nothing}, {}, TDM_RETAIN_GRAPH);
              }
              results[0] = scale(mul(gradients[0], node.saved(0)), 2);
            }},
           {w})[0];
  runThreads(2, [&](int t) {
    if (t == 0) {
      backward({y}, {}, TDM_RETAIN_GRAPH);
      return;
    }
    while (!isInside)
      std::this_thread::yield();
    backward({y});
    expectMessage(messageOf([&] { backward({y}); }),
                  "freed by an earlier backward");
    isReleased = true;
  });
  EXPECT_EQ(gradient(w), (Floats{12}));
}

TEST(GraphRows, N30_SixtyFourThreadsShareLeavesHooksAndNodes) {
  constexpr int kThreads = 64, kTimes = 20;
  Tensor w = leaf({0, 0}), shared = leaf(2);
  std::atomic<int> seen{0};
  addHook(w, [&](Tensor &) { ++seen; });
  Tensor kept = mul(shared, shared);
  std::atomic<int> failed{0};
  runThreads(kThreads, [&](int t) {
    for (int i = 0; i < kTimes; ++i) {
      Tensor own = leaf({1, 1}), y = mul(add(scale(w, 2), own), own);
      backward({y}, {numbers({1, 3})});
      EXPECT_EQ(gradient(own), (Floats{2, 6}));
      backward({kept}, {}, TDM_RETAIN_GRAPH);
      Tensor wrong =
          call({"wrong",
                [](Node &, const TensorList &given, TensorList &outputs) {
                  outputs[0] = scale(given[0], 1);
                },
                [t](Node &, const TensorList &, TensorList &) {
                  check(tdm_fail(TDM_FAILED, std::to_string(t).c_str()));
                }},
               {own})[0];
      failed += messageOf([&] {
                  backward({wrong}, {numbers({1, 1})});
                }) == std::to_string(t);
    }
  });
  EXPECT_EQ(failed, kThreads * kTimes);
  EXPECT_EQ(seen, kThreads * kTimes);
  EXPECT_EQ(gradient(w),
            (Floats{2 * kThreads * kTimes, 6 * kThreads * kTimes}));
  EXPECT_EQ(gradient(shared), (Floats{4 * kThreads * kTimes}));
}
