//===- ArrivalTest.cpp - gradients that come from outside of a backward ---===//
//
// What distributed/ builds on: nodes that wait for what comes while the
// backward runs, and leaves that collect elsewhere.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/TestNodes.h"

#include <gtest/gtest.h>

#include <deque>

namespace tandem::graph::testing {
namespace {

Tensor number(float value) {
  return *Tensor::copyOf(&value, artifact::DType::F32, {});
}

class ListedArrivals : public Arrivals {
public:
  std::span<const std::shared_ptr<Node>> expected() const override {
    return nodes;
  }
  Status look(const Node &node) override {
    looked.push_back(node.name());
    return Status::success();
  }
  Status goOn() override { return stop; }
  Result<std::optional<Arrival>> next() override {
    if (coming.empty())
      return std::optional<Arrival>();
    std::optional<Arrival> first(std::move(coming.front()));
    coming.pop_front();
    return first;
  }

  std::vector<std::shared_ptr<Node>> nodes;
  std::deque<Arrival> coming;
  std::vector<std::string> looked;
  Status stop;
};

struct Arriving : ::testing::Test {
  Value w = *Leaf::make("w", number(2));
  std::vector<std::string> log;
  ListedArrivals arrivals;
  GradientMap collected;

  Value noting(const std::string &name, std::vector<Edge> edges) {
    return FunctionNode::make(name, number(0), std::move(edges),
                              [this, name](Tensors inputs, Tensors &outputs) {
                                log.push_back(name);
                                for (Tensor &output : outputs)
                                  output = inputs[0];
                                return Status::success();
                              });
  }
  void comes(const Value &at, float gradient) {
    arrivals.nodes.push_back(at.edge.node);
    arrivals.coming.push_back({at.edge.node, {Value(number(gradient))}, false});
  }
  std::string run(std::vector<Root> roots) {
    BackwardOptions options;
    options.arrivals = &arrivals;
    options.collected = &collected;
    return backward(roots, options).message();
  }
};

TEST_F(Arriving, ANodeWaitsForWhatComes) {
  Value below = noting("below", {w.edge});
  Value near = noting("near", {below.edge}), far = noting("far", {below.edge});
  comes(far, 3);
  EXPECT_EQ(run({{near.edge, {}}}), "");
  EXPECT_EQ(log, (std::vector<std::string>{"near", "far", "below"}));
  EXPECT_EQ(collected.find(*w.edge.node).tensor.at(0), 4);
  EXPECT_FALSE(static_cast<Leaf &>(*w.edge.node).gradient().defined());
  EXPECT_EQ(arrivals.looked.size(), 4u);
}

TEST_F(Arriving, WhatNobodyUsesDoesNotRun) {
  Value v = *Leaf::make("v", number(2));
  Value alone = noting("alone", {v.edge}), below = noting("below", {w.edge});
  Value unused = noting("unused", {alone.edge, below.edge});
  arrivals.nodes.push_back(unused.edge.node);
  arrivals.coming.push_back({unused.edge.node, {}, true});
  EXPECT_EQ(run({{below.edge, {}}}), "");
  EXPECT_EQ(log, std::vector<std::string>{"below"});
  EXPECT_EQ(collected.all().size(), 1u);
  EXPECT_EQ(collected.find(*w.edge.node).tensor.at(0), 1);
}

TEST_F(Arriving, AnErrorFromOutsideEndsIt) {
  comes(noting("far", {w.edge}), 3);
  arrivals.stop = Status::failed("stopped");
  EXPECT_EQ(run({}), "stopped");
  EXPECT_TRUE(log.empty());
  EXPECT_TRUE(collected.all().empty());
}

} // namespace
} // namespace tandem::graph::testing
