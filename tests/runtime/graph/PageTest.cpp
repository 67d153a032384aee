//===- PageTest.cpp - the examples of docs/GRAPH.md -----------------------===//
//
// Each block of the page stands here, word for word (the test docs.graph-page
// compares), and does what the page says.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/ApiNodes.h"

#include <cmath>

using namespace tdm::testing;

TEST(GraphPage, Leaves) {
  tdm::Tensor x = tdm::Tensor::zeros(TDM_F32, {3}).setRequiresGrad(true);
  tdm::Tensor y = tdm::sum(tdm::scale(x, 2));
  tdm::backward({y});
  tdm::Tensor g = tdm::gradientOf(x); // 2, 2, 2
  EXPECT_EQ(valuesOf(g), (Floats{2, 2, 2}));
}

TEST(GraphPage, Clip) {
  tdm::Tensor x = leaf({1, 1, 1});
  tdm::Hook hook = tdm::addHook(
      x, [](tdm::Tensor &gradient) { gradient = tdm::scale(gradient, 0.1); });
  tdm::backward({tdm::sum(x)});
  hook.remove();
  EXPECT_NEAR(gradient(x)[0], 0.1, 1e-7);
}

namespace {

tdm::Function square() {
  tdm::Function square;
  square.name = "square";
  square.forward = [](tdm::Node &node, const tdm::TensorList &inputs,
                      tdm::TensorList &outputs) {
    node.save(inputs[0]);
    outputs[0] = tdm::mul(inputs[0], inputs[0]);
  };
  square.backward = [](tdm::Node &node, const tdm::TensorList &gradients,
                       tdm::TensorList &results) {
    if (gradients[0].defined())
      results[0] = tdm::scale(tdm::mul(gradients[0], node.saved(0)), 2);
  };
  return square;
}

} // namespace

TEST(GraphPage, Function) {
  tdm::Tensor x = leaf({1, 2, 3});
  tdm::Tensor y = tdm::call(square(), {x})[0];
  tdm::backward({tdm::sum(y)});
  EXPECT_EQ(gradient(x), (Floats{2, 4, 6}));
}

TEST(GraphPage, Second) {
  tdm::Tensor x = leaf({1, 2, 3});
  tdm::Tensor y = tdm::sum(tdm::call(square(), {x})[0]);
  tdm::Tensor g = tdm::grad({y}, {x}, {}, TDM_CREATE_GRAPH)[0];
  tdm::backward({tdm::sum(tdm::mul(g, g))});
  EXPECT_EQ(gradient(x), (Floats{8, 16, 24}));
}

TEST(GraphPage, Anomaly) {
  tdm::Function root = square();
  root.name = "root";
  root.backward = [](tdm::Node &, const tdm::TensorList &,
                     tdm::TensorList &results) {
    results[0] = numbers({std::nanf("")});
  };
  tdm::Tensor x = leaf(Floats{1});
  tdm_set_anomaly_mode(TDM_ANOMALY_NAN);
  tdm_set_location("model.cpp:12");
  tdm::Tensor y = tdm::call(root, {x})[0];
  std::string message;
  try {
    tdm::backward({tdm::sum(y)});
  } catch (const tdm::Error &error) {
    message = error.what();
  }
  tdm_set_anomaly_mode(TDM_ANOMALY_OFF);
  tdm_set_location(nullptr);
  expectMessage(message, "node 'root'");
  expectMessage(message, "NaN in its output 0 (element 0)");
  expectMessage(message, "its forward was at model.cpp:12");
}

TEST(GraphPage, Number) {
  Log log;
  tdm::Tensor table = leaf(1), weights = leaf(1);
  tdm::Tensor exchanged = noted(log, "exchange", {table});
  tdm::Tensor dense = noted(log, "dense", {weights});
  tdm::Node::of(exchanged).setNumber(tdm::Node::of(dense).number() + 1);
  tdm::backward({tdm::add(exchanged, dense)});
  EXPECT_EQ(log, (Log{"exchange", "dense"}));
}

TEST(GraphPage, Checkpoint) {
  tdm::Tensor x = leaf({1, 2, 3});
  tdm::Function piece;
  piece.name = "piece";
  piece.forward = [](tdm::Node &, const tdm::TensorList &inputs,
                     tdm::TensorList &outputs) {
    tdm::Tensor twice = tdm::mul(inputs[0], inputs[0]);
    outputs[0] = tdm::mul(twice, twice);
  };
  tdm::Tensor y = tdm::checkpoint(piece, {x})[0]; // keeps x alone
  tdm::backward({tdm::sum(y)});                   // calls the piece again
  EXPECT_EQ(gradient(x), (Floats{4, 32, 108}));
}
