//===- RowsOfBackwards.cpp - contexts, and backwards through workers ------===//
#include "tests/runtime/graph/distributed/Rows.h"

#include <thread>

namespace tdm::dist::testing {

namespace {

void nothing(Member &) {}

std::string text(uint64_t context) {
  return std::to_string(context >> 48) + ":" +
         std::to_string(context & 0xffffffffffff);
}

void d01(Member &me) {
  uint64_t first = 0, second = 0;
  {
    Context context(me.worker);
    first = context.number();
    me.expect(first >> 48 == 0, "16 bits are of the worker");
    me.expect(tdm_dist_current() == first, "it is the thread's");
    me.expectError([&] { Context another(me.worker); },
                   "is in context " + text(first), "a second one");
    auto other = static_cast<uint64_t>(
        valueOf(me.worker.call(me.last(), "begin", {})[0]));
    me.expect(other == me.last(), "another worker's has its number");
  }
  {
    Context context(me.worker);
    second = context.number();
  }
  me.expect(second != first, "unique");
  me.expectError([&] { me.worker.backward(first, {}); }, text(first),
                 "an unknown one");
  me.expectError([&] { (void)me.worker.gradient(77, me.leaves["w"]); }, "0:77",
                 "an unknown one");
  me.expectError([&] { check(tdm_dist_enter(me.worker.get(), first)); },
                 text(first), "an unknown one");
}
void setUp01(Member &me) {
  me.leaf("w", 1);
  me.worker.serve("begin", [&me](const TensorList &, TensorList &out) {
    std::thread([&] {
      Context own(me.worker);
      out[0] = number(static_cast<float>(own.number() >> 48));
    }).join();
  });
}

void d02(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 3);
  Tensor y = me.worker.call(me.last(), "look", {x, number(1)}, 2)[0];
  me.expect(Node::of(y).name().starts_with("receive of message"),
            "it arrives from a receive node: " + Node::of(y).name());
  Tensor plain = me.worker.call(1, "look", {number(1), number(1)}, 2)[0];
  me.expect(!tdm_tensor_requires_grad(plain.get()), "no history without grad");
  me.expect(me.countsAt(1).contexts == 1, "but the worker takes part");
  {
    GradMode off(false);
    Tensor z = me.worker.call(me.last(), "look", {x, number(1)}, 2)[0];
    me.expect(!tdm_tensor_requires_grad(z.get()), "nor with grad mode off");
  }
}
void setUp02(Member &me) {
  me.worker.serve("look", [&me](const TensorList &in, TensorList &out) {
    if (tdm_tensor_requires_grad(in[0].get()))
      me.expect(Node::of(in[0]).name().starts_with("receive of message"),
                "an input has history");
    me.expect(!tdm_tensor_requires_grad(in[1].get()), "and another has none");
    out[0] = scale(in[0], 1);
    out[1] = in[1];
  });
}

void d03(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 3);
  Tensor wide = Tensor::zeros(TDM_F32, {2}).setRequiresGrad(true);
  me.expectError([&] { context.backward({}); }, "at least one root", "none");
  me.expectError([&] { context.backward({number(1)}); },
                 "root 0 does not require grad", "not requiring grad");
  me.expectError(
      [&] {
        context.backward({scale(x, 1), scale(wide, 2)});
      },
      "root 1: expected a scalar but got f32 [2]", "not scalar");
  me.expectError([&] { context.backward({x}); }, "root 0 is a leaf",
                 "without node");
  me.expect(me.worker.counts().backwards == 0, "nothing is active");
  context.backward({scale(x, 1)});
}

void d04(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 3), seen;
  Tensor y = reshape(me.worker.call(1, "times", {x})[0], {1, 1});
  addHook(y, [&](Tensor &gradient) { seen = gradient; });
  context.backward({y});
  me.expectEqual(seen, 1, "the root's gradient");
  me.expect(seen.shape() == std::vector<int64_t>{1, 1}, "in the root's shape");
  me.expectError([&] { context.backward({y}, TDM_CREATE_GRAPH); },
                 "TDM_CREATE_GRAPH", "create_graph");
}

