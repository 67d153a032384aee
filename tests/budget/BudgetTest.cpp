//===- BudgetTest.cpp - rows P09 to P13: the memory budget ----------------===//
//
// Models of layers, traced, compiled under budgets, and run. Peaks are those of
// the planned module, FLOPs are counted in the programs.
//
//===----------------------------------------------------------------------===//
#include "compiler/Compile.h"
#include "compiler/trace/Functions.h"
#include "compiler/trace/Trace.h"
#include "ir/Ops.h"
#include "ir/Report.h"
#include "ir/Signature.h"
#include "passes/partition/BudgetSpec.h"
#include "passes/plan/StepMemory.h"
#include "runtime/model/Model.h"
#include "tests/support/TestKernels.h"
#include "tools/bench/workloads/Models.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tandem;

namespace {

/// Residual blocks of two products, the block of even layers used twice.
std::string layers() {
  Trace t("layers");
  Tensor x = t.input("x", {1024, 64});
  std::vector<std::pair<Tensor, Tensor>> weights;
  for (int i = 0; i < 3; ++i)
    weights.push_back({t.parameter("a" + std::to_string(i), {128, 64},
                                   Init::uniform(-0.2, 0.2)),
                       t.parameter("b" + std::to_string(i), {64, 128},
                                   Init::uniform(-0.2, 0.2))});
  for (int i = 0; i < 6; ++i) {
    auto &[a, b] = weights[i % 2 ? i / 2 : 0];
    x = x + linear(gelu(linear(x, a)), b);
  }
  t.output("loss", mean(x * x));
  return *t.finish();
}

/// A row of products, each through a tangent; without residual connections.
std::string row() {
  Trace t("row");
  Tensor x = t.input("x", {512, 32});
  for (int i = 0; i < 8; ++i)
    x = tanh(linear(x, t.parameter("w" + std::to_string(i), {32, 32},
                                   Init::uniform(-0.3, 0.3))));
  t.output("loss", mean(x * x));
  return *t.finish();
}

/// Blocks of functions and products of `type`, of f32 outside.
std::string narrow(DType type) {
  Trace t("narrow");
  Tensor x = cast(t.input("x", {512, 32}), type);
  for (int i = 0; i < 6; ++i) {
    Tensor w = t.parameter("w" + std::to_string(i), {32, 32},
                           Init::uniform(-0.3, 0.3));
    Tensor h = linear(x, cast(w, type));
    Tensor e = exp(h * h * -0.7);
    x = x * 0.9 + tanh(e * h + h * 1.1) * (e - h * h);
  }
  Tensor y = cast(x, DType::F32);
  t.output("loss", mean(y * y));
  return *t.finish();
}

std::string workload(const std::string &name) {
  for (const workloads::Workload &known : workloads::all())
    if (known.name == name) {
      Trace t(name);
      workloads::trace(known, t, DType::F32);
      return *t.finish();
    }
  return "";
}

/// A model at one phase, and what was said on the way.
struct Compiled {
  OwningOpRef<ModuleOp> module;
  std::string errors;
  explicit operator bool() const { return static_cast<bool>(module); }
};

class Budget : public testing::Test {
protected:
  Budget() {
    DialectRegistry registry;
    registerCompiler(registry);
    context.appendDialectRegistry(registry);
    context.getDiagEngine().registerHandler(
        [this](Diagnostic &diagnostic) { errors += diagnostic.str() + "\n"; });
  }

  Compiled compile(const std::string &text, const std::string &budget,
                   const std::string &phase,
                   const std::string &optimizer = "sgd") {
    errors.clear();
    CompileOptions options;
    options.kernels = phase.empty() ? kernels.get() : nullptr;
    options.memoryBudget = budget;
    options.optimizer = optimizer;
    options.stopAfter = phase;
    std::vector<PhaseTime> times;
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return {{}, errors};
    Status status = runPhases(*module, options, times);
    if (!status)
      return {{}, errors + status.message()};
    return {std::move(module), errors};
  }

