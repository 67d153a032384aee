//===- RowsOfEnds.cpp - leaves, errors, releases and what is left behind --===//
#include "tests/runtime/graph/distributed/Rows.h"

#include <thread>

namespace tdm::dist::testing {

namespace {

void d15(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 2);
  me.expectEqual(me.worker.call(1, "hooked", {x})[0], 6, "forward");
  Tensor y = me.worker.call(1, "hooked", {x})[0];
  context.backward({add(y, me.worker.call(1, "nothing", {x})[0])});
  me.expectEqual(me.gradientAt(1, "w"), 2, "the sum");
  me.expect(me.ranAt(1, "pre") == 1 && me.ranAt(1, "post") == 1, "its hooks");
  me.expect(!me.gradientAt(1, "none").defined(), "nothing is added");
  me.expect(me.ranAt(1, "pre of none") == 1, "but hooks run");
}
void setUp15(Member &me) {
  serveTimes(me);
  auto note = [&me](const char *name) {
    me.expect(tdm_dist_current() != 0, "the context is current in hooks");
    std::lock_guard lock(me.mutex);
    ++me.ran[name];
  };
  Node w = Node::of(me.leaves["w"]);
  w.addPreHook([note](TensorList &) { note("pre"); });
  w.addPostHook([note](TensorList &, const TensorList &) { note("post"); });
  Node none = Node::of(me.leaf("none", 1));
  none.addPreHook([note](TensorList &) { note("pre of none"); });
  me.worker.serve("hooked", [&me](const TensorList &in, TensorList &out) {
    out[0] = mul(in[0], me.leaves["w"]);
  });
  me.worker.serve("nothing", [&me](const TensorList &in, TensorList &out) {
    tdm::Function function{
        "gives none",
        [](Node &, const TensorList &inputs, TensorList &outputs) {
          outputs[0] = scale(inputs[0], 1);
        },
        [](Node &, const TensorList &gradients, TensorList &results) {
          results[0] = gradients[0];
        }};
    out[0] = tdm::call(function, {in[0], me.leaves["none"]})[0];
  });
}

void d16(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 1);
  Tensor y = me.worker.call(0, "failing chain", {x})[0];
  try {
    context.backward({y});
  } catch (const Error &error) {
    me.expect(error.what() ==
                  "worker " + std::to_string(me.last()) + ": it broke",
              std::string("the error of another worker: ") + error.what());
  }
  me.expect(!me.gradientAt(me.last(), "w").defined(), "nothing after it");
  me.expect(!context.gradient(me.leaves["w"]).defined(), "nor here");
  me.expectError([&] { me.worker.call(me.last(), "throws", {}); },
                 "worker " + std::to_string(me.last()) + ": 'throws': no way",
                 "of a function");
  me.expectError([&] { me.worker.call(1, "nobody", {}); },
                 "worker 1: 'nobody' is not served here", "of no function");
  me.expectError([&] { me.worker.call(99, "times", {}); },
                 "expected a worker below", "no worker");
}
void setUp16(Member &me) {
  serveTimes(me);
  me.worker.serve("throws", [](const TensorList &, TensorList &) {
    throw std::runtime_error("no way");
  });
  me.worker.serve(
      "failing chain", [&me](const TensorList &in, TensorList &out) {
        Tensor own = mul(in[0], me.leaves["w"]);
        if (me.number() < me.last()) {
          out[0] = me.worker.call(me.number() + 1, "failing chain", {own})[0];
          return;
        }
        addHook(own, [](Tensor &) { throw std::runtime_error("it broke"); });
        out[0] = own;
      });
}

void failsOnce(Member &me, const Tensor &x) {
  Context context(me.worker);
  Tensor y = me.worker.call(me.last(), "once", {x})[0];
  me.expectError([&] { context.backward({y}, TDM_RETAIN_GRAPH); },
                 "not the first time", "a failure");
  me.expect(me.worker.counts().backwards == 0, "no backward here");
  me.expect(me.countsAt(me.last()).backwards == 0, "nor there");
  context.backward({y}, TDM_RETAIN_GRAPH);
  me.expectEqual(context.gradient(x), float(me.last() + 2),
                 "the next is right");
  me.expectEqual(me.gradientAt(me.last(), "w"), 1,
                 "nothing of the earlier one");
  context.backward({y});
  me.expectEqual(me.gradientAt(me.last(), "w"), 2, "sums");
  me.expect(me.countsAt(me.last()).backwards == 0, "no backward is left");
}

void d17(Member &me) {
  Tensor x = me.leaf("x", 1);
  failsOnce(me, x);
  // Here it fails, while a part of another worker waits for a gradient.
  Context context(me.worker);
  Tensor waited = scale(me.worker.call(me.last(), "times", {x})[0], 1);
  addHook(waited, [](Tensor &) { throw std::runtime_error("here"); });
  Tensor z = me.worker.call(me.last(), "times", {waited})[0];
  me.expectError([&] { context.backward({z}); }, "here",
                 "a failure of the caller");
  me.expect(me.countsAt(me.last()).backwards == 0, "the other part stopped");
}
void setUp17(Member &me) {
  serveTimes(me);
  me.worker.serve("once", [&me](const TensorList &in, TensorList &out) {
    out[0] = mul(in[0], me.leaves["w"]);
    addHook(out[0], [&me](Tensor &) {
      std::lock_guard lock(me.mutex);
      if (me.ran["once"]++ == 0)
        throw std::runtime_error("not the first time");
    });
  });
}

