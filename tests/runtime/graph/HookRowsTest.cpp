//===- HookRowsTest.cpp - rows N14 to N19 and C12, publicly ---------------===//
//
// What is called at a node, in which order, and what a hook may do.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/ApiNodes.h"

#include <stdexcept>
#include <utility>

using namespace tdm;
using namespace tdm::testing;

namespace {

TensorHook noteTo(Log &log, const char *name) {
  return [&log, name](Tensor &) { log.emplace_back(name); };
}

/// A function that writes its input: x = 2 x, visibly.
Function doubling(Log &log) {
  return {"doubling",
          [](Node &node, const TensorList &inputs, TensorList &outputs) {
            node.mutates(0);
            Floats values = valuesOf(inputs[0]);
            for (float &value : values)
              value *= 2;
            check(tdm_tensor_write(inputs[0].get(), values.data(),
                                   values.size() * sizeof(float)));
            outputs.clear();
          },
          [&log](Node &, const TensorList &gradients, TensorList &results) {
            log.emplace_back("doubling");
            results[0] = scale(gradients[0], 2);
          }};
}

} // namespace

TEST(GraphRows, N14_OrderAtANode) {
  Log log;
  Tensor w = leaf(1), y = noted(log, "run", {w});
  Node node = Node::of(y);
  Floats retained;
  node.addPostHook([&](TensorList &outputs, const TensorList &inputs) {
    log.push_back("post " +
                  std::to_string(valuesOf(outputs[0])[0]).substr(0, 1) +
                  std::to_string(valuesOf(inputs[0])[0]).substr(0, 1));
  });
  node.addPreHook([&](TensorList &gradients) {
    retained = gradient(y);
    log.emplace_back("pre");
    gradients[0] = scale(gradients[0], 3);
  });
  addHook(y, [&](Tensor &gradient) {
    log.emplace_back("first");
    gradient = scale(gradient, 2);
  });
  retainGradient(y);
  addHook(y, noteTo(log, "second"));
  backward({y});
  EXPECT_EQ(log, (Log{"first", "second", "pre", "run", "post 66"}));
  EXPECT_EQ(retained, (Floats{2})) << "after tensor hooks, before pre-hooks";
  EXPECT_EQ(gradient(y), (Floats{2}));
  EXPECT_EQ(gradient(w), (Floats{6}));
}

TEST(GraphRows, N14_PostHooksComeAfterTheChecks) {
  Log log;
  Tensor w = leaf({1, 2});
  Function function{"wrong",
                    [](Node &, const TensorList &, TensorList &outputs) {
                      outputs[0] = scalar(1);
                    },
                    [](Node &, const TensorList &, TensorList &results) {
                      results[0] = numbers({1, 2, 3});
                    }};
  Tensor y = call(function, {w})[0];
  Node::of(y).addPostHook(
      [&](TensorList &, const TensorList &) { log.emplace_back("post"); });
  expectMessage(messageOf([&] { backward({y}); }), "output 0 of node 'wrong'");
  EXPECT_TRUE(log.empty());
}

