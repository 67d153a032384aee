//===- EngineRowsTest.cpp - rows N20 to N31 through the public API --------===//
#include "tests/runtime/graph/ApiNodes.h"

#include <cmath>
#include <stdexcept>
#include <thread>

using namespace tdm;
using namespace tdm::testing;

namespace {

using Backward = std::function<void(Node &, const TensorList &, TensorList &)>;

/// A function of scalars, or of tensors like its first input.
Tensor made(const std::string &name, const TensorList &inputs,
            Backward backward, size_t flags = 0) {
  return call({name,
               [](Node &, const TensorList &given, TensorList &outputs) {
                 outputs[0] = given.empty() ? scalar(1) : scale(given[0], 1);
               },
               std::move(backward),
               {},
               flags},
              inputs)[0];
}

} // namespace

TEST(GraphRows, N20_GradientsAreAdoptedCopiedAndAddedInPlace) {
  for (bool isKept : {false, true}) {
    const void *address = nullptr;
    Tensor kept, w = leaf({1, 2});
    Tensor y = made("y", {w}, [&](Node &, const TensorList &, TensorList &to) {
      to[0] = numbers({3, 4});
      address = to[0].data<float>();
      if (isKept)
        kept = to[0];
    });
    auto run = [&] { backward({y}, {numbers({1, 1})}, TDM_RETAIN_GRAPH); };
    if (isKept) { // another handle of the same memory
      Tensor other;
      addHook(w, [&](Tensor &gradient) {
        check(tdm_tensor_assign(other.get(), gradient.get()));
      });
      run();
      EXPECT_NE(gradientOf(w).data<float>(), address);
      continue;
    }
    run();
    EXPECT_EQ(gradientOf(w).data<float>(), address);
    const void *place = gradientOf(w).data<float>();
    run();
    EXPECT_EQ(gradientOf(w).data<float>(), place) << "in place";
    EXPECT_EQ(gradient(w), (Floats{6, 8}));
    // Under create_graph the old gradient is not written.
    Tensor old = gradientOf(w);
    backward({y}, {numbers({1, 1})}, TDM_CREATE_GRAPH);
    EXPECT_EQ(valuesOf(old), (Floats{6, 8}));
    EXPECT_EQ(gradient(w), (Floats{9, 12}));
    EXPECT_NE(gradientOf(w).data<float>(), place);
  }
}

TEST(GraphRows, N20_ASharedBufferIsOneLeafsAtMost) {
  Tensor v = leaf({1, 2}), w = leaf({1, 2});
  Tensor y = made("y", {v, w}, [](Node &, const TensorList &, TensorList &to) {
    to[0] = to[1] = numbers({3, 4});
  });
  backward({y}, {numbers({1, 1})});
  EXPECT_NE(gradientOf(v).data<float>(), gradientOf(w).data<float>());
  backward({v}, {numbers({10, 10})});
  EXPECT_EQ(gradient(v), (Floats{13, 14}));
  EXPECT_EQ(gradient(w), (Floats{3, 4}));
}

TEST(GraphRows, N20_GradientsHaveTheStridesOfADenseLeaf) {
  int64_t shape[] = {2, 2}, transposed[] = {1, 2};
  Tensor base = numbers({1, 2, 3, 4}), w;
  tdm_tensor *view = nullptr;
  check(tdm_tensor_view(base.get(), 2, shape, transposed, 0, &view));
  w = Tensor(view);
  w.setRequiresGrad(true);
  backward({w}, {tensor({1, 2, 3, 4}, {2, 2})});
  Tensor got = gradientOf(w);
  const int64_t *strides = tdm_tensor_strides(got.get());
  EXPECT_EQ(strides[0], 1);
  EXPECT_EQ(strides[1], 2);
  EXPECT_EQ(valuesOf(got), (Floats{1, 2, 3, 4}));
}