  static int64_t peak(const Compiled &compiled) {
    return stepMemory(*compiled.module).peak();
  }

  int64_t plannedPeak(const std::string &text, const std::string &budget,
                      const std::string &optimizer = "sgd") {
    Compiled planned = compile(text, budget, "plan", optimizer);
    EXPECT_TRUE(planned) << planned.errors;
    return planned ? peak(planned) : 0;
  }

  MLIRContext context;
  std::string errors;
  /// Budgets have most kernels in common.
  std::unique_ptr<KernelCache> kernels = testKernels();
};

struct Point {
  int64_t peak;
  double seconds, flops;
};

std::vector<Point> chainOf(ModuleOp module) {
  std::vector<Point> chain;
  auto report = module->getAttrOfType<DictionaryAttr>(kPartitionReportAttr);
  for (Attribute entry : report.getAs<ArrayAttr>("chain")) {
    auto point = cast<DictionaryAttr>(entry);
    auto number = [&](StringRef name) {
      return point.getAs<FloatAttr>(name).getValueAsDouble();
    };
    chain.push_back({point.getAs<IntegerAttr>("peak").getInt(),
                     number("seconds"), number("flops")});
  }
  return chain;
}

/// Of forward and backward together.
double flopsOf(ModuleOp module) {
  double flops = 0;
  for (StringRef name : {"forward", "backward"})
    for (Operation &op : module.lookupSymbol<func::FuncOp>(name).getOps())
      if (auto cost = dyn_cast<CostOpInterface>(op))
        flops += static_cast<double>(cost.getFlops());
  return flops;
}

std::string part(int hundredths) {
  return (hundredths == 100
              ? "1"
              : "0." + std::to_string(100 + hundredths).substr(1));
}

/// What a budget of `b` hundredths chooses.
Point chosen(const std::vector<Point> &chain, int b) {
  BudgetSpec spec;
  spec.part = b / 100.0;
  Point best = chain.front();
  for (const Point &point : chain)
    if (point.peak <= spec.limit(chain.front().peak, chain.back().peak))
      best = point;
  return best;
}

/// What any chain must be, and which peak it gives to each budget.
void checkChain(const std::vector<Point> &chain) {
  ASSERT_FALSE(chain.empty());
  for (size_t i = 1; i < chain.size(); ++i) {
    EXPECT_GT(chain[i].peak, chain[i - 1].peak);
    EXPECT_LT(chain[i].seconds, chain[i - 1].seconds);
    EXPECT_LE(chain[i].flops, chain[i - 1].flops);
  }
  int64_t least = chain.front().peak, most = chain.back().peak, before = 0;
  double flopsBefore = chain.front().flops;
  for (int b = 0; b <= 100; b += 5) {
    Point point = chosen(chain, b);
    EXPECT_LE(point.peak, std::max(least, most * b / 100)) << "at " << b;
    EXPECT_GE(point.peak, before) << "at " << b;
    EXPECT_LE(point.flops, flopsBefore) << "at " << b;
    before = point.peak;
    flopsBefore = point.flops;
  }
}

} // namespace

/// The real thing at some budgets: compiled, planned, counted; and at every
/// twentieth what the chain has.
TEST_F(Budget, P11_PeaksNeverFallAndFlopsNeverRise) {
  for (const std::string &text : {layers(), row()}) {
    std::vector<Point> chain;
    int64_t before = 0;
    double flopsBefore = 1e30;
    for (int b : {0, 55, 85, 100}) {
      Compiled planned = compile(text, part(b), "plan");
      Compiled divided = compile(text, part(b), "partition");
      ASSERT_TRUE(planned && divided) << planned.errors << divided.errors;
      chain = chainOf(*divided.module);
      int64_t least = chain.front().peak, most = chain.back().peak;
      int64_t now = peak(planned);
      EXPECT_EQ(now, chosen(chain, b).peak) << "at " << b << " %";
      EXPECT_GE(now, before) << "at " << b << " %";
      EXPECT_LE(now, std::max(least, most * b / 100)) << "at " << b << " %";
      double flops = flopsOf(*divided.module);
      EXPECT_LE(flops, flopsBefore) << "at " << b << " %";
      before = now;
      flopsBefore = flops;
    }
    checkChain(chain);
    EXPECT_GT(chain.size(), 1u);
    EXPECT_LE(chain.back().peak, plannedPeak(text, "")); // P12
  }
}

