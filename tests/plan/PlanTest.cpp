//===- PlanTest.cpp - places of values never overlap while they live ------===//
//
// The check here compares every pair of values, and shares nothing with the
// planner or its door.
//
//===----------------------------------------------------------------------===//
#include "ir/Ops.h"
#include "passes/Passes.h"
#include "passes/plan/PlanMemory.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace tandem;

namespace {

/// A program of `count` ops in which values are used at random: elementwise
/// ops, transposes, row and column statistics, reshapes, matrix products.
std::string randomProgram(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::string body;
  std::vector<std::string> squares = {"%x", "%w"};
  const std::string full = "tensor<24x24xf32>", row = "tensor<24xf32>";
  auto pick = [&] { return squares[random() % squares.size()]; };
  auto recent = [&] {
    size_t window = std::min<size_t>(squares.size(), 6);
    return squares[squares.size() - 1 - random() % window];
  };
  for (int i = 0; i < count; ++i) {
    std::string v = "%v" + std::to_string(i), a = recent(),
                b = random() % 4 ? recent() : pick();
    switch (random() % 8) {
    case 0:
      body += v + " = tandem.exp " + a + " : " + full + "\n";
      break;
    case 1:
      body += v + " = tandem.permute " + a + " by [1, 0] : " + full + " -> " +
              full + "\n";
      break;
    case 2:
    case 3: {
      std::string dim = random() % 2 ? "0" : "1";
      body += v + "r = tandem.reduce_sum " + a + " over [" + dim +
              "] : " + full + " -> " + row + "\n" + v + " = tandem.broadcast " +
              v + "r to [24, 24] along [" + (dim == "0" ? "1" : "0") +
              "] : " + row + " -> " + full + "\n";
      break;
    }
    case 4:
      body += v + " = tandem.matmul " + a + ", " + b + " : " + full + ", " +
              full + " -> " + full + "\n";
      break;
    case 5:
      body += v + "f = tandem.reshape " + a + " to [576] : " + full +
              " -> tensor<576xf32>\n" + v + "g = tandem.tanh " + v +
              "f : tensor<576xf32>\n" + v + " = tandem.reshape " + v +
              "g to [24, 24] : tensor<576xf32> -> " + full + "\n";
      break;
    default:
      body += v + " = tandem.mul " + a + ", " + b + " : " + full + "\n";
    }
    squares.push_back(v);
  }
  return "module @m attributes {tandem.phase = \"partition\"} {\n"
         "func.func @step(%x: " +
         full + " {tandem.role = #tandem.role<input \"x\">}, %w: " + full +
         " {tandem.role = #tandem.role<param \"w\">}) -> (" + full +
         " {tandem.role = #tandem.role<output \"y\">}, " + full +
         " {tandem.role = #tandem.role<update of \"w\">}) {\n" + body +
         "return " + squares.back() + ", " + squares[squares.size() - 2] +
         " : " + full + ", " + full + "\n}\n}\n";
}

Value source(Value value) {
  while (auto view = value.getDefiningOp<ReshapeOp>())
    value = view.getX();
  return value;
}

struct Life {
  int64_t begin, end;   // bytes
  size_t first, last;   // kernels
  size_t overwrittenBy; // the kernel whose result takes its place
};

void checkAllPairs(func::FuncOp func) {
  SmallVector<KernelOp> kernels(func.getOps<KernelOp>());
  std::vector<Life> lives;
  Operation *terminator = func.getBody().front().getTerminator();
  for (size_t k = 0; k < kernels.size(); ++k)
    for (auto [result, attribute] : llvm::zip_equal(
             kernels[k].getResults(), kernels[k].getBuffersAttr())) {
      auto place = cast<BufferAttr>(attribute);
      if (place.getPlace() != BufferPlace::Arena)
        continue;
      Life life{place.getPosition(),
                place.getPosition() +
                    byteSize(cast<RankedTensorType>(result.getType())),
                k, k, kernels.size()};
      for (size_t j = k; j < kernels.size(); ++j)
        for (auto [i, input] : llvm::enumerate(kernels[j].getInputs()))
          if (source(input) == result) {
            life.last = j;
            if (auto pairs = kernels[j]->getAttrOfType<ArrayAttr>("in_place"))
              for (Attribute pair : pairs)
                if (cast<DenseI64ArrayAttr>(pair)[1] == static_cast<int64_t>(i))
                  life.overwrittenBy = j;
          }
      for (Value returned : terminator->getOperands())
        EXPECT_NE(source(returned), result) << "returned from the arena";
      lives.push_back(life);
    }
  for (size_t i = 0; i < lives.size(); ++i)
    for (size_t j = i + 1; j < lives.size(); ++j) {
      const Life &x = lives[i], &y = lives[j];
      if (x.last < y.first || y.last < x.first || x.end <= y.begin ||
          y.end <= x.begin)
        continue;
      EXPECT_TRUE(x.overwrittenBy == y.first || y.overwrittenBy == x.first)
          << "[" << x.begin << ", " << x.end << ") in kernels " << x.first
          << ".." << x.last << " and [" << y.begin << ", " << y.end
          << ") in kernels " << y.first << ".." << y.last;
    }
}

class PlanTest : public testing::Test {
protected:
  PlanTest() {
    context.loadDialect<TandemDialect, func::FuncDialect>();
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      problem += diagnostic.str() + "\n";
      return success();
    });
  }
  OwningOpRef<ModuleOp> plan(const std::string &text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return nullptr;
    PassManager passes(&context);
    passes.addPass(createPlanPrograms());
    if (failed(passes.run(*module)))
      return nullptr;
    return module;
  }
  MLIRContext context;
  std::string problem;
};

TEST_F(PlanTest, RandomProgramsHaveDisjointLives) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    auto module = plan(randomProgram(seed, 10 + seed * 2));
    ASSERT_TRUE(module) << problem;
    checkAllPairs(*module->getOps<func::FuncOp>().begin());
  }
}

TEST_F(PlanTest, SamePlanEveryTime) {
  auto print = [&](unsigned seed) {
    auto module = plan(randomProgram(seed, 60));
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (module)
      module->print(stream);
    return text;
  };
  EXPECT_NE(print(3), "");
  EXPECT_EQ(print(3), print(3));
}

TEST_F(PlanTest, DoorFindsOverlaps) {
  auto module = plan(randomProgram(5, 40));
  ASSERT_TRUE(module) << problem;
  auto func = *module->getOps<func::FuncOp>().begin();
  ASSERT_TRUE(succeeded(checkPlan(func)));
  // Everything at offset 0.
  unsigned moved = 0;
  for (auto kernel : func.getOps<KernelOp>()) {
    SmallVector<Attribute> buffers;
    for (Attribute buffer : kernel.getBuffersAttr()) {
      auto place = cast<BufferAttr>(buffer);
      if (place.getPlace() == BufferPlace::Arena && place.getPosition()) {
        buffer = BufferAttr::get(&context, BufferPlace::Arena, 0);
        ++moved;
      }
      buffers.push_back(buffer);
    }
    kernel.setBuffersAttr(ArrayAttr::get(&context, buffers));
  }
  ASSERT_GT(moved, 0u);
  problem.clear();
  EXPECT_TRUE(failed(checkPlan(func)));
  EXPECT_NE(problem.find("is taken"), std::string::npos) << problem;
}

} // namespace
