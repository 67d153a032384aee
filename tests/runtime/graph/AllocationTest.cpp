//===- AllocationTest.cpp - what a repeated backward allocates ------------===//
//
// Counts allocations (CountAllocations.h): after the first backward of a graph,
// one of the same shape makes none. Chains, sums, leaves that accumulate,
// nested backwards, and nodes of several devices; a graph that is made anew
// counts from its backward on. A compiled program allocates its gradients, as
// without a graph.
//
//===----------------------------------------------------------------------===//
#include "runtime/graph/CallNode.h"
#include "runtime/graph/Engine.h"
#include "runtime/graph/Hooks.h"
#include "runtime/graph/Leaf.h"
#include "tests/runtime/CountAllocations.h"
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/Maker.h"

#include <gtest/gtest.h>

#include <thread>

using namespace tandem;
using namespace tandem::graph;
using tandem::test::allocations;

namespace {

/// Gives its gradient to all edges; runs a backward first, perhaps.
class Pass : public Node {
public:
  explicit Pass(Edge inner) : inner(std::move(inner)) {}
  std::string name() const override { return "pass"; }
  Status run(Gradients &inputs, Gradients &outputs, const RunMode &) override {
    if (inner) {
      Root root{inner, inputs[0]};
      if (Status status = backward({&root, 1}); !status)
        return status;
    }
    for (Value &output : outputs)
      output = inputs[0];
    return Status::success();
  }

private:
  Edge inner;
};

Edge pass(const Tensor &like, const std::vector<Edge> &edges, Edge inner = {}) {
  auto node = std::make_shared<Pass>(std::move(inner));
  for (const Edge &edge : edges)
    EXPECT_TRUE(node->addEdge(edge).ok());
  return {node, *node->addInput(like)};
}

Tensor ones() {
  int64_t shape[] = {4};
  Tensor made = *Tensor::empty(artifact::DType::F32, shape);
  EXPECT_TRUE(made.fill(1).ok());
  return made;
}

/// 40 nodes: a chain, a fan that is summed twice, and a nested backward.
Edge graphOver(const Edge &leaf, const Tensor &like) {
  Edge top = leaf;
  for (int i = 0; i < 20; ++i)
    top = pass(like, {top});
  std::vector<Edge> fan;
  for (int i = 0; i < 10; ++i)
    fan.push_back(pass(like, {top, leaf}));
  return pass(like, {pass(like, fan)}, pass(like, {leaf, leaf}));
}

int64_t allocationsOf(const Edge &top, const Tensor &gradient) {
  Root root{top, gradient};
  int64_t before = allocations;
  EXPECT_TRUE(backward({&root, 1}).ok());
  return allocations - before;
}

} // namespace

TEST(GraphAllocation, ARepeatedBackwardAllocatesNothing) {
  Tensor one = ones();
  Value w = *Leaf::make("w", one);
  Edge top = graphOver(w.edge, one);
  EXPECT_GT(allocationsOf(top, one), 0);
  allocationsOf(top, one); // the leaf has its gradient now
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(allocationsOf(top, one), 0);
  // 10 from the fan to the leaf, 10 through the chain, 2 of the nested one.
  EXPECT_EQ(static_cast<Leaf &>(*w.edge.node).gradient().at(0), 5 * 22);
}

// Hooks see a copy of the caller's gradient, and are looked after.
TEST(GraphAllocation, NorDoesOneWithHooks) {
  Tensor one = ones();
  Value w = *Leaf::make("w", one);
  Edge top = graphOver(w.edge, one);
  int calls = 0;
  for (const Edge &edge : {top, w.edge}) {
    addTensorHook(edge, [&](Value &) {
      ++calls;
      return Status::success();
    });
    addPreHook(*edge.node, [&](Gradients &) {
      ++calls;
      return Status::success();
    });
    addPostHook(*edge.node, [&](Gradients &, const Gradients &) {
      ++calls;
      return Status::success();
    });
  }
  for (int i = 0; i < 4; ++i) {
    int64_t made = allocationsOf(top, one);
    if (i > 1) {
      EXPECT_EQ(made, 0);
    }
  }
  EXPECT_EQ(calls, 4 * 9) << "those of the leaf in the nested one, too";
}

