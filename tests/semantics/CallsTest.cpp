//===- CallsTest.cpp - rows of groups M and A that only calls have --------===//
//
// Handles, versions, strides and storage of the caller's tensors.
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/Harness.h"

#include <numeric>

using namespace tandem;
using namespace tandem::test;

namespace {

class Calls : public RowTest {};

/// x *= 2, and o = sin(x); the write is visible, in no_grad, or detached.
Source doubling(const char *kind, std::string &text) {
  std::string mode = kind;
  text = R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %d = DETACH
        %0 = tandem.read %d MODE : !tandem.ref<2xf32>
        %1 = tandem.add %0, %0 MODE : tensor<2xf32>
        tandem.write %1 into %d MODE : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %x : !tandem.ref<2xf32>
        %o = tandem.sin %2 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })";
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at = text.find(from); at != std::string::npos;
         at = text.find(from))
      text.replace(at, from.size(), to);
  };
  replace("DETACH", mode == "detached"
                        ? "tandem.detach %x : !tandem.ref<2xf32>"
                        : "tandem.reshape %x to [2] : !tandem.ref<2xf32> -> "
                          "!tandem.ref<2xf32>");
  replace("MODE", mode == "no_grad" ? "{tandem.no_grad}" : "");
  return {text.c_str(), [=](Trace &t) {
            Tensor x = t.input("x", {2}, DType::F32, {.requiresGrad = true});
            if (mode == "no_grad") {
              NoGradScope scope = t.noGrad();
              x.add_(x);
            } else if (mode == "detached") {
              x.detach().add_(x.detach());
            } else {
              x.add_(x);
            }
            t.output("o", sin(x));
          }};
}

/// o = x * x, which keeps x for its backward.
const Source squaring{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %o = tandem.mul %x, %x : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                      [](Trace &t) {
                        Tensor x = t.input("x", {2}, DType::F32,
                                           {.requiresGrad = true});
                        t.output("o", x * x);
                      }};

Numbers upTo(int64_t n) {
  Numbers numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0.0);
  return numbers;
}

} // namespace
TANDEM_COMPILED_WAYS(Calls);

//===----------------------------------------------------------------------===//
// M: writes
//===----------------------------------------------------------------------===//

TEST_P(Calls, M03_VisibleWriteToALeafInput) {
  std::string text;
  auto m = compiled(doubling("visible", text));
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  m->setLeaf("x");
  uint64_t version = m->tensors["x"].version();
  std::string error = m->forward();
  EXPECT_PART(error, "input 'x' (index 0)");
  EXPECT_PART(error, "leaf");
  EXPECT_PART(error, "'tandem.write' at ");
  EXPECT_PART(error, isTraced() ? "CallsTest.cpp:" : "row.mlir:8:");
  EXPECT_NUMBERS(m->contents("x"), {1, 2});
  EXPECT_EQ(m->tensors["x"].version(), version);
  EXPECT_TRUE(m->outputs.empty());
  EXPECT_FALSE(m->context.live());
  // What is no leaf may be written.
  m->tensors["x"].setMade(true);
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {2, 4});
}

TEST_P(Calls, M04_TheVersionIsBumped) {
  std::string text;
  auto m = compiled(doubling("no_grad", text));
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  uint64_t version = m->tensors["x"].version();
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {2, 4});
  EXPECT_GT(m->tensors["x"].version(), version);
}

TEST_P(Calls, M05_TheVersionIsBumpedHereToo) {
  std::string text;
  auto square = compiled(squaring);
  auto m = compiled(doubling("detached", text));
  ASSERT_TRUE(square && m);
  square->set("x", {1, 2});
  ASSERT_EQ(square->forward(), "");
  // The same tensor, written by another program while a context has it.
  m->tensors["x"] = square->tensors["x"];
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(square->contents("x"), {2, 4});
  std::string error = square->backward({{"o", {1, 1}}}, {});
  EXPECT_PART(error, "'x'");
  EXPECT_PART(error, "version");
}