TEST(GraphRows, N15_WhatIsCapturedOrTrimmedDoesNotRun) {
  Log log;
  Tensor w = leaf(1), v = leaf(1);
  Tensor captured = noted(log, "captured", {w});
  Tensor trimmed = noted(log, "trimmed", {v});
  Tensor top = noted(log, "top", {captured, trimmed});
  for (const Tensor &one : {captured, trimmed}) {
    std::string name = Node::of(one).name();
    addHook(one, [&log, name](Tensor &gradient) {
      log.push_back(name + " tensor hook");
      gradient = scale(gradient, 5);
    });
    retainGradient(one);
    Node::of(one).addPreHook(
        [&log, name](TensorList &) { log.push_back(name + " pre"); });
    Node::of(one).addPostHook([&log, name](TensorList &, const TensorList &) {
      log.push_back(name + " post");
    });
  }
  TensorList made = grad({top}, {captured}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(log, (Log{"top", "captured tensor hook"}));
  EXPECT_EQ(valuesOf(made[0]), (Floats{5})) << "after the tensor hook";
  EXPECT_EQ(gradient(captured), (Floats{5}));
  EXPECT_FALSE(gradientOf(trimmed).defined());
  // What runs, too, is given as it came.
  log.clear();
  made = grad({top}, {captured, w}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(log, (Log{"top", "captured tensor hook", "captured pre", "captured",
                      "captured post"}));
  EXPECT_EQ(valuesOf(made[0]), (Floats{1})) << "before the hooks";
  EXPECT_EQ(valuesOf(made[1]), (Floats{5}));
}

TEST(GraphRows, N16_OrderAtALeaf) {
  Log log;
  Tensor w = leaf(1);
  Node node = Node::of(w);
  node.addPostHook([&](TensorList &outputs, const TensorList &) {
    log.push_back("post " + std::to_string(outputs.size()));
  });
  addAccumulatedHook(w, [&](Tensor &sum) {
    log.push_back("accumulated " +
                  std::to_string(static_cast<int>(valuesOf(sum)[0])));
  });
  node.addPreHook([&](TensorList &) {
    log.push_back(gradientOf(w).defined() ? "pre, later" : "pre, before");
  });
  addHook(w, noteTo(log, "tensor"));
  backward({w}, {scalar(4)});
  EXPECT_EQ(log, (Log{"tensor", "pre, before", "accumulated 4", "post 0"}));
  Tensor y = noted(log, "y", {w});
  expectMessage(messageOf([&] { addAccumulatedHook(y, noteTo(log, "never")); }),
                "no leaf");
}

TEST(GraphRows, N17_PreHooksReplaceOrLeaveGradients) {
  Log log;
  Tensor w = leaf({1, 2});
  Node node = Node::of(w);
  {
    Hook hook =
        node.addPreHook([&](TensorList &) { log.emplace_back("same"); });
    backward({w}, {numbers({1, 2})});
    EXPECT_EQ(gradient(w), (Floats{1, 2}));
    hook.remove();
    hook = node.addPreHook([](TensorList &gradients) {
      gradients[0] = numbers({7, 8});
    });
    clearGradient(w);
    backward({w}, {numbers({1, 2})});
    EXPECT_EQ(gradient(w), (Floats{7, 8}));
    hook.remove();
    hook = node.addPreHook(
        [](TensorList &gradients) { gradients.push_back(scalar(1)); });
    expectMessage(messageOf([&] {
                    backward({w}, {numbers({1, 2})});
                  }),
                  "pre-hook: expected 1 tensors but got 2");
    hook.remove();
    hook = node.addPreHook([](TensorList &gradients) {
      gradients[0] = numbers({1, 2, 3});
    });
    expectMessage(messageOf([&] {
                    backward({w}, {numbers({1, 2})});
                  }),
                  "expected a gradient f32 [2] on 'cpu' but got f32 [3]");
    hook.remove();
    EXPECT_EQ(gradient(w), (Floats{7, 8}));
  }
  // An undefined gradient: called, and the leaf's stays as it is.
  Function nothing{"nothing",
                   [](Node &, const TensorList &, TensorList &outputs) {
                     outputs[0] = scalar(1);
                   },
                   [](Node &, const TensorList &, TensorList &) {}};
  Tensor y = call(nothing, {w})[0];
  bool wasDefined = true;
  node.addPreHook(
      [&](TensorList &gradients) { wasDefined = gradients[0].defined(); });
  backward({y});
  EXPECT_FALSE(wasDefined);
  EXPECT_EQ(gradient(w), (Floats{7, 8}));
}

TEST(GraphRows, N18_HooksAreRemovedByKeyAlsoWhileTheyRun) {
  Log log;
  Tensor w = leaf(1);
  Hook *own = nullptr, *later = nullptr;
  Hook first = addHook(w, [&](Tensor &) {
    log.emplace_back("once");
    EXPECT_TRUE(own->remove());
    EXPECT_FALSE(own->remove());
    EXPECT_TRUE(later->remove());
  });
  Hook second = addHook(w, noteTo(log, "never"));
  addHook(w, noteTo(log, "always"));
  own = &first;
  later = &second;
  backward({w});
  backward({w});
  EXPECT_EQ(log, (Log{"once", "always", "always"}));
  EXPECT_FALSE(first.remove());

  // A post-hook that is added while its node runs still runs.
  log.clear();
  Function adds{
      "adds",
      [](Node &, const TensorList &, TensorList &outputs) {
        outputs[0] = scalar(1);
      },
      [&](Node &node, const TensorList &gradients, TensorList &results) {
        results[0] = gradients[0];
        node.addPostHook([&](TensorList &, const TensorList &) {
          log.emplace_back("added");
        });
      }};
  backward({call(adds, {leaf(1)})[0]});
  EXPECT_EQ(log, (Log{"added"}));

  // The handle may outlive the node.
  Hook hook(nullptr);
  {
    Tensor v = leaf(1);
    hook = addHook(v, noteTo(log, "never"));
  }
  EXPECT_FALSE(hook.remove());
}

// What failed to be added was leaked in some calls, and ended in others.
TEST(GraphRows, N18_WhatCannotBeAddedEnds) {
  auto counted = std::make_shared<int>(0);
  Tensor w = leaf(1), plain = scalar(1);
  auto hook = [counted](auto &&...) {};
  for (const std::string &message :
       {messageOf([&] { addHook(plain, hook); }),
        messageOf([&] { addAccumulatedHook(plain, hook); }),
        messageOf([&] { addAccumulatedHook(scale(w, 1), hook); }),
        messageOf([&] { Node().addPreHook(hook); }),
        messageOf([&] { Node().addPostHook(hook); }),
        messageOf([&] { whenDone(hook); }), messageOf([&] {
          call({"half", hook, {}}, {w});
        }),
        messageOf([&] {
          makeNode({"half", hook, {}});
        }),
        messageOf([&] {
          checkpoint({"both", hook, hook}, {w});
        })})
    EXPECT_NE(message, "");
  EXPECT_EQ(counted.use_count(), 2) << "its own and the lambda's";
}

TEST(GraphRows, N19_HooksStayWithTheOldNodeAndRetainedGradientsMove) {
  Log log;
  Tensor w = leaf({1, 2}), x = noted(log, "x", {w});
  addHook(x, [&](Tensor &gradient) {
    log.push_back("old hook " +
                  std::to_string(static_cast<int>(valuesOf(gradient)[0])));
  });
  retainGradient(x);
  Node before = Node::of(x);
  call(doubling(log), {x}, 0);
  EXPECT_FALSE(Node::of(x) == before);
  EXPECT_EQ(valuesOf(x), (Floats{2, 4}));
  addHook(x, noteTo(log, "new hook"));
  log.clear();
  backward({x}, {numbers({5, 5})});
  EXPECT_EQ(log, (Log{"new hook", "doubling", "old hook 10", "x"}));
  EXPECT_EQ(gradient(x), (Floats{5, 5})) << "of the new value";
  EXPECT_EQ(gradient(w), (Floats{10, 10}));
  // A leaf that requires grad is not written visibly, and keeps its value.
  expectMessage(messageOf([&] { call(doubling(log), {w}, 0); }),
                "is a leaf that requires grad");
  EXPECT_EQ(valuesOf(w), (Floats{1, 2}));
  // With grad mode off it may be.
  GradMode off(false);
  call(doubling(log), {w}, 0);
  EXPECT_EQ(valuesOf(w), (Floats{2, 4}));
  EXPECT_TRUE(w.isLeaf());
}

namespace {

/// Saved values that lie in a list.
struct Store {
  std::vector<Tensor> packed;
  int unpacked = 0, released = 0;
  bool writes = false, isWrong = false;

  tdm_saved_hooks hooks() {
    tdm_saved_hooks made = TDM_SAVED_HOOKS_INIT;
    made.user = this;
    made.pack = [](void *user, const char *, const tdm_tensor *value,
                   void **packed) {
      auto *store = static_cast<Store *>(user);
      store->packed.emplace_back();
      tdm_status status = tdm_tensor_assign(store->packed.back().get(), value);
      *packed = reinterpret_cast<void *>(store->packed.size());
      if (store->writes)
        store->packed.back().markWritten();
      return status;
    };
    made.unpack = [](void *user, const char *, void *packed,
                     tdm_tensor *value) {
      auto *store = static_cast<Store *>(user);
      ++store->unpacked;
      if (store->isWrong)
        return tdm_tensor_assign(value, numbers({1, 2, 3}).get());
      return tdm_tensor_assign(
          value, store->packed[reinterpret_cast<size_t>(packed) - 1].get());
    };
    made.release = [](void *user, void *) {
      ++static_cast<Store *>(user)->released;
    };
    return made;
  }
};

} // namespace

TEST(GraphRows, C12_SavedValuesArePackedAndUnpacked) {
  Store store;
  tdm_saved_hooks hooks = store.hooks();
  Tensor x = leaf(3), y = leaf(4);
  check(tdm_set_saved_hooks(&hooks));
  Tensor product = mul(x, y);
  check(tdm_set_saved_hooks(nullptr));
  EXPECT_EQ(store.packed.size(), 2u);
  EXPECT_EQ(store.unpacked, 0);
  backward({product}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(store.unpacked, 2);
  EXPECT_EQ(gradient(x), (Floats{4}));
  store.isWrong = true;
  expectMessage(messageOf([&] { backward({product}, {}, TDM_RETAIN_GRAPH); }),
                "expected f32 [] but got f32 [3]");
  product = Tensor();
  EXPECT_EQ(store.released, 2);
  store.writes = true;
  check(tdm_set_saved_hooks(&hooks));
  std::string message = messageOf([&] { mul(x, y); });
  check(tdm_set_saved_hooks(nullptr));
  expectMessage(message, "the pack hook of");
}

// A hook that throws, and one that calls a backward.
TEST(GraphRows, N26_WhatAHookThrowsReachesTheCaller) {
  Tensor w = leaf(1), v = leaf(1);
  Hook hook = addHook(
      w, [](Tensor &) { throw std::runtime_error("the text of the hook"); });
  EXPECT_EQ(messageOf([&] { backward({w}); }), "the text of the hook");
  hook.remove();
  addHook(w, [&](Tensor &) {
    GradMode on(true);
    backward({scale(v, 3)});
  });
  backward({w});
  EXPECT_EQ(gradient(v), (Floats{3}));
  EXPECT_EQ(gradient(w), (Floats{1}));
}

TEST(GraphRows, N29_AHookMayRunABackward) {
  Log log;
  Tensor v = leaf(2), w = leaf(3), inner = mul(v, v);
  Tensor a = noted(log, "a", {w});
  addHook(a, [&](Tensor &gradient) {
    log.emplace_back("hook");
    backward({inner}, {}, TDM_RETAIN_GRAPH);
    gradient = scale(gradient,
                     gradient.defined() ? gradientOf(v).data<float>()[0] : 0);
  });
  // Through the node that runs, too.
  Tensor b = noted(log, "b", {w});
  bool isInside = false;
  addHook(b, [&](Tensor &) {
    if (!std::exchange(isInside, true))
      backward({b}, {}, TDM_RETAIN_GRAPH);
  });
  backward({a});
  EXPECT_EQ(log, (Log{"hook", "a"}));
  EXPECT_EQ(gradient(v), (Floats{4}));
  EXPECT_EQ(gradient(w), (Floats{4}));
  log.clear();
  backward({b});
  EXPECT_EQ(log, (Log{"b", "b"})) << "the inner one first";
  EXPECT_EQ(gradient(w), (Floats{6}));
  // Its error is that of the outer one.
  Tensor c = scale(w, 1);
  addHook(c, [&](Tensor &) { backward({inner, scalar(1)}); });
  expectMessage(messageOf([&] { backward({c}); }), "root 1 does not require");
}

TEST(GraphRows, N26_ALeafMayEndDuringTheBackward) {
  int ended = 0;
  Tensor kept = leaf(1);
  {
    auto w = std::make_shared<Tensor>(leaf(3));
    std::shared_ptr<int> token(&ended, [](int *count) { ++*count; });
    addHook(*w, [token](Tensor &) {});
    Tensor y = scale(*w, 2);
    addHook(y, [w, &kept](Tensor &) mutable {
      *w = Tensor(); // the last handle
      kept = scalar(5);
    });
    w.reset();
    token.reset();
    backward({y, kept});
    EXPECT_EQ(ended, 0) << "the graph holds it";
  }
  EXPECT_EQ(ended, 1);
}

TEST(GraphRows, N11_AChainOf200000NodesRuns) {
  Tensor w = leaf(1), last = w;
  for (int i = 0; i < 200000; ++i)
    last = reshape(last, {});
  EXPECT_EQ(Node::of(last).topologicalNumber(), 200000u);
  backward({last}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(gradient(w), (Floats{1}));
  EXPECT_EQ(valuesOf(grad({last}, {w})[0]), (Floats{1}));
}
