//===- PrecisionTest.cpp - mixed precision --------------------------------===//
//
// Rows G02 to G05 and T01. What a model becomes is compared with the same model
// whose casts are written down, to the bit.
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/Regression.h"

#include <cstring>

using namespace tandem;
using namespace tandem::test;

namespace {

class Precision : public RowTest {
protected:
  /// A small network with everything that has a class: products, what follows
  /// them, a normalization, softmax and a loss. Its casts are those of
  /// `written`, or none.
  static Source network(std::optional<DType> written) {
    return {
        nullptr, [written](Trace &t) {
          auto low = [&](const Tensor &x) {
            return written ? cast(x, *written) : x;
          };
          auto full = [&](const Tensor &x) {
            return written ? cast(x, DType::F32) : x;
          };
          Tensor x = t.input("x", {4, 6}, DType::F32, {.requiresGrad = true});
          Tensor labels = t.input("labels", {4}, DType::I64, {.high = 3});
          Tensor w1 = t.parameter("w1", {8, 6}, Init::uniform(-0.5, 0.5));
          Tensor b1 = t.parameter("b1", {8}, Init::uniform(-0.5, 0.5));
          Tensor w2 = t.parameter("w2", {6, 8}, Init::uniform(-0.5, 0.5));
          Tensor scale = t.parameter("scale", {6}, Init::constant(1));
          Tensor shift = t.parameter("shift", {6}, Init::constant(0));
          Tensor w3 = t.parameter("w3", {3, 6}, Init::uniform(-0.5, 0.5));
          // The sum of a residual is of f32, as its other part is.
          Tensor h = relu(linear(low(x), low(w1), low(b1)));
          Tensor y = x + full(linear(h, low(w2)));
          Tensor n = layerNorm(y, scale, shift, 1);
          Tensor logits = linear(low(n), low(w3));
          t.output("logits", full(logits));
          t.output("loss", crossEntropy(full(logits), labels));
        }};
  }

  static void feed(CompiledMachine &m, int step) {
    Numbers rows;
    for (int i = 0; i < 24; ++i)
      rows.push_back(double((i + 24 * step) * 37 % 23) / 11 - 1);
    m.set("x", rows);
    m.set("labels", {0, 1, 2, double(step % 3)});
  }
};

} // namespace
TANDEM_WAYS(Precision, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

TEST_P(Precision, T01_IsTheProgramWithItsCastsWrittenOut) {
  for (auto [amp, optimizer] :
       {std::pair("bf16", "adamw:lr=0.1"), std::pair("f16", "sgd:lr=0.1")}) {
    SCOPED_TRACE(amp);
    CompileOptions options;
    options.optimizer = optimizer;
    auto written =
        compiled(network(amp[0] == 'b' ? DType::BF16 : DType::F16), options);
    auto plain = compiled(network(std::nullopt), options);
    options.amp = amp;
    auto mixed = compiled(network(std::nullopt), options);
    ASSERT_TRUE(written && mixed && plain);
    bool differs = false;
    for (int i = 0; i < 5; ++i) {
      for (CompiledMachine *m : {written.get(), mixed.get(), plain.get()}) {
        feed(*m, i);
        runtime::Argument inputs[] = {{"x", &m->tensors["x"]},
                                      {"labels", &m->tensors["labels"]}};
        Status status = m->model.step(inputs, {});
        ASSERT_TRUE(status.ok()) << status.message();
      }
      for (const artifact::Value &value : mixed->model.manifest().values) {
        if (value.role != artifact::Role::Param &&
            value.role != artifact::Role::State)
          continue;
        // Main weights and states of the optimizer.
        EXPECT_EQ(value.dtype, DType::F32) << value.name;
        EXPECT_EQ(mixed->contents(value.name), written->contents(value.name))
            << value.name << ", step " << i;
        differs |= mixed->contents(value.name) != plain->contents(value.name);
      }
    }
    EXPECT_TRUE(differs) << "nothing was low";
  }
}

TEST_P(Precision, G03_ParamsAndTheirGradientsKeepTheirTypes) {
  CompileOptions options;
  options.amp = "bf16";
  auto m = compiled(network(std::nullopt), options);
  ASSERT_TRUE(m);
  feed(*m, 0);
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"loss", {1}}}), "");
  for (const char *name : {"w1", "b1", "w2", "scale", "shift", "w3", "x"})
    EXPECT_EQ(m->gradTensors.at(name).dtype(), DType::F32) << name;
  EXPECT_EQ(m->outputTensors.at("loss").dtype(), DType::F32);
  EXPECT_EQ(m->outputTensors.at("logits").dtype(), DType::F32);
}

