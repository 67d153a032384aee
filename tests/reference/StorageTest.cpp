//===- StorageTest.cpp - programs on storage that is really shared --------===//
#include "ir/reference/Evaluator.h"
#include "tests/support/TestModule.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::reference;

using Elements = std::vector<double>;
using Sizes = llvm::SmallVector<int64_t>;

namespace {

/// Runs @graph of a module.
class Program : public TestModule {
public:
  explicit Program(const std::string &text) : TestModule(text) {
    EXPECT_TRUE(module) << diagnostics;
  }

  bool run(std::initializer_list<std::optional<Array>> arguments) {
    if (!module)
      return false;
    call.arguments.assign(arguments);
    auto outcome = reference::run(function("graph"), call);
    if (mlir::succeeded(outcome))
      after = std::move(*outcome);
    return mlir::succeeded(outcome);
  }
  Elements argument(unsigned i) { return after.arguments[i]->data; }
  Elements result(unsigned i) { return after.results[i]->data; }
  const Handle &handle(unsigned i) { return *after.argumentHandles[i]; }

  Call call;
  Outcome after;
};

} // namespace

TEST(Storage, ATransposedHandleShowsTheSameStorage) {
  Program p(R"(
    func.func @graph(%x: !tandem.ref<2x3xf32>) -> tensor<3x2xf32> {
      %row = tandem.slice %x from [0, 0] to [1, 3] step [1, 1] : !tandem.ref<2x3xf32> -> !tandem.ref<1x3xf32>
      %t = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
      %c = tandem.constant dense<[[10.0, 20.0, 30.0]]> : tensor<1x3xf32>
      tandem.write %c into %row : tensor<1x3xf32>, !tandem.ref<1x3xf32>
      %v = tandem.read %t : !tandem.ref<3x2xf32>
      return %v : tensor<3x2xf32>
    })");
  ASSERT_TRUE(p.run({array({2, 3}, {1, 2, 3, 4, 5, 6})})) << p.diagnostics;
  EXPECT_EQ(p.result(0), Elements({10, 4, 20, 5, 30, 6}));
  EXPECT_EQ(p.after.arguments[0]->shape, std::vector<int64_t>({3, 2}));
  EXPECT_EQ(p.argument(0), p.result(0));
  EXPECT_EQ(p.handle(0).strides(), Sizes({1, 3}));
  EXPECT_EQ(p.after.storages[0]->elements, Elements({10, 20, 30, 4, 5, 6}));
}

TEST(Storage, SetMovesTheHandleAndNotTheViewsTakenBefore) {
  Program p(R"(
    func.func @graph(%x: !tandem.ref<2xf32>, %y: !tandem.ref<2x2xf32>) {
      %old = tandem.slice %x from [0] to [1] step [1] : !tandem.ref<2xf32> -> !tandem.ref<1xf32>
      %z = tandem.set_ %x to %y : !tandem.ref<2xf32>, !tandem.ref<2x2xf32>
      %a = tandem.constant dense<7.0> : tensor<1xf32>
      tandem.write %a into %old : tensor<1xf32>, !tandem.ref<1xf32>
      %b = tandem.constant dense<8.0> : tensor<2x2xf32>
      tandem.write %b into %z : tensor<2x2xf32>, !tandem.ref<2x2xf32>
      return
    })");
  ASSERT_TRUE(p.run({array({2}, {1, 2}), array({2, 2}, {1, 2, 3, 4})}))
      << p.diagnostics;
  EXPECT_EQ(p.argument(0), Elements({8, 8, 8, 8}));
  EXPECT_EQ(p.argument(1), p.argument(0));
  EXPECT_EQ(p.handle(0).storage, p.handle(1).storage);
  ASSERT_EQ(p.after.storages.size(), 2u);
  EXPECT_EQ(p.after.storages[0]->elements, Elements({7, 2}));
}