TEST_P(Calls, M07_AStridedInput) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x6xf32> {tandem.role = #tandem.role<input "x">},
                       %v: tensor<2x2xf32> {tandem.role = #tandem.role<input "v">})
          -> (tensor<12xf32> {tandem.role = #tandem.role<output "f">}) {
        %r = tandem.reshape %x to [3, 4] : !tandem.ref<2x6xf32> -> !tandem.ref<3x4xf32>
        %p = tandem.permute %r by [1, 0] : !tandem.ref<3x4xf32> -> !tandem.ref<4x3xf32>
        %s = tandem.slice %p from [1, 0] to [3, 2] step [1, 1] : !tandem.ref<4x3xf32> -> !tandem.ref<2x2xf32>
        tandem.write %v into %s : tensor<2x2xf32>, !tandem.ref<2x2xf32>
        %f = tandem.reshape %x to [12] : !tandem.ref<2x6xf32> -> !tandem.ref<12xf32>
        %1 = tandem.read %f : !tandem.ref<12xf32>
        return %1 : tensor<12xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2, 6});
                  Tensor v = t.input("v", {2, 2});
                  Tensor p = x.view({3, 4}).permute({1, 0});
                  p.slice(0, 1, 3).slice(1, 0, 2).copy_(v);
                  t.output("f", x.view({12}).clone());
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  // Every other element, the rows from the last to... of a larger tensor.
  m->setStorage("base", upTo(30), DType::F32);
  m->setView("x", "base", {2, 6}, {15, 2}, 1);
  m->set("v", {100, 200, 300, 400});
  runtime::Tensor base = m->tensors["base"];
  uint64_t version = base.version();
  ASSERT_EQ(m->forward(), "");
  Numbers expected = upTo(30);
  // x holds 1, 3, 5, 7, 9, 11, 16, 18, ...: its elements 1, 5, 2 and 6.
  expected[3] = 100;
  expected[11] = 200;
  expected[5] = 300;
  expected[16] = 400;
  EXPECT_EQ(numbersOf(base), expected);
  EXPECT_GT(base.version(), version);
  EXPECT_NUMBERS(m->output("f"),
                 {1, 100, 300, 7, 9, 200, 400, 18, 20, 22, 24, 26});
}

TEST_P(Calls, M08_NoCopy) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">}) {
        %0 = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
        return
      }
    })",
                [](Trace &t) {
                  t.input("x", {2, 3}).transpose_(0, 1);
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  m->set("x", upTo(6));
  runtime::Tensor before = m->tensors["x"];
  uint64_t version = before.version();
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->tensors["x"].storage(), before.storage());
  EXPECT_EQ(m->tensors["x"].data(), before.data());
  EXPECT_EQ(m->strides("x"), (Shape{1, 3}));
  EXPECT_EQ(before.version(), version);
  const artifact::Program *forward = m->model.manifest().findProgram("forward");
  EXPECT_TRUE(forward->launches.empty());
  EXPECT_EQ(forward->arenaBytes, 0);
}

TEST_P(Calls, M10_NoVersionBumpAndNoCode) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "y">}) {
        %0 = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
        %1 = tandem.transpose_ %0 dims 0, 1 : !tandem.ref<3x2xf32> -> !tandem.ref<2x3xf32>
        %2 = tandem.read %1 : !tandem.ref<2x3xf32>
        tandem.write %2 into %1 : tensor<2x3xf32>, !tandem.ref<2x3xf32>
        %old = tandem.reshape %y to [2, 3] : !tandem.ref<2x3xf32> -> !tandem.ref<2x3xf32>
        %3 = tandem.set_ %y to %1 : !tandem.ref<2x3xf32>, !tandem.ref<2x3xf32>
        %4 = tandem.set_ %3 to %old : !tandem.ref<2x3xf32>, !tandem.ref<2x3xf32>
        return
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2, 3}), y = t.input("y", {2, 3});
                  x.transpose_(0, 1);
                  x.transpose_(0, 1);
                  x.copy_(x);
                  Tensor old = y.view({2, 3});
                  y.set_(x);
                  y.set_(old);
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  m->set("x", upTo(6));
  m->set("y", upTo(6));
  runtime::Tensor x = m->tensors["x"], y = m->tensors["y"];
  uint64_t versions = x.version() + y.version();
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(x.version() + y.version(), versions);
  EXPECT_EQ(m->tensors["y"].storage(), y.storage());
  EXPECT_TRUE(m->model.manifest().findProgram("forward")->launches.empty());
  EXPECT_TRUE(m->model.manifest().kernels.empty());
}

