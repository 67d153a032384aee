//===- BackwardStorageTest.cpp - what a backward writes: rows B10 to B18 --===//
#include "tests/semantics/BackwardPrograms.h"

using namespace tandem;
using namespace tandem::test;
using namespace tandem::test::backward;

namespace {
class BackwardStorage : public RowTest {};
class BackwardStorageCalls : public RowTest {};
} // namespace
TANDEM_ALL_WAYS(BackwardStorage);
TANDEM_COMPILED_WAYS(BackwardStorageCalls);

//===----------------------------------------------------------------------===//
// Cotangents and intermediates
//===----------------------------------------------------------------------===//

namespace {

/// The backward doubles its cotangent in place.
Source cotangentWritten() {
  static const std::string text = graph(kX, R"(
    %o = tandem.custom_vjp "twice" (%x) forward {
      ^bb0(%a: tensor<2xf32>):
        tandem.yield %a : tensor<2xf32>
    } backward {
      ^bb0(%dy: !tandem.ref<2xf32>):
        %d = tandem.read %dy : !tandem.ref<2xf32>
        %dd = tandem.add %d, %d : tensor<2xf32>
        tandem.write %dd into %dy : tensor<2xf32>, !tandem.ref<2xf32>
        tandem.yield %dd : tensor<2xf32>
    } : (tensor<2xf32>), () -> tensor<2xf32>
    return %o : tensor<2xf32>)");
  return {text.c_str(), [](Trace &t) {
            t.output("o", customVjp(
                              "twice", {input(t)}, {},
                              [](const Tensors &in, const Tensors &,
                                 Saver &) -> Tensors { return {in[0]}; },
                              [](const Tensors &, const Tensors &dy,
                                 const Tensors &) -> Tensors {
                                dy[0].add_(dy[0]);
                                return {dy[0]};
                              })[0]);
          }};
}

} // namespace

TEST_P(BackwardStorage, B10_WritesACotangent) {
  EXPECT_PART(printed(cotangentWritten(), "joint"),
              "#tandem.role<update of \"cotangent of o\"");
  auto m = start(cotangentWritten());
  ASSERT_TRUE(m);
  m->set("x", {3, -1});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->contents("o"), {2, 20});
  EXPECT_NUMBERS(m->gradient("x"), {2, 20});
}

TEST_P(BackwardStorageCalls, B10_UnderCreateGraphACotangentThatRequiresGrad) {
  auto m = compiled(cotangentWritten());
  ASSERT_TRUE(m);
  m->set("x", {3, -1});
  ASSERT_EQ(m->forward(), "");
  runtime::Tensor ct = tensorOf(DType::F32, {2}, {1, 10});
  ASSERT_TRUE(ct.setRequiresGrad(true).ok());
  runtime::Tensor dx;
  runtime::Argument cotangents[] = {{"o", &ct}};
  runtime::Destination grads[] = {{"x", &dx}};
  Status status =
      m->model.backward(m->context, cotangents, grads, {.createGraph = true});
  EXPECT_FALSE(status.ok());
  // The message did not say which op writes.
  EXPECT_PART(status.message(), "'tandem.custom_vjp' 'twice' at ");
  EXPECT_PART(status.message(), " writes cotangent of 'o' (index 0)");
  EXPECT_NUMBERS(numbersOf(ct), {1, 10});
  ASSERT_TRUE(m->model.backward(m->context, cotangents, grads).ok());
  EXPECT_NUMBERS(numbersOf(ct), {2, 20});
}

