//===- GraphTest.cpp - nodes and the engine on the host -------------------===//
//
// What of the rows of groups N the engine does so far; its streams are in
// StreamTest.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/graph/Function.h"
#include "runtime/graph/Ops.h"
#include "tests/runtime/graph/TestNodes.h"

#include <gtest/gtest.h>

#include <stdexcept>

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
  return [&names, name](Tensors inputs, Tensors &outputs) {
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
  addPreHook(*w.edge.node, [&](Gradients &) {
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

namespace {

/// A tensor of the numbers 1, 2, ... with these strides.
Tensor numbered(const std::vector<int64_t> &shape,
                const std::vector<int64_t> &strides) {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i + 1);
  return *numbers(values).view(shape, strides);
}

std::vector<int64_t> stridesOf(const Tensor &tensor) {
  return {tensor.strides().begin(), tensor.strides().end()};
}

/// How a leaf lies, and how its gradient does.
struct Layout {
  const char *name;
  std::vector<int64_t> shape, strides, expected;
};

const Layout kLayouts[] = {
    {"row-major", {2, 3}, {3, 1}, {3, 1}},
    {"transposed", {2, 3}, {1, 2}, {1, 2}},
    {"permuted", {2, 3, 4}, {3, 1, 6}, {3, 1, 6}},
    {"a slice", {2, 3}, {6, 2}, {3, 1}},
    {"an expanded number", {2, 3}, {0, 0}, {3, 1}},
    {"a number", {}, {}, {}},
    {"sizes of 1", {1, 2, 1, 3}, {40, 1, 50, 2}, {40, 1, 50, 2}},
    {"one element", {1}, {1}, {1}},
    {"no elements", {0, 3}, {1, 5}, {3, 1}},
};

} // namespace

// A leaf of one element kept the stride 0 of an expanded gradient, and no leaf
// but a row-major one had a gradient that lies as it does.
TEST(Graph, N20_GradientsLieAsTheirLeavesDo) {
  for (const Layout &one : kLayouts)
    for (const Layout &given : kLayouts) {
      if (one.shape != given.shape)
        continue;
      SCOPED_TRACE(std::string(one.name) + " from " + given.name);
      Value w = *Leaf::make("w", numbered(one.shape, one.strides));
      const void *address = nullptr;
      for (int call = 1; call <= 3; ++call) {
        Root root{w.edge, numbered(given.shape, given.strides)};
        ASSERT_TRUE(backward({&root, 1}).ok());
        const Tensor &gradient = leafOf(w).gradient();
        EXPECT_EQ(stridesOf(gradient), one.expected);
        for (int64_t i = 0; i < gradient.elements(); ++i)
          EXPECT_EQ(gradient.at(i), call * root.gradient.tensor.at(i));
        if (call > 1) {
          EXPECT_EQ(gradient.data(), address) << "added in place";
        }
        address = gradient.data();
      }
      Root root{w.edge, numbered(given.shape, given.strides)};
      Edge input[] = {w.edge};
      Result<Gradients> captured = grad({&root, 1}, input);
      ASSERT_TRUE(captured.ok());
      EXPECT_EQ(stridesOf((*captured)[0].tensor), one.expected);
    }
}

// The gradient of a sum, a number that is shown at every place, became that of
// the leaf with strides of 0.
TEST(Graph, N20_AnExpandedNumberIsWrittenOut) {
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{1}, {1, 1}, {2, 3}, {3, 1}}) {
    std::vector<int64_t> rowMajor(shape.size(), 1), zero(shape.size(), 0);
    for (size_t i = shape.size() - 1; i > 0; --i)
      rowMajor[i - 1] = rowMajor[i] * shape[i];
    Value w = *Leaf::make("w", numbered(shape, rowMajor));
    Value sum = FunctionNode::make("sum", scalar(1), {w.edge},
                                   [&](Tensors inputs, Tensors &outputs) {
                                     outputs[0] = *inputs[0].view(shape, zero);
                                     inputs.clear();
                                     return Status::success();
                                   });
    for (int call = 1; call <= 2; ++call) {
      Root root{sum.edge, {}};
      ASSERT_TRUE(backward({&root, 1}).ok());
      EXPECT_EQ(stridesOf(leafOf(w).gradient()), rowMajor);
      for (int64_t i = 0; i < w.tensor.elements(); ++i)
        EXPECT_EQ(leafOf(w).gradient().at(i), call);
    }
  }
}

// What nobody else has and lies right is not copied; what others have is.
TEST(Graph, N17_APreHookKeepsTheNumberOfGradients) {
  Value w = *Leaf::make("w", scalar(1));
  Value a = FunctionNode::make("a", scalar(1), {w.edge}, passOn());
  (void)addPreHook(*a.edge.node, [](Gradients &gradients) {
    gradients.emplace_back();
    return Status::success();
  });
  Root root{a.edge, {}};
  EXPECT_EQ(backward({&root, 1}).message(),
            "pre-hook of node 'a': expected 1 gradients but got 2");
}

