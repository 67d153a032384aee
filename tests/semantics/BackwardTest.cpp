//===- BackwardTest.cpp - writes of the backward: rows B01 to B09 ---------===//
#include "tests/semantics/BackwardPrograms.h"

using namespace tandem;
using namespace tandem::test;
using namespace tandem::test::backward;

namespace {

class Backward : public RowTest {};
class BackwardCalls : public RowTest {};

/// B01: the state is written.
Source stateWritten() {
  static const std::string text = graph(
      kX + ", " + kS, squareInto("%x", "%s") + "return %o : tensor<2xf32>");
  return {text.c_str(), [](Trace &t) {
            Tensor x = input(t);
            Tensor s = t.state("s", {2}, Init::constant(0));
            t.output("o", squareInto(x, s));
          }};
}

/// B05: it is written by the forward as well.
Source inputWrittenTwice() {
  static const std::string text = graph(kXRef, R"(
        %v = tandem.read %x : !tandem.ref<2xf32>
        %twice = tandem.add %v, %v : tensor<2xf32>
        tandem.write %twice into %x : tensor<2xf32>, !tandem.ref<2xf32>
        %n = tandem.read %x : !tandem.ref<2xf32>
)" + squareInto("%n", "%x") + "return %o : tensor<2xf32>");
  return {text.c_str(), [](Trace &t) {
            Tensor x = input(t);
            x.add_(x);
            t.output("o", squareInto(x, x));
          }};
}

CompileOptions partitionBy(const std::string &kind) {
  CompileOptions options;
  options.partition = kind;
  return options;
}

} // namespace

TANDEM_ALL_WAYS(Backward);
TANDEM_COMPILED_WAYS(BackwardCalls);

TEST_P(Backward, B01_WritesAState) {
  EXPECT_PART(printed(stateWritten(), "joint"),
              "#tandem.role<update of \"s\" {pass = \"backward\"");
  auto m = start(stateWritten());
  ASSERT_TRUE(m);
  m->set("x", {3, -1});
  m->set("s", {7, 8});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("s"), {7, 8});
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->contents("s"), {1, 10});
  EXPECT_NUMBERS(m->gradient("x"), {6, -20});
}

TEST_P(Backward, B02_WritesAnInputThatRequiresGrad) {
  EXPECT_PART(printed(inputWritten(), "joint"),
              "tandem.mutated_in_backward = array<i64: 0>");
  auto m = start(inputWritten());
  ASSERT_TRUE(m);
  m->set("x", {3, -1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {3, -1});
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->contents("x"), {1, 10});
  EXPECT_NUMBERS(m->gradient("x"), {6, -20});
}

TEST_P(BackwardCalls, B02_TheManifestHasTheIndex) {
  auto m = compiled(inputWritten());
  ASSERT_TRUE(m);
  EXPECT_EQ(m->model.manifest().mutatedInBackward, std::vector<int64_t>{0});
  EXPECT_EQ(m->model.manifest().values[0].name, "x");
}

TEST_P(BackwardCalls, B03_CreateGraphNamesEveryInput) {
  static const std::string text = graph(
      R"(%p: tensor<2xf32> {tandem.role = #tandem.role<input "p">},
         %x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
         %z: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "z" {requires_grad}>})",
      "%v = tandem.read %x : !tandem.ref<2xf32>\n" + squareInto("%v", "%x") +
          "%q = tandem.mul %o, %p : tensor<2xf32>\n" +
          squareInto("%q", "%z", "%r") + "return %r : tensor<2xf32>");
  Source source{text.c_str(), [](Trace &t) {
                  Tensor p = t.input("p", {2});
                  Tensor x = input(t);
                  Tensor z = input(t, "z");
                  t.output("o", squareInto(squareInto(x, x) * p, z));
                }};
  auto m = compiled(source);
  ASSERT_TRUE(m);
  m->set("p", {1, 1});
  m->set("x", {3, -1});
  m->set("z", {5, 5});
  ASSERT_EQ(m->forward(), "");
  std::string error = m->backward({{"o", {1, 1}}}, {.createGraph = true});
  // The message did not say which op writes.
  EXPECT_PART(error, "'x' (index 1) by 'tandem.custom_vjp' 'square' at ");
  EXPECT_PART(error, "'z' (index 2) by 'tandem.custom_vjp' 'square' at ");
  EXPECT_FALSE(contains(error, "'p'")) << error;
  EXPECT_NUMBERS(m->contents("x"), {3, -1});
  EXPECT_NUMBERS(m->contents("z"), {5, 5});
  // The context still serves.
  ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
  EXPECT_NUMBERS(m->contents("z"), {1, 1});
  EXPECT_NUMBERS(m->gradient("x"), {4 * 27, -4});
}