TEST_P(BackwardStorage, B10_MetadataOfACotangent) {
  static const std::string text =
      R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(%x: tensor<2x2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
        -> (tensor<2x2xf32> {tandem.role = #tandem.role<output "o">}) {
      %o = tandem.custom_vjp "flip" (%x) forward {
        ^bb0(%a: tensor<2x2xf32>):
          tandem.yield %a : tensor<2x2xf32>
      } backward {
        ^bb0(%dy: !tandem.ref<2x2xf32>):
          %t = tandem.transpose_ %dy dims 0, 1 : !tandem.ref<2x2xf32> -> !tandem.ref<2x2xf32>
          %d = tandem.read %t : !tandem.ref<2x2xf32>
          tandem.yield %d : tensor<2x2xf32>
      } : (tensor<2x2xf32>), () -> tensor<2x2xf32>
      return %o : tensor<2x2xf32>
    }})";
  std::string error = errorOf(
      {text.c_str(), [](Trace &t) {
         Tensor x = t.input("x", {2, 2}, DType::F32, {.requiresGrad = true});
         t.output("o", customVjp(
                           "flip", {x}, {},
                           [](const Tensors &in, const Tensors &,
                              Saver &) -> Tensors { return {in[0]}; },
                           [](const Tensors &, const Tensors &dy,
                              const Tensors &) -> Tensors {
                             dy[0].transpose_(0, 1);
                             return {dy[0]};
                           })[0]);
       }});
  EXPECT_PART(error, "joint");
  // The message did not say of which output the cotangent is.
  EXPECT_PART(error,
              "'tandem.transpose_' changes the metadata of the cotangent "
              "of 'output \"o\"' (result #0) in a backward");
  EXPECT_PART(error, "in the backward of custom_vjp \"flip\"");
  if (!isTraced())
    EXPECT_PART(error, "row.mlir:9:");
}

namespace {

/// Writes an intermediate in the backward; returns what `returned` says of it.
Source intermediateWritten(int returned) {
  static std::string texts[3];
  const char *endings[] = {
      "%p = tandem.sin %v : tensor<2xf32>\n"
      "return %o, %p : tensor<2xf32>, tensor<2xf32>",
      "return %o, %i : tensor<2xf32>, !tandem.ref<2xf32>",
      "%h = tandem.slice %i from [0] to [2] step [1] : !tandem.ref<2xf32> -> "
      "!tandem.ref<2xf32>\nreturn %o, %h : tensor<2xf32>, !tandem.ref<2xf32>"};
  texts[returned] =
      graph(kX,
            R"(%v = tandem.exp %x : tensor<2xf32>
               %i = tandem.make_ref %v : tensor<2xf32>
    %o = tandem.custom_vjp "keep" (%x) refs(%i) forward {
      ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        tandem.yield %a : tensor<2xf32>
    } backward {
      ^bb0(%dy: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        %old = tandem.read %r : !tandem.ref<2xf32>
        %dx = tandem.mul %dy, %old : tensor<2xf32>
        tandem.write %dx into %r : tensor<2xf32>, !tandem.ref<2xf32>
        tandem.yield %dx : tensor<2xf32>
    } {backward_writes = array<i64: 0>} : (tensor<2xf32>), (!tandem.ref<2xf32>) -> tensor<2xf32>
)" + std::string(endings[returned]),
            std::string(
                R"(tensor<2xf32> {tandem.role = #tandem.role<output "o">}, )") +
                (returned ? "!tandem.ref<2xf32>" : "tensor<2xf32>") +
                R"( {tandem.role = #tandem.role<output "p">})");
  return {texts[returned].c_str(), [returned](Trace &t) {
            Tensor x = input(t);
            Tensor i = exp(x);
            t.output("o", customVjp(
                              "keep", {x}, {i},
                              [](const Tensors &in, const Tensors &,
                                 Saver &) -> Tensors { return {in[0]}; },
                              [](const Tensors &, const Tensors &dy,
                                 const Tensors &refs) -> Tensors {
                                Tensor dx = dy[0] * refs[0];
                                refs[0].copy_(dx);
                                return {dx};
                              })[0]);
            t.output("p", returned == 0   ? sin(i)
                          : returned == 1 ? i
                                          : i.slice(0, 0, 2));
          }};
}

} // namespace

TEST_P(BackwardStorage, B11_WritesWhatTheForwardReturned) {
  for (int returned : {1, 2}) {
    std::string error = errorOf(intermediateWritten(returned));
    EXPECT_PART(error, "joint");
    // The message named neither the output's index nor the op that writes.
    EXPECT_PART(error, "'tandem.write' writes in a backward storage that "
                       "'output \"p\"' (result #1) shows");
    EXPECT_PART(error, "in the backward of custom_vjp \"keep\"");
  }
}

TEST_P(BackwardStorage, B12_AnIntermediateIsPrivate) {
  auto m = start(intermediateWritten(0));
  ASSERT_TRUE(m);
  m->set("x", {0, 1});
  ASSERT_EQ(m->forward(), "");
  for (int call : {1, 2}) {
    ASSERT_EQ(m->backward({{"o", {1, 10}}, {"p", {0, 0}}},
                          {.retainGraph = call == 1}),
              "");
    EXPECT_NUMBERS(m->gradient("x"), {1, 27.18282});
  }
}