TEST(Storage, FreedStorageIsFilledBeforeItIsRead) {
  Program p(R"(
    func.func @graph(%x: !tandem.ref<2xf32>) {
      tandem.resize_ %x to 2 : !tandem.ref<2xf32>
      %c = tandem.constant dense<3.0> : tensor<2xf32>
      tandem.write %c into %x : tensor<2xf32>, !tandem.ref<2xf32>
      return
    })");
  ASSERT_TRUE(p.run({std::nullopt})) << p.diagnostics;
  EXPECT_EQ(p.argument(0), Elements({3, 3}));

  Program half(R"(
    func.func @graph(%x: !tandem.ref<2xf32>) -> tensor<2xf32> {
      tandem.resize_ %x to 0 : !tandem.ref<2xf32>
      tandem.resize_ %x to 2 : !tandem.ref<2xf32>
      %one = tandem.slice %x from [0] to [1] step [1] : !tandem.ref<2xf32> -> !tandem.ref<1xf32>
      %c = tandem.constant dense<3.0> : tensor<1xf32>
      tandem.write %c into %one : tensor<1xf32>, !tandem.ref<1xf32>
      %v = tandem.read %x : !tandem.ref<2xf32>
      return %v : tensor<2xf32>
    })");
  EXPECT_FALSE(half.run({array({2}, {1, 2})}));
  EXPECT_EQ(half.diagnostics, "'tandem.read' op reads storage that is freed, "
                              "or that nobody filled since it was\n");
}

TEST(Storage, FreedStorageTakesNoWriteAndOtherSizesAreNone) {
  Program p(R"(
    func.func @graph(%x: !tandem.ref<2xf32>) {
      tandem.resize_ %x to 0 : !tandem.ref<2xf32>
      %c = tandem.constant dense<3.0> : tensor<2xf32>
      tandem.write %c into %x : tensor<2xf32>, !tandem.ref<2xf32>
      return
    })");
  EXPECT_FALSE(p.run({array({2}, {1, 2})}));
  EXPECT_EQ(p.diagnostics, "'tandem.write' op writes storage that is freed\n");

  Program other(R"(
    func.func @graph(%x: !tandem.ref<2xf32>) {
      tandem.resize_ %x to 3 : !tandem.ref<2xf32>
      return
    })");
  EXPECT_FALSE(other.run({array({2}, {1, 2})}));
  EXPECT_EQ(other.diagnostics,
            "'tandem.resize_' op expected 0 or 2 elements, those of the whole "
            "storage, but got 3\n");
}

TEST(Storage, FreedAtTheEndHasNoValue) {
  Program p(R"(
    func.func @graph(%x: !tandem.ref<2xf32>) {
      tandem.resize_ %x to 0 : !tandem.ref<2xf32>
      return
    })");
  ASSERT_TRUE(p.run({array({2}, {1, 2})})) << p.diagnostics;
  EXPECT_FALSE(p.after.arguments[0]);
  EXPECT_TRUE(p.after.storages[0]->isFreed());
  llvm::SmallVector<Array> after;
  EXPECT_TRUE(
      mlir::failed(evaluate(p.function("graph"), array({2}, {1, 2}), &after)));
}

TEST(Storage, AsStridedAndDetachShareStorage) {
  Program p(R"(
    func.func @graph(%x: !tandem.ref<2x2xf32>) -> tensor<2x2xf32> {
      %d = tandem.detach %x : !tandem.ref<2x2xf32>
      %odd = tandem.as_strided %d sizes [2] strides [2] offset 1 : !tandem.ref<2x2xf32> -> !tandem.ref<2xf32>
      %c = tandem.constant dense<[8.0, 9.0]> : tensor<2xf32>
      tandem.write %c into %odd : tensor<2xf32>, !tandem.ref<2xf32>
      %twice = tandem.as_strided %x sizes [2, 2] strides [1, 1] offset 0 : !tandem.ref<2x2xf32> -> !tandem.ref<2x2xf32>
      %v = tandem.read %twice : !tandem.ref<2x2xf32>
      return %v : tensor<2x2xf32>
    })");
  ASSERT_TRUE(p.run({array({2, 2}, {1, 2, 3, 4})})) << p.diagnostics;
  EXPECT_EQ(p.argument(0), Elements({1, 8, 3, 9}));
  EXPECT_EQ(p.result(0), Elements({1, 8, 8, 3}));
}

