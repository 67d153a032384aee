//===- CustomVjpTest.cpp - custom_vjp and grad as the tracer records them -===//
#include "tests/compiler/TraceText.h"

#include <stdexcept>

using namespace tandem;

/// A custom_vjp of one input, one ref and one result.
static Tensor
custom(const Tensor &x, const Tensor &s,
       const std::function<Tensor(Tensor, Tensor, Saver &)> &forward,
       const std::function<Tensor(Tensor, Tensor, Tensor)> &backward,
       CustomVjpOptions options = {}) {
  return customVjp(
      "f", {x}, {s},
      [&](const Tensors &in, const Tensors &refs, Saver &saver) -> Tensors {
        return {forward(in[0], refs[0], saver)};
      },
      [&](const Tensors &saved, const Tensors &dy,
          const Tensors &refs) -> Tensors {
        return {backward(saved.empty() ? Tensor() : saved[0], dy[0], refs[0])};
      },
      options)[0];
}

namespace {
struct CustomVjp : testing::Test {
  Trace trace{"m"};
  Tensor x = trace.input("x", {4}, DType::F32, {.requiresGrad = true});
  Tensor s = trace.state("s", {4}, Init::constant(0));
};
} // namespace

TEST_F(CustomVjp, B01_TheBackwardWritesWhatItIsGiven) {
  Tensor y = custom(
      x, s,
      [](Tensor x, Tensor, Saver &saver) {
        saver.save(x);
        return x * x;
      },
      [](Tensor x, Tensor dy, Tensor s) {
        s += dy;
        return dy * x * 2.0;
      });
  trace.output("o", sum(y));
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(text, "tandem.custom_vjp \"f\"(%arg0) refs(%arg1)"))
      << text;
  EXPECT_TRUE(contains(text, "{backward_writes = array<i64: 0>}")) << text;
  // The cotangent is a tensor: nobody writes it.
  EXPECT_TRUE(contains(text, "%arg3: tensor<4xf32> loc")) << text;
  EXPECT_EQ(count(text, "make_ref"), 0) << text;
}

TEST_F(CustomVjp, B05_BothPassesWrite) {
  Tensor y = custom(
      x, s,
      [](Tensor x, Tensor s, Saver &) {
        s.slice(0, 0, 2).zero_();
        return sin(x);
      },
      [](Tensor, Tensor dy, Tensor s) {
        s.resize_(0);
        return dy;
      });
  trace.output("o", sum(y));
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(text, "backward_writes = array<i64: 0>")) << text;
  EXPECT_TRUE(contains(text, ", writes = array<i64: 0>")) << text;
}

TEST_F(CustomVjp, B09_MetadataChangesAreDeclaredToo) {
  Tensor t = trace.state("t", {2, 3}, Init::constant(0));
  customVjp(
      "f", {x}, {s, t},
      [](const Tensors &in, const Tensors &, Saver &) -> Tensors {
        return {sin(in[0])};
      },
      [](const Tensors &, const Tensors &dy, const Tensors &refs) -> Tensors {
        refs[1].transpose_(0, 1);
        return {dy[0]};
      });
  trace.output("o", sum(x));
  EXPECT_TRUE(contains(textOf(trace), "backward_writes = array<i64: 1>"));
}

TEST_F(CustomVjp, B10_AWrittenCotangentIsARef) {
  Tensor y = custom(
      x, s, [](Tensor x, Tensor, Saver &) { return sin(x); },
      [](Tensor, Tensor dy, Tensor) { return dy.mul_(2.0); });
  trace.output("o", y);
  std::string text = textOf(trace);
  EXPECT_TRUE(
      contains(linesWith(text, "^bb0"), "%arg2: !tandem.ref<4xf32> loc"))
      << text;
}

TEST_F(CustomVjp, B12_WhatTheForwardComputedIsTheBackwardsOwn) {
  Tensor y = custom(
      x, s,
      [](Tensor x, Tensor, Saver &saver) {
        Tensor h = sin(x);
        saver.save(h);
        return h * 2.0;
      },
      [](Tensor h, Tensor dy, Tensor) {
        h.mul_(2.0);
        return dy * h;
      });
  trace.output("o", y);
  std::string text = textOf(trace);
  EXPECT_EQ(count(text, "make_ref"), 1) << text;
  EXPECT_FALSE(contains(text, "backward_writes")) << text;
}

TEST_F(CustomVjp, B16_AGradientMayBeMissing) {
  Tensor w = trace.parameter("w", {4}, Init::constant(1));
  Tensor y = customVjp(
      "linear", {x, w}, {s},
      [](const Tensors &in, const Tensors &, Saver &saver) -> Tensors {
        saver.save(in[0]);
        saver.save(in[1]);
        return {in[0] * in[1]};
      },
      [](const Tensors &saved, const Tensors &dy,
         const Tensors &refs) -> Tensors {
        refs[0].add_(dy[0] * saved[0]);
        return {dy[0] * saved[1], Tensor()};
      })[0];
  trace.output("o", sum(y));
  EXPECT_TRUE(contains(textOf(trace), "tandem.undefined : tensor<4xf32>"));
}

