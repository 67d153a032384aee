//===- Steps.cpp - training steps of a model on ranks and on one process --===//
#include "tests/shard/Steps.h"

#include "ir/Collective.h"
#include "ir/Sharding.h"
#include "ir/Signature.h"
#include "ir/UpdateAttributes.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/shard/ParallelSpec.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

Compiled::Compiled(const Model &program, const Request &setup)
    : handler(&context, [this](Diagnostic &diagnostic) {
        diagnostics += diagnostic.str() + "\n";
        return success();
      }) {
  context.disableMultithreading();
  context.loadDialect<TandemDialect, func::FuncDialect>();
  Trace trace("model");
  program(trace, setup.sizes);
  auto text = trace.finish();
  EXPECT_TRUE(text.ok()) << text.status().message();
  module = parseSourceString<ModuleOp>(*text, &context);
  EXPECT_TRUE(module) << diagnostics;
  stamp(setup);
  PassManager passes(&context);
  buildFunctionalizePipeline(passes);
  buildJointPipeline(passes, JointOptions());
  buildOptimizePipeline(passes);
  if (!setup.optimizer.empty())
    buildPartitionPipeline(passes, PartitionOptions());
  isMade = succeeded(passes.run(*module));
}

std::map<std::string, int> Compiled::collectives(StringRef name) {
  std::map<std::string, int> counts;
  function(name).walk([&](CollectiveOpInterface op) {
    if (op.communicates())
      ++counts[op->getName().stripDialect().str()];
  });
  return counts;
}

void Compiled::stamp(const Request &setup) {
  Builder b(&context);
  ModuleOp op = *module;
  if (!setup.optimizer.empty())
    op->setAttr(kOptimizerAttr, b.getStringAttr(setup.optimizer));
  if (!setup.clip.empty())
    op->setAttr(kClipAttr, b.getStringAttr(setup.clip));
  if (!setup.lossScale.empty())
    op->setAttr(kLossScaleAttr, b.getStringAttr(setup.lossScale));
  if (setup.accumulates)
    op->setAttr(kAccumulateAttr, b.getUnitAttr());
  if (setup.centralizes)
    op->setAttr(kCentralizeAttr, b.getUnitAttr());
  if (!setup.groups.empty()) {
    SmallVector<StringRef> groups(setup.groups.begin(), setup.groups.end());
    op->setAttr(kGroupsAttr, b.getStrArrayAttr(groups));
  }
  for (auto [name, text] : {std::pair{kLrScheduleAttr, setup.schedule},
                            {kEmaAttr, setup.ema},
                            {kSwaAttr, setup.swa},
                            {kGradientNoiseAttr, setup.noise}})
    if (!text.empty())
      op->setAttr(name, b.getStringAttr(text));
  if (!setup.batchNorm.empty())
    op->setAttr(kBatchNormAttr, b.getStringAttr(setup.batchNorm));
  if (setup.mesh.empty())
    return;
  std::string error;
  auto mesh = parseMeshSpec(setup.mesh, error);
  ASSERT_TRUE(mesh) << error;
  SmallVector<MeshAxis> axes;
  for (const auto &[name, size] : *mesh)
    axes.push_back({b.getStringAttr(name), size});
  op->setAttr(kMeshAttr, MeshAttr::get(&context, axes));
  if (!setup.parallel.empty()) {
    auto kinds = parseParallelSpec(setup.parallel, *mesh, error);
    ASSERT_TRUE(kinds) << error;
    SmallVector<StringRef> names(kinds->begin(), kinds->end());
    op->setAttr(kParallelAttr, b.getStrArrayAttr(names));
  }
  if (setup.plan.empty())
    return;
  DictionaryAttr plan = parseShardPlan(setup.plan, &context, error);
  ASSERT_TRUE(plan) << error;
  op->setAttr(kShardAttr, plan);
}