TEST(GraphAllocation, NorDoesOneOfANewGraphOfTheSameShape) {
  Tensor one = ones();
  Value w = *Leaf::make("w", one);
  for (int i = 0; i < 5; ++i) {
    Edge top = graphOver(w.edge, one);
    int64_t made = allocationsOf(top, one);
    if (i > 1) {
      EXPECT_EQ(made, 0);
    }
  }
}

namespace {

/// Gives its gradient to its first edge alone, and notes its thread.
class First : public Node {
public:
  std::string name() const override { return "first"; }
  Status run(Gradients &inputs, Gradients &outputs, const RunMode &) override {
    thread = std::this_thread::get_id();
    if (!outputs.empty())
      outputs[0] = inputs[0];
    return Status::success();
  }
  std::thread::id thread;
};

Edge first(const Tensor &like, const std::vector<Edge> &edges) {
  auto node = std::make_shared<First>();
  for (const Edge &edge : edges)
    EXPECT_TRUE(node->addEdge(edge).ok());
  return {node, *node->addInput(like)};
}

} // namespace

// Lanes hand each other that nothing comes over an edge.
TEST(GraphAllocation, NorDoesOneWithNodesOfSeveralDevices) {
  int64_t shape[] = {4};
  std::vector<Tensor> likes = {ones()};
  for (int i = 0; i < 2; ++i)
    likes.push_back(*Tensor::empty(artifact::DType::F32, shape,
                                   test::FakeDevice::at(i).device()));
  std::vector<Edge> ends;
  for (const Tensor &like : likes)
    ends.push_back(first(like, {}));
  for (int i = 0; i < 20; ++i) {
    std::vector<Edge> next;
    for (size_t j = 0; j < likes.size(); ++j)
      next.push_back(
          first(likes[j], {ends[j], ends[(j + 1) % 3], ends[(j + 2) % 3]}));
    ends = std::move(next);
  }
  std::vector<Root> roots;
  for (size_t j = 0; j < likes.size(); ++j)
    roots.push_back({ends[j], likes[j]});
  for (int i = 0; i < 20; ++i) {
    int64_t before = allocations;
    ASSERT_EQ(backward(roots).message(), "");
    if (i > 9) { // what arrives at once differs
      EXPECT_EQ(allocations - before, 0);
    }
  }
  auto threadOf = [&](size_t j) {
    return static_cast<First &>(*ends[j].node).thread;
  };
  EXPECT_EQ(threadOf(0), std::this_thread::get_id());
  EXPECT_NE(threadOf(1), threadOf(0));
  EXPECT_NE(threadOf(2), threadOf(1));
}

// The node made lists of arguments for each call.
TEST(GraphAllocation, AProgramAsANodeAllocatesWhatItDoesByItself) {
  using test::Role;
  test::Maker m;
  m.value(Role::Input, "x", {4}).requiresGrad = true;
  m.value(Role::Output, "o", {4});
  m.program("forward");
  int64_t x = m.argument(Role::Input, "x", {4});
  m.launch("mul", {x, x}, m.result(Role::Output, "o", {4}), 4);
  m.program("backward");
  int64_t co = m.argument(Role::Cotangent, "o", {4});
  m.launch("twice", {co}, m.result(Role::Grad, "x", {4}), 4);
  runtime::Model model = m.load();
  Tensor one = ones();
  Value w = *Leaf::make("w", ones());
  NamedValue input[] = {{"x", w}};
  std::string output[] = {"o"};
  Value result = (*graph::call(model, input, {}, output))[0];
  Root root{result.edge, one};
  auto made = [](const auto &call) {
    int64_t before = allocations;
    EXPECT_EQ(call().message(), "");
    return allocations - before;
  };
  runtime::Argument in[] = {{"x", &w.tensor}};
  Tensor o;
  runtime::Destination out[] = {{"o", &o}};
  runtime::Context context = *model.forward(in, out);
  for (int i = 0; i < 5; ++i) {
    Tensor g;
    runtime::Argument cotangent[] = {{"o", &one}};
    runtime::Destination gradient[] = {{"x", &g}};
    int64_t alone = made([&] {
      return model.backward(context, cotangent, gradient, {true, false});
    });
    int64_t asNode = made([&] { return backward({&root, 1}, {true, false}); });
    if (i > 1) {
      EXPECT_EQ(asNode, alone);
    }
  }
  EXPECT_EQ(static_cast<Leaf &>(*w.edge.node).gradient().at(0), 10);
}
