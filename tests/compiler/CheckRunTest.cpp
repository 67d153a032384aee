//===- CheckRunTest.cpp - orders that give other bits are seen ------------===//
#include "tools/tandem/CheckRun.h"
#include "compiler/Compile.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace mlir;
using namespace tandem;

namespace {
/// sum(sin(w)), with an optimizer.
const char *kModel = R"(
module attributes {tandem.phase = "capture"} {
  func.func @graph(%w: tensor<4x3xf32> {tandem.role = #tandem.role<param "w"
      {init = {kind = "uniform", low = -1.0, high = 1.0}, requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %s = tandem.sin %w : tensor<4x3xf32>
    %l = tandem.reduce_sum %s over [0, 1] : tensor<4x3xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}
)";

class CheckRunTest : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("TANDEM_CUDA_EMULATOR", TANDEM_EMULATOR, 1);
    registerCompiler(registry);
    MLIRContext context(registry);
    auto module = parseSourceString<ModuleOp>(kModel, &context);
    ASSERT_TRUE(module);
    CompileOptions options;
    std::vector<PhaseTime> times;
    options.optimizer = "sgd:lr=0.1";
    Status lowered = runPhases(*module, options, times);
    ASSERT_TRUE(lowered) << lowered.message();
    auto writer = emitArtifact(*module, options, times);
    ASSERT_TRUE(writer) << writer.status().message();
    auto made = writer->bytes();
    ASSERT_TRUE(made);
    bytes = *made;
  }

  Result<runtime::Model> load(uint64_t seed) const {
    auto reader =
        artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(bytes)));
    if (!reader)
      return reader.status();
    return runtime::Model::load(std::move(*reader), {.seed = seed});
  }

  DialectRegistry registry;
  std::string bytes;
};
} // namespace

TEST_F(CheckRunTest, TheSameInAllOrders) {
  auto values = runInOrders([&] { return load(1); }, {});
  ASSERT_TRUE(values) << values.status().message();
  EXPECT_EQ(values->gradients.count("w"), 1u);
  EXPECT_EQ(values->stepValues.count("w"), 1u);
  EXPECT_EQ(values->stepOutputs.count("loss"), 1u);
}

TEST_F(CheckRunTest, OtherBits) {
  int loads = 0;
  auto values = runInOrders([&] { return load(++loads > 4 ? 2 : 1); }, {});
  ASSERT_FALSE(values);
  EXPECT_EQ(values.status().code(), Code::Differs);
  EXPECT_NE(values.status().message().find("other bits in the order 'random"),
            std::string::npos)
      << values.status().message();
}
