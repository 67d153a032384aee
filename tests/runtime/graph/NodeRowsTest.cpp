//===- NodeRowsTest.cpp - rows N01 to N13 through the public API ----------===//
#include "tests/runtime/graph/ApiNodes.h"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace tdm;
using namespace tdm::testing;

namespace {

/// A node with `inputs` scalar inputs that gives nothing.
Node emptyNode(const char *name, int inputs = 1) {
  Node made =
      makeNode({name, {}, [](Node &, const TensorList &, TensorList &) {}});
  for (int i = 0; i < inputs; ++i)
    made.addInput(TDM_F32, {});
  return made;
}

} // namespace

TEST(GraphRows, N01_NumbersRisePerThreadFromZero) {
  Node before = emptyNode("before"), after = emptyNode("after");
  EXPECT_EQ(after.number(), before.number() + 1);
  uint64_t first = 1, second = 0;
  uint32_t thread = before.thread();
  std::thread other([&] {
    Node a = emptyNode("a"), b = emptyNode("b");
    first = a.number();
    second = b.number();
    thread = a.thread();
  });
  other.join();
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(second, 1u);
  EXPECT_NE(thread, before.thread());
  Node copy = before; // of the handle
  EXPECT_TRUE(copy == before);
  EXPECT_FALSE(after == before);
}

TEST(GraphRows, N02_LargerNumbersFirstAndLeavesAboveAll) {
  Log log;
  Tensor w = leaf(1), v = leaf(1);
  addHook(w, [&](Tensor &) { log.push_back("w"); });
  Tensor a = noted(log, "a", {v}), b = noted(log, "b", {v});
  Tensor c = noted(log, "c", {w, a, b});
  backward({c});
  EXPECT_EQ(log, (Log{"c", "w", "b", "a"}));
}

TEST(GraphRows, N03_ANumberThatIsSetStartsEarlier) {
  for (bool isSet : {false, true}) {
    Log log;
    Tensor table = leaf(1), weights = leaf(1);
    Tensor lookup = noted(log, "lookup", {table});
    Tensor allToAll = noted(log, "all-to-all", {lookup});
    Tensor dense = noted(log, "dense", {weights});
    Tensor top = noted(log, "top", {allToAll, dense});
    if (isSet)
      Node::of(allToAll).setNumber(Node::of(dense).number() + 1);
    backward({top});
    EXPECT_EQ(log, isSet ? (Log{"top", "all-to-all", "dense", "lookup"})
                         : (Log{"top", "dense", "all-to-all", "lookup"}));
  }
  // Dependencies still rule.
  Log log;
  Tensor w = leaf(1), a = noted(log, "a", {w}), b = noted(log, "b", {a});
  Node::of(a).setNumber(std::numeric_limits<uint64_t>::max());
  backward({b});
  EXPECT_EQ(log, (Log{"b", "a"}));
}

TEST(GraphRows, N04_TopologicalNumbersAreTheLongestPath) {
  Log log;
  Tensor w = leaf(1);
  EXPECT_EQ(Node::of(w).topologicalNumber(), 0u);
  Tensor a = noted(log, "a", {w}), b = noted(log, "b", {a});
  Tensor c = noted(log, "c", {w, b, a});
  EXPECT_EQ(Node::of(a).topologicalNumber(), 1u);
  EXPECT_EQ(Node::of(b).topologicalNumber(), 2u);
  EXPECT_EQ(Node::of(c).topologicalNumber(), 3u);
}

