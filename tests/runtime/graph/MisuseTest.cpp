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

namespace {

/// The message of a backward through a checkpoint whose piece gives what
/// `again` makes of the square when it runs again.
std::string rerun(const std::function<Tensor(Tensor)> &again) {
  int calls = 0;
  Tensor x = leaf({1, 2, 3});
  Function piece{"piece",
                 [&](Node &, const TensorList &in, TensorList &out) {
                   Tensor square = mul(in[0], in[0]);
                   out[0] = calls++ ? again(square) : square;
                 },
                 {}};
  Tensor y = checkpoint(piece, {x})[0];
  std::string message = messageOf([&] { backward({sum(mul(y, y))}); });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(gradient(x), message.empty() ? (Floats{4, 32, 108}) : Floats());
  return message;
}

} // namespace

// What differed was summed, cast or left out.
TEST(GraphMisuse, ACheckpointRunsAgainAsItRan) {
  EXPECT_EQ(rerun([](Tensor same) { return same; }), "");
  const std::string of = "output 0 of 'piece', run again: expected ";
  for (const auto &[again, got] :
       std::vector<std::pair<std::function<Tensor(Tensor)>, std::string>>{
           {[](Tensor y) { return sum(y); }, "f32 []"},
           {[](Tensor y) {
              return expand(y, {2, 3});
            },
            "f32 [2, 3]"},
           {[](Tensor y) { return cast(y, TDM_F64); }, "f64 [3]"}})
    expectMessage(rerun(again),
                  of + "f32 [3] on 'cpu', as the first run gave, but got " +
                      got + " on 'cpu'");
  expectMessage(rerun([](Tensor) { return Tensor(); }), "an empty handle");
  expectMessage(rerun([](Tensor) {
                  return numbers({1, 4, 9});
                }),
                of + "history, since a gradient came, but got none");
}

// An input without history that is passed on has none in the backward either.
TEST(GraphMisuse, ACheckpointPassesConstantsOn) {
  Tensor x = leaf({1, 2}), mask = numbers({0, 1});
  Function piece{"piece",
                 [](Node &, const TensorList &in, TensorList &out) {
                   out[0] = mul(in[0], in[1]);
                   out[1] = in[1];
                 },
                 {}};
  TensorList made = checkpoint(piece, {x, mask}, 2);
  backward({sum(mul(made[0], made[1]))});
  EXPECT_EQ(gradient(x), (Floats{0, 1}));
}

namespace {

void overwrite(Tensor &gradient) {
  Floats nines(static_cast<size_t>(tdm_tensor_elements(gradient.get())), 9);
  check(tdm_tensor_write(gradient.get(), nines.data(),
                         nines.size() * sizeof(float)));
}

/// A backward from a + b, where `add` adds a hook that writes what it is given.
void expectRefused(
    const std::function<void(const Tensor &b, const Tensor &y)> &add,
    const std::string &message) {
  Tensor a = leaf({1, 1, 1}), b = leaf({1, 1, 1}), given = numbers({1, 2, 3});
  Tensor y = tdm::add(a, b);
  add(b, y);
  for (int i = 0; i < 2; ++i) {
    expectMessage(messageOf([&] { backward({y}, {given}, TDM_RETAIN_GRAPH); }),
                  message);
    EXPECT_EQ(valuesOf(given), (Floats{1, 2, 3})) << message;
    Floats other = gradient(a); // which of the two runs first is not said
    for (size_t j = 0; j < other.size(); ++j)
      EXPECT_EQ(other[j], float(j + 1) * (other[0])) << message;
  }
}

} // namespace

// The caller's own gradient was written, and other leaves got what was written.
TEST(GraphMisuse, HooksThatWriteTheirGradientAreRefused) {
  expectRefused([](const Tensor &b, const Tensor &) { addHook(b, overwrite); },
                "tensor hook of node 'leaf'");
  expectRefused([](const Tensor &, const Tensor &y) { addHook(y, overwrite); },
                "tensor hook of node 'add'");
  expectRefused(
      [](const Tensor &b, const Tensor &) {
        Node::of(b).addPreHook(
            [](TensorList &gradients) { overwrite(gradients[0]); });
      },
      "pre-hook of node 'leaf'");
  expectRefused(
      [](const Tensor &, const Tensor &y) {
        Node::of(y).addPostHook([](TensorList &outputs, const TensorList &) {
          overwrite(outputs[0]);
        });
      },
      "post-hook of node 'add'");
  expectRefused(
      [](const Tensor &, const Tensor &y) {
        Node::of(y).addPostHook([](TensorList &, const TensorList &inputs) {
          Tensor input = inputs[0];
          overwrite(input);
        });
      },
      "post-hook of node 'add'");
  // Also where it is the engine's, and nobody else uses it.
  Tensor x = leaf({1, 2, 3});
  addHook(x, overwrite);
  expectMessage(messageOf([&] { backward({sum(scale(x, 2))}); }),
                "wrote the gradient that it was given");
  EXPECT_FALSE(gradientOf(x).defined());
}

// The same of a function's backward, which was not looked at: what was captured
// or retained of that gradient had nines, and so had the caller's own.
TEST(GraphMisuse, FunctionsThatWriteTheirGradientAreRefused) {
  Function function{
      "writes",
      [](Node &, const TensorList &in, TensorList &out) {
        out[0] = scale(in[0], 1);
      },
      [](Node &, const TensorList &gradients, TensorList &results) {
        Tensor gradient = gradients[0];
        overwrite(gradient);
        results[0] = gradient;
      }};
  const char *message = "backward of node 'writes'";
  Tensor x = leaf({1, 1, 1}), given = numbers({1, 2, 3});
  Tensor y = call(function, {x})[0];
  expectMessage(messageOf([&] { backward({y}, {given}); }), message);
  EXPECT_EQ(valuesOf(given), (Floats{1, 2, 3}));
  EXPECT_FALSE(gradientOf(x).defined());
  y = call(function, {x})[0];
  check(tdm_tensor_retain_grad(y.get()));
  expectMessage(messageOf([&] { backward({sum(scale(y, 2))}); }), message);
}

TEST(GraphMisuse, OutputsThatAreNotThereCannotBeDeclared) {
  Function function{"one",
                    [](Node &node, const TensorList &in, TensorList &out) {
                      out[0] = scale(in[0], 1);
                      node.notDifferentiable(99);
                    },
                    passOn};
  expectMessage(messageOf([&] { call(function, {leaf(1)}); }),
                "expected an output of the forward below 1 but got 99");
}

TEST(GraphMisuse, AGradientThatIsSetNamesItsDevice) {
  expectMessage(
      messageOf([] {
        check(tdm_tensor_set_grad(leaf({1, 2}).get(), numbers({1}).get()));
      }),
      "expected a gradient f32 [2] on 'cpu' but got f32 [1] on 'cpu'");
}