TEST_P(BackwardStorage, B12_AStateIsWrittenByEachCall) {
  static const std::string text = graph(kX + ", " + kS, R"(
    %o = tandem.custom_vjp "count" (%x) refs(%s) forward {
      ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        tandem.yield %a : tensor<2xf32>
    } backward {
      ^bb0(%dy: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        %old = tandem.read %r : !tandem.ref<2xf32>
        %sum = tandem.add %old, %dy : tensor<2xf32>
        tandem.write %sum into %r : tensor<2xf32>, !tandem.ref<2xf32>
        tandem.yield %dy : tensor<2xf32>
    } {backward_writes = array<i64: 0>} : (tensor<2xf32>), (!tandem.ref<2xf32>) -> tensor<2xf32>
    return %o : tensor<2xf32>)");
  auto m =
      start({text.c_str(), [](Trace &t) {
               Tensor x = input(t);
               Tensor s = t.state("s", {2}, Init::constant(0));
               t.output("o", customVjp(
                                 "count", {x}, {s},
                                 [](const Tensors &in, const Tensors &,
                                    Saver &) -> Tensors { return {in[0]}; },
                                 [](const Tensors &, const Tensors &dy,
                                    const Tensors &refs) -> Tensors {
                                   refs[0].add_(dy[0]);
                                   return {dy[0]};
                                 })[0]);
             }});
  ASSERT_TRUE(m);
  m->set("x", {0, 1});
  m->set("s", {5, 5});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 10}}}, {.retainGraph = true}), "");
  EXPECT_NUMBERS(m->contents("s"), {6, 15});
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->contents("s"), {7, 25});
}

TEST_P(BackwardStorage, B13_WritesThroughAView) {
  static const std::string text =
      R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
        %s: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<state "s" {init = {kind = "constant", value = 0.0}}>})
        -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
      %t = tandem.permute %s by [1, 0] : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
      %row = tandem.slice %t from [1, 0] to [2, 2] step [1, 1] : !tandem.ref<3x2xf32> -> !tandem.ref<1x2xf32>
      %v = tandem.reshape %row to [2] : !tandem.ref<1x2xf32> -> !tandem.ref<2xf32>
      %o = tandem.custom_vjp "column" (%x) refs(%v, %s) forward {
        ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>, %q: !tandem.ref<2x3xf32>):
          tandem.yield %a : tensor<2xf32>
      } backward {
        ^bb0(%dy: tensor<2xf32>, %r: !tandem.ref<2xf32>, %q: !tandem.ref<2x3xf32>):
          tandem.write %dy into %r : tensor<2xf32>, !tandem.ref<2xf32>
          %now = tandem.read %q : !tandem.ref<2x3xf32>
          %sum = tandem.reduce_sum %now over [1] : tensor<2x3xf32> -> tensor<2xf32>
          tandem.yield %sum : tensor<2xf32>
      } {backward_writes = array<i64: 0>} : (tensor<2xf32>), (!tandem.ref<2xf32>, !tandem.ref<2x3xf32>) -> tensor<2xf32>
      return %o : tensor<2xf32>
    }})";
  auto m = start(
      {text.c_str(), [](Trace &t) {
         Tensor x = input(t);
         Tensor s = t.state("s", {2, 3}, Init::constant(0));
         t.output("o", customVjp(
                           "column", {x}, {s.transpose(0, 1).select(0, 1), s},
                           [](const Tensors &in, const Tensors &,
                              Saver &) -> Tensors { return {in[0]}; },
                           [](const Tensors &, const Tensors &dy,
                              const Tensors &refs) -> Tensors {
                             refs[0].copy_(dy[0]);
                             return {sum(refs[1], {1})};
                           })[0]);
       }});
  ASSERT_TRUE(m);
  m->set("x", {0, 1});
  m->set("s", {1, 2, 3, 4, 5, 6});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {10, 20}}}), "");
  EXPECT_NUMBERS(m->contents("s"), {1, 10, 3, 4, 20, 6});
  EXPECT_NUMBERS(m->gradient("x"), {14, 30});
}