TEST(GraphRows, N05_EdgesAreSetAddedAndReplacedUntilANodeHasAParent) {
  Log log;
  Tensor w = leaf(1), a = noted(log, "a", {w}), b = noted(log, "b", {a});
  Node node = emptyNode("child"), parent = emptyNode("parent");
  node.addEdge(Node::of(w));
  EXPECT_EQ(node.topologicalNumber(), 1u);
  node.addEdge(Node::of(b));
  EXPECT_EQ(node.topologicalNumber(), 3u);
  node.setEdge(1, Node::of(a));
  EXPECT_EQ(node.topologicalNumber(), 2u);
  node.setEdge(1, Node());
  EXPECT_EQ(node.topologicalNumber(), 1u);
  node.setEdges({b, scalar(1), w});
  EXPECT_EQ(node.topologicalNumber(), 3u);
  EXPECT_EQ(node.edges(), 3u);
  EXPECT_FALSE(node.edge(1)) << "in place, and invalid";
  EXPECT_TRUE(node.edge(2) == Node::of(w));
  parent.addEdge(node);
  for (const std::string &message :
       {messageOf([&] { node.addEdge(Node::of(w)); }),
        messageOf([&] { node.setEdge(0, Node::of(w)); }),
        messageOf([&] { node.setEdges({w}); })}) {
    expectMessage(message, "node 'child'");
    expectMessage(message, "node 'parent'");
  }
  EXPECT_EQ(node.edges(), 3u);
  // Without parents again, they can change.
  parent.setEdges({});
  EXPECT_EQ(parent.topologicalNumber(), 0u);
  node.setEdges({w});
  EXPECT_EQ(node.topologicalNumber(), 1u);
  expectMessage(messageOf([&] { node.addEdge(node); }), "the node itself");
  expectMessage(messageOf([&] { node.addEdge(Node::of(w), 1); }),
                "expected an input below 1 but got 1");
  expectMessage(messageOf([&] { node.setEdge(7, Node()); }), "below 1");
}

TEST(GraphRows, N06_SeveralEdgesIntoOneInputRootsAndSinks) {
  Log log;
  Tensor w = leaf(1), a = noted(log, "a", {w});
  Tensor b = noted(log, "b", {a, a, a});
  backward({b}, {scalar(2)});
  EXPECT_EQ(log, (Log{"b", "a"}));
  EXPECT_EQ(gradient(w), (Floats{6}));
  // Of several nodes, too: it waits for the last.
  log.clear();
  clearGradient(w);
  Tensor shared = noted(log, "shared", {w});
  Tensor left = noted(log, "left", {shared});
  Tensor right = noted(log, "right", {shared});
  Node::of(shared).setNumber(Node::of(right).number() + 1);
  backward({noted(log, "top", {left, right})});
  EXPECT_EQ(log, (Log{"top", "right", "left", "shared"}));
  EXPECT_EQ(gradient(w), (Floats{2}));
  // A node without edges takes its gradient, and that is all.
  int calls = 0;
  Node sink =
      makeNode({"sink",
                {},
                [&](Node &, const TensorList &gradients, TensorList &results) {
                  calls += gradients.size() == 1 && results.empty();
                }});
  sink.addInput(TDM_F32, {});
  backward({sink.place()});
  EXPECT_EQ(calls, 1);
}

TEST(GraphRows, N07_InputsFromTensorsTypesAndPlaceholders) {
  std::vector<bool> seen;
  Node node = makeNode(
      {"node", {}, [&](Node &, const TensorList &gradients, TensorList &) {
         for (const Tensor &one : gradients)
           seen.push_back(one.defined());
       }});
  Tensor x = numbers({1, 2});
  setNode(x, node);
  int input = -1;
  EXPECT_TRUE(Node::of(x, &input) == node);
  EXPECT_EQ(input, 0);
  EXPECT_EQ(node.addPlaceholder(), 1);
  EXPECT_EQ(node.addInput(TDM_F64, {3}), 2);
  EXPECT_EQ(node.inputs(), 3u);
  backward({x, node.place(1), node.place(2)},
           {numbers({1, 1}), scalar(1), Tensor::zeros(TDM_F64, {3})});
  EXPECT_EQ(seen, (std::vector<bool>{true, false, true}));
  node.clearInputs();
  EXPECT_EQ(node.inputs(), 0u);
  EXPECT_EQ(node.addInput(TDM_F32, {}), 0);
  expectMessage(messageOf([&] { node.addInput(TDM_I32, {}); }), "tdm_dtype");
}

