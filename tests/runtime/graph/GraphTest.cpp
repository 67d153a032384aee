//===- GraphTest.cpp - nodes and the engine on the host -------------------===//
//
// What of the rows of groups N the engine does so far; its streams are in
// StreamTest.cpp.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/TestNodes.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::graph;
using namespace tandem::graph::testing;

namespace {

Tensor numbers(std::vector<float> values) {
  int64_t shape[] = {static_cast<int64_t>(values.size())};
  return *Tensor::copyOf(values.data(), artifact::DType::F32, shape);
}

Tensor scalar(float value) {
  return *Tensor::copyOf(&value, artifact::DType::F32, {});
}

Leaf &leafOf(const Value &value) {
  return static_cast<Leaf &>(*value.edge.node);
}

/// Notes its name when it runs.
FunctionNode::Function noting(std::vector<std::string> &names,
                              std::string name) {
  return [&names, name](Gradients inputs, Gradients &outputs) {
    names.push_back(name);
    for (Tensor &output : outputs)
      output = inputs[0];
    return Status::success();
  };
}

} // namespace

TEST(Graph, N02_OrderIsTheReverseOfTheForwardAndLeavesComeFirst) {
  std::vector<std::string> names;
  Value w = *Leaf::make("w", scalar(1));
  w.edge.node->addPreHook([&](Gradients &) {
    names.push_back("w");
    return Status::success();
  });
  Value a = FunctionNode::make("a", scalar(1), {}, noting(names, "a"));
  Value b = FunctionNode::make("b", scalar(1), {}, noting(names, "b"));
  Value c = FunctionNode::make("c", scalar(1), {w.edge, a.edge, b.edge},
                               noting(names, "c"));
  Root root{c.edge, {}};
  ASSERT_TRUE(backward({&root, 1}).ok());
  EXPECT_EQ(names, (std::vector<std::string>{"c", "w", "b", "a"}));
}