Values tandem::test::startOf(func::FuncOp step, uint64_t seed) {
  Values values;
  for (BlockArgument argument : step.getArguments()) {
    RoleAttr role = roleOfArgument(step, argument.getArgNumber());
    auto type =
        cast<RankedTensorType>(wholeType(step, role, argument.getType()));
    Numbers number(seed + std::hash<std::string>()(role.getName().str()));
    Array array(type);
    auto init = role.getProperty<DictionaryAttr>(RoleAttr::kInit);
    auto high = role.getProperty<IntegerAttr>(RoleAttr::kHigh);
    auto value = init ? init.getAs<FloatAttr>("value") : FloatAttr();
    bool isSeed = init && init.getAs<StringAttr>("kind").getValue() == "seed";
    for (int64_t i = 0; i < array.size(); ++i)
      if (isSeed)
        array[i] = i == 0 ? 1234 : 0;
      else if (value)
        array[i] = value.getValueAsDouble();
      else if (high)
        array[i] = std::floor(number() * static_cast<double>(high.getInt()));
      else
        array[i] = number() - 0.5;
    if (auto ignored = role.getProperty<IntegerAttr>(RoleAttr::kIgnored))
      for (int64_t i = 0; i < array.size(); ++i)
        if (4 * i > 2 * array.size() && i % 2 == 0)
          array[i] = static_cast<double>(ignored.getInt());
    values[role.str()] = std::move(array);
  }
  return values;
}

bool tandem::test::isNear(const Array &a, const Array &b) {
  if (a.shape != b.shape)
    return false;
  double largest = 0;
  for (double x : b.data)
    largest = std::max(largest, std::abs(x));
  for (int64_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-9 * (largest + 1)))
      return false;
  return true;
}

void tandem::test::follow(Values &values, const Values &results) {
  for (const auto &[name, array] : results) {
    std::string prefix = "update of ";
    if (name.rfind(prefix, 0) != 0)
      continue;
    for (const char *kind : {"param ", "state ", "input "})
      if (auto it = values.find(kind + name.substr(prefix.size()));
          it != values.end())
        it->second = array;
  }
}

/// The value of one process: that of ranks, or the sum of what each of them
/// has.
static Array ofOne(const Array &array, const Array &like) {
  if (array.shape.size() != like.shape.size() + 1)
    return array;
  Array sum = like;
  for (int64_t i = 0; i < sum.size(); ++i) {
    sum[i] = 0;
    for (int64_t rank = 0; rank < array.shape[0]; ++rank)
      sum[i] += array[rank * sum.size() + i];
  }
  return sum;
}

std::unique_ptr<Compiled> tandem::test::expectEqual(const Model &model,
                                                    const Request &setup) {
  SCOPED_TRACE("--mesh=" + setup.mesh + " --parallel=" + setup.parallel + " " +
               setup.plan);
  Request alone;
  alone.optimizer = setup.optimizer;
  alone.clip = setup.clip;
  alone.accumulates = setup.accumulates;
  alone.lossScale = setup.lossScale;
  alone.groups = setup.groups;
  alone.schedule = setup.schedule;
  alone.ema = setup.ema;
  alone.swa = setup.swa;
  alone.noise = setup.noise;
  alone.centralizes = setup.centralizes;
  alone.sizes = setup.sizes;
  Compiled one(model, alone);
  auto ranks = std::make_unique<Compiled>(model, setup);
  EXPECT_TRUE(one.isMade) << one.diagnostics;
  EXPECT_TRUE(ranks->isMade) << ranks->diagnostics;
  if (!one.isMade || !ranks->isMade)
    return ranks;
  Values values = startOf(one.function("step"), /*seed=*/7);
  Values onRanks = values;
  // Of sums each rank has its own.
  for (const auto &[name, array] : startOf(ranks->function("step"), 7))
    if (name.find(".sum:") != std::string::npos)
      onRanks[name] = array;
  for (int step = 0; step < 3; ++step) {
    StringRef program = setup.accumulates && step < 2 ? "accumulate" : "step";
    Values wanted = runOnRanks(one.function(program), values);
    Values got = runOnRanks(ranks->function(program), onRanks);
    EXPECT_EQ(wanted.size(), got.size());
    for (const auto &[name, array] : wanted)
      EXPECT_TRUE(isNear(ofOne(got[name], array), array))
          << name << " in step " << step;
    follow(values, wanted);
    follow(onRanks, got);
  }
  return ranks;
}