void d05(Member &me) {
  Tensor x = me.leaf("x", 5), unused = me.leaf("unused", 1);
  Tensor root;
  Context outer(me.worker);
  Tensor y = me.worker.call(me.last(), "times", {x})[0];
  std::thread([&] {
    Context inner(me.worker);
    Tensor z = me.worker.call(me.last(), "times", {scale(x, 10)})[0];
    inner.backward({z});
    me.expectEqual(me.gradientAt(me.last(), "w"), 50, "one context's");
    me.expectEqual(inner.gradient(x), 10 * float(me.last() + 2), "and its x");
  }).join();
  me.expect(!me.gradientAt(me.last(), "w").defined(), "they do not mix");
  outer.backward({y});
  me.expectEqual(me.gradientAt(me.last(), "w"), 5, "the other's");
  me.expectEqual(outer.gradient(x), float(me.last() + 2), "and its x");
  me.expect(!outer.gradient(unused).defined(), "what is unused is absent");
  me.expect(!gradientOf(x).defined(), "the leaf has none");
  me.expectEqual(me.worker.call(me.last(), "own", {})[0], 0,
                 "nor has the other worker's");
}
void setUp05(Member &me) {
  serveTimes(me);
  me.worker.serve("own", [&me](const TensorList &, TensorList &out) {
    out[0] = number(gradientOf(me.leaves["w"]).defined());
  });
}

/// A node that two messages lead to runs once, with both gradients.
void d06(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 1);
  me.worker.call(me.last(), "keep", {x}, 0);
  Tensor a = me.worker.call(me.last(), "double", {})[0];
  Tensor b = me.worker.call(me.last(), "triple", {})[0];
  context.backward({add(scale(a, 1), scale(b, 10))});
  me.expectEqual(me.gradientAt(me.last(), "w"), 32, "both gradients");
  me.expect(me.ranAt(me.last(), "shared") == 1, "and it ran once");
  me.expectEqual(context.gradient(x), 32 * float(me.last() + 2), "x");
}
void setUp06(Member &me) {
  serveTimes(me);
  me.worker.serve("keep", [&me](const TensorList &in, TensorList &) {
    Tensor shared = me.noted("shared", mul(in[0], me.leaves["w"]));
    std::lock_guard lock(me.mutex);
    me.kept["shared"] = shared;
  });
  auto serve = [&me](const char *name, double factor) {
    me.worker.serve(name, [&me, factor](const TensorList &, TensorList &out) {
      std::lock_guard lock(me.mutex);
      out[0] = scale(me.kept["shared"], factor);
    });
  };
  serve("double", 2);
  serve("triple", 3);
}

void d07(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 2);
  Tensor y = me.worker.call(1, "diamond", {me.noted("here", x)})[0];
  context.backward({add(y, y)});
  me.expectEqual(context.gradient(x), 8, "each edge counts once");
  me.expect(me.ranAt(1, "top") == 1 && me.ranAt(1, "bottom") == 1 &&
                me.ran["here"] == 1,
            "each node runs once");
  Tensor z = me.worker.call(1, "nowhere", {x})[0];
  me.expectError([&] { context.backward({z}); },
                 "leads nowhere, but is neither a leaf nor received",
                 "a node without edges");
}
void setUp07(Member &me) {
  me.worker.serve("diamond", [&me](const TensorList &in, TensorList &out) {
    Tensor bottom = me.noted("bottom", in[0]);
    out[0] = me.noted("top", add(scale(bottom, 1), scale(bottom, 3)));
  });
  me.worker.serve("nowhere", [](const TensorList &in, TensorList &out) {
    tdm::Function function{
        "end", {}, [](Node &, const TensorList &, TensorList &) {}};
    Node end = makeNode(function);
    Tensor made = number(1);
    setNode(made, end);
    out[0] = add(made, in[0]);
  });
}

void d08(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 2), v = me.leaf("v", 4);
  // What is kept there hangs on a receive node and on a leaf; the root reaches
  // neither but through what comes back.
  Tensor y = me.worker.call(1, "times", {me.noted("sent", mul(x, v))})[0];
  context.backward({y});
  me.expectEqual(context.gradient(x), 12, "above what was sent");
  me.expectEqual(context.gradient(v), 6, "on all paths");
  me.expect(me.ran["sent"] == 1, "the node ran");
  me.expectEqual(me.gradientAt(1, "w"), 8, "below the receive node");
}