TEST(Storage, BitcastSharesBytes) {
  Program p(R"(
    func.func @graph(%x: !tandem.ref<2xf32>) -> tensor<2xi32> {
      %i = tandem.bitcast %x : !tandem.ref<2xf32> -> !tandem.ref<2xi32>
      %bits = tandem.read %i : !tandem.ref<2xi32>
      %c = tandem.constant dense<[1073741824, 1065353216]> : tensor<2xi32>
      tandem.write %c into %i : tensor<2xi32>, !tandem.ref<2xi32>
      return %bits : tensor<2xi32>
    })");
  ASSERT_TRUE(p.run({array({2}, {1, -2})})) << p.diagnostics;
  EXPECT_EQ(p.result(0), Elements({1065353216, -1073741824}));
  EXPECT_EQ(p.argument(0), Elements({2, 1}));
}

TEST(Storage, ReturnedRefsSayWhatTheyShow) {
  Program p(R"(
    func.func @graph(%x: !tandem.ref<2x2xf32>) -> (!tandem.ref<2xf32>, !tandem.ref<1xf32>, !tandem.ref<1xf32>) {
      %column = tandem.as_strided %x sizes [2] strides [2] offset 1 : !tandem.ref<2x2xf32> -> !tandem.ref<2xf32>
      %c = tandem.constant dense<5.0> : tensor<1xf32>
      %new = tandem.make_ref %c : tensor<1xf32>
      %n = tandem.reshape %new to [1] : !tandem.ref<1xf32> -> !tandem.ref<1xf32>
      return %column, %new, %n : !tandem.ref<2xf32>, !tandem.ref<1xf32>, !tandem.ref<1xf32>
    })");
  ASSERT_TRUE(p.run({array({2, 2}, {1, 2, 3, 4})})) << p.diagnostics;
  EXPECT_EQ(p.after.resultHandles[0]->storage, p.handle(0).storage);
  EXPECT_EQ(p.after.resultHandles[0]->positions.data, Elements({1, 3}));
  EXPECT_EQ(p.after.resultHandles[1]->storage, 1u);
  EXPECT_EQ(p.after.resultHandles[2]->storage, 1u);
}

//===----------------------------------------------------------------------===//
// Declared aliases
//===----------------------------------------------------------------------===//

namespace {

/// Two arguments and what the role of the second declares.
std::string aliases(const std::string &first, const std::string &second,
                    const char *body = "") {
  return "func.func @graph(%x: !tandem.ref<2x2xf32> {tandem.role = "
         "#tandem.role<input \"x\" " +
         first +
         ">}, %y: !tandem.ref<2xf32> {tandem.role = #tandem.role<input \"y\" "
         "{alias = " +
         second + "}>}) {\n" + body + "return\n}";
}

const char *kWriteY = R"(
  %c = tandem.constant dense<9.0> : tensor<2xf32>
  tandem.write %c into %y : tensor<2xf32>, !tandem.ref<2xf32>
)";
const char *kColumn =
    R"({of = "x", views = [{op = "permute", permutation = array<i64: 1, 0>},
       {op = "slice", starts = array<i64: 1, 0>, limits = array<i64: 2, 2>,
        strides = array<i64: 1, 1>}, {op = "reshape", shape = array<i64: 2>}]})";

} // namespace

TEST(Storage, A08_DeclaredViewsOfAnArgumentShareItsStorage) {
  Program p(aliases("", kColumn, kWriteY));
  Array x = array({2, 2}, {1, 2, 3, 4});
  ASSERT_TRUE(p.run({x, array({2}, {2, 4})})) << p.diagnostics;
  EXPECT_EQ(p.argument(0), Elements({1, 9, 3, 9}));
  // The base says all of it.
  ASSERT_TRUE(p.run({x, std::nullopt})) << p.diagnostics;
  EXPECT_EQ(p.argument(0), Elements({1, 9, 3, 9}));
}

TEST(Storage, A07_ADeclaredAliasWithOtherElementsIsRefused) {
  Program p(aliases("", kColumn, kWriteY));
  EXPECT_FALSE(p.run({array({2, 2}, {1, 2, 3, 4}), array({2}, {2, 5})}));
  EXPECT_EQ(p.diagnostics, "expected argument #1 to show the storage of 'x', "
                           "but it has other elements\n");
}

