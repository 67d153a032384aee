//===- UpdateTest.cpp - updates without some of the gradients -------------===//
//
// Rows J03, T03 and T06: a parameter whose gradient is undefined keeps its
// value and all that the optimizer has of it, its count of steps too, and the
// others move as if they were alone; gradients are clipped before they are
// used, and an update whose norm is not finite changes nothing. Numbers are
// those of PyTorch's formulas, computed here in double.
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/Harness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

using namespace tandem;
using namespace tandem::test;
using runtime::Argument;

namespace {

constexpr int kParams = 4;

/// torch.optim.SGD, Adam and AdamW of one parameter.
struct Optimizer {
  std::string name;
  double lr = 0.1, decay = 0.2, momentum = 0.9, beta1 = 0.9, beta2 = 0.99;

  bool isAdam() const { return name == "adam" || name == "adamw"; }
  std::string spec() const {
    std::string text = name + ":lr=0.1,weight_decay=0.2";
    return isAdam() ? text + ",beta2=0.99" : text;
  }
};

struct Parameter {
  Numbers value, first, second; ///< second: adam's v; first: m, or velocity
  int steps = 0;

  void update(const Optimizer &o, const Numbers &gradient) {
    ++steps;
    double correction1 = 1 - std::pow(o.beta1, steps);
    double correction2 = 1 - std::pow(o.beta2, steps);
    for (size_t i = 0; i < value.size(); ++i) {
      double g = gradient[i];
      if (o.name == "adamw")
        value[i] *= 1 - o.lr * o.decay;
      else
        g += o.decay * value[i];
      if (o.name == "sgd") {
        value[i] -= o.lr * g;
      } else if (o.name == "momentum") {
        first[i] = o.momentum * first[i] + g;
        value[i] -= o.lr * first[i];
      } else {
        first[i] = o.beta1 * first[i] + (1 - o.beta1) * g;
        second[i] = o.beta2 * second[i] + (1 - o.beta2) * g * g;
        value[i] -= o.lr / correction1 * first[i] /
                    (std::sqrt(second[i] / correction2) + 1e-8);
      }
    }
  }
};

/// Lives as long as the arguments that are called so.
const std::string &paramName(int p) {
  static const std::string names[kParams] = {"p0", "p1", "p2", "p3"};
  return names[p];
}

/// The sum of the elements of parameters of these sizes.
Source sums(const std::array<int64_t, kParams> &sizes) {
  return {nullptr, [sizes](Trace &t) {
            std::optional<Tensor> loss;
            for (int p = 0; p < kParams; ++p) {
              Tensor one =
                  sum(t.parameter(paramName(p), {sizes[p]}, Init::constant(1)));
              loss = loss ? *loss + one : one;
            }
            t.output("loss", *loss);
          }};
}

Numbers drawn(int64_t count, int seed) {
  Numbers numbers(count);
  for (int64_t i = 0; i < count; ++i)
    numbers[i] =
        static_cast<double>((i * 7919 + seed * 104729 + 13) % 1009) / 504.5 - 1;
  return numbers;
}

/// Gradients that weight decay does not cancel: adam's first steps are as long
/// for a gradient that is the error of a rounding as for any other.
Numbers drawnGradient(int64_t count, int seed) {
  Numbers numbers = drawn(count, seed);
  for (int64_t i = 0; i < count; ++i)
    numbers[i] = (1.5 + 0.5 * numbers[i]) * (i % 2 ? 1 : -1);
  return numbers;
}

/// torch.nn.utils.clip_grad_norm_ and clip_grad_value_ over the gradients of a
/// call. The norm is that before clipping.
struct Clip {
  std::string spec; ///< empty: none
  double most = 0;
  bool isNorm() const { return spec.rfind("norm", 0) == 0; }