// Contractions are low in the region and nowhere else; an inner region that is
// off is off.
TEST_P(Precision, G03_RegionsOfAProgram) {
  Source source{nullptr, [](Trace &t) {
                  Tensor x = t.input("x", {2, 2});
                  Tensor w = t.parameter("w", {2, 2}, Init::constant(0.5));
                  Tensor outside = matmul(x, w);
                  Tensor inside, off;
                  {
                    AutocastScope scope = t.autocast(DType::BF16);
                    inside = matmul(outside, w);
                    {
                      AutocastScope inner = t.autocast(std::nullopt);
                      off = matmul(inside, w);
                    }
                    inside = softmax(matmul(off, w), 1);
                  }
                  t.output("loss", sum(matmul(inside, w)));
                }};
  std::string joint = printed(source, "joint");
  std::string forward = joint.substr(joint.find("@evaluate"));
  forward = forward.substr(0, forward.find("return"));
  EXPECT_EQ(count(forward, "-> tensor<2x2xbf16>"), 2) << forward;
  EXPECT_EQ(
      count(forward, "tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>"), 3)
      << forward;
  // The sums of softmax.
  EXPECT_EQ(count(forward, "reduce_max"),
            count(forward, "over [1] : tensor<2x2xf32>") - 1)
      << forward;
}

// `--amp` is a region around the whole, in which the same holds.
TEST_P(Precision, G03_AnInnerRegionThatIsOff) {
  auto source = [](bool isOff) {
    return Source{nullptr, [isOff](Trace &t) {
                    Tensor x = t.input("x", {2, 2});
                    Tensor w = t.parameter("w", {2, 2}, Init::constant(0.3));
                    std::optional<AutocastScope> scope;
                    if (isOff)
                      scope.emplace(t.recorder(), std::nullopt);
                    t.output("loss", sum(matmul(x, w)));
                  }};
  };
  CompileOptions options;
  options.amp = "bf16";
  EXPECT_EQ(count(printed(source(true), "joint", options), "bf16"), 0);
  EXPECT_GT(count(printed(source(false), "joint", options), "bf16"), 0);
}

TEST_P(Precision, G02_MixedPrecisionThatIsLeftSet) {
  Source source{
      nullptr, [](Trace &t) {
        Tensor x = t.input("x", {2, 2});
        // Never left: what it would tell is gone by then.
        alignas(AutocastScope) static std::byte scope[sizeof(AutocastScope)];
        new (scope) AutocastScope(t.recorder(), DType::BF16);
        t.output("y", matmul(x, x));
      }};
  EXPECT_PART(captured(source),
              "mixed precision is still set at the end of the program");
}

TEST_P(Precision, G04_TheBackwardHasTheTypesOfItsForwardOps) {
  CompileOptions options;
  options.amp = "bf16";
  auto backwardProducts = [&](const char *type) {
    std::string joint = printed(network(std::nullopt), "joint", options);
    int products = 0;
    size_t begin = joint.find("@joint"), end = joint.find("return", begin);
    for (size_t at = begin; (at = joint.find("tandem.matmul", at)) < end;
         ++at) {
      std::string line = joint.substr(at, joint.find('\n', at) - at);
      if (contains(line, "backward") &&
          contains(line, std::string("-> tensor<")))
        products += contains(line.substr(line.find("->")), type);
    }
    return products;
  };
  EXPECT_EQ(backwardProducts("xf32>"), 0);
  int low = backwardProducts("xbf16>");
  EXPECT_GE(low, 5);
  // Off.
  options.precision = {"backward:f32"};
  EXPECT_EQ(backwardProducts("xf32>"), low);
  EXPECT_EQ(backwardProducts("xbf16>"), 0);
  // Named.
  options.precision = {"backward:f16"};
  options.amp = "";
  EXPECT_EQ(backwardProducts("xf16>"), low);
  EXPECT_EQ(backwardProducts("xf32>"), 0);
}