TEST_F(Budget, P11_ChainsOfTheWorkloads) {
  for (StringRef name : {"mlp", "normchain", "resnet8", "gpt"}) {
    SCOPED_TRACE(name.str());
    std::string text = workload(name.str());
    Compiled planned = compile(text, "1", "plan", "adamw");
    ASSERT_TRUE(planned) << planned.errors;
    std::vector<Point> chain = chainOf(*planned.module);
    checkChain(chain);
    // What the chain says of its end is what the plan has; P12: not more than
    // without a budget.
    int64_t most = peak(planned);
    EXPECT_EQ(chain.back().peak, most);
    EXPECT_LE(most, plannedPeak(text, "", "adamw"));
  }
}

TEST_F(Budget, P12_NoMoreWithoutAnOptimizerEither) {
  for (const std::string &text : {layers(), row()}) {
    int64_t without = plannedPeak(text, "", "");
    for (StringRef budget : {"0", "1"})
      EXPECT_LE(plannedPeak(text, budget.str(), ""), without);
  }
}

TEST_F(Budget, P09_TheLeastIsWhatBytesCanAskFor) {
  std::string text = layers();
  int64_t least = plannedPeak(text, "0");
  EXPECT_EQ(plannedPeak(text, std::to_string(least)), least);
  EXPECT_EQ(plannedPeak(text, "1TB"), plannedPeak(text, "1"));
  Compiled refused = compile(text, std::to_string(least - 1), "plan");
  EXPECT_FALSE(refused);
  EXPECT_NE(refused.errors.find("a step needs at least " +
                                std::to_string(least) + " bytes"),
            std::string::npos)
      << refused.errors;
}

TEST_F(Budget, P09_OutsideOfZeroToOneIsAnError) {
  for (StringRef wrong : {"1.01", "-0.1", "-1", "nan", "half", "0.5x", "6GiBs",
                          "1e30", "0x5", ".", "1e", "5%", "1.5B1"}) {
    std::string error;
    EXPECT_FALSE(parseBudgetSpec(wrong, error)) << wrong.str();
    EXPECT_NE(error.find("--memory-budget"), std::string::npos);
    EXPECT_NE(error.find("'" + wrong.str() + "'"), std::string::npos);
    CompileOptions options;
    options.memoryBudget = wrong.str();
    EXPECT_EQ(checkOptions(options).code(), Code::Usage) << wrong.str();
  }
}

TEST_F(Budget, P10_BytesAndParts) {
  auto bytes = [](StringRef text) {
    std::string error;
    auto spec = parseBudgetSpec(text, error);
    EXPECT_TRUE(spec && !spec->part) << text.str();
    return spec ? spec->bytes : -1;
  };
  EXPECT_EQ(bytes("6GiB"), 6ll << 30);
  EXPECT_EQ(bytes("500MB"), 500000000);
  EXPECT_EQ(bytes("1.5KiB"), 1536);
  EXPECT_EQ(bytes("123456"), 123456);
  EXPECT_EQ(bytes("2e6"), 2000000);
  EXPECT_EQ(bytes("1B"), 1);
  std::string error;
  for (StringRef text : {"0", "1", "0.5", "1.0", "5e-1"}) {
    auto spec = parseBudgetSpec(text, error);
    ASSERT_TRUE(spec && spec->part) << text.str();
    EXPECT_EQ(spec->limit(60, 100),
              std::max<int64_t>(60, static_cast<int64_t>(*spec->part * 100)));
  }
}