TEST_P(BackwardCalls, B04_CreateGraphWhereOnlyAStateIsWritten) {
  auto m = compiled(stateWritten());
  ASSERT_TRUE(m);
  EXPECT_TRUE(m->model.manifest().mutatedInBackward.empty());
  m->set("x", {3, -1});
  m->set("s", {7, 8});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 10}}}, {.createGraph = true}), "");
  EXPECT_NUMBERS(m->contents("s"), {1, 10});
}

TEST_P(Backward, B05_WritesInBothPasses) {
  std::string joint = printed(inputWrittenTwice(), "joint");
  EXPECT_PART(joint, "#tandem.role<update of \"x\" {visible");
  EXPECT_PART(joint, "#tandem.role<update of \"x\" {pass = \"backward\"");
  EXPECT_PART(joint, "tandem.mutated_in_backward = array<i64: 0>");
  auto m = start(inputWrittenTwice());
  ASSERT_TRUE(m);
  m->set("x", {3, -1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {6, -2});
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->contents("x"), {1, 10});
  EXPECT_NUMBERS(m->gradient("x"), {24, -80});
}

TEST_P(BackwardCalls, B05_CreateGraphIsRefused) {
  auto m = compiled(inputWrittenTwice());
  ASSERT_TRUE(m);
  m->set("x", {3, -1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_PART(m->backward({{"o", {1, 1}}}, {.createGraph = true}),
              "'x' (index 0)");
  EXPECT_NUMBERS(m->contents("x"), {6, -2});
}

TEST_P(Backward, B06_TheListIsMadeByTheJointAndSealed) {
  const std::string name = "tandem.mutated_in_backward";
  EXPECT_FALSE(contains(printed(inputWritten(), "functionalize"), name));
  for (const char *phase : {"joint", "optimize", "partition", "plan"}) {
    std::string text = printed(inputWritten(), phase);
    const std::string list = name + " = array<i64: 0>";
    size_t at = text.find(list);
    ASSERT_NE(at, std::string::npos) << phase << ": " << text;
    std::string changed = text, removed = text;
    changed.replace(at, list.size(), name + " = array<i64: 0, 1>");
    // What is read again is text, whichever way it came about.
    if (isTraced())
      continue;
    EXPECT_PART(errorOf({changed.c_str(), {}}), name) << phase;
    removed.replace(at, list.size() + 2, "");
    EXPECT_PART(errorOf({removed.c_str(), {}}), name) << phase;
  }
}

TEST_P(Backward, B07_AWriteWithoutCotangentsStaysInTheBackward) {
  static const std::string text = graph(kX + ", " + kS, R"(
    %o = tandem.custom_vjp "note" (%x) refs(%s) forward {
      ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        %y = tandem.sin %a : tensor<2xf32>
        tandem.yield %y, %a : tensor<2xf32>, tensor<2xf32>
    } backward {
      ^bb0(%a: tensor<2xf32>, %dy: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        %two = tandem.add %a, %a : tensor<2xf32>
        tandem.write %two into %r : tensor<2xf32>, !tandem.ref<2xf32>
        tandem.yield %dy : tensor<2xf32>
    } {backward_writes = array<i64: 0>} : (tensor<2xf32>), (!tandem.ref<2xf32>) -> tensor<2xf32>
    return %o : tensor<2xf32>)");
  Source source{text.c_str(), [](Trace &t) {
                  Tensor x = input(t);
                  Tensor s = t.state("s", {2}, Init::constant(0));
                  t.output("o", customVjp(
                                    "note", {x}, {s},
                                    [](const Tensors &in, const Tensors &,
                                       Saver &saver) -> Tensors {
                                      saver.save(in[0]);
                                      return {sin(in[0])};
                                    },
                                    [](const Tensors &saved, const Tensors &dy,
                                       const Tensors &refs) -> Tensors {
                                      refs[0].copy_(saved[0] + saved[0]);
                                      return {dy[0]};
                                    })[0]);
                }};
  for (const char *kind : {"default", "min-cut"}) {
    auto m = start(source, partitionBy(kind));
    ASSERT_TRUE(m);
    m->set("x", {3, -1});
    m->set("s", {7, 8});
    ASSERT_EQ(m->forward(), "");
    EXPECT_NUMBERS(m->contents("s"), {7, 8});
    ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
    EXPECT_NUMBERS(m->contents("s"), {6, -2});
  }
}

TEST_P(Backward, B08_NothingIsComputedAgainFromAWrittenInput) {
  static const std::string text =
      graph(kXRef, "%v = tandem.read %x : !tandem.ref<2xf32>\n" +
                       squareInto("%v", "%x", "%c") + R"(
        %e = tandem.exp %v : tensor<2xf32>
        %o = tandem.mul %c, %e : tensor<2xf32>
        return %o : tensor<2xf32>)");
  Source source{text.c_str(), [](Trace &t) {
                  Tensor x = input(t);
                  Tensor c = squareInto(x, x);
                  t.output("o", c * exp(x));
                }};
  for (const char *kind : {"default", "min-cut"}) {
    auto m = start(source, partitionBy(kind));
    ASSERT_TRUE(m);
    m->set("x", {1, 0.5});
    ASSERT_EQ(m->forward(), "");
    ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
    // The cotangent of c is e = exp(x).
    EXPECT_NUMBERS(m->contents("x"), {2.718282, 1.648721});
    EXPECT_NUMBERS(m->gradient("x"), {3 * 2.718282, 1.25 * 1.648721});
  }
}

//===----------------------------------------------------------------------===//
// What a backward cannot do
//===----------------------------------------------------------------------===//

namespace {

/// A backward that does `body` to its ref %r, a view of a square x.
std::string turning(const std::string &body) {
  return R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(%x: !tandem.ref<2x2xf32> {tandem.role = #tandem.role<input "x">},
        %w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
        -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
      %o = tandem.custom_vjp "turn" (%w) refs(%x) forward {
        ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2x2xf32>):
          tandem.yield %a : tensor<2xf32>
      } backward {
        ^bb0(%dy: tensor<2xf32>, %r: !tandem.ref<2x2xf32>):
          )" +
         body + R"(
          tandem.yield %dy : tensor<2xf32>
      } {backward_writes = array<i64: 0>} : (tensor<2xf32>), (!tandem.ref<2x2xf32>) -> tensor<2xf32>
      return %o : tensor<2xf32>
    }})";
}

std::function<void(Trace &)>
turning(std::function<void(const Tensor &)> change) {
  return [change](Trace &t) {
    Tensor x = t.input("x", {2, 2});
    Tensor w = t.parameter("w", {2}, Init::constant(1));
    t.output("o", customVjp(
                      "turn", {w}, {x},
                      [](const Tensors &in, const Tensors &,
                         Saver &) -> Tensors { return {in[0]}; },
                      [change](const Tensors &, const Tensors &dy,
                               const Tensors &refs) -> Tensors {
                        change(refs[0]);
                        return {dy[0]};
                      })[0]);
  };
}

} // namespace

