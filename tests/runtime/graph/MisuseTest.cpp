//===- MisuseTest.cpp - what gave wrong gradients without a word ----------===//
//
// Found by an attack from outside, by somebody who had graph.h alone.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/ApiNodes.h"

using namespace tdm;
using namespace tdm::testing;

namespace {

Tensor copyOf(const Tensor &tensor) {
  Tensor copy;
  check(tdm_tensor_assign(copy.get(), tensor.get()));
  return copy;
}

} // namespace

// The copy was another leaf unless the first had been used before.
TEST(GraphMisuse, CopiesOfALeafShareIt) {
  Tensor x = leaf({1, 2, 3}), copy = copyOf(x), second = copyOf(copy);
  EXPECT_TRUE(Node::of(x) == Node::of(copy));
  EXPECT_TRUE(Node::of(x) == Node::of(second));
  backward({sum(copy)});
  EXPECT_EQ(gradient(x), (Floats{1, 1, 1}));
  backward({sum(mul(x, second))});
  EXPECT_EQ(gradient(copy), (Floats{3, 5, 7}));
  // What requires no grad, and what has no history, is copied as before.
  EXPECT_FALSE(copyOf(numbers({1})).requiresGrad());
  EXPECT_FALSE(copyOf(Tensor()).defined());
  EXPECT_FALSE(copyOf(x.detach()).requiresGrad());
}

// A gradient that is set is a copy of its handle, too.
TEST(GraphMisuse, AGradientThatIsSetSharesItsLeaf) {
  Tensor x = leaf({1, 2, 3}), g = leaf({4, 5, 6});
  check(tdm_tensor_set_grad(x.get(), g.get()));
  backward({sum(scale(gradientOf(x), 2))});
  EXPECT_EQ(gradient(g), (Floats{2, 2, 2}));
}