TEST_P(Calls, M15_NoSecondBuffer) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x">})
          -> (!tandem.ref<3xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %x : !tandem.ref<3xf32>
        %1 = tandem.add %0, %0 : tensor<3xf32>
        tandem.write %1 into %x : tensor<3xf32>, !tandem.ref<3xf32>
        return %x : !tandem.ref<3xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {3});
                  x.add_(x);
                  t.output("o", x);
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  const artifact::Program *forward = m->model.manifest().findProgram("forward");
  ASSERT_EQ(forward->results.size(), 1U);
  EXPECT_TRUE(forward->results[0].inPlace);
  EXPECT_EQ(forward->buffers.size(), 1U);
  EXPECT_EQ(forward->launches.size(), 1U);
  m->set("x", {1, 2, 3});
  const void *data = m->tensors["x"].data();
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->outputTensors["o"].data(), data);
  EXPECT_EQ(m->tensors["x"].data(), data);
  // A later write shows in both.
  ASSERT_TRUE(m->outputTensors["o"].fill(7).ok());
  EXPECT_NUMBERS(m->contents("x"), {7, 7, 7});
}

TEST_P(Calls, M16_NoContextAndNoCopyOfOthers) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "y">}) {
        %0 = tandem.read %y : !tandem.ref<3xf32>
        %1 = tandem.sin %0 : tensor<3xf32>
        tandem.write %1 into %x : tensor<3xf32>, !tandem.ref<3xf32>
        return
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {3});
                  x.copy_(sin(t.input("y", {3})));
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  const artifact::Program *forward = m->model.manifest().findProgram("forward");
  EXPECT_EQ(forward->results.size(), 1U);
  EXPECT_EQ(forward->launches.size(), 1U);
  EXPECT_EQ(forward->arenaBytes, 0);
  EXPECT_FALSE(m->model.hasProgram("backward"));
  m->set("x", {1, 2, 3});
  m->set("y", {0, 0, 0});
  uint64_t version = m->tensors["y"].version();
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {0, 0, 0});
  EXPECT_EQ(m->tensors["y"].version(), version);
  EXPECT_FALSE(m->context.live());
}