/// Many gradients at once, in any order.
void d09(Member &me) {
  Context context(me.worker);
  constexpr int count = 24;
  std::vector<Tensor> outputs(count);
  std::vector<std::thread> threads;
  Tensor x = me.leaf("x", 1);
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      check(tdm_dist_enter(me.worker.get(), context.number()));
      uint32_t to = 1 + static_cast<uint32_t>(i) % me.last();
      outputs[size_t(i)] = me.worker.call(to, "times", {scale(x, i)})[0];
      check(tdm_dist_enter(me.worker.get(), 0));
    });
  for (std::thread &thread : threads)
    thread.join();
  Tensor sum = number(0);
  float wanted = 0;
  std::vector<float> wantedAt(me.worker.count());
  for (int i = 0; i < count; ++i) {
    sum = add(sum, outputs[size_t(i)]);
    uint32_t to = 1 + static_cast<uint32_t>(i) % me.last();
    wanted += float(i) * float(to + 2);
    wantedAt[to] += float(i);
  }
  context.backward({sum});
  me.expectEqual(context.gradient(x), wanted, "x");
  for (uint32_t i = 1; i <= me.last(); ++i)
    me.expectEqual(me.gradientAt(i, "w"), wantedAt[i], "w");
}

void d10(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 1);
  float product = 1;
  for (uint32_t i = 0; i <= me.last(); ++i)
    product *= float(i + 2);
  context.backward({me.worker.call(0, "slow chain", {x})[0]});
  // What came there last is there.
  me.expectEqual(context.gradient(x), product, "x");
  for (uint32_t i = 0; i <= me.last(); ++i)
    me.expectEqual(me.gradientAt(i, "w"), product / float(i + 2), "w");
}
void setUp10(Member &me) {
  serveTimes(me);
  me.worker.serve("slow chain", [&me](const TensorList &in, TensorList &out) {
    Tensor own = mul(in[0], me.leaves["w"]);
    addHook(own, [](Tensor &) { rest(30); });
    out[0] = me.number() == me.last()
                 ? own
                 : me.worker.call(me.number() + 1, "slow chain", {own})[0];
  });
}

void d11(Member &me) {
  Tensor x = me.leaf("x", 3);
  {
    Context context(me.worker);
    context.backward({mul(x, x)});
    me.expectEqual(context.gradient(x), 6, "no remote edge");
  }
  {
    Context context(me.worker);
    Tensor y = me.worker.call(0, "times", {x})[0];
    context.backward({me.worker.call(0, "times", {y})[0]});
    me.expectEqual(context.gradient(x), 4, "to itself");
    me.expectEqual(context.gradient(me.leaves["w"]), 12, "its w");
  }
  Context context(me.worker);
  Tensor y = x;
  for (int i = 0; i < 5; ++i)
    y = scale(me.worker.call(1 + uint32_t(i) % me.last(), "same", {y})[0], 2);
  context.backward({mul(y, y)});
  me.expectEqual(context.gradient(x), 2 * 32 * 32 * 3, "several round trips");
}
void setUp11(Member &me) {
  serveTimes(me);
  me.worker.serve("same", [](const TensorList &in, TensorList &out) {
    out[0] = scale(in[0], 1);
  });
}

/// A message that nobody uses: alone, above others, and before a chain.
void d12(Member &me) {
  Tensor x = me.leaf("x", 2);
  {
    Context context(me.worker);
    Tensor used = me.worker.call(1, "times", {x})[0];
    Tensor unused = me.worker.call(me.last(), "times", {x})[0];
    Tensor sent = me.noted("unused", x);
    (void)me.worker.call(1, "times", {sent});
    context.backward({used});
    me.expectEqual(context.gradient(x), 3, "x has what is used");
    me.expectEqual(me.gradientAt(1, "w"), 2, "and so has w");
    if (me.last() > 1)
      me.expect(!me.gradientAt(me.last(), "w").defined(),
                "the unused has none");
    me.expect(me.ran["unused"] == 0, "what leads to none does not run");
  }
  {
    // The same node gives a used and an unused message, and before both lies
    // another round trip.
    Context context(me.worker);
    Tensor y = me.worker.call(1, "times", {x})[0];
    TensorList both = me.worker.call(me.last(), "twice", {y}, 1);
    (void)me.worker.call(me.last(), "again", {}, 1);
    context.backward({both[0]});
    me.expectEqual(context.gradient(x), 2 * 3, "through two workers");
  }
  Context context(me.worker);
  Tensor used = me.worker.call(1, "times", {x})[0];
  (void)me.worker.call(1, "times", {x});
  me.expectError([&] { context.backward({used}, TDM_DIST_STRICT); },
                 "is not used by the backward", "strict");
}
void setUp12(Member &me) {
  serveTimes(me);
  me.worker.serve("twice", [&me](const TensorList &in, TensorList &out) {
    Tensor shared = scale(in[0], 2);
    std::lock_guard lock(me.mutex);
    me.kept["shared"] = shared;
    out[0] = scale(shared, 1);
  });
  me.worker.serve("again", [&me](const TensorList &, TensorList &out) {
    std::lock_guard lock(me.mutex);
    out[0] = scale(me.kept["shared"], 5);
  });
}
/// A part that begins after the caller has looked for unused messages. It
/// waited for its own unused one and was never told: the call was a success,
/// and w had no gradient.
void d12Later(Member &me) {
  Tensor x = me.leaf("x", 2);
  for (uint32_t to : {me.last(), 1u, 0u}) {
    Context context(me.worker);
    float w = float(me.last() + 2), other = float(to + 2);
    Tensor y = me.worker.call(me.last(), "times", {x})[0];
    (void)me.worker.call(to, "times", {y});
    context.backward({scale(y, 1)});
    me.expect(me.countsAt(me.last()).backwards == 0, "no part is left");
    me.expectEqual(context.gradient(x), w, "x");
    me.expectEqual(me.gradientAt(me.last(), "w"), 2, "w");
    // What was unused is there for another backward.
    Tensor z = me.worker.call(to, "times", {x})[0];
    (void)me.worker.call(me.last(), "times", {z});
    context.backward({scale(z, 1)});
    me.expectEqual(context.gradient(x), w + other, "x of both");
  }
}