// An op wrote behind its outputs when it had lost an edge, and a gradient was
// read where an input had been.
TEST(GraphRows, N05_N07_OnlyAFunctionsInputsAndNumberOfEdgesChange) {
  Tensor w = leaf(1), y = add(w, w), z = scalar(1);
  Node op = Node::of(y), other = emptyNode("other", 0);
  for (const std::string &message :
       {messageOf([&] { op.addInput(TDM_F32, {}); }),
        messageOf([&] { op.addPlaceholder(); }),
        messageOf([&] { op.clearInputs(); }),
        messageOf([&] { setNode(z, op); }),
        messageOf([&] { op.addEdge(Node::of(w)); }),
        messageOf([&] { op.setEdges({w}); }),
        messageOf([&] { Node::of(w).addEdge(other); }),
        messageOf([&] { Node::of(w).clearInputs(); })})
    expectMessage(message,
                  "are those of its call: only a function's can change");
  op.setEdges({w, w});
  backward({y});
  EXPECT_EQ(gradient(w), (Floats{2}));

  other.addInput(TDM_F32, {});
  Tensor place = other.place();
  Node parent = emptyNode("parent");
  parent.addEdge(other);
  expectMessage(messageOf([&] { other.clearInputs(); }),
                "the inputs of node 'other'");
  parent.setEdges({});
  other.clearInputs();
  for (const std::string &message :
       {messageOf([&] { addHook(place, [](Tensor &) {}); }),
        messageOf([&] { backward({place}); }),
        messageOf([&] { grad({y}, {place}); })})
    expectMessage(message, "input 0 of node 'other'");

  Log unread;
  Tensor made = noted(unread, "function", {w});
  expectMessage(messageOf([&] { Node::of(made).save(w); }),
                "is said in its forward");
  expectMessage(messageOf([&] { Node::of(made).notDifferentiable(0); }),
                "is said in its forward");
}

TEST(GraphRows, N08_EdgesOfTensorsAndForATensor) {
  Node node = emptyNode("node", 2);
  Tensor w = leaf(1), x = scalar(1), none;
  node.setEdges({x, w, none});
  EXPECT_EQ(node.edges(), 3u);
  EXPECT_FALSE(node.edge(0) || node.edge(2));
  EXPECT_TRUE(node.edge(1) == Node::of(w));
  int input = -1;
  setNode(x, node);
  EXPECT_TRUE(Node::of(x, &input) == node);
  EXPECT_EQ(input, 2) << "the number of inputs before";
  // No tensor requires grad: no node.
  Log log;
  Tensor y = noted(log, "f", {scalar(1)});
  EXPECT_FALSE(y.requiresGrad());
  expectMessage(messageOf([&] { Node::of(y); }), "does not require grad");
}

