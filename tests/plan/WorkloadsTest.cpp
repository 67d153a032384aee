//===- WorkloadsTest.cpp - the plans of the benchmark models --------------===//
//
// What is promised of plans is checked on every workload, for each target: the
// arena is hardly larger than what is live at once, and that of a step than
// what its parts need.
//
//===----------------------------------------------------------------------===//
#include "compiler/Compile.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "tools/bench/workloads/Models.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tandem;

namespace {

class Workloads
    : public testing::TestWithParam<std::tuple<std::string, std::string>> {
protected:
  Workloads() {
    DialectRegistry registry;
    registerCompiler(registry);
    context.appendDialectRegistry(registry);
  }
  /// The planned module.
  OwningOpRef<ModuleOp> plan() {
    const workloads::Workload *workload =
        workloads::find(std::get<0>(GetParam()));
    Trace trace(workload->name);
    workloads::trace(*workload, trace, DType::F32);
    Result<std::string> text = trace.finish();
    EXPECT_TRUE(text.status().ok()) << text.status().message();
    CompileOptions options;
    options.target = std::get<1>(GetParam());
    options.optimizer = workload->optimizer;
    options.stopAfter = "plan";
    std::vector<PhaseTime> times;
    Result<Modules> modules = runTargets(
        parseSourceString<ModuleOp>(*text, &context), options, times);
    EXPECT_TRUE(modules.status().ok()) << modules.status().message();
    return std::move(modules->front());
  }
  MLIRContext context;
};

} // namespace

INSTANTIATE_TEST_SUITE_P(
    All, Workloads,
    testing::Combine(testing::Values("mlp", "resnet8", "resnet18", "gpt",
                                     "gpt2-124m", "normchain", "mnist-fc"),
                     testing::Values("cpu", "cuda:sm_90")),
    [](const auto &info) {
      std::string name =
          std::get<0>(info.param) + "_" + std::get<1>(info.param);
      for (char &c : name)
        if (!isalnum(static_cast<unsigned char>(c)))
          c = '_';
      return name;
    });

TEST_P(Workloads, TheArenaIsHardlyLargerThanWhatIsLive) {
  auto module = plan();
  ASSERT_TRUE(module);
  for (auto func : module->getOps<func::FuncOp>()) {
    int64_t arena = planOf(func).getArenaBytes(),
            least = planOf(func).getLowerBoundBytes();
    // Offsets are multiples of 64: a few scalars may take a few lines.
    EXPECT_LE(arena, std::max<int64_t>(least * 1.05, least + 256))
        << func.getName().str();
    EXPECT_GE(arena, least) << func.getName().str();
  }
}

/// An update runs as soon as its gradient is complete, whose memory is used
/// again.
TEST_P(Workloads, P18_AStepNeedsLessThanItsParts) {
  auto module = plan();
  ASSERT_TRUE(module);
  auto step = module->lookupSymbol<func::FuncOp>("step"),
       forward = module->lookupSymbol<func::FuncOp>("forward"),
       backward = module->lookupSymbol<func::FuncOp>("backward");
  ASSERT_TRUE(step && forward && backward);
  int64_t parts = std::max(planOf(forward).getArenaBytes(),
                           planOf(backward).getArenaBytes());
  for (auto func : {forward, backward})
    for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
      if (RoleAttr role = roleOfResult(func, i);
          role.getKind() == RoleKind::Grad ||
          (role.getKind() == RoleKind::Saved && !role.has("alias")))
        parts += byteSize(cast<RankedTensorType>(func.getResultTypes()[i]));
  // In places of 64 bytes.
  EXPECT_LE(planOf(step).getArenaBytes(),
            parts + 64 * static_cast<int64_t>(step.getNumResults()));
}