void d18(Member &me) {
  {
    Context context(me.worker);
    Tensor x = me.leaf("x", 1);
    Tensor y = me.worker.call(0, "chain", {x})[0];
    context.backward({y}, TDM_RETAIN_GRAPH);
    float once = valueOf(context.gradient(x));
    context.backward({y}, TDM_RETAIN_GRAPH);
    context.backward({y});
    me.expectEqual(context.gradient(x), 3 * once, "retained: sums");
    me.expectEqual(me.gradientAt(me.last(), "w"),
                   3 * once / float(me.last() + 2), "everywhere");
    me.expectError([&] { context.backward({y}); }, "was already run",
                   "after the last one");
  }
  Context context(me.worker);
  Tensor x = me.leaf("x", 1);
  Tensor y = me.worker.call(1, "waiting", {x})[0];
  std::thread first([&] { context.backward({y}); });
  while (me.ranAt(1, "began") == 0)
    rest(5);
  me.expectError([&] { context.backward({y}); }, "runs already", "meanwhile");
  me.worker.call(1, "go on", {}, 0);
  first.join();
  me.expectEqual(context.gradient(x), 3, "the first one is right");
}
void serveWaiting(Member &me) {
  serveChain(me);
  me.worker.serve("waiting", [&me](const TensorList &in, TensorList &out) {
    out[0] = mul(in[0], me.leaves["w"]);
    addHook(out[0], [&me](Tensor &) {
      std::unique_lock lock(me.mutex);
      ++me.ran["began"];
      me.changed.wait(lock, [&] { return me.flags["go on"] > 0; });
    });
  });
  me.worker.serve("go on", [&me](const TensorList &, TensorList &) {
    std::lock_guard lock(me.mutex);
    ++me.flags["go on"];
    me.changed.notify_all();
  });
}

void waitForRelease(Member &me) {
  for (uint32_t i = 1; i <= me.last(); ++i)
    for (int tries = 0; me.countsAt(i).contexts > 0; ++tries) {
      if (tries == 1000)
        return me.expect(false, "worker " + std::to_string(i) +
                                    " still has the context");
      rest(5);
    }
}

void d19(Member &me) {
  {
    Context context(me.worker);
    // Without gradients, worker 0 knows worker 1 alone.
    (void)me.worker.call(1, "chain", {number(1)});
    // Asked for outside of the context, in which it would come to know the
    // last.
    std::thread([&] {
      me.expect(me.countsAt(me.last()).contexts == 1, "the last takes part");
    }).join();
    check(tdm_dist_release(me.worker.get(), context.number()));
    check(tdm_dist_release(me.worker.get(), context.number()));
  }
  waitForRelease(me);
  Context context(me.worker);
  Tensor x = me.leaf("x", 1);
  Tensor y = me.worker.call(1, "waiting", {x})[0];
  std::thread first([&] {
    me.expectError([&] { me.worker.backward(context.number(), {y}); },
                   "was released", "a backward meanwhile");
  });
  while (me.ranAt(1, "began") == 0)
    rest(5);
  check(tdm_dist_release(me.worker.get(), context.number()));
  me.worker.call(1, "go on", {}, 0);
  first.join();
  waitForRelease(me);
}

void d20(Member &me) {
  {
    Context context(me.worker);
    Tensor x = me.leaf("x", 1);
    Tensor y = me.worker.call(1, "waiting", {x})[0];
    std::thread first([&] { context.backward({y}); });
    while (me.ranAt(1, "began") == 0)
      rest(5);
    tdm_dist_counts here = me.worker.counts(), there = me.countsAt(1);
    me.expect(here.backwards == 1 && here.contexts == 1, "1 and 1 here");
    me.expect(there.backwards == 1 && there.contexts == 1, "and there");
    me.worker.call(1, "go on", {}, 0);
    first.join();
    me.expect(me.worker.counts().backwards == 0, "none runs");
  }
  waitForRelease(me);
  tdm_dist_counts here = me.worker.counts();
  me.expect(here.backwards == 0 && here.contexts == 0, "0 and 0 here");
}

/// Optimizers of all workers use the gradients of the context.
void step(Member &me) {
  Context context(me.worker);
  Tensor x = me.leaf("x", 1);
  context.backward({me.worker.call(1, "chain", {x})[0]});
  std::vector<float> before, slopes;
  for (uint32_t i = 1; i <= me.last(); ++i) {
    before.push_back(float(i + 2));
    slopes.push_back(valueOf(me.gradientAt(i, "w")));
  }
  context.step();
  for (uint32_t i = 1; i <= me.last(); ++i)
    me.expectEqual(me.worker.call(i, "w", {})[0],
                   before[i - 1] - 0.5f * slopes[i - 1], "the new w");
}
void setUpStep(Member &me) {
  serveChain(me);
  me.worker.optimize({me.leaves["w"]}, sgd(0.5f));
  me.worker.serve("w", [&me](const TensorList &, TensorList &out) {
    out[0] = me.leaves["w"].copyTo("cpu");
  });
}

} // namespace

const std::vector<Row> &rowsOfEnds() {
  static const std::vector<Row> all = {
      {"D15_LeavesAndTheirHooks", setUp15, d15},
      {"D16_AnErrorOfAnotherWorker", setUp16, d16},
      {"D17_NothingIsLeftBehind", setUp17, d17},
      {"D18_ASecondBackward", serveWaiting, d18},
      {"D19_Release", serveWaiting, d19},
      {"D20_Counts", serveWaiting, d20},
      {"OptimizersStep", setUpStep, step},
  };
  return all;
}

} // namespace tdm::dist::testing