TEST_F(CustomVjp, C08_SavedIsTheValueWhenItWasSaved) {
  Tensor y = custom(
      x, s,
      [](Tensor x, Tensor, Saver &saver) {
        Tensor h = sin(x);
        saver.save(h);
        h.mul_(3.0);
        return h.clone();
      },
      [](Tensor h, Tensor dy, Tensor) { return dy * h; });
  trace.output("o", y);
  std::string text = textOf(trace);
  // Before the write h is read twice: for the product, and to be saved.
  EXPECT_EQ(count(text.substr(0, text.find("tandem.write")), "tandem.read"), 2)
      << text;
}

TEST_F(CustomVjp, C09_SavedValuesMayBeUnchecked) {
  Tensor y = custom(
      x, s,
      [](Tensor x, Tensor s, Saver &saver) {
        saver.save(x);
        saver.saveUnchecked(s);
        return sin(x);
      },
      [](Tensor x, Tensor dy, Tensor) { return dy * x; });
  trace.output("o", y);
  EXPECT_TRUE(contains(textOf(trace), "unchecked = array<i64: 1>"));
}

TEST_F(CustomVjp, J12_J15_OptionsAreSaid) {
  Tensor y = custom(
      x, s, [](Tensor x, Tensor, Saver &) { return sin(x); },
      [](Tensor, Tensor dy, Tensor) { return dy; },
      {.undefinedCotangents = true, .firstOrder = true});
  trace.output("o", y);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(text, "first_order")) << text;
  EXPECT_TRUE(contains(text, "undefined_cotangents")) << text;
}

TEST_F(CustomVjp, J11_WrongGradientsAreLeftToTheJoint) {
  Tensor y = customVjp(
      "f", {x}, {},
      [](const Tensors &in, const Tensors &, Saver &) -> Tensors {
        return {sin(in[0])};
      },
      [](const Tensors &, const Tensors &dy, const Tensors &) -> Tensors {
        return {dy[0], sum(dy[0]), Tensor()};
      })[0];
  trace.output("o", y);
  EXPECT_TRUE(
      contains(textOf(trace), "tensor<4xf32>, tensor<f32>, tensor<f32>"));
}

TEST_F(CustomVjp, A14_TheArgumentMayBeReturned) {
  Tensor y = custom(
      x, s, [](Tensor x, Tensor, Saver &) { return x; },
      [](Tensor, Tensor dy, Tensor) { return dy * 2.0; });
  trace.output("o", y);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(linesWith(text, "return"), "tensor<4xf32>")) << text;
}

TEST_F(CustomVjp, A15_UndeclaredAliasesAndEffectsAreMistakes) {
  int line = __LINE__ + 4;
  Tensor a = custom(
      x, s,
      [](Tensor x, Tensor, Saver &) {
        x.mul_(2.0);
        return sin(x);
      },
      [](Tensor, Tensor dy, Tensor) { return dy; });
  EXPECT_FALSE(a.valid());
  custom(
      x, s,
      [](Tensor, Tensor s, Saver &) {
        return s.view({2, 2});
      },
      [](Tensor, Tensor dy, Tensor) { return dy; });
  customVjp(
      "twice", {x}, {},
      [](const Tensors &in, const Tensors &, Saver &) -> Tensors {
        Tensor y = sin(in[0]);
        return {y, y.view({2, 2})};
      },
      [](const Tensors &, const Tensors &dy, const Tensors &) -> Tensors {
        return {dy[0]};
      });
  custom(
      x, s,
      [](Tensor x, Tensor, Saver &saver) {
        saver.save(x);
        return sin(x);
      },
      [](Tensor saved, Tensor dy, Tensor) {
        saved.zero_();
        return dy;
      });
  trace.output("o", sum(x));
  std::string mistakes = mistakeOf(trace);
  EXPECT_TRUE(
      contains(mistakes, "CustomVjpTest.cpp:" + std::to_string(line) + ":"))
      << mistakes;
  EXPECT_TRUE(contains(mistakes,
                       "writes input #0 of custom_vjp \"f\", which is "
                       "a value"))
      << mistakes;
  EXPECT_TRUE(contains(mistakes, "result #0 of custom_vjp \"f\" shares storage "
                                 "with ref #0"))
      << mistakes;
  EXPECT_TRUE(contains(mistakes, "result #1 of custom_vjp \"twice\" shares "
                                 "storage with result #0"))
      << mistakes;
  EXPECT_TRUE(contains(mistakes, "writes input #0 of custom_vjp \"f\", as the "
                                 "forward saved it"))
      << mistakes;
  EXPECT_EQ(count(mistakes, "error:"), 4) << mistakes;
}

