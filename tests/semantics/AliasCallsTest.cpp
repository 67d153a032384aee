//===- AliasCallsTest.cpp - what only calls have: rows A ------------------===//
//
// Handles, versions, strides and storage of the caller's tensors.
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/CallPrograms.h"

using namespace tandem;
using namespace tandem::test;
using namespace tandem::test::calls;

namespace {
class AliasCalls : public RowTest {};
} // namespace
TANDEM_COMPILED_WAYS(AliasCalls);

/// x += x, o = x.view(6).
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

TEST_P(AliasCalls, A01_LaterWritesShowBothWays) {
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

TEST_P(AliasCalls, A01_StridesThatDoNotAllowIt) {
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

TEST_P(AliasCalls, A05_APieceIsWrittenLater) {
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

TEST_P(AliasCalls, A07_UndeclaredDuplicate) {
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

TEST_P(AliasCalls, A07_DeclaredAliasCalledWithTwoTensors) {
  auto m = compiled(declaredAliasOfAWrittenInput());
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

TEST_P(AliasCalls, A09_UndeclaredDisjointViews) {
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

TEST_P(AliasCalls, A10_UndeclaredOverlap) {
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

TEST_P(AliasCalls, A17_OutputsOutliveTheContextAndTheNextForward) {
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