TEST_P(BackwardStorage, B14_TwoBackwardsWriteOneState) {
  auto add = [](const std::string &x, const std::string &factor,
                const std::string &name) {
    return name + " = tandem.custom_vjp \"f\" (" + x + R"() refs(%s) forward {
      ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        tandem.yield %a : tensor<2xf32>
    } backward {
      ^bb0(%dy: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        %f = tandem.constant dense<)" +
           factor + R"(> : tensor<2xf32>
        %old = tandem.read %r : !tandem.ref<2xf32>
        %m = tandem.mul %old, %f : tensor<2xf32>
        %n = tandem.add %m, %dy : tensor<2xf32>
        tandem.write %n into %r : tensor<2xf32>, !tandem.ref<2xf32>
        tandem.yield %dy : tensor<2xf32>
    } {backward_writes = array<i64: 0>} : (tensor<2xf32>), (!tandem.ref<2xf32>) -> tensor<2xf32>
)";
  };
  static const std::string text =
      graph(kX + ", " + kS, add("%x", "2.0", "%p") + add("%p", "3.0", "%o") +
                                "return %o : tensor<2xf32>");
  auto traced = [](const Tensor &x, const Tensor &s, double factor) {
    return customVjp(
        "f", {x}, {s},
        [](const Tensors &in, const Tensors &, Saver &) -> Tensors {
          return {in[0]};
        },
        [factor](const Tensors &, const Tensors &dy,
                 const Tensors &refs) -> Tensors {
          refs[0].copy_(refs[0] * factor + dy[0]);
          return {dy[0]};
        })[0];
  };
  auto m = start({text.c_str(), [traced](Trace &t) {
                    Tensor x = input(t);
                    Tensor s = t.state("s", {2}, Init::constant(0));
                    t.output("o", traced(traced(x, s, 2), s, 3));
                  }});
  ASSERT_TRUE(m);
  m->set("x", {0, 1});
  m->set("s", {1, 2});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {10, 20}}}), "");
  // The later op first: (3 s + dy), then 2 of that + dy.
  EXPECT_NUMBERS(m->contents("s"), {2 * 13 + 10, 2 * 26 + 20});
}

TEST_P(BackwardStorage, B15_AReadBeforeTheWriteSeesTheOldValue) {
  static const std::string text = graph(kXRef, R"(
    %v = tandem.read %x : !tandem.ref<2xf32>
    %o = tandem.custom_vjp "swap" (%v) refs(%x) forward {
      ^bb0(%a: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        tandem.yield %a : tensor<2xf32>
    } backward {
      ^bb0(%dy: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        %old = tandem.read %r : !tandem.ref<2xf32>
        tandem.write %dy into %r : tensor<2xf32>, !tandem.ref<2xf32>
        %now = tandem.read %r : !tandem.ref<2xf32>
        %dx = tandem.sub %old, %now : tensor<2xf32>
        tandem.yield %dx : tensor<2xf32>
    } {backward_writes = array<i64: 0>} : (tensor<2xf32>), (!tandem.ref<2xf32>) -> tensor<2xf32>
    return %o : tensor<2xf32>)");
  auto m =
      start({text.c_str(), [](Trace &t) {
               Tensor x = input(t);
               t.output("o", customVjp(
                                 "swap", {x}, {x},
                                 [](const Tensors &in, const Tensors &,
                                    Saver &) -> Tensors { return {in[0]}; },
                                 [](const Tensors &, const Tensors &dy,
                                    const Tensors &refs) -> Tensors {
                                   Tensor old = refs[0].clone();
                                   refs[0].copy_(dy[0]);
                                   return {old - refs[0]};
                                 })[0]);
             }});
  ASSERT_TRUE(m);
  m->set("x", {7, 9});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 2}}}), "");
  EXPECT_NUMBERS(m->contents("x"), {1, 2});
  EXPECT_NUMBERS(m->gradient("x"), {6, 7});
}