TEST_P(Calls, M18_EvaluateWritesNothing) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<4x1xf32> {tandem.role = #tandem.role<input "x">},
                       %w: tensor<1xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
                       %mean: !tandem.ref<1xf32> {tandem.role = #tandem.role<state "mean">},
                       %var: !tandem.ref<1xf32> {tandem.role = #tandem.role<state "var">},
                       %count: !tandem.ref<i64> {tandem.role = #tandem.role<state "count">})
          -> (tensor<4x1xf32> {tandem.role = #tandem.role<output "o">}) {
        %zero = tandem.constant dense<0.0> : tensor<1xf32>
        %one = tandem.constant dense<1> : tensor<i64>
        %m0 = tandem.read %mean : !tandem.ref<1xf32>
        %v0 = tandem.read %var : !tandem.ref<1xf32>
        %n0 = tandem.read %count : !tandem.ref<i64>
        %n1 = tandem.add %n0, %one {tandem.no_grad} : tensor<i64>
        tandem.write %n1 into %count {tandem.no_grad} : tensor<i64>, !tandem.ref<i64>
        %y, %m, %v = tandem.batch_norm %x, %w, %zero, %m0, %v0 {training} : (tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<4x1xf32>, tensor<1xf32>, tensor<1xf32>)
        tandem.write %m into %mean {tandem.no_grad} : tensor<1xf32>, !tandem.ref<1xf32>
        tandem.write %v into %var {tandem.no_grad} : tensor<1xf32>, !tandem.ref<1xf32>
        return %y : tensor<4x1xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {4, 1});
                  Tensor w = t.parameter("w", {1}, Init::constant(1)),
                         mean = t.state("mean", {1}, Init::constant(0)),
                         var = t.state("var", {1}, Init::constant(1)),
                         count = t.state("count", {}, Init::constant(0),
                                         DType::I64);
                  {
                    NoGradScope scope = t.noGrad();
                    count.add_(t.constant({}, 1, DType::I64));
                  }
                  t.output("o", batchNorm(x, w, t.constant({1}, 0), mean, var));
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 3, 0, 2});
  m->set("w", {1.5});
  m->set("mean", {0.5});
  m->set("var", {1});
  m->set("count", {7});
  std::vector<uint64_t> versions;
  for (const char *state : {"mean", "var", "count"})
    versions.push_back(m->tensors[state].version());
  runtime::Tensor o;
  Status status = m->model.run(
      "evaluate", std::vector<runtime::Argument>{{"x", &m->tensors["x"]}},
      std::vector<runtime::Destination>{{"o", &o}});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NUMBERS(numbersOf(o), {0.749996, 3.749981, -0.749996, 2.249989});
  EXPECT_NUMBERS(m->contents("mean"), {0.5});
  EXPECT_NUMBERS(m->contents("var"), {1});
  EXPECT_NUMBERS(m->contents("count"), {7});
  for (const char *state : {"mean", "var", "count"}) {
    EXPECT_EQ(m->tensors[state].version(), versions.front()) << state;
    versions.erase(versions.begin());
  }
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("mean"), {isTraced() ? 0.6 : 1.5});
  EXPECT_NUMBERS(m->contents("count"), {8});
}

//===----------------------------------------------------------------------===//
// A: aliases
//===----------------------------------------------------------------------===//

/// o = x.view(6), after x += x where `writes`.
static const Source flattening{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">})
          -> (!tandem.ref<6xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %x : !tandem.ref<2x3xf32>
        %1 = tandem.add %0, %0 : tensor<2x3xf32>
        tandem.write %1 into %x : tensor<2x3xf32>, !tandem.ref<2x3xf32>
        %o = tandem.reshape %x to [6] : !tandem.ref<2x3xf32> -> !tandem.ref<6xf32>
        return %o : !tandem.ref<6xf32>
      }
    })",
                               [](Trace &t) {
                                 Tensor x = t.input("x", {2, 3});
                                 x.add_(x);
                                 t.output("o", x.view({6}));
                               }};