// A backward in f32 behind a forward in bf16 is nearer to f32's.
TEST_P(Precision, G04_ABackwardInF32IsMoreExact) {
  auto gradients = [&](std::string amp, std::vector<std::string> precision) {
    CompileOptions options;
    options.amp = std::move(amp);
    options.precision = std::move(precision);
    auto m = compiled(network(std::nullopt), options);
    EXPECT_TRUE(m);
    feed(*m, 1);
    EXPECT_EQ(m->forward(), "");
    EXPECT_EQ(m->backward({{"loss", {1}}}), "");
    return m->gradients;
  };
  NamedNumbers low = gradients("bf16", {}),
               mixed = gradients("bf16", {"backward:f32"});
  // In bf16 its last rounding shows: 16 bits are zero.
  auto lowBits = [](const Numbers &numbers) {
    int others = 0;
    for (double number : numbers) {
      float f = float(number);
      uint32_t bits;
      std::memcpy(&bits, &f, sizeof(bits));
      others += (bits & 0xffff) != 0;
    }
    return others;
  };
  EXPECT_EQ(lowBits(low.at("w1")), 0);
  EXPECT_GT(lowBits(mixed.at("w1")), 20);
}

// One path, in a type of its own.
TEST_P(Precision, G04_OpsByTheirPaths) {
  Source source{nullptr, [](Trace &t) {
                  Tensor x = t.input("x", {2, 2});
                  Tensor w = t.parameter("w", {2, 2}, Init::constant(0.3));
                  Tensor h;
                  {
                    ModuleScope scope = t.module("first");
                    h = matmul(x, w);
                  }
                  {
                    ModuleScope scope = t.module("second");
                    h = matmul(h, w);
                  }
                  t.output("loss", sum(h));
                }};
  CompileOptions options;
  options.amp = "bf16";
  options.precision = {"^first:f32"};
  std::string graph = printed(source, "joint", options);
  graph = graph.substr(graph.find("@evaluate"));
  graph = graph.substr(0, graph.find("return"));
  EXPECT_EQ(count(graph, "-> tensor<2x2xbf16>"), 1) << graph;
  EXPECT_EQ(count(graph, "tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>"),
            1)
      << graph;
  options.precision = {"frist:f32"};
  EXPECT_PART(errorOf(source, options),
              "--precision=frist:f32 matches none of the paths of the model: "
              "'first.matmul', 'second.matmul'");
}

// A weight is cast once, however many read it, and again once it is written.
TEST_P(Precision, G05_AWeightIsCastOnceAndAgainAfterAWrite) {
  auto source = [](bool isWritten) {
    return Source{nullptr, [isWritten](Trace &t) {
                    Tensor x = t.input("x", {2, 2});
                    Tensor w =
                        t.parameter("w", {2, 2}, Init::constant(0.3),
                                    DType::F32, {.requiresGrad = !isWritten});
                    Tensor h = matmul(matmul(x, w), w);
                    if (isWritten)
                      w.copy_(w * 0.5);
                    t.output("loss", sum(matmul(h, w)));
                  }};
  };
  CompileOptions options;
  options.amp = "bf16";
  for (bool isWritten : {false, true}) {
    std::string joint = printed(source(isWritten), "optimize", options);
    size_t begin = joint.find("@joint");
    std::string program =
        joint.substr(begin, joint.find("return", begin) - begin);
    int casts = 0;
    for (size_t at = 0;
         (at = program.find("tandem.cast", at)) != std::string::npos; ++at) {
      std::string line = program.substr(at, program.find('\n', at) - at);
      casts += contains(line, "tensor<2x2xf32> to tensor<2x2xbf16>") &&
               contains(line, "forward");
    }
    // x, and w once or twice.
    EXPECT_EQ(casts, isWritten ? 3 : 2) << program;
  }
}