TEST_P(BackwardStorage, B16_AMainGradientAndNoneForTheParam) {
  static const std::string text = graph(
      kX +
          R"(, %w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}, )" +
          kS,
      R"(
    %o = tandem.custom_vjp "scale" (%x, %w) refs(%s) forward {
      ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        %y = tandem.mul %a, %b : tensor<2xf32>
        tandem.yield %y, %a, %b : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    } backward {
      ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>, %dy: tensor<2xf32>, %r: !tandem.ref<2xf32>):
        %old = tandem.read %r : !tandem.ref<2xf32>
        %dw = tandem.mul %dy, %a : tensor<2xf32>
        %sum = tandem.add %old, %dw : tensor<2xf32>
        tandem.write %sum into %r : tensor<2xf32>, !tandem.ref<2xf32>
        %dx = tandem.mul %dy, %b : tensor<2xf32>
        %none = tandem.undefined : tensor<2xf32>
        tandem.yield %dx, %none : tensor<2xf32>, tensor<2xf32>
    } {backward_writes = array<i64: 0>} : (tensor<2xf32>, tensor<2xf32>), (!tandem.ref<2xf32>) -> tensor<2xf32>
    return %o : tensor<2xf32>)");
  auto m =
      start({text.c_str(), [](Trace &t) {
               Tensor x = input(t);
               Tensor w = t.parameter("w", {2}, Init::constant(1));
               Tensor s = t.state("s", {2}, Init::constant(0));
               t.output("o", customVjp(
                                 "scale", {x, w}, {s},
                                 [](const Tensors &in, const Tensors &,
                                    Saver &saver) -> Tensors {
                                   saver.save(in[0]);
                                   saver.save(in[1]);
                                   return {in[0] * in[1]};
                                 },
                                 [](const Tensors &saved, const Tensors &dy,
                                    const Tensors &refs) -> Tensors {
                                   refs[0].add_(dy[0] * saved[0]);
                                   return {dy[0] * saved[1], Tensor()};
                                 })[0]);
             }});
  ASSERT_TRUE(m);
  m->set("x", {3, 4});
  m->set("w", {5, 6});
  m->set("s", {100, 200});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {1, 10}}}), "");
  EXPECT_NUMBERS(m->contents("s"), {103, 240});
  EXPECT_NUMBERS(m->gradient("x"), {5, 60});
  EXPECT_EQ(m->gradient("w"), std::nullopt);
}

TEST_P(BackwardStorage, B17_RunsIfADefinedCotangentReachesIt) {
  static const std::string text = graph(
      kX + ", " + kS,
      squareInto("%x", "%s") + "%p = tandem.exp %x : tensor<2xf32>\n"
                               "return %o, %p : tensor<2xf32>, tensor<2xf32>",
      R"(tensor<2xf32> {tandem.role = #tandem.role<output "o">},
               tensor<2xf32> {tandem.role = #tandem.role<output "p">})");
  auto m = start({text.c_str(), [](Trace &t) {
                    Tensor x = input(t);
                    Tensor s = t.state("s", {2}, Init::constant(0));
                    t.output("o", squareInto(x, s));
                    t.output("p", exp(x));
                  }});
  ASSERT_TRUE(m);
  m->set("x", {0, 1});
  m->set("s", {7, 8});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"p", {1, 1}}}, {.retainGraph = true}), "");
  EXPECT_NUMBERS(m->contents("s"), {7, 8});
  EXPECT_NUMBERS(m->gradient("x"), {1, 2.718282});
  ASSERT_EQ(m->backward({{"o", {1, 1}}}, {.retainGraph = true}), "");
  EXPECT_NUMBERS(m->contents("s"), {1, 1});
  EXPECT_NUMBERS(m->gradient("x"), {0, 2});
  ASSERT_EQ(m->backward({{"o", {2, 2}}, {"p", {1, 1}}}), "");
  EXPECT_NUMBERS(m->contents("s"), {2, 2});
  EXPECT_NUMBERS(m->gradient("x"), {1, 4 + 2.718282});
}

TEST_P(BackwardStorageCalls, B18_AnotherContextSavedWhatIsWritten) {
  static const std::string text = graph(
      kX, "%o = tandem.sin %x : tensor<2xf32>\nreturn %o : tensor<2xf32>");
  auto writes = compiled(inputWritten());
  auto saves =
      compiled({text.c_str(), [](Trace &t) { t.output("o", sin(input(t))); }});
  ASSERT_TRUE(writes && saves);
  writes->set("x", {3, -1});
  saves->tensors["x"] = writes->tensors["x"];
  ASSERT_EQ(writes->forward(), "");
  ASSERT_EQ(saves->forward(), "");
  ASSERT_EQ(writes->backward({{"o", {1, 10}}}), "");
  std::string error = saves->backward({{"o", {1, 1}}});
  EXPECT_PART(error, "'x'");
  EXPECT_PART(error, "written");
  EXPECT_PART(error, "tandem.sin");
}