TEST_F(CustomVjp, TensorsOfTheOutsideAreAMistakeInside) {
  Tensor outside = sin(x), inside;
  int line = __LINE__ + 2;
  Tensor y = custom(
      x, s, [&](Tensor x, Tensor, Saver &) { return x * outside; },
      [](Tensor, Tensor dy, Tensor) { return dy; });
  custom(
      x, s, [&](Tensor x, Tensor, Saver &) { return inside = sin(x); },
      [&](Tensor, Tensor dy, Tensor) { return dy * inside; });
  EXPECT_FALSE(y.valid());
  trace.output("o", inside * 2.0);
  EXPECT_EQ(inside.shape(), (Shape{4}));
  std::string mistakes = mistakeOf(trace);
  EXPECT_TRUE(
      contains(mistakes, "CustomVjpTest.cpp:" + std::to_string(line) + ":"))
      << mistakes;
  EXPECT_TRUE(contains(mistakes,
                       "expected tensors of the forward of custom_vjp "
                       "\"f\", but got one of the program"))
      << mistakes;
  EXPECT_TRUE(contains(mistakes,
                       "expected tensors of the backward of "
                       "custom_vjp \"f\", but got one of the forward"))
      << mistakes;
  EXPECT_TRUE(contains(mistakes, "expected tensors of the program, but got one "
                                 "of the forward"))
      << mistakes;
}

TEST_F(CustomVjp, OnlyTheProgramDeclaresAndNests) {
  custom(
      x, s,
      [&](Tensor x, Tensor s, Saver &) {
        trace.input("late", {2});
        trace.output("o", x);
        custom(
            x, s, [](Tensor x, Tensor, Saver &) { return x; },
            [](Tensor, Tensor dy, Tensor) { return dy; });
        grad(sum(x), {x});
        return x;
      },
      [](Tensor, Tensor dy, Tensor) { return dy; });
  std::string mistakes = mistakeOf(trace);
  EXPECT_EQ(count(mistakes, "error:"), 4) << mistakes;
  EXPECT_TRUE(contains(mistakes, "not to stand inside of the forward of "
                                 "custom_vjp \"f\""))
      << mistakes;
}

TEST_F(CustomVjp, G02_GradModeOfARegion) {
  Tensor y;
  std::unique_ptr<NoGradScope> left;
  {
    NoGradScope off = trace.noGrad();
    y = custom(
        x, s, [](Tensor x, Tensor, Saver &) { return sin(x); },
        [&](Tensor, Tensor dy, Tensor) {
          NoGradScope inner = trace.noGrad();
          return cos(dy);
        });
  }
  trace.output("o", y);
  std::string text = textOf(trace);
  // The op is in the no-grad region, its forward's ops are not.
  EXPECT_TRUE(
      contains(linesWith(text, "(!tandem.ref<4xf32>) ->"), "tandem.no_grad"))
      << text;
  EXPECT_FALSE(contains(linesWith(text, "tandem.sin"), "tandem.no_grad"));
  EXPECT_TRUE(contains(linesWith(text, "tandem.cos"), "tandem.no_grad"));

  Trace wrong("m");
  custom(
      wrong.input("x", {4}), wrong.input("s", {4}),
      [&](Tensor x, Tensor, Saver &) {
        left = std::make_unique<NoGradScope>(wrong.recorder());
        return sin(x);
      },
      [](Tensor, Tensor dy, Tensor) { return dy; });
  left.reset();
  EXPECT_TRUE(contains(mistakeOf(wrong),
                       "the grad mode is still changed at the "
                       "end of the forward of custom_vjp"));
}

TEST_F(CustomVjp, G02_ExceptionsOfTheFunctionsLeaveTheTraceUsable) {
  Tensor inside;
  for (bool inForward : {true, false})
    EXPECT_THROW(custom(
                     x, s,
                     [&](Tensor x, Tensor, Saver &) {
                       inside = sin(x);
                       NoGradScope off = trace.noGrad();
                       if (inForward)
                         throw std::runtime_error("out");
                       return x;
                     },
                     [&](Tensor, Tensor dy, Tensor) -> Tensor {
                       NoGradScope off = trace.noGrad();
                       inside = cos(dy);
                       throw std::runtime_error("out");
                     }),
                 std::runtime_error);
  EXPECT_EQ(inside.shape(), (Shape{4}));
  trace.output("o", sin(x) + s);
  std::string text = textOf(trace);
  EXPECT_FALSE(contains(text, "custom_vjp") || contains(text, "no_grad") ||
               contains(text, "tandem.cos"))
      << text;
}

TEST_F(CustomVjp, J16_AGradientInsideOfTheProgram) {
  Tensor w = trace.parameter("w", {4}, Init::constant(1));
  Tensor e = sum(sin(x) * w);
  auto forces = grad(e, {x, w});
  ASSERT_EQ(forces.size(), 2u);
  trace.output("loss", sum(forces[0] * forces[1]));
  EXPECT_TRUE(contains(textOf(trace), "tandem.grad %2 wrt(%arg0, %arg2)"));
}

TEST_F(CustomVjp, J16_WrongGradientsAreMistakes) {
  EXPECT_TRUE(grad(sum(x), {}).empty());
  Tensor i = trace.input("i", {4}, DType::I32);
  EXPECT_FALSE(grad(sum(x), {i})[0].valid());
  trace.output("o", sum(x));
  EXPECT_EQ(count(mistakeOf(trace), "error:"), 2);
}