/// A part that ended before the caller looked. What it had led to counted as
/// unused, so that the gradient that came there had been sent twice, it said.
void d12Ended(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 2);
  Tensor a = me.worker.call(1, "times", {x})[0];
  (void)me.worker.call(1, "times", {a});
  Tensor y = me.worker.call(me.last(), "times", {a})[0];
  context.backward({y});
  me.expectEqual(context.gradient(x), 3 * float(me.last() + 2), "x");
}

/// The first backward left the part of the unused message to itself: the second
/// one found it running.
void d12Again(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 2);
  Tensor y = me.worker.call(1, "times", {x})[0];
  Tensor z = me.worker.call(1, "times", {y})[0];
  context.backward({scale(y, 1)}, TDM_RETAIN_GRAPH);
  context.backward({scale(y, 1)}, TDM_RETAIN_GRAPH);
  me.expectEqual(context.gradient(x), 2 * 3, "the sum of two");
  context.backward({z});
  me.expectEqual(context.gradient(x), 2 * 3 + 3 * 3, "and what was unused");
  me.expectEqual(me.gradientAt(1, "w"), 2 * 2 + 2 * 2 * 3, "w");
}

void d12Strict(Member &me) {
  Tensor x = me.leaf("x", 2);
  {
    Context context(me.worker);
    Tensor used = me.worker.call(1, "times", {x})[0];
    context.backward({used}, TDM_DIST_STRICT);
    me.expectEqual(context.gradient(x), 3, "all are used");
  }
  Context context(me.worker);
  Tensor used = me.worker.call(1, "times", {x})[0];
  (void)me.worker.call(me.last(), "times", {number(1)});
  me.expectError([&] { context.backward({used}, TDM_DIST_STRICT); },
                 "to worker 0 is not used by the backward of context " +
                     text(context.number()),
                 "the message and its peer");
}

} // namespace

const std::vector<Row> &rowsOfBackwards() {
  static const std::vector<Row> all = {
      {"D01_ContextIds", setUp01, d01},
      {"D02_HistoryCrosses", setUp02, d02},
      {"D03_RootsThatAreNone", nothing, d03},
      {"D04_TheRootsGradient", serveTimes, d04},
      {"D05_GradientsLieInTheContext", setUp05, d05},
      {"D06_EachSendIsCounted", setUp06, d06},
      {"D07_EachEdgeIsCountedOnce", setUp07, d07},
      {"D08_WhatOnlyASendLeadsToRuns", serveTimes, d08},
      {"D09_GradientsComeInAnyOrder", serveTimes, d09},
      {"D10_ItReturnsAfterAllWorkers", setUp10, d10},
      {"D11_AsOneWorkerWould", setUp11, d11},
      {"D12_AMessageThatNobodyUses", setUp12, d12},
      {"D12_APartThatBeginsLater", serveTimes, d12Later},
      {"D12_APartThatEndedBefore", serveTimes, d12Ended},
      {"D12_AnUnusedMessageAndAgain", serveTimes, d12Again},
      {"D12_StrictNamesTheMessage", serveTimes, d12Strict},
  };
  return all;
}

} // namespace tdm::dist::testing