TEST(Graph, N20_GradientsAreAdoptedOnlyWhereTheyLieRight) {
  for (const Layout &one : kLayouts) {
    SCOPED_TRACE(one.name);
    if (stridesOf(numbered(one.shape, one.strides)) != one.expected)
      continue;
    // A gradient of a create_graph is part of a graph, and no buffer.
    for (auto [isShared, createGraph] :
         {std::pair(false, false), {true, false}, {false, true}}) {
      const void *made = nullptr;
      Tensor kept;
      Value w = *Leaf::make("w", numbered(one.shape, one.strides));
      Value a =
          FunctionNode::make("a", scalar(1), {w.edge},
                             [&, keeps = isShared](Tensors, Tensors &outputs) {
                               outputs[0] = numbered(one.shape, one.strides);
                               made = outputs[0].data();
                               if (keeps)
                                 kept = outputs[0];
                               return Status::success();
                             });
      Root root{a.edge, {}};
      BackwardOptions options;
      options.createGraph = createGraph;
      ASSERT_TRUE(backward({&root, 1}, options).ok());
      EXPECT_EQ(leafOf(w).gradient().data() == made, !isShared && !createGraph);
      EXPECT_EQ(stridesOf(leafOf(w).gradient()), one.expected);
    }
  }
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
  EXPECT_EQ((*gradients)[0].tensor.at(0), 1);
  EXPECT_EQ((*gradients)[1].tensor.at(0), 1);
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
  Value w = *Leaf::make("w", numbers({1, 2}));
  Value a = FunctionNode::make("a", scalar(1), {w.edge},
                               [](Tensors, Tensors &outputs) {
                                 outputs[0] = numbers({1, 2, 3});
                                 return Status::success();
                               });
  Root root{a.edge, {}};
  Status status = backward({&root, 1});
  EXPECT_NE(status.message().find("output 0 of node 'a'"), std::string::npos);
  EXPECT_NE(status.message().find("expected a gradient f32 [2]"),
            std::string::npos);
  EXPECT_FALSE(leafOf(w).gradient().defined());
  Value two = FunctionNode::make("two", scalar(1), {w.edge},
                                 [](Tensors, Tensors &outputs) {
                                   outputs.resize(2);
                                   return Status::success();
                                 });
  root = {two.edge, {}};
  EXPECT_EQ(backward({&root, 1}).message(),
            "node 'two': expected 1 gradients but got 2");
}

TEST(Graph, N26_TheFirstErrorEndsTheBackwardAndTheEngineGoesOn) {
  std::vector<std::string> names;
  bool isBroken = true;
  Value w = *Leaf::make("w", scalar(1));
  Value a = FunctionNode::make("a", scalar(1), {w.edge}, noting(names, "a"));
  Value b = FunctionNode::make("b", scalar(1), {a.edge},
                               [&](Tensors inputs, Tensors &outputs) {
                                 if (isBroken)
                                   return Status::failed("the text of b");
                                 outputs[0] = inputs[0];
                                 return Status::success();
                               });
  Root root{b.edge, {}};
  Status status = backward({&root, 1});
  EXPECT_EQ(status.message(), "the text of b");
  EXPECT_TRUE(names.empty());
  isBroken = false;
  EXPECT_TRUE(backward({&root, 1}).ok());
  EXPECT_EQ(leafOf(w).gradient().at(0), 1);
}

// Each backward that an error came through put the name of a node in front of
// the error's own text.
TEST(Graph, N29_AnInnerErrorReachesTheOuterCallerAsItIs) {
  const Status own(Code::Unsupported, "the text of the innermost");
  Value at = FunctionNode::make("innermost", scalar(1), {},
                                [&](Tensors, Tensors &) { return own; });
  for (int depth = 0; depth < 20; ++depth)
    at = FunctionNode::make("outer", scalar(1), {}, [at](Tensors, Tensors &) {
      Root root{at.edge, {}};
      return backward({&root, 1});
    });
  Root root{at.edge, {}};
  Status status = backward({&root, 1});
  EXPECT_EQ(status.message(), own.message());
  EXPECT_EQ(status.code(), own.code());
}

// So did hooks, callbacks and what they throw.
TEST(Graph, N26_AnErrorOfAHookIsItsOwnText) {
  auto fails = [] { return Status::failed("the text"); };
  for (int where = 0; where < 4; ++where) {
    Value a = FunctionNode::make("a", scalar(1), {},
                                 [&](Tensors, Tensors &) -> Status {
                                   if (where == 2)
                                     return queueCallback(fails);
                                   if (where == 3)
                                     throw std::runtime_error("the text");
                                   return Status::success();
                                 });
    if (where == 0)
      addPreHook(*a.edge.node, [&](Gradients &) { return fails(); });
    if (where == 1)
      addPostHook(*a.edge.node,
                  [&](Gradients &, const Gradients &) { return fails(); });
    Root root{a.edge, {}};
    EXPECT_EQ(backward({&root, 1}).message(), "the text") << where;
  }
}