  void apply(std::vector<Numbers> &gradients, double &norm) const {
    double squares = 0;
    for (const Numbers &gradient : gradients)
      for (double g : gradient)
        squares += g * g;
    norm = std::sqrt(squares);
    if (spec.empty())
      return;
    double factor = isNorm() ? std::min(1.0, most / (norm + 1e-6)) : 1;
    for (Numbers &gradient : gradients)
      for (double &g : gradient)
        g = isNorm() ? g * factor : std::clamp(g, -most, most);
  }
};

class Update : public RowTest {
protected:
  /// Every mask of gradients, one after the other, so that each parameter has
  /// a history of its own.
  void expectAllMasks(const Optimizer &optimizer,
                      const std::array<int64_t, kParams> &sizes,
                      const Clip &clip = {}) {
    CompileOptions options;
    options.optimizer = optimizer.spec();
    options.clip = clip.spec;
    auto m = compiled(sums(sizes), options);
    ASSERT_TRUE(m);
    Parameter expected[kParams];
    for (int p = 0; p < kParams; ++p) {
      Numbers zeros(sizes[p], 0.0);
      expected[p] = {drawn(sizes[p], p), zeros, zeros};
      m->set(paramName(p), expected[p].value);
    }
    for (unsigned call = 0; call < 16; ++call) {
      unsigned mask = call * 11 % 16; // 0 first, each once
      runtime::Tensor gradients[kParams];
      std::vector<Argument> arguments;
      std::vector<Numbers> clipped(kParams);
      for (int p = 0; p < kParams; ++p) {
        if (mask >> p & 1) {
          clipped[p] = drawnGradient(sizes[p], 5 * p + call);
          gradients[p] = *tensorOf(DType::F32, {sizes[p]}, clipped[p])
                              .copyTo(m->model.device());
        }
        arguments.emplace_back(paramName(p), &gradients[p]);
      }
      double norm = 0;
      clip.apply(clipped, norm);
      for (int p = 0; p < kParams; ++p)
        if (mask >> p & 1)
          expected[p].update(optimizer, clipped[p]);
      auto versions = versionsOf(*m);
      Status status = m->model.update(arguments);
      ASSERT_TRUE(status.ok()) << status.message();
      for (auto [name, version] : versionsOf(*m)) {
        bool isOwn = mask != 0 && (name.ends_with(".grad_norm") ||
                                   name.ends_with(".skipped"));
        for (int p = 0; p < kParams; ++p)
          isOwn |=
              mask >> p & 1 && name.substr(name.find(':') + 1) == paramName(p);
        EXPECT_EQ(version != versions[name], isOwn)
            << name << " with the gradients " << mask;
      }
      for (int p = 0; p < kParams; ++p)
        expectParameter(*m, optimizer, p, expected[p], mask);
      if (clip.isNorm() && mask)
        EXPECT_NEAR(m->contents(optimizer.name + ".grad_norm").at(0) / norm, 1,
                    1e-5);
    }
  }

private:
  static std::map<std::string, uint64_t> versionsOf(CompiledMachine &m) {
    std::map<std::string, uint64_t> versions;
    for (const artifact::Value &value : m.model.manifest().values)
      if (value.role == artifact::Role::Param ||
          value.role == artifact::Role::State)
        versions[value.name] = m.model.get(value.name)->version();
    return versions;
  }

  static void expectParameter(CompiledMachine &m, const Optimizer &optimizer,
                              int p, const Parameter &expected, unsigned mask) {
    auto expect = [&](const std::string &state, const Numbers &numbers) {
      std::string name =
          state.empty() ? paramName(p)
                        : optimizer.name + "." + state + ":" + paramName(p);
      runtime::Tensor tensor = *m.model.get(name)->onHost();
      const auto *got = tensor.data<float>();
      double worst = 0;
      for (size_t i = 0; i < numbers.size(); ++i) {
        ASSERT_FALSE(std::isnan(got[i])) << name; // no maximum has it
        worst = std::max(worst, std::abs(got[i] - numbers[i]));
      }
      EXPECT_LT(worst, 2e-5) << name << " with the gradients " << mask;
    };
    expect("", expected.value);
    if (optimizer.name == "momentum")
      expect("velocity", expected.first);
    if (!optimizer.isAdam())
      return;
    expect("m", expected.first);
    expect("v", expected.second);
    expect("step", {static_cast<double>(expected.steps)});
  }
};

const Optimizer kOptimizers[] = {{"sgd"}, {"momentum"}, {"adam"}, {"adamw"}};

} // namespace
TANDEM_WAYS(Update, Way{true, Runner::Cpu}, Way{true, Runner::Cuda});

// Small parameters shared a kernel, so that one undefined gradient kept all of
// them from moving; and all were corrected for one count of steps.
TEST_P(Update, T06_AllMasksOfUndefinedGradientsOfSmallParameters) {
  for (const Optimizer &optimizer : kOptimizers)
    for (int64_t size : {1, 10, 1000}) {
      SCOPED_TRACE(optimizer.name + " of " + std::to_string(size));
      expectAllMasks(optimizer, {size, size, size, size});
    }
}

