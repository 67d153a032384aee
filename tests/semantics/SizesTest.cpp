//===- SizesTest.cpp - several sizes in one artifact: rows T13, T14 -------===//
//
// What one artifact of several sizes computes is compared with artifacts of one
// size each, between which all parameters and states are carried.
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/Regression.h"

#include <set>

using namespace tandem;
using namespace tandem::test;

namespace {

class Sizes : public RowTest {
protected:
  static CompileOptions withAdam() {
    CompileOptions options;
    options.optimizer = "adamw:lr=0.1,weight_decay=0.1";
    options.ema = "0.9";
    return options;
  }
};

/// A network with random bits and a state of its own, for so many rows.
Source network(int64_t rows) {
  return {nullptr, [rows](Trace &t) {
            Tensor x = t.input("x", {rows, 3});
            Tensor w = t.parameter("w", {5, 3}, Init::normal(0, 0.5));
            Tensor v = t.parameter("v", {1, 5}, Init::normal(0, 0.5));
            Tensor b = t.parameter("b", {1}, Init::constant(0.25));
            Tensor seen = t.state("seen", {1}, Init::constant(0));
            Tensor h = dropout(relu(linear(x, w)), 0.25);
            Tensor y = linear(h, v, b);
            seen.add_(1.0);
            t.output("y", y);
            t.output("loss", mean(y * y));
          }};
}

std::vector<std::string> variablesOf(const runtime::Model &model) {
  std::vector<std::string> names;
  for (const artifact::Value &value : model.manifest().values)
    if (value.role == artifact::Role::Param ||
        value.role == artifact::Role::State)
      names.push_back(value.name);
  return names;
}

/// Runs a program on rows, of which the number decides the size.
Status runRows(CompiledMachine &m, const char *program, int64_t first,
               int64_t rows, Numbers *loss = nullptr) {
  runtime::Tensor x = tensorOf(DType::F32, {rows, 3}, rowsOf(first, rows));
  runtime::Tensor made;
  runtime::Argument inputs[] = {{"x", &x}};
  runtime::Destination outputs[] = {{"loss", &made}};
  Status status = m.model.run(program, inputs, outputs);
  if (status && loss)
    *loss = numbersOf(made);
  return status;
}

} // namespace
TANDEM_WAYS(Sizes, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

TEST_P(Sizes, T13_SteppedInTurnTheyAreArtifactsCompiledAlone) {
  const int64_t rows[] = {8, 1, 3};
  auto m = compiledSizes({network(8), network(1), network(3)}, withAdam());
  ASSERT_TRUE(m);
  std::map<int64_t, std::unique_ptr<CompiledMachine>> alone;
  for (int64_t count : rows) {
    alone[count] = compiled(network(count), withAdam());
    ASSERT_TRUE(alone[count]);
  }
  std::vector<std::string> names = variablesOf(m->model);
  ASSERT_GT(names.size(), 10u);
  CompiledMachine *last = alone[8].get();
  int64_t first = 0;
  for (int64_t count : {8, 1, 1, 8, 3, 8, 1}) {
    CompiledMachine &one = *alone[count];
    for (const std::string &name : names) {
      Status status = one.model.set(name, *last->model.get(name));
      ASSERT_TRUE(status.ok()) << status.message();
    }
    last = &one;
    Numbers got, wanted;
    Status status = runRows(*m, "step", first, count, &got);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(runRows(one, "step", first, count, &wanted).ok());
    EXPECT_EQ(got, wanted) << count;
    for (const std::string &name : names)
      EXPECT_EQ(m->contents(name), one.contents(name)) << name;
    first += count;
  }
  EXPECT_NUMBERS(m->contents("seen"), {7});
}

// A backward is that of its forward's size, in whatever order they come.
TEST_P(Sizes, T13_ContextsOfSizesLiveBesideEachOther) {
  auto m = compiledSizes({network(8), network(2)});
  ASSERT_TRUE(m);
  runtime::Tensor large = tensorOf(DType::F32, {8, 3}, rowsOf(0, 8)),
                  small = tensorOf(DType::F32, {2, 3}, rowsOf(8, 2));
  runtime::Argument inputs[][1] = {{{"x", &large}}, {{"x", &small}}};
  std::vector<runtime::Context> contexts;
  for (auto &input : inputs) {
    auto context = m->model.forward(input, {});
    ASSERT_TRUE(context) << context.status().message();
    contexts.push_back(std::move(*context));
  }
  std::vector<Numbers> grads;
  runtime::Tensor one = tensorOf(DType::F32, {}, {1});
  runtime::Argument cotangent[] = {{"loss", &one}};
  for (size_t i : {0, 1}) {
    runtime::Tensor w;
    runtime::Destination gradient[] = {{"w", &w}};
    Status status = m->model.backward(contexts[i], cotangent, gradient);
    ASSERT_TRUE(status.ok()) << status.message();
    grads.push_back(numbersOf(w));
  }
  EXPECT_NE(grads[0], grads[1]);
  auto alone = compiled(network(2));
  ASSERT_TRUE(alone);
  // The second forward drew second.
  alone->set("x", rowsOf(0, 2));
  ASSERT_TRUE(alone->forwardContext());
  auto context = alone->model.forward(inputs[1], {});
  ASSERT_TRUE(context);
  runtime::Tensor w;
  runtime::Destination gradient[] = {{"w", &w}};
  ASSERT_TRUE(alone->model.backward(*context, cotangent, gradient).ok());
  EXPECT_EQ(numbersOf(w), grads[1]);
}

TEST_P(Sizes, T13_ASizeThatIsNotThereNamesThoseThatAre) {
  auto m = compiledSizes({network(8), network(1)}, withAdam());
  ASSERT_TRUE(m);
  Numbers before = m->contents("w");
  Status status = runRows(*m, "step", 0, 5);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_EQ(status.message(),
            "no size of 'step' fits 'x' f32 [5, 3]; the artifact has 'size 0': "
            "'x' f32 [8, 3]; 'size 1': 'x' f32 [1, 3]");
  EXPECT_EQ(m->contents("w"), before);
}

// What does not follow from the sizes is there once.
TEST_P(Sizes, T13_CodeIsShared) {
  auto m = compiledSizes({network(8), network(1)}, withAdam());
  auto alone = compiled(network(8), withAdam());
  ASSERT_TRUE(m && alone);
  const artifact::Manifest &all = m->model.manifest(),
                           &one = alone->model.manifest();
  std::set<std::string> symbols;
  for (const artifact::Kernel &kernel : all.kernels)
    EXPECT_TRUE(symbols.insert(kernel.symbol).second) << kernel.symbol;
  EXPECT_LT(all.kernels.size(), 2 * one.kernels.size());
  auto updates = std::ranges::count(all.programs, std::string("update"),
                                    &artifact::Program::name);
  EXPECT_EQ(updates, 1);
  // Some launch of a further size is of a kernel that the first has, too.
  std::set<int64_t> first;
  bool shares = false;
  for (const artifact::Program &program : all.programs)
    for (const artifact::Launch &launch : program.launches)
      if (program.size == 0)
        first.insert(launch.kernel);
      else
        shares |= first.count(launch.kernel) > 0;
  EXPECT_TRUE(shares);
}

// A state whose shape follows from the size cannot be shared.
TEST_P(Sizes, T13_WhatCannotBeSharedIsNamed) {
  auto carried = [](int64_t rows) {
    return Source{nullptr, [rows](Trace &t) {
                    Tensor x = t.input("x", {rows, 3});
                    Tensor w = t.parameter("w", {3, 3}, Init::constant(0.5));
                    Tensor h = t.state("h", {rows, 3}, Init::constant(0));
                    h.copy_(h + linear(x, w));
                    t.output("loss", mean(h * h));
                  }};
  };
  std::string error;
  EXPECT_FALSE(compiledSizes({carried(4), carried(2)}, {}, &error));
  EXPECT_EQ(error, "size 'size 1': sizes share parameters and states, and "
                   "differ in the shapes of inputs and outputs alone: state "
                   "'h' is f32 [2, 3], but f32 [4, 3] in size 'size 0'");
}

// A batch of fewer rows is a size: its loss and its gradients are of the mean
// over its rows, and not those of a batch that was filled up.
TEST_P(Sizes, T14_ThePartialBatchHasItsOwnMean) {
  CompileOptions options;
  options.optimizer = "sgd:lr=1";
  auto m = compiledSizes({regression(4), regression(3)}, options);
  ASSERT_TRUE(m);
  Numbers w = m->contents("w"), x = rowsOf(4, 3), loss;
  double mean = 0;
  Numbers grad(3);
  for (int row = 0; row < 3; ++row) {
    double y = 0.25;
    for (int i = 0; i < 3; ++i)
      y += 0.5 * x[3 * row + i];
    mean += y * y / 3;
    for (int i = 0; i < 3; ++i)
      grad[i] += 2 * y * x[3 * row + i] / 3;
  }
  ASSERT_TRUE(runRows(*m, "step", 4, 3, &loss).ok());
  EXPECT_NUMBERS(loss, {mean});
  EXPECT_NUMBERS(m->contents("w"),
                 {w[0] - grad[0], w[1] - grad[1], w[2] - grad[2]});
}