TEST(GraphRows, N21_TheCallersGradientIsNeverWritten) {
  Tensor w = leaf({1, 2}), given = numbers({1, 10});
  for (int i = 0; i < 2; ++i)
    backward({w, w, scale(w, 1)}, {given, given, given});
  EXPECT_EQ(valuesOf(given), (Floats{1, 10}));
  EXPECT_EQ(gradient(w), (Floats{6, 60}));
}

TEST(GraphRows, N22_SelectiveInputs) {
  Log log;
  Tensor w = leaf(1), v = leaf(1);
  Tensor a = noted(log, "a", {w}), b = noted(log, "b", {v});
  Tensor top = noted(log, "top", {a, b});
  backwardTo({v}, {top}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(log, (Log{"top", "b"}));
  EXPECT_EQ(gradient(v), (Floats{1}));
  EXPECT_FALSE(gradientOf(w).defined());
  log.clear();
  backwardTo({a}, {top}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(log, (Log{"top"})) << "what the input was made of does not run";
  EXPECT_EQ(gradient(a), (Floats{1}));
  backwardTo({a, w}, {top}, {scalar(2)}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(gradient(a), (Floats{3}));
  EXPECT_EQ(gradient(w), (Floats{2}));
  EXPECT_EQ(gradient(v), (Floats{1}));
  expectMessage(messageOf([&] { backwardTo({}, {top}); }),
                "at least one value to differentiate for");
  expectMessage(messageOf([&] { backwardTo({scalar(1)}, {top}); }),
                "does not require grad");
}

TEST(GraphRows, N23_GradGivesGradientsAndCollectsNone) {
  Log log;
  Tensor w = leaf(1), other = leaf(1), unreached = leaf({1, 2});
  Tensor a = noted(log, "a", {w}), b = noted(log, "b", {other});
  Tensor c = noted(log, "c", {a, b});
  TensorList got =
      grad({c}, {w, a, unreached}, {}, TDM_RETAIN_GRAPH | TDM_UNUSED_EMPTY);
  EXPECT_EQ(log, (Log{"c", "a"}));
  EXPECT_EQ(valuesOf(got[0]), (Floats{1}));
  EXPECT_EQ(valuesOf(got[1]), (Floats{1}));
  EXPECT_FALSE(got[2].defined());
  EXPECT_FALSE(gradientOf(w).defined());
  got = grad({c}, {unreached}, {}, TDM_RETAIN_GRAPH | TDM_UNUSED_ZEROS);
  EXPECT_EQ(valuesOf(got[0]), (Floats{0, 0}));
  expectMessage(messageOf([&] {
                  grad({c}, {w, unreached}, {}, TDM_RETAIN_GRAPH);
                }),
                "no gradient arrives at value 1");
  // Two outputs of one node.
  Tensor x = leaf(1);
  TensorList two = call({"two",
                         [](Node &, const TensorList &, TensorList &to) {
                           to[0] = scalar(1);
                           to[1] = scalar(1);
                         },
                         passOn},
                        {x}, 2);
  got = grad({scale(two[0], 3), scale(two[1], 4)}, {two[1], two[0]});
  EXPECT_EQ(valuesOf(got[0]), (Floats{4}));
  EXPECT_EQ(valuesOf(got[1]), (Floats{3}));
  int input = -1;
  Tensor second = Node::of(two[1], &input).place(input);
  got = grad({scale(two[0], 3), scale(two[1], 4)}, {second});
  EXPECT_EQ(valuesOf(got[0]), (Floats{4})) << "by its edge";
}

TEST(GraphRows, N23_EmptyOrZerosNotBoth) {
  Tensor w = leaf(1), y = scale(w, 1);
  expectMessage(messageOf([&] {
                  grad({y}, {w}, {}, TDM_UNUSED_EMPTY | TDM_UNUSED_ZEROS);
                }),
                "but got both");
}

TEST(GraphRows, N23_AnEdgeTakenBeforeAVisibleWriteLeadsToTheOldValue) {
  Tensor w = leaf(1), x = scale(w, 1);
  int input = -1;
  Node node = Node::of(x, &input);
  Tensor old = node.place(input);
  call({"times five",
        [](Node &node, const TensorList &given, TensorList &) {
          node.mutates(0);
          float value = 5 * valuesOf(given[0])[0];
          check(tdm_tensor_write(given[0].get(), &value, sizeof value));
        },
        [](Node &, const TensorList &gradients, TensorList &results) {
          results[0] = scale(gradients[0], 5);
        }},
       {x}, 0);
  TensorList got = grad({scale(x, 2)}, {old, x});
  EXPECT_EQ(valuesOf(got[0]), (Floats{10}));
  EXPECT_EQ(valuesOf(got[1]), (Floats{2}));
}

TEST(GraphRows, N24_Roots) {
  Tensor w = leaf(1), v = leaf({1, 2});
  Tensor below = scale(w, 2), above = scale(below, 3);
  backward({above, above}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(gradient(w), (Floats{12})) << "one twice";
  clearGradient(w);
  backward({below, above});
  EXPECT_EQ(gradient(w), (Floats{8})) << "one above another";
  clearGradient(w);
  Tensor first = scale(w, 2), last = scale(first, 3);
  Node::of(first).setNumber(Node::of(last).number() + 1);
  backward({first, last});
  EXPECT_EQ(gradient(w), (Floats{8})) << "one that would run first waits";
  clearGradient(w);
  Log log;
  Tensor once = noted(log, "once", {w});
  backward({once, once});
  EXPECT_EQ(log, (Log{"once"})) << "runs for both";
  clearGradient(w);
  expectMessage(messageOf([&] { backward({scalar(1)}); }),
                "root 0 does not require grad");
  expectMessage(messageOf([&] { backward({v}); }), "is no scalar");
  backward({reshape(scale(w, 1), {1, 1})});
  EXPECT_EQ(gradient(w), (Floats{1})) << "one element";
}

TEST(GraphRows, N25_WhatANodeGivesIsChecked) {
  Tensor w = leaf({1, 2});
  auto giving = [&](const Tensor &gradient) {
    return made("a", {w},
                [gradient](Node &, const TensorList &, TensorList &to) {
                  to[0] = gradient;
                });
  };
  Tensor one = numbers({1, 1});
  backward({giving(tensor({1, 2, 3, 4, 5, 6}, {3, 2}))}, {one});
  EXPECT_EQ(gradient(w), (Floats{9, 12})) << "a broadcast shape is reduced";
  clearGradient(w);
  backward({giving(cast(numbers({1.5, 2.5}), TDM_F64))}, {one});
  EXPECT_EQ(gradient(w), (Floats{1.5, 2.5})) << "a type is cast";
  clearGradient(w);
  for (const Tensor &wrong :
       {numbers({1, 2, 3}), scalar(1), tensor({1, 2}, {2, 1}),
        Tensor::zeros(TDM_I32, {2})}) {
    std::string message = messageOf([&] { backward({giving(wrong)}, {one}); });
    expectMessage(message, "output 0 of node 'a'");
    expectMessage(message, "expected a gradient f32 [2]");
  }
  EXPECT_FALSE(gradientOf(w).defined());
  Tensor counted =
      made("b", {w},
           [](Node &, const TensorList &, TensorList &to) { to.resize(2); });
  expectMessage(messageOf([&] { backward({counted}, {one}); }),
                "expected 1 tensors but got 2");
}

TEST(GraphRows, N26_TheFirstErrorEndsTheBackwardAndTheEngineGoesOn) {
  Log log;
  bool isBroken = true;
  Tensor w = leaf(1), a = noted(log, "a", {w});
  Tensor b =
      made("b", {a},
           [&](Node &node, const TensorList &gradients, TensorList &results) {
             if (isBroken)
               throw std::runtime_error("the text of b");
             passOn(node, gradients, results);
           });
  Tensor other = noted(log, "other", {w}), top = noted(log, "top", {other, b});
  Node::of(b).setNumber(Node::of(top).number() + 1); // before `other`
  EXPECT_EQ(messageOf([&] { backward({top}); }), "the text of b");
  EXPECT_EQ(log, (Log{"top"})) << "the rest is drained unrun";
  EXPECT_FALSE(gradientOf(w).defined());
  EXPECT_FALSE(Node::current());
  isBroken = false;
  backward({top});
  EXPECT_EQ(gradient(w), (Floats{2}));
}

TEST(GraphRows, N26_ANodeThatNeverGetsReadyIsNamed) {
  Log log;
  Tensor w = leaf(1), waits = noted(log, "waits", {w});
  Node top = makeNode(noting(log, "top"));
  top.addInput(TDM_F32, {});
  top.setEdges({waits});
  top.addPreHook([&](TensorList &) { top.setEdge(0, Node::of(w)); });
  std::string message = messageOf([&] { backward({top.place()}); });
  expectMessage(message, "'waits'");
  expectMessage(message, "never got ready");
  expectMessage(message, "edge 0 of node 'top'");
}

TEST(GraphRows, N27_AGradientThatIsWrittenBeforeItsUseIsAnError) {
  Tensor w = leaf({1, 2}), shared = numbers({1, 1});
  Tensor late = made("late", {w}, passOn);
  Tensor early =
      made("early", {w}, [&](Node &, const TensorList &, TensorList &to) {
        float values[] = {9, 9};
        check(tdm_tensor_write(shared.get(), values, sizeof values));
        to[0] = numbers({1, 1});
      });
  Tensor top = made("top", {late, early},
                    [&](Node &, const TensorList &, TensorList &to) {
                      to[0] = shared;
                      to[1] = numbers({1, 1});
                    });
  std::string message = messageOf([&] { backward({top}, {numbers({1, 1})}); });
  expectMessage(message, "was written after it was given");
  expectMessage(message, "'late'");
  // Before another one is added to it.
  Tensor sum = made("sum", {w}, passOn);
  Tensor writer =
      made("writer", {sum}, [&](Node &, const TensorList &, TensorList &to) {
        float values[] = {9, 9};
        check(tdm_tensor_write(shared.get(), values, sizeof values));
        to[0] = numbers({1, 1});
      });
  Tensor both = made("both", {sum, writer},
                     [&](Node &, const TensorList &, TensorList &to) {
                       to[0] = shared;
                       to[1] = numbers({1, 1});
                     });
  expectMessage(messageOf([&] {
                  backward({both}, {numbers({1, 1})});
                }),
                "was written after it was given");
}

TEST(GraphRows, N28_AnomalyModeNamesNodeOutputAndPlaces) {
  float bad = std::nanf("");
  auto broken = [&bad](Node &, const TensorList &, TensorList &to) {
    to[0] = scalar(1);
    to[1] = scalar(bad);
  };
  Tensor w = leaf(1), v = leaf(1), plain = made("broken", {w, v}, broken);
  backward({plain}, {}, TDM_RETAIN_GRAPH); // off: nothing is looked at
  EXPECT_TRUE(std::isnan(gradient(v)[0]));
  EXPECT_EQ(tdm_set_anomaly_mode(TDM_ANOMALY_NAN), TDM_ANOMALY_OFF);
  expectMessage(messageOf([&] { backward({plain}, {}, TDM_RETAIN_GRAPH); }),
                "its forward ran without anomaly mode");
  tdm_set_location("model.c:42");
  Tensor traced = made("broken", {w, v}, broken);
  std::string message =
      messageOf([&] { backward({traced}, {}, TDM_RETAIN_GRAPH); });
  expectMessage(message, "node 'broken'");
  expectMessage(message, "NaN in its output 1 (element 0)");
  expectMessage(message, "its forward was at model.c:42");
  // The node that ran when another one was made is its parent.
  Tensor outer =
      made("outer", {w}, [&](Node &, const TensorList &, TensorList &) {
        tdm_set_location("inner.c:7");
        GradMode on(true);
        Tensor inner = made("broken", {w, v}, broken);
        backward({inner});
      });
  message = messageOf([&] { backward({outer}); });
  expectMessage(message, "its forward was at inner.c:7, while node 'outer'");
  expectMessage(message, "at model.c:42 ran");
  // The check is optional, and infinity is one.
  EXPECT_EQ(tdm_set_anomaly_mode(TDM_ANOMALY_TRACE), TDM_ANOMALY_NAN);
  backward({traced}, {}, TDM_RETAIN_GRAPH);
  bad = INFINITY;
  tdm_set_anomaly_mode(TDM_ANOMALY_NAN);
  backward({traced}, {}, TDM_RETAIN_GRAPH);
  tdm_set_anomaly_mode(TDM_ANOMALY_INFINITY);
  expectMessage(messageOf([&] { backward({traced}, {}, TDM_RETAIN_GRAPH); }),
                "an infinity in its output 1");
  tdm_set_anomaly_mode(TDM_ANOMALY_OFF);
  tdm_set_location(nullptr);
}

TEST(GraphRows, N29_BackwardsNest) {
  // Depth 500: each node runs a backward of the next.
  Log order;
  std::function<Tensor(int)> nest = [&](int depth) -> Tensor {
    Tensor w = leaf(1);
    if (depth == 0)
      return noted(order, "innermost", {w});
    Tensor inner = nest(depth - 1);
    return made("outer", {w},
                [inner, depth, &order](Node &node, const TensorList &gradients,
                                       TensorList &results) {
                  backward({inner}, {}, TDM_RETAIN_GRAPH);
                  if (depth == 1 || depth == 500)
                    order.push_back(std::to_string(depth));
                  passOn(node, gradients, results);
                });
  };
  backward({nest(500)});
  EXPECT_EQ(order, (Log{"innermost", "1", "500"})) << "inner first";

  // An inner error reaches the outer caller as it is.
  Tensor w = leaf(1);
  Tensor at =
      made("innermost", {w}, [](Node &, const TensorList &, TensorList &) {
        check(tdm_fail(TDM_UNSUPPORTED, "of the innermost"));
      });
  for (int i = 0; i < 20; ++i)
    at = made("outer", {w}, [at](Node &, const TensorList &, TensorList &) {
      backward({at});
    });
  try {
    backward({at});
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "of the innermost");
    EXPECT_EQ(error.status, TDM_UNSUPPORTED);
  }
  // Grad mode is off in a backward.
  Tensor inner = scale(w, 2);
  Tensor computes =
      made("computes", {w}, [inner](Node &, const TensorList &, TensorList &) {
        backward({sum(inner)});
      });
  expectMessage(messageOf([&] { backward({computes}); }),
                "root 0 does not require grad; what is computed in a backward "
                "has no history unless grad mode is set on there");

  // An outer error stops the inner: what comes after it does not run.
  Log log;
  Tensor later = noted(log, "later", {w});
  Tensor fails =
      made("fails", {later}, [](Node &, const TensorList &, TensorList &) {
        throw std::runtime_error("of the outer");
      });
  EXPECT_EQ(messageOf([&] { backward({fails}); }), "of the outer");
  EXPECT_TRUE(log.empty());
}

TEST(GraphRows, N31_NodesRunOnTheCallingThreadUnderItsModes) {
  std::thread::id thread;
  std::vector<int> seen;
  Tensor w = leaf(1);
  Tensor y =
      made("y", {w},
           [&](Node &node, const TensorList &gradients, TensorList &results) {
             thread = std::this_thread::get_id();
             seen.push_back(tdm_grad_mode());
             passOn(node, gradients, results);
           });
  std::thread other([&] {
    tdm_set_grad_mode(0);
    backward({y}, {}, TDM_RETAIN_GRAPH);
    EXPECT_EQ(thread, std::this_thread::get_id());
    EXPECT_EQ(tdm_grad_mode(), 0) << "restored";
  });
  other.join();
  backward({y}, {}, TDM_CREATE_GRAPH);
  EXPECT_EQ(thread, std::this_thread::get_id());
  EXPECT_EQ(seen, (std::vector<int>{0, 1}));
  EXPECT_EQ(tdm_grad_mode(), 1);
}

TEST(GraphRows, G01_GradModeAndGradientsWithEdges) {
  Tensor w = leaf(3);
  {
    GradMode off(false);
    Tensor y = mul(w, w);
    EXPECT_FALSE(y.requiresGrad());
    EXPECT_EQ(valuesOf(y), (Floats{9}));
  }
  Tensor y = mul(w, mul(w, w));
  Tensor plain = grad({y}, {w}, {}, TDM_RETAIN_GRAPH)[0];
  EXPECT_EQ(valuesOf(plain), (Floats{27}));
  EXPECT_FALSE(plain.requiresGrad());
  Tensor first = grad({y}, {w}, {}, TDM_CREATE_GRAPH)[0];
  EXPECT_TRUE(first.requiresGrad() && !first.isLeaf());
  Tensor second = grad({first}, {w}, {}, TDM_CREATE_GRAPH)[0];
  EXPECT_EQ(valuesOf(second), (Floats{18}));
  EXPECT_EQ(valuesOf(grad({second}, {w})[0]), (Floats{6}));
  // What is differentiable once says so.
  Tensor once = made(
      "once", {w},
      [](Node &, const TensorList &gradients, TensorList &results) {
        results[0] = scale(gradients[0], 2);
      },
      TDM_ONCE_DIFFERENTIABLE);
  Tensor g = grad({once}, {w}, {}, TDM_CREATE_GRAPH)[0];
  EXPECT_EQ(valuesOf(g), (Floats{2}));
  expectMessage(messageOf([&] { grad({g}, {w}); }), "differentiable once");
}

TEST(GraphRows, G09_DeterministicMode) {
  Tensor w = leaf(1);
  auto random = [&] {
    return made("scatter", {w}, passOn, TDM_NOT_DETERMINISTIC);
  };
  Tensor before = random();
  EXPECT_EQ(tdm_set_deterministic(1), 0);
  expectMessage(messageOf(random), "not deterministic");
  expectMessage(messageOf([&] { backward({before}); }), "'scatter'");
  EXPECT_EQ(tdm_set_deterministic(0), 1);
  backward({before});
  // The order of sums is the same in every run.
  Floats first;
  for (int run = 0; run < 5; ++run) {
    Tensor v = leaf(1);
    TensorList parts;
    for (int i = 0; i < 20; ++i)
      parts.push_back(scale(v, 1.0 / (i + 3)));
    backward(parts);
    if (run == 0)
      first = gradient(v);
    EXPECT_EQ(gradient(v), first);
  }
}

TEST(GraphRows, MaterializedGradientsAreZeros) {
  Tensor w = leaf(1);
  Floats seen;
  TensorList two =
      call({"two",
            [](Node &node, const TensorList &, TensorList &to) {
              to[0] = scalar(1);
              to[1] = scalar(1);
              to[2] = scalar(1);
              node.notDifferentiable(2);
            },
            [&](Node &, const TensorList &gradients, TensorList &results) {
              seen = valuesOf(gradients[1]);
              EXPECT_FALSE(gradients[2].defined());
              results[0] = gradients[0];
            },
            {},
            TDM_MATERIALIZE},
           {w}, 3);
  EXPECT_FALSE(two[2].requiresGrad());
  backward({two[0]});
  EXPECT_EQ(seen, (Floats{0}));
}

TEST(GraphRows, CheckpointsRunTheirPieceAgain) {
  int calls = 0;
  Tensor w = leaf(3), inside = leaf(5);
  Function piece{"piece",
                 [&](Node &, const TensorList &in, TensorList &out) {
                   ++calls;
                   out[0] = mul(mul(in[0], in[0]), inside);
                 },
                 {}};
  Tensor y = checkpoint(piece, {scale(w, 1)})[0];
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(Node::of(y).savedBytes(), 4) << "the input alone";
  backward({scale(y, 2)});
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(gradient(w), (Floats{60}));
  EXPECT_EQ(gradient(inside), (Floats{18}));
  Tensor again = checkpoint(piece, {w})[0];
  expectMessage(messageOf([&] { grad({again}, {w}); }), "is a checkpoint");
}