// Parameters of different sizes, and large ones, whose kernels have many items,
// shared the count of steps.
TEST_P(Update, T06_AllMasksOfUndefinedGradientsOfLargeParameters) {
  for (const Optimizer &optimizer : kOptimizers) {
    SCOPED_TRACE(optimizer.name);
    expectAllMasks(optimizer, {50000, 1, 1000, 10});
    if (!isCuda())
      expectAllMasks(optimizer, {50000, 50000, 50000, 50000});
  }
}

TEST_P(Update, T03_T06_AllMasksOfClippedGradients) {
  for (const Optimizer &optimizer : kOptimizers)
    for (const Clip &clip : {Clip{"norm:0.5", 0.5}, Clip{"norm:1e4", 1e4},
                             Clip{"value:1.4", 1.4}}) {
      SCOPED_TRACE(optimizer.name + " with " + clip.spec);
      expectAllMasks(optimizer, {1000, 1, 1000, 10}, clip);
    }
}

// All values of a model are what they were, but for what counts it.
TEST_P(Update, T03_ANormThatIsNotFiniteSkipsTheUpdate) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const Optimizer &optimizer : kOptimizers) {
    SCOPED_TRACE(optimizer.name);
    CompileOptions options;
    options.optimizer = optimizer.spec();
    options.clip = "norm:1";
    auto m = compiled(sums({3, 3, 3, 3}), options);
    ASSERT_TRUE(m);
    auto update = [&](double last) {
      runtime::Tensor gradients[kParams];
      std::vector<Argument> arguments;
      for (int p = 0; p < kParams; ++p) {
        gradients[p] =
            *tensorOf(DType::F32, {3}, {0, 0.5, p == 2 ? last : 0.25})
                 .copyTo(m->model.device());
        arguments.emplace_back(paramName(p), &gradients[p]);
      }
      Status status = m->model.update(arguments);
      EXPECT_TRUE(status.ok()) << status.message();
    };
    auto values = [&] {
      NamedNumbers values;
      for (const artifact::Value &value : m->model.manifest().values)
        if (value.role == artifact::Role::Param ||
            value.role == artifact::Role::State)
          values[value.name] = m->contents(value.name);
      return values;
    };
    update(0.25);
    double skipped = 0;
    // The last square is more than f32 has.
    for (double last : {infinity, -infinity, std::nan(""), 1e30}) {
      NamedNumbers before = values();
      update(last);
      NamedNumbers after = values();
      EXPECT_FALSE(std::isfinite(after[optimizer.name + ".grad_norm"].at(0)));
      EXPECT_EQ(after[optimizer.name + ".skipped"], Numbers{++skipped});
      for (const char *state : {".grad_norm", ".skipped"}) {
        before.erase(optimizer.name + state);
        after.erase(optimizer.name + state);
      }
      EXPECT_EQ(after, before) << last;
    }
    NamedNumbers before = values();
    update(0.25);
    NamedNumbers after = values();
    EXPECT_NE(after["p2"], before["p2"]);
    EXPECT_EQ(after[optimizer.name + ".skipped"], Numbers{4});
    if (optimizer.isAdam())
      EXPECT_EQ(after[optimizer.name + ".step:p2"], Numbers{2});
  }
}

TEST_P(Update, T03_ANormOfZeroMovesNothing) {
  CompileOptions options;
  options.optimizer = "sgd:lr=0.5";
  options.clip = "norm:1";
  auto m = compiled(sums({3, 1, 1, 1}), options);
  ASSERT_TRUE(m);
  m->set("p0", {1, 2, 3});
  runtime::Tensor zeros =
      *tensorOf(DType::F32, {3}, {0, 0, 0}).copyTo(m->model.device());
  runtime::Tensor none;
  Argument gradients[] = {
      {"p0", &zeros}, {"p1", &none}, {"p2", &none}, {"p3", &none}};
  Status status = m->model.update(gradients);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NUMBERS(m->contents("p0"), {1, 2, 3});
  EXPECT_NUMBERS(m->contents("sgd.grad_norm"), {0});
  EXPECT_NUMBERS(m->contents("sgd.skipped"), {0});
}