TEST(Storage, A08_TheBaseMayBeAStorageWithoutAnArgument) {
  const std::string of = R"({of = "memory", type = tensor<6xf32>, views = )";
  Program p(aliases(
      "{alias = " + of +
          "[{op = \"as_strided\", sizes = array<i64: 2, 2>, strides = "
          "array<i64: 2, 1>, offset = 2 : i64}]}}",
      of + "[{op = \"slice\", starts = array<i64: 1>, limits = array<i64: 4>, "
           "strides = array<i64: 2>}]}",
      kWriteY));
  p.call.storages["memory"] = array({6}, {0, 1, 2, 3, 4, 5});
  ASSERT_TRUE(p.run({array({2, 2}, {2, 3, 4, 5}), array({2}, {1, 3})}))
      << p.diagnostics;
  ASSERT_EQ(p.after.storages.size(), 1u);
  EXPECT_EQ(p.after.storages[0]->name, "memory");
  EXPECT_EQ(p.after.storages[0]->elements, Elements({0, 9, 2, 9, 4, 5}));
  EXPECT_EQ(p.argument(0), Elements({2, 9, 4, 5}));
  // Without it the arguments say what they show; the rest is zero.
  p.call.storages.clear();
  ASSERT_TRUE(p.run({array({2, 2}, {2, 3, 4, 5}), array({2}, {1, 3})}))
      << p.diagnostics;
  EXPECT_EQ(p.after.storages[0]->elements, Elements({0, 9, 2, 9, 4, 5}));
}

TEST(Storage, AliasesThatLeadNowhere) {
  auto fails = [](const std::string &first, const std::string &second) {
    Program p(aliases(first, second));
    EXPECT_FALSE(p.run({array({2, 2}, {1, 2, 3, 4}), std::nullopt}));
    return p.diagnostics;
  };
  EXPECT_EQ(fails("", R"({of = "z", views = []})"),
            "expected the storage 'z' of argument #1 to have a type\n");
  EXPECT_EQ(fails("", R"({of = "y", views = []})"),
            "expected 'y', of which argument #1 is an alias, to have storage "
            "of its own\n");
  EXPECT_EQ(fails("", R"({of = "x", views = []})"),
            "expected argument #1 to have the type of what it is an alias "
            "of\n");
  EXPECT_EQ(fails("", R"({of = "x", views = [{op = "sin"}]})"),
            "expected a view of shape [2, 2], but got {op = \"sin\"}\n");
  EXPECT_EQ(fails("", "{of = \"x\", views = [{op = \"as_strided\", sizes = "
                      "array<i64: 2>, strides = array<i64: 4>, offset = 1 : "
                      "i64}]}"),
            "expected a view of shape [2, 2], but got {offset = 1 : i64, op = "
            "\"as_strided\", sizes = array<i64: 2>, strides = array<i64: "
            "4>}\n");
}

//===----------------------------------------------------------------------===//
// custom_vjp and undefined gradients
//===----------------------------------------------------------------------===//