TEST_P(Calls, A01_LaterWritesShowBothWays) {
  auto m = compiled(flattening);
  ASSERT_TRUE(m);
  m->set("x", upTo(6));
  ASSERT_EQ(m->forward(), "");
  runtime::Tensor o = m->outputTensors["o"];
  EXPECT_EQ(o.data(), m->tensors["x"].data());
  m->tensors["x"].mutableData<float>()[2] = 50;
  EXPECT_NUMBERS(numbersOf(o), {0, 2, 50, 6, 8, 10});
  o.mutableData<float>()[5] = 60;
  EXPECT_NUMBERS(m->contents("x"), {0, 2, 50, 6, 8, 60});
  // The x of the next call is another one.
  m->set("x", {1, 1, 1, 1, 1, 1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_TRUE(m->share("o", "x"));
  EXPECT_NUMBERS(numbersOf(o), {0, 2, 50, 6, 8, 60});
}

TEST_P(Calls, A01_StridesThatDoNotAllowIt) {
  auto m = compiled(flattening);
  ASSERT_TRUE(m);
  m->setStorage("base", upTo(6), DType::F32);
  m->setView("x", "base", {2, 3}, {1, 2}, 0);
  uint64_t version = m->tensors["base"].version();
  std::string error = m->forward();
  EXPECT_PART(error, "output 'o' (index ");
  EXPECT_PART(error, "input 'x' (index 0)");
  EXPECT_PART(error, "expected");
  EXPECT_PART(error, "but got");
  EXPECT_PART(error, "[1, 2]");
  EXPECT_EQ(numbersOf(m->tensors["base"]), upTo(6));
  EXPECT_EQ(m->tensors["base"].version(), version);
}

TEST_P(Calls, A05_APieceIsWrittenLater) {
  Source splitting{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (!tandem.ref<2xf32> {tandem.role = #tandem.role<output "a">},
              !tandem.ref<2xf32> {tandem.role = #tandem.role<output "b">}) {
        %a = tandem.slice %x from [0] to [2] step [1] {tandem.part_of = "split"} : !tandem.ref<4xf32> -> !tandem.ref<2xf32>
        %b = tandem.slice %x from [2] to [4] step [1] {tandem.part_of = "split"} : !tandem.ref<4xf32> -> !tandem.ref<2xf32>
        return %a, %b : !tandem.ref<2xf32>, !tandem.ref<2xf32>
      }
    })",
                   [](Trace &t) {
                     Tensor x =
                         t.input("x", {4}, DType::F32, {.requiresGrad = true});
                     std::vector<Tensor> pieces = x.split({2, 2});
                     t.output("a", pieces[0]);
                     t.output("b", pieces[1]);
                   }};
  auto split = compiled(splitting);
  ASSERT_TRUE(split);
  split->set("x", {1, 2, 3, 4});
  ASSERT_EQ(split->forward(), "");
  std::string text;
  auto visible = compiled(doubling("visible", text));
  ASSERT_TRUE(visible);
  visible->tensors["x"] = split->outputTensors["a"];
  std::string error = visible->forward();
  EXPECT_PART(error, "input 'x' (index 0)");
  EXPECT_PART(error, "split");
  EXPECT_PART(error, "'tandem.write' at ");
  EXPECT_NUMBERS(split->contents("x"), {1, 2, 3, 4});
  auto detached = compiled(doubling("detached", text));
  ASSERT_TRUE(detached);
  detached->tensors["x"] = split->outputTensors["b"];
  ASSERT_EQ(detached->forward(), "");
  EXPECT_NUMBERS(split->contents("x"), {1, 2, 6, 8});
}

/// x += x; o = x * y.
static const Source writesOne{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x">},
                       %y: tensor<2xf32> {tandem.role = #tandem.role<input "y">})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %x : !tandem.ref<2xf32>
        %1 = tandem.add %0, %0 : tensor<2xf32>
        tandem.write %1 into %x : tensor<2xf32>, !tandem.ref<2xf32>
        %o = tandem.mul %1, %y : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                              [](Trace &t) {
                                Tensor x = t.input("x", {2}),
                                       y = t.input("y", {2});
                                x.add_(x);
                                t.output("o", x * y);
                              }};

TEST_P(Calls, A07_UndeclaredDuplicate) {
  auto m = compiled(writesOne);
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  m->tensors["y"] = m->tensors["x"];
  uint64_t version = m->tensors["x"].version();
  std::string error = m->forward();
  EXPECT_PART(error, "'x' (index 0)");
  EXPECT_PART(error, "'y' (index 1)");
  EXPECT_PART(error, "'tandem.write' at ");
  EXPECT_NUMBERS(m->contents("x"), {1, 2});
  EXPECT_EQ(m->tensors["x"].version(), version);
}

TEST_P(Calls, A07_DeclaredAliasCalledWithTwoTensors) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "y" {alias = {of = "x", views = []}}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %x : !tandem.ref<2xf32>
        %1 = tandem.add %0, %0 : tensor<2xf32>
        tandem.write %1 into %x : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %y : !tandem.ref<2xf32>
        %o = tandem.mul %2, %2 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2});
                  Tensor y = t.alias("y", "x",
                                     [](const Tensor &base) { return base; });
                  x.add_(x);
                  t.output("o", y * y);
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2});
  m->set("y", {1, 2});
  std::string error = m->forward();
  EXPECT_PART(error, "'x' (index 0)");
  EXPECT_PART(error, "'y' (index 1)");
  EXPECT_NUMBERS(m->contents("x"), {1, 2});
  EXPECT_NUMBERS(m->contents("y"), {1, 2});
  m->tensors["y"] = m->tensors["x"];
  EXPECT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {4, 16});
}

TEST_P(Calls, A09_UndeclaredDisjointViews) {
  auto m = compiled(writesOne);
  ASSERT_TRUE(m);
  for (bool columns : {false, true}) {
    SCOPED_TRACE(columns ? "columns" : "halves");
    m->setStorage("base", {1, 2, 3, 4}, DType::F32);
    m->setView("x", "base", {2}, {columns ? 2 : 1}, 0);
    m->setView("y", "base", {2}, {columns ? 2 : 1}, columns ? 1 : 2);
    ASSERT_EQ(m->forward(), "");
    Numbers halves = {2, 4, 3, 4}, interleaved = {2, 2, 6, 4};
    EXPECT_EQ(m->contents("base"), columns ? interleaved : halves);
    Numbers products = {6, 16}, others = {4, 24};
    EXPECT_EQ(m->output("o"), columns ? others : products);
  }
}