// In a step, where the loss does not reach a parameter, the norm is that of the
// others.
TEST_P(Update, T03_AStepClipsWhatTheLossReaches) {
  Source source{nullptr, [](Trace &t) {
                  Tensor x =
                      t.input("x", {1}, DType::F32, {.requiresGrad = true});
                  Tensor u = t.parameter("u", {1}, Init::constant(2));
                  Tensor v = t.parameter("v", {2}, Init::constant(2));
                  Tensor w = t.parameter("w", {2}, Init::constant(2));
                  x.mul_(u);
                  t.output("loss", sum(v * v) + sum(w) * 2.0);
                }};
  CompileOptions options;
  options.optimizer = "sgd:lr=1";
  options.clip = "norm:0.5";
  auto m = compiled(source, options);
  ASSERT_TRUE(m);
  m->set("x", {3});
  m->set("v", {1, -2});
  Argument inputs[] = {{"x", &m->tensors["x"]}};
  Status status = m->model.step(inputs, {});
  ASSERT_TRUE(status.ok()) << status.message();
  double norm = std::sqrt(2. * 2 + 4 * 4 + 2 * 2 + 2 * 2);
  double factor = 0.5 / (norm + 1e-6);
  EXPECT_NUMBERS(m->contents("u"), {2});
  EXPECT_NUMBERS(m->contents("v"), {1 - factor * 2, -2 + factor * 4});
  EXPECT_NUMBERS(m->contents("w"), {2 - factor * 2, 2 - factor * 2});
  EXPECT_NUMBERS(m->contents("sgd.grad_norm"), {norm});
}

// A backward of the one cotangent that reaches one parameter left the update of
// both undone.
TEST_P(Update, T06_OneCotangentOfTwoMovesOneParameter) {
  Source source{nullptr, [](Trace &t) {
                  std::optional<Tensor> loss;
                  for (const char *name : {"a", "b"}) {
                    Tensor x = t.input("x" + std::string(name), {1}, DType::F32,
                                       {.requiresGrad = true});
                    Tensor w = t.parameter(name, {1}, Init::constant(2));
                    x.mul_(w);
                    loss = loss ? *loss + sum(x) : sum(x);
                  }
                  t.output("loss", *loss);
                }};
  for (const Optimizer &optimizer : kOptimizers) {
    CompileOptions options;
    options.optimizer = optimizer.spec();
    auto m = compiled(source, options);
    ASSERT_TRUE(m);
    for (const char *name : {"a", "b"})
      m->set(name, {2});
    for (const std::string only : {"b", "a"}) {
      std::string other = only == "a" ? "b" : "a";
      for (const char *name : {"xa", "xb"})
        m->set(name, {3});
      Numbers before = m->contents(other);
      Numbers own = m->contents(only);
      ASSERT_EQ(m->forward(), "");
      ASSERT_EQ(m->backward({{"update of x" + only, {1}}}), "");
      EXPECT_FALSE(m->gradient(other));
      Argument gradients[] = {{"a", &m->gradTensors["a"]},
                              {"b", &m->gradTensors["b"]}};
      Status status = m->model.update(gradients);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(m->contents(other), before) << optimizer.name;
      EXPECT_NE(m->contents(only), own) << optimizer.name;
    }
  }
}

// A parameter that the loss does not reach had no update in the step, which the
// verifier took for a mistake; and its count of steps rose in it.
TEST_P(Update, T06_AStepLeavesAloneWhatTheLossDoesNotReach) {
  Source source{nullptr, [](Trace &t) {
                  Tensor x =
                      t.input("x", {1}, DType::F32, {.requiresGrad = true});
                  Tensor w = t.parameter("w", {1}, Init::constant(2));
                  Tensor v = t.parameter("v", {1}, Init::constant(2));
                  x.mul_(w);
                  t.output("loss", sum(v * v));
                }};
  CompileOptions options;
  options.optimizer = "adamw:lr=0.1";
  auto m = compiled(source, options);
  ASSERT_TRUE(m);
  m->set("x", {3});
  Argument inputs[] = {{"x", &m->tensors["x"]}};
  Status status = m->model.step(inputs, {});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_NUMBERS(m->contents("w"), {2});
  EXPECT_NUMBERS(m->contents("adamw.step:w"), {0});
  EXPECT_NUMBERS(m->contents("adamw.step:v"), {1});
  EXPECT_NE(m->contents("v"), Numbers{2});
  m->set("x", {3});
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"update of x", {1}}}), "");
  Argument gradients[] = {{"w", &m->gradTensors["w"]},
                          {"v", &m->gradTensors["v"]}};
  status = m->model.update(gradients);
  ASSERT_TRUE(status.ok()) << status.message();
  // The first step of adam is as long as the rate, whatever the gradient is.
  EXPECT_NUMBERS(m->contents("w"), {2 * (1 - 0.1 * 0.01) - 0.1});
  EXPECT_NUMBERS(m->contents("adamw.step:w"), {1});
  EXPECT_NUMBERS(m->contents("adamw.step:v"), {1});
}