TEST(GraphRows, N09_ShouldComputeOfEdgesRangesAndTheTask) {
  Tensor w = leaf(1), v = leaf(1);
  std::vector<bool> ofTask;
  Function function{
      "f",
      [](Node &, const TensorList &, TensorList &outputs) {
        outputs[0] = scalar(1);
      },
      [&](Node &node, const TensorList &gradients, TensorList &results) {
        ofTask = {node.shouldCompute(0, true), node.shouldCompute(1, true),
                  node.shouldCompute(2, true)};
        for (Tensor &result : results)
          result = gradients[0];
      }};
  Tensor y = call(function, {w, scalar(1), v})[0];
  Node node = Node::of(y);
  EXPECT_TRUE(node.shouldCompute(0) && node.shouldCompute(2));
  EXPECT_FALSE(node.shouldCompute(1));
  expectMessage(messageOf([&] { node.shouldCompute(3); }),
                "an edge below 3 but got 3");
  auto any = [&](std::vector<size_t> begins, std::vector<size_t> ends) {
    int wanted = -1;
    check(tdm_node_should_compute_any(node.get(), begins.data(), ends.data(),
                                      begins.size(), 0, &wanted));
    return wanted;
  };
  EXPECT_EQ(any({1}, {2}), 0);
  EXPECT_EQ(any({1, 2}, {2, 3}), 1);
  EXPECT_EQ(any({0}, {2}), 1);
  EXPECT_EQ(any({2, 1}, {3, 2}), 1) << "any, not the last";
  EXPECT_EQ(any({}, {}), 0);
  expectMessage(messageOf([&] { any({0}, {4}); }), "below 3");
  backward({y}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(ofTask, (std::vector<bool>{true, false, true}));
  grad({y}, {v}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(ofTask, (std::vector<bool>{false, false, true}));
  EXPECT_TRUE(node.shouldCompute(0, true)) << "no task";
}

TEST(GraphRows, N10_TheCurrentNodeAndAProfiler) {
  EXPECT_FALSE(Node::current());
  std::string outer, inner, restored;
  Tensor x = leaf(1);
  Function nested{"outer",
                  [](Node &, const TensorList &, TensorList &outputs) {
                    outputs[0] = scalar(1);
                  },
                  [&](Node &, const TensorList &, TensorList &) {
                    outer = Node::current().name();
                    Log log;
                    GradMode on(true);
                    Tensor w = leaf(1);
                    Tensor y = noted(log, "inner", {w});
                    addHook(y,
                            [&](Tensor &) { inner = Node::current().name(); });
                    backward({y});
                    restored = Node::current().name();
                  }};
  Tensor y = call(nested, {x})[0];
  struct Seen {
    Log names;
    std::vector<uint64_t> numbers;
    size_t inputs = 0, ends = 0;
  } seen;
  tdm_profiler profiler = TDM_PROFILER_INIT;
  profiler.user = &seen;
  profiler.begin = [](void *user, const tdm_node *node,
                      const tdm_tensor *const *inputs, size_t count) {
    auto *to = static_cast<Seen *>(user);
    to->names.emplace_back(tdm_node_name(node));
    to->numbers.push_back(tdm_node_number(node));
    to->inputs += inputs ? count : 0;
  };
  profiler.end = [](void *user, const tdm_node *) {
    ++static_cast<Seen *>(user)->ends;
  };
  check(tdm_set_profiler(&profiler));
  backward({y}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(outer, "outer");
  EXPECT_EQ(inner, "inner");
  EXPECT_EQ(restored, "outer");
  EXPECT_FALSE(Node::current());
  EXPECT_EQ(seen.names, (Log{"outer", "inner", "leaf", "leaf"}));
  EXPECT_EQ(seen.numbers[0], Node::of(y).number());
  EXPECT_EQ(seen.inputs, 0u);
  EXPECT_EQ(seen.ends, 4u);
  profiler.wants_inputs = 1;
  check(tdm_set_profiler(&profiler));
  backward({y}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(seen.inputs, 4u);
  check(tdm_set_profiler(nullptr));
  backward({y});
  EXPECT_EQ(seen.ends, 8u);
}

TEST(GraphRows, N11_AChainOf200000NodesEndsAndItsHooksOnce) {
  auto ended = std::make_shared<int>(0);
  struct Counter {
    std::shared_ptr<int> ended;
    Counter(std::shared_ptr<int> ended) : ended(std::move(ended)) {}
    ~Counter() { ++*ended; }
  };
  Tensor w = leaf(1), last = scale(w, 1);
  for (int i = 1; i < 200000; ++i) {
    last = scale(last, 1);
    if (i % 1000 == 0) {
      auto counter = std::make_shared<Counter>(ended);
      addHook(last, [counter](Tensor &) {});
    }
  }
  EXPECT_EQ(Node::of(last).topologicalNumber(), 200000u);
  backward({last});
  EXPECT_EQ(gradient(w), (Floats{1}));
  EXPECT_EQ(*ended, 0);
  last = Tensor();
  EXPECT_EQ(*ended, 199);
}

// Nodes that were held by hooks and lambdas alone ended in a recursion.
TEST(GraphRows, N11_AChainThatHooksFunctionsAndSavedValuesHoldEnds) {
  Tensor w = leaf(1), hooked = w, captured = w, saved = w;
  for (int i = 0; i < 60000; ++i) {
    Tensor next = scale(w, 1);
    addHook(next, [hooked](Tensor &) {});
    hooked = next;
    next = call({"captures",
                 [](Node &, const TensorList &inputs, TensorList &outputs) {
                   outputs[0] = inputs[0].detach();
                 },
                 [captured](Node &, const TensorList &, TensorList &) {}},
                {w})[0];
    captured = next;
    next = call(
        {"saves",
         [saved](Node &node, const TensorList &inputs, TensorList &outputs) {
           node.save(saved);
           outputs[0] = inputs[0].detach();
         },
         [](Node &, const TensorList &, TensorList &) {}},
        {w})[0];
    saved = next;
  }
  hooked = captured = saved = Tensor();
}

TEST(GraphRows, N12_TraitsAndSubstitutesAreSeenFromOutside) {
  Log log;
  Tensor w = leaf(1);
  Function plain = noting(log, "plain"), traceable = noting(log, "traceable");
  traceable.flags = TDM_TRACEABLE | TDM_STATE_TRANSPARENT;
  Tensor y = call(traceable, call(plain, {w}))[0];
  std::string path =
      ::testing::TempDir() + "graph-" + std::to_string(getpid()) + ".json";
  tdm_tensor *root = y.get();
  check(tdm_graph_write_json(&root, 1, path.c_str()));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::string json = text.str();
  std::remove(path.c_str());
  std::string first = json.substr(json.find("\"plain\""));
  expectMessage(first.substr(0, first.find('\n')),
                "\"traceable\": false, \"state_transparent\": false");
  std::string second = json.substr(json.find("\"traceable\""));
  expectMessage(second.substr(0, second.find('\n')),
                "\"traceable\": true, \"state_transparent\": true");
}

TEST(GraphRows, N13_SavedValuesGoAfterTheRunAndAreAnnouncedBefore) {
  Log log;
  Function function{
      "f",
      [](Node &node, const TensorList &inputs, TensorList &outputs) {
        node.save(inputs[0]);
        outputs[0] = scale(inputs[0], 1);
      },
      [&](Node &node, const TensorList &gradients, TensorList &results) {
        log.push_back("run with " + std::to_string(static_cast<int>(
                                        valuesOf(node.saved(0))[0])));
        results[0] = gradients[0];
      },
      [&](Node &) { log.push_back("announced"); }};
  Tensor w = leaf(3), y = call(function, {w})[0];
  Node node = Node::of(y);
  EXPECT_EQ(node.savedBytes(), 4);
  backward({y}, {}, TDM_RETAIN_GRAPH);
  EXPECT_EQ(log, (Log{"run with 3"}));
  EXPECT_EQ(node.savedBytes(), 4);
  backward({y});
  EXPECT_EQ(log, (Log{"run with 3", "announced", "run with 3"}));
  EXPECT_EQ(node.savedBytes(), 0);
  expectMessage(messageOf([&] { backward({y}); }),
                "were freed by an earlier backward");
  expectMessage(messageOf([&] { node.saved(0); }), "were freed");
}

// A failed check used the saved values up: the next backward said that an
// earlier one had freed them.
TEST(GraphRows, C15_N13_ABackwardThatFailsLeavesItsSavedValues) {
  bool fails = true;
  Function square{
      "square",
      [](Node &node, const TensorList &given, TensorList &outputs) {
        node.save(given[0]);
        outputs[0] = mul(given[0], given[0]);
      },
      [&](Node &node, const TensorList &gradients, TensorList &results) {
        results[0] = scale(mul(gradients[0], node.saved(0)), 2);
        if (fails)
          check(tdm_fail(TDM_FAILED, "not yet"));
      }};
  Tensor w = leaf(3), x = scale(w, 1), y = call(square, {x})[0];
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(messageOf([&] { backward({y}); }), "not yet");
  fails = false;
  Tensor z = call(square, {x})[0];
  backward({y});
  EXPECT_EQ(gradient(w), (Floats{6}));
  expectMessage(messageOf([&] { backward({y}); }), "freed by an earlier");
  x.markWritten();
  for (int i = 0; i < 2; ++i)
    expectMessage(messageOf([&] { backward({z}); }),
                  "was written since: expected version");
}