TEST(Storage, TheForwardOfACustomVjpWritesItsRefs) {
  Program p(R"(
    func.func @graph(%x: tensor<2xf32>, %s: !tandem.ref<2xf32>) -> tensor<2xf32> {
      %y = tandem.custom_vjp "scale" (%x) refs(%s) forward {
        ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>):
          %old = tandem.read %r : !tandem.ref<2xf32>
          %b = tandem.mul %a, %old : tensor<2xf32>
          tandem.write %b into %r : tensor<2xf32>, !tandem.ref<2xf32>
          tandem.yield %b, %old : tensor<2xf32>, tensor<2xf32>
      } backward {
        ^bb0(%old: tensor<2xf32>, %dy: tensor<2xf32>, %r: !tandem.ref<2xf32>):
          %dx = tandem.mul %dy, %old : tensor<2xf32>
          tandem.yield %dx : tensor<2xf32>
      } {writes = array<i64: 0>} : (tensor<2xf32>), (!tandem.ref<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  ASSERT_TRUE(p.run({array({2}, {2, 3}), array({2}, {5, 7})})) << p.diagnostics;
  EXPECT_EQ(p.result(0), Elements({10, 21}));
  EXPECT_EQ(p.argument(1), Elements({10, 21}));
}

TEST(Storage, TheFunctionalFormOfACustomVjp) {
  Program p(R"(
    func.func @graph(%x: tensor<2xf32>, %s: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %y:3 = tandem.custom_vjp "scale" (%x, %s) forward {
        ^bb0(%a: tensor<2xf32>, %old: tensor<2xf32>):
          %b = tandem.mul %a, %old : tensor<2xf32>
          %n = tandem.neg %b : tensor<2xf32>
          tandem.yield %b, %n, %old : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
      } backward {
        ^bb0(%old: tensor<2xf32>, %dy: tensor<2xf32>):
          tandem.yield %dy : tensor<2xf32>
      } {outputs = 1 : i64, saved = 1 : i64, differentiable = 1 : i64} : (tensor<2xf32>, tensor<2xf32>), () -> tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
      return %y#0, %y#1 : tensor<2xf32>, tensor<2xf32>
    })");
  ASSERT_TRUE(p.run({array({2}, {2, 3}), array({2}, {5, 7})})) << p.diagnostics;
  EXPECT_EQ(p.result(0), Elements({10, 21}));
  EXPECT_EQ(p.result(1), Elements({-10, -21}));
}

namespace {
const char *kUndefined = R"(
  func.func @graph(
      %a: tensor<f32> {tandem.role = #tandem.role<cotangent of "a">},
      %b: tensor<f32> {tandem.role = #tandem.role<cotangent of "b">},
      %s: tensor<f32> {tandem.role = #tandem.role<state "s">})
      -> (tensor<f32> {tandem.role = #tandem.role<grad of "sum">},
          tensor<f32> {tandem.role = #tandem.role<grad of "product">},
          tensor<f32> {tandem.role = #tandem.role<grad of "zero">},
          tensor<f32> {tandem.role = #tandem.role<update of "s">},
          tensor<f32> {tandem.role = #tandem.role<grad of "none">}) {
    %sum = tandem.accumulate %a, %b : tensor<f32>
    %product = tandem.mul %a, %s : tensor<f32>
    %zero = tandem.or_zero %b needs [["a", "b"]] : tensor<f32>
    %fresh = tandem.add %zero, %s : tensor<f32>
    %now = tandem.if_defined %fresh else %s when [["a", "b"]] : tensor<f32>
    %none = tandem.undefined : tensor<f32>
    return %sum, %product, %zero, %now, %none : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
  })";
} // namespace

TEST(Storage, J04_UndefinedGradientsAreAbsent) {
  Program p(kUndefined);
  auto texts = [&](std::optional<double> a, std::optional<double> b) {
    auto tensor = [](std::optional<double> x) {
      return x ? std::optional(array({}, {*x})) : std::nullopt;
    };
    EXPECT_TRUE(p.run({tensor(a), tensor(b), array({}, {100})}))
        << p.diagnostics;
    std::vector<std::optional<double>> results;
    for (const auto &result : p.after.results)
      results.push_back(result ? std::optional((*result)[0]) : std::nullopt);
    return results;
  };
  using Texts = std::vector<std::optional<double>>;
  std::optional<double> no;
  EXPECT_EQ(texts(2, 3), Texts({5, 200, 3, 103, no}));
  EXPECT_EQ(texts(2, no), Texts({2, 200, 0, 100, no}));
  EXPECT_EQ(texts(no, 3), Texts({3, no, 3, 103, no}));
  EXPECT_EQ(texts(no, no), Texts({no, no, no, 100, no}));
}

TEST(Storage, AnUndefinedResultIsNoneOfEvaluate) {
  TestModule t(R"(
    func.func @graph() -> tensor<f32> {
      %x = tandem.undefined : tensor<f32>
      return %x : tensor<f32>
    })");
  EXPECT_TRUE(mlir::failed(evaluate(t.function("graph"), {})));
  EXPECT_EQ(t.diagnostics, "result #0 has no value\n");
}