/// P09 and P06: must-save is saved at every budget, must-recompute never.
TEST_F(Budget, P06_TagsAtEveryBudget) {
  Compiled joint = compile(row(), "", "optimize");
  ASSERT_TRUE(joint) << joint.errors;
  unsigned tangents = 0;
  joint.module->lookupSymbol<func::FuncOp>("joint").walk([&](Operation *op) {
    if (op->getName().getStringRef() != "tandem.tanh")
      return;
    if (tangents == 2)
      op->setAttr("tandem.save", UnitAttr::get(&context));
    if (tangents == 4)
      op->setAttr("tandem.recompute", UnitAttr::get(&context));
    ++tangents;
  });
  ASSERT_EQ(tangents, 8u);
  for (StringRef budget : {"", "0", "0.9", "1"}) {
    OwningOpRef<ModuleOp> module = joint.module->clone();
    CompileOptions options;
    options.memoryBudget = budget.str();
    options.stopAfter = "partition";
    std::vector<PhaseTime> times;
    ASSERT_TRUE(runPhases(*module, options, times).ok()) << errors;
    auto forward = module->lookupSymbol<func::FuncOp>("forward");
    std::vector<std::string> saved;
    for (unsigned i = 0; i < forward.getNumResults(); ++i)
      if (RoleAttr role = roleOfResult(forward, i);
          role.getKind() == RoleKind::Saved)
        saved.push_back(role.getName().str());
    EXPECT_TRUE(llvm::is_contained(saved, "tanh.2")) << budget.str();
    EXPECT_FALSE(llvm::is_contained(saved, "tanh.4")) << budget.str();
  }
}

/// What is made again is what the forward had, bit by bit: losses and
/// parameters of three steps are equal under all budgets. (Values of bf16 and
/// f16 had more digits in the kernel that made them again than where they were
/// saved.)
TEST_F(Budget, P13_TheSameBits) {
  for (const std::string &text :
       {layers(), row(), narrow(DType::BF16), narrow(DType::F16)}) {
    std::vector<std::vector<float>> numbers;
    for (StringRef budget : {"", "0", "1"}) {
      Compiled lowered = compile(text, budget.str(), "", "adamw");
      ASSERT_TRUE(lowered) << lowered.errors;
      std::vector<PhaseTime> times;
      CompileOptions options;
      options.kernels = kernels.get();
      auto writer = emitArtifact(*lowered.module, options, times);
      ASSERT_TRUE(writer) << writer.status().message();
      std::string bytes = *writer->bytes();
      auto model = runtime::Model::load(*artifact::ArtifactReader::fromMemory(
          std::as_bytes(std::span(bytes))));
      ASSERT_TRUE(model) << model.status().message();
      const artifact::Value *input = nullptr;
      for (const artifact::Value &value : model->manifest().values)
        if (value.name == "x")
          input = &value;
      ASSERT_TRUE(input);
      auto x = runtime::Tensor::empty(DType::F32, input->shape);
      for (int64_t i = 0; i < x->elements(); ++i)
        x->mutableData<float>()[i] =
            static_cast<float>((i * 37) % 101) / 101 - 0.5f;
      runtime::Argument inputs[] = {{"x", &*x}};
      auto loss = runtime::Tensor::empty(DType::F32, {});
      runtime::Destination outputs[] = {{"loss", &*loss}};
      std::vector<float> &all = numbers.emplace_back();
      for (int step = 0; step < 3; ++step) {
        Status status = model->step(inputs, outputs);
        ASSERT_TRUE(status.ok()) << status.message();
        all.push_back(loss->data<float>()[0]);
      }
      for (const artifact::Value &value : model->manifest().values)
        if (value.role == artifact::Role::Param) {
          auto tensor = model->get(value.name);
          ASSERT_TRUE(tensor) << tensor.status().message();
          all.insert(all.end(), tensor->data<float>(),
                     tensor->data<float>() + tensor->elements());
        }
    }
    for (const auto &other : numbers)
      EXPECT_EQ(other, numbers.front());
  }
}