TEST(Graph, N06_SeveralEdgesIntoOneInputAreSummedAndTheNodeRunsOnce) {
  std::vector<std::string> names;
  Value w = *Leaf::make("w", scalar(1));
  Value a = FunctionNode::make("a", scalar(1), {w.edge}, noting(names, "a"));
  Value b = FunctionNode::make("b", scalar(1), {a.edge, a.edge, a.edge},
                               noting(names, "b"));
  Root root{b.edge, scalar(2)};
  ASSERT_TRUE(backward({&root, 1}).ok());
  EXPECT_EQ(names, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(leafOf(w).gradient().at(0), 6);
}

TEST(Graph, N20_GradientsOfSeveralBackwardsAddUp) {
  Value w = *Leaf::make("w", numbers({1, 2}));
  for (int i = 0; i < 3; ++i) {
    Root root{w.edge, numbers({1, 10})};
    ASSERT_TRUE(backward({&root, 1}).ok());
  }
  EXPECT_EQ(leafOf(w).gradient().at(0), 3);
  EXPECT_EQ(leafOf(w).gradient().at(1), 30);
}

TEST(Graph, N21_TheCallersGradientIsNotWritten) {
  Value w = *Leaf::make("w", numbers({1, 2}));
  Tensor given = numbers({1, 10});
  for (int i = 0; i < 2; ++i) {
    Root roots[] = {{w.edge, given}, {w.edge, given}};
    ASSERT_TRUE(backward(roots).ok());
  }
  EXPECT_EQ(given.at(1), 10);
  EXPECT_EQ(leafOf(w).gradient().at(1), 40);
}

TEST(Graph, N23_GradRunsOnlyWhatLeadsToItsInputs) {
  std::vector<std::string> names;
  Value w = *Leaf::make("w", scalar(1));
  Value other = *Leaf::make("other", scalar(1));
  Value a = FunctionNode::make("a", scalar(1), {w.edge}, noting(names, "a"));
  Value b =
      FunctionNode::make("b", scalar(1), {other.edge}, noting(names, "b"));
  Value c =
      FunctionNode::make("c", scalar(1), {a.edge, b.edge}, noting(names, "c"));
  Value unreached = *Leaf::make("unreached", scalar(1));
  Root root{c.edge, {}};
  Edge inputs[] = {w.edge, a.edge, unreached.edge};
  Result<Gradients> gradients = grad({&root, 1}, inputs);
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  EXPECT_EQ(names, (std::vector<std::string>{"c", "a"}));
  EXPECT_EQ((*gradients)[0].at(0), 1);
  EXPECT_EQ((*gradients)[1].at(0), 1);
  EXPECT_FALSE((*gradients)[2].defined());
  EXPECT_FALSE(leafOf(w).gradient().defined());
}

TEST(Graph, N24_RootsAreCheckedAndAddUp) {
  Value w = *Leaf::make("w", scalar(1));
  Value vector = *Leaf::make("vector", numbers({1, 2}));
  Root twice[] = {{w.edge, {}}, {w.edge, {}}};
  ASSERT_TRUE(backward(twice).ok());
  EXPECT_EQ(leafOf(w).gradient().at(0), 2);
  Root notScalar{vector.edge, {}}, noEdge{{}, scalar(1)};
  EXPECT_NE(backward({&notScalar, 1}).message().find("is no scalar"),
            std::string::npos);
  EXPECT_NE(backward({&noEdge, 1}).message().find("does not require grad"),
            std::string::npos);
  EXPECT_FALSE(backward({}).ok());
}

TEST(Graph, N25_AWrongGradientIsAnErrorThatNamesTheNode) {
  Value w = *Leaf::make("w", scalar(1));
  Value a = FunctionNode::make("a", scalar(1), {w.edge},
                               [](Gradients, Gradients &outputs) {
                                 outputs[0] = numbers({1, 2, 3});
                                 return Status::success();
                               });
  Root root{a.edge, {}};
  Status status = backward({&root, 1});
  EXPECT_NE(status.message().find("output 0 of node 'a'"), std::string::npos);
  EXPECT_NE(status.message().find("expected a gradient f32 []"),
            std::string::npos);
  EXPECT_FALSE(leafOf(w).gradient().defined());
}

TEST(Graph, N26_TheFirstErrorEndsTheBackwardAndTheEngineGoesOn) {
  std::vector<std::string> names;
  bool isBroken = true;
  Value w = *Leaf::make("w", scalar(1));
  Value a = FunctionNode::make("a", scalar(1), {w.edge}, noting(names, "a"));
  Value b = FunctionNode::make("b", scalar(1), {a.edge},
                               [&](Gradients inputs, Gradients &outputs) {
                                 if (isBroken)
                                   return Status::failed("the text of b");
                                 outputs[0] = inputs[0];
                                 return Status::success();
                               });
  Root root{b.edge, {}};
  Status status = backward({&root, 1});
  EXPECT_NE(status.message().find("the text of b"), std::string::npos);
  EXPECT_TRUE(names.empty());
  isBroken = false;
  EXPECT_TRUE(backward({&root, 1}).ok());
  EXPECT_EQ(leafOf(w).gradient().at(0), 1);
}

TEST(Graph, N11_AChainOf200000NodesEnds) {
  Value last = *Leaf::make("w", scalar(1));
  for (int i = 0; i < 200000; ++i)
    last = FunctionNode::make("n", scalar(1), {last.edge}, passOn());
  Root root{last.edge, {}};
  EXPECT_TRUE(backward({&root, 1}).ok());
  root = {};
  last = {};
}

TEST(Graph, S12_FinalCallbacksAreQueuedDuringABackwardAlone) {
  std::vector<int> order;
  EXPECT_FALSE(queueCallback([] { return Status::success(); }).ok());
  Value a = FunctionNode::make("a", scalar(1), {}, [&](Gradients, Gradients &) {
    return queueCallback([&] {
      order.push_back(1);
      return queueCallback([&] {
        order.push_back(2);
        return Status::success();
      });
    });
  });
  Root root{a.edge, {}};
  ASSERT_TRUE(backward({&root, 1}).ok());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_FALSE(queueCallback([] { return Status::success(); }).ok());
}