TEST_P(Backward, B09_MetadataStorageAndSizeAreNotABackwards) {
  struct {
    std::string text;
    std::function<void(const Tensor &)> change;
    const char *op, *what;
  } cases[] = {
      {"%t = tandem.transpose_ %r dims 0, 1 : !tandem.ref<2x2xf32> -> "
       "!tandem.ref<2x2xf32>",
       [](const Tensor &r) { r.transpose_(0, 1); }, "'tandem.transpose_'",
       "metadata"},
      {"%v = tandem.read %r : !tandem.ref<2x2xf32>\n"
       "%n = tandem.make_ref %v : tensor<2x2xf32>\n"
       "%t = tandem.set_ %r to %n : !tandem.ref<2x2xf32>, !tandem.ref<2x2xf32>",
       [](const Tensor &r) { r.set_(r.clone()); }, "'tandem.set_'", "storage"},
      {"tandem.resize_ %r to 0 : !tandem.ref<2x2xf32>",
       [](const Tensor &r) { r.resize_(0); }, "'tandem.resize_'", "size"},
  };
  for (auto &one : cases) {
    std::string text = turning(one.text);
    std::string error = errorOf({text.c_str(), turning(one.change)});
    EXPECT_PART(error, "joint");
    // The message did not have the input's index.
    EXPECT_PART(error, std::string(one.op) + " changes the " + one.what +
                           " of 'input \"x\"' (argument #0) in a backward");
    EXPECT_PART(error, "in the backward of custom_vjp \"turn\"");
  }
}

TEST_P(Backward, B09_ChangesThatCancelAreAccepted) {
  std::string text =
      turning("%t = tandem.transpose_ %r dims 0, 1 : !tandem.ref<2x2xf32> -> "
              "!tandem.ref<2x2xf32>\n"
              "%u = tandem.transpose_ %t dims 1, 0 : !tandem.ref<2x2xf32> -> "
              "!tandem.ref<2x2xf32>");
  auto m = start({text.c_str(), turning([](const Tensor &r) {
                    r.transpose_(0, 1);
                    r.transpose_(1, 0);
                  })});
  ASSERT_TRUE(m);
  m->set("x", {1, 2, 3, 4});
  m->set("w", {5, 6});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->contents("x"), {1, 2, 3, 4});
  EXPECT_NUMBERS(m->gradient("w"), {1, 10});
}