TEST(Graph, N04_TheSearchSkipsNodesBelowTheLeastThatIsWanted) {
  Value w = *Leaf::make("w", scalar(1)), at = w, middle;
  for (int i = 0; i < 100; ++i) {
    at = FunctionNode::make("n", scalar(1), {at.edge}, passOn());
    if (i == 90)
      middle = at;
  }
  Root root{at.edge, {}};
  Edge input[] = {middle.edge};
  ASSERT_TRUE(grad({&root, 1}, input).ok());
  EXPECT_EQ(lastCounts().visited, 10u);
  EXPECT_EQ(lastCounts().ran, 9u);
  ASSERT_TRUE(backward({&root, 1}).ok());
  EXPECT_EQ(lastCounts().visited, 101u);
}

// What a capture does: it takes a node's saved values, runs the node with
// others, and the node has its own again.
TEST(Graph, N12_NodesRunWithSubstitutesForTheirSavedValues) {
  Value x = *Leaf::make("x", scalar(3)), y = *Leaf::make("y", scalar(4));
  Value product = *ops::mul(x, y);
  Node &node = *product.edge.node;
  EXPECT_TRUE(node.traits().isTraceable && node.traits().isStateTransparent);
  Result<std::vector<Value>> saved = node.savedValues();
  ASSERT_TRUE(saved.ok() && saved->size() == 2);
  EXPECT_EQ((*saved)[0].tensor.at(0), 3);
  Gradients inputs{Value(scalar(1))}, outputs(2);
  ASSERT_TRUE(
      node.runWith({Value(scalar(10)), Value(scalar(20))}, inputs, outputs, {})
          .ok());
  EXPECT_EQ(outputs[0].tensor.at(0), 20);
  EXPECT_EQ(outputs[1].tensor.at(0), 10);
  EXPECT_EQ((*node.savedValues())[0].tensor.at(0), 3) << "its own again";
  Status wrong = node.runWith({Value(numbers({1, 2})), Value(scalar(1))},
                              inputs, outputs, {});
  EXPECT_NE(wrong.message().find("expected f32 [] but got f32 [2]"),
            std::string::npos)
      << wrong.message();
  Value other = FunctionNode::make("opaque", scalar(1), {x.edge}, passOn());
  EXPECT_FALSE(other.edge.node->traits().isTraceable);
  EXPECT_NE(other.edge.node->savedValues().status().message().find("'opaque'"),
            std::string::npos);
  EXPECT_NE(other.edge.node->runWith({}, inputs, outputs, {})
                .message()
                .find("'opaque'"),
            std::string::npos);
}

TEST(Graph, N12_AFunctionHandsOverWhatItSaysThatItDependsOn) {
  Value x = *Leaf::make("x", scalar(3));
  bool throws = true;
  auto made = [&](bool isStateTransparent) {
    FunctionSpec spec;
    spec.name = "f";
    spec.traits.isStateTransparent = isStateTransparent;
    spec.forward = [](Function &node, std::vector<Value> &inputs,
                      std::vector<Value> &outputs) {
      outputs[0] = inputs[0].tensor.detach();
      return node.save(inputs[0]);
    };
    spec.backward = [&](Function &node, Gradients &, Gradients &outputs) {
      if (throws)
        throw std::runtime_error("of the backward");
      outputs[0] = *node.saved(0);
      return Status::success();
    };
    std::vector<Value> inputs = {x}, outputs(1);
    EXPECT_TRUE(Function::apply(spec, inputs, outputs).ok());
    return outputs[0];
  };
  Gradients inputs{Value(scalar(1))}, outputs(1);
  Value open = made(true), opaque = made(false);
  Node &node = *open.edge.node;
  EXPECT_THROW((void)node.runWith({Value(scalar(10))}, inputs, outputs, {}),
               std::runtime_error);
  EXPECT_EQ((*node.savedValues())[0].tensor.at(0), 3) << "its own again";
  throws = false;
  EXPECT_TRUE(node.runWith({Value(scalar(10))}, inputs, outputs, {}).ok());
  EXPECT_EQ(outputs[0].tensor.at(0), 10);
  Status refused =
      opaque.edge.node->runWith({Value(scalar(10))}, inputs, outputs, {});
  EXPECT_NE(refused.message().find("node 'f'"), std::string::npos);
  EXPECT_FALSE(opaque.edge.node->savedValues().ok());
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
  Value a = FunctionNode::make("a", scalar(1), {}, [&](Tensors, Tensors &) {
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