TEST_P(Calls, A10_UndeclaredOverlap) {
  auto m = compiled(writesOne);
  ASSERT_TRUE(m);
  m->setStorage("base", {1, 2, 3}, DType::F32);
  m->setView("x", "base", {2}, {1}, 0);
  m->setView("y", "base", {2}, {1}, 1);
  std::string error = m->forward();
  EXPECT_PART(error, "'x' (index 0)");
  EXPECT_PART(error, "'y' (index 1)");
  EXPECT_NUMBERS(m->contents("base"), {1, 2, 3});
  Source reads{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x">},
                       %y: tensor<2xf32> {tandem.role = #tandem.role<input "y">})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %o = tandem.mul %x, %y : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
               [](Trace &t) {
                 Tensor x = t.input("x", {2}), y = t.input("y", {2});
                 t.output("o", x * y);
               }};
  auto reader = compiled(reads);
  ASSERT_TRUE(reader);
  reader->tensors = m->tensors;
  ASSERT_EQ(reader->forward(), "");
  EXPECT_NUMBERS(reader->output("o"), {2, 6});
}

TEST_P(Calls, A17_OutputsOutliveTheContextAndTheNextForward) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<64xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<64xf32> {tandem.role = #tandem.role<output "a">},
              !tandem.ref<64xf32> {tandem.role = #tandem.role<output "b">},
              !tandem.ref<8x8xf32> {tandem.role = #tandem.role<output "c">}) {
        %a = tandem.mul %x, %x : tensor<64xf32>
        %0 = tandem.exp %x : tensor<64xf32>
        %b = tandem.make_ref %0 : tensor<64xf32>
        %c = tandem.reshape %b to [8, 8] : !tandem.ref<64xf32> -> !tandem.ref<8x8xf32>
        return %a, %b, %c : tensor<64xf32>, !tandem.ref<64xf32>, !tandem.ref<8x8xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x =
                      t.input("x", {64}, DType::F32, {.requiresGrad = true});
                  t.output("a", x * x);
                  Tensor b = exp(x);
                  t.output("b", b);
                  t.output("c", b.view({8, 8}));
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  Numbers first = upTo(64), second(64, 0.5);
  for (double &x : first)
    x /= 64;
  m->set("x", first);
  ASSERT_EQ(m->forward(), "");
  auto kept = m->outputTensors;
  NamedNumbers were = m->outputs;
  // Nothing alive shares bytes, but what is declared to.
  auto range = [](const runtime::Tensor &tensor) {
    auto begin = reinterpret_cast<uintptr_t>(tensor.data());
    return std::pair(begin, begin + 64 * sizeof(float));
  };
  auto meet = [&](const runtime::Tensor &a, const runtime::Tensor &b) {
    return range(a).first < range(b).second && range(b).first < range(a).second;
  };
  EXPECT_FALSE(meet(kept["a"], kept["b"]));
  EXPECT_FALSE(meet(kept["a"], m->tensors["x"]));
  EXPECT_FALSE(meet(kept["b"], m->tensors["x"]));
  EXPECT_TRUE(meet(kept["b"], kept["c"]));
  m->context = {};
  m->set("x", second);
  ASSERT_EQ(m->forward(), "");
  EXPECT_FALSE(meet(kept["a"], m->outputTensors["a"]));
  EXPECT_FALSE(meet(kept["b"], m->outputTensors["b"]));
  for (auto &[name, numbers] : were)
    EXPECT_EQ(numbersOf(kept[name]), numbers) << name;
  ASSERT_EQ(
      m->backward(
          {{"a", Numbers(64, 1)}, {"b", Numbers(64, 0)}, {"c", Numbers(64, 0)}},
          {}),
      "");
  for (auto &[name, numbers] : were)
    EXPECT_EQ(numbersOf(kept[name]), numbers) << name;
}
