//===- PlanTest.cpp - places of values never overlap while they live ------===//
//
// The check here compares every pair of values, and shares nothing with the
// planner or its verifier.
//
//===----------------------------------------------------------------------===//
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "passes/Passes.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/plan/PlanMemory.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace tandem;

namespace {

/// The body of a program of `count` ops in which %x, %w and what is made of
/// them are used at random: elementwise ops, transposes, row and column
/// statistics, reshapes, matrix products. `last` gets the last two values.
std::string randomBody(unsigned seed, int count, std::string last[2]) {
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
  last[0] = squares.back();
  last[1] = squares[squares.size() - 2];
  return body;
}

const std::string kSquare = "tensor<24x24xf32>";

/// "%name: type {role}".
std::string value(const std::string &name, const std::string &role) {
  return (name.empty() ? "" : "%" + name + ": ") + kSquare +
         " {tandem.role = #tandem.role<" + role + ">}";
}

/// A function with the values `results`, whose roles `types` say.
std::string function(const std::string &name, const std::string &arguments,
                     const std::string &types, const std::string &body,
                     const std::vector<std::string> &results) {
  std::string values, valueTypes;
  for (const std::string &result : results) {
    values += (values.empty() ? "" : ", ") + result;
    valueTypes += (valueTypes.empty() ? "" : ", ") + kSquare;
  }
  return "func.func @" + name + "(" + arguments + ") -> (" + types + ") {\n" +
         body + "return " + values + " : " + valueTypes + "\n}\n";
}

std::string module(const std::string &functions) {
  return "module @m attributes {tandem.phase = \"partition\"} {\n" + functions +
         "}\n";
}

std::string randomProgram(unsigned seed, int count) {
  std::string last[2], body = randomBody(seed, count, last);
  return module(function(
      "step", value("x", "input \"x\"") + ", " + value("w", "param \"w\""),
      value("", "output \"y\"") + ", " + value("", "update of \"w\""), body,
      {last[0], last[1]}));
}

/// A backward of the values x and w, which a forward saves; `alias` are more
/// properties of the saved x.
std::string randomBackward(unsigned seed, int count,
                           const std::string &alias = "") {
  std::string last[2], body = randomBody(seed, count, last);
  std::string comma = ", ";
  return module(
      function("forward",
               value("i", "input \"i\" {requires_grad}") + comma +
                   value("j", "input \"j\" {requires_grad}"),
               value("", "output \"o\"") + comma + value("", "saved \"w\"") +
                   comma + value("", "saved \"x\" " + alias),
               "%0 = tandem.exp %i : " + kSquare +
                   "\n%1 = tandem.sin %i : " + kSquare + "\n",
               {"%0", "%1", alias.empty() ? "%1" : "%0"}) +
      function("backward",
               value("x", "saved \"x\"") + comma + value("w", "saved \"w\"") +
                   comma + value("c", "cotangent of \"o\""),
               value("", "grad of \"i\"") + comma + value("", "grad of \"j\""),
               body + "%last = tandem.mul " + last[0] + ", %c : " + kSquare +
                   "\n",
               {"%last", last[1]}));
}

Value source(Value value) {
  while (auto view = value.getDefiningOp<ReshapeOp>())
    value = view.getX();
  return value;
}

struct Life {
  int64_t begin, end;      // bytes
  ptrdiff_t first, last;   // kernels; -1: before them
  ptrdiff_t overwrittenBy; // the kernel whose result takes its place
  bool isArgument = false; // in the storage of one
  bool operator&(const Life &other) const {
    return last >= other.first && other.last >= first && end > other.begin &&
           other.end > begin && isArgument == other.isArgument;
  }
};

/// Compares every pair of values. Those in arguments have addresses of their
/// own. Returns how many kernels write to a saved value.
unsigned checkAllPairs(func::FuncOp func) {
  SmallVector<KernelOp> kernels(func.getOps<KernelOp>());
  std::vector<Life> lives;
  unsigned inSaved = 0;
  Operation *terminator = func.getBody().front().getTerminator();
  auto add = [&](Value value, int64_t begin, bool isArgument, ptrdiff_t first) {
    int64_t bytes = byteSize(cast<RankedTensorType>(value.getType()));
    Life life{begin,
              begin + bytes,
              first,
              first,
              static_cast<ptrdiff_t>(kernels.size()),
              isArgument};
    for (size_t j = std::max<ptrdiff_t>(first, 0); j < kernels.size(); ++j)
      for (auto [i, input] : llvm::enumerate(kernels[j].getInputs()))
        if (source(input) == value) {
          life.last = j;
          if (InPlaceAttr pairs = kernels[j].getInPlaceAttr())
            for (auto [result, overwritten] : pairs.getPairs())
              if (overwritten == i)
                life.overwrittenBy = j;
        }
    for (Value returned : terminator->getOperands())
      if (source(returned) == value && isa<OpResult>(value))
        life.last = kernels.size();
    lives.push_back(life);
  };
  auto addressOf = [](int64_t argument) { return argument << 32; };
  for (BlockArgument argument : func.getArguments())
    add(argument, addressOf(argument.getArgNumber()), true, -1);
  for (auto [k, kernel] : llvm::enumerate(kernels))
    for (auto [result, attribute] :
         llvm::zip_equal(kernel.getResults(), kernel.getBuffersAttr())) {
      auto place = cast<BufferAttr>(attribute);
      if (place.getPlace() == BufferPlace::Result)
        continue;
      bool isArgument = place.getPlace() == BufferPlace::Argument;
      int64_t position = place.getPosition();
      add(result, isArgument ? addressOf(position) : position, isArgument, k);
      RoleAttr role = isArgument ? roleOfArgument(func, position) : RoleAttr();
      inSaved += role && role.getKind() == RoleKind::Saved;
      EXPECT_TRUE(lives.back().last < static_cast<ptrdiff_t>(kernels.size()) ||
                  (role && role.getKind() != RoleKind::Saved))
          << "returned from the arena or a saved value";
    }
  for (size_t i = 0; i < lives.size(); ++i)
    for (size_t j = i + 1; j < lives.size(); ++j) {
      const Life &x = lives[i], &y = lives[j];
      if (!(x & y))
        continue;
      EXPECT_TRUE(x.overwrittenBy == y.first || y.overwrittenBy == x.first)
          << "[" << x.begin << ", " << x.end << ") in kernels " << x.first
          << ".." << x.last << " and [" << y.begin << ", " << y.end
          << ") in kernels " << y.first << ".." << y.last;
    }
  return inSaved;
}

int64_t peakOf(func::FuncOp func) { return planOf(func).getPeakBytes(); }

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
    buildPlanPipeline(passes, PlanOptions());
    if (failed(passes.run(*module)))
      return nullptr;
    return module;
  }
  MLIRContext context;
  std::string problem;
};

TEST_F(PlanTest, A17_RandomProgramsHaveDisjointLives) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    auto module = plan(randomProgram(seed, 10 + seed * 2));
    ASSERT_TRUE(module) << problem;
    checkAllPairs(*module->getOps<func::FuncOp>().begin());
  }
}

TEST_F(PlanTest, C03_SavedValuesAreOverwrittenOnceTheyAreNotNeeded) {
  unsigned inSaved = 0, lower = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    auto module = plan(randomBackward(seed, 5 + seed));
    ASSERT_TRUE(module) << problem;
    auto func = module->lookupSymbol<func::FuncOp>("backward");
    inSaved += checkAllPairs(func);
    // Saved values that no forward gives are left alone.
    std::string text = randomBackward(seed, 5 + seed);
    auto kept = plan(text.replace(text.find("@forward"), 8, "@evaluate"));
    ASSERT_TRUE(kept) << problem;
    auto other = kept->lookupSymbol<func::FuncOp>("backward");
    EXPECT_EQ(checkAllPairs(other), 0u);
    EXPECT_LE(peakOf(func), peakOf(other));
    lower += peakOf(func) < peakOf(other);
  }
  EXPECT_GT(inSaved, 40u);
  EXPECT_GT(lower, 20u);
}

TEST_F(PlanTest, C03_ASavedOutputIsNeverOverwritten) {
  // It has no buffer of its own, either.
  const std::string alias = "{alias = {output = \"o\", views = []}}";
  for (unsigned seed = 1; seed <= 10; ++seed) {
    auto module = plan(randomBackward(seed, 10 + seed, alias));
    ASSERT_TRUE(module) << problem;
    auto forward = module->lookupSymbol<func::FuncOp>("forward");
    for (auto kernel : forward.getOps<KernelOp>())
      EXPECT_NE(kernel.getName(), "copy");
    Operation *terminator = forward.getBody().front().getTerminator();
    EXPECT_EQ(terminator->getOperand(0), terminator->getOperand(2));
    auto backward = module->lookupSymbol<func::FuncOp>("backward");
    checkAllPairs(backward);
    for (auto kernel : backward.getOps<KernelOp>())
      for (Attribute place : kernel.getBuffersAttr())
        EXPECT_NE(place, BufferAttr::get(&context, BufferPlace::Argument, 0));
  }
}

TEST_F(PlanTest, ManyWaysThroughValuesThatAreUsedTwice) {
  // 2^60 ways lead through what is added to the product; random numbers are
  // made like that. What looks at each way would never come to an end.
  const std::string of = " : " + kSquare + "\n";
  std::string body = "%v0 = tandem.exp %x" + of;
  for (int i = 1; i <= 60; ++i) {
    std::string before = "%v" + std::to_string(i - 1);
    body += "%v" + std::to_string(i) + " = tandem.mul " + before + ", " +
            before + of;
  }
  body += "%p = tandem.matmul %x, %w : " + kSquare + ", " + kSquare + " -> " +
          kSquare + "\n%y = tandem.add %v60, %p" + of;
  auto planned = plan(module(function(
      "step", value("x", "input \"x\"") + ", " + value("w", "param \"w\""),
      value("", "output \"y\"") + ", " + value("", "update of \"w\""), body,
      {"%y", "%w"})));
  ASSERT_TRUE(planned) << problem;
  checkAllPairs(*planned->getOps<func::FuncOp>().begin());
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
  ASSERT_TRUE(succeeded(checkPlan(func, nullptr)));
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
  EXPECT_TRUE(failed(checkPlan(func, nullptr)));
  EXPECT_NE(problem.find("is taken"), std::string::npos) << problem;
}

/// A8: values that live at once were put on one place by an edit, and trained
/// to another loss. An edit that the door lets pass has no overlap.
TEST_F(PlanTest, DoorRefusesEditsThatOverlap) {
  unsigned refused = 0, kept = 0;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    auto module = plan(randomProgram(seed, 25));
    ASSERT_TRUE(module) << problem;
    auto func = *module->getOps<func::FuncOp>().begin();
    int64_t arena = planOf(func).getArenaBytes();
    for (auto kernel : func.getOps<KernelOp>())
      for (size_t r = 0; r < kernel.getNumResults(); ++r) {
        ArrayAttr own = kernel.getBuffersAttr();
        if (cast<BufferAttr>(own[r]).getPlace() != BufferPlace::Arena)
          continue;
        for (int64_t at = 0; at < arena; at += 192) {
          SmallVector<Attribute> buffers(own.getValue());
          buffers[r] = BufferAttr::get(&context, BufferPlace::Arena, at);
          kernel.setBuffersAttr(ArrayAttr::get(&context, buffers));
          if (failed(checkPlan(func, nullptr))) {
            ++refused;
            continue;
          }
          ++kept;
          checkAllPairs(func);
        }
        kernel.setBuffersAttr(own);
      }
    EXPECT_TRUE(succeeded(checkPlan(func, nullptr)));
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(kept, 10u);
}

/// A8, A9: places that are no place of the program, and pairs that are none.
TEST_F(PlanTest, DoorRefusesOtherPlaces) {
  auto module = plan(randomProgram(5, 40));
  ASSERT_TRUE(module) << problem;
  auto func = *module->getOps<func::FuncOp>().begin();
  SmallVector<KernelOp> kernels(func.getOps<KernelOp>());
  auto place = [&](BufferPlace in, int64_t position) {
    return BufferAttr::get(&context, in, position);
  };
  auto find = [&](BufferPlace in) {
    return *llvm::find_if(kernels, [&](KernelOp kernel) {
      return cast<BufferAttr>(kernel.getBuffersAttr()[0]).getPlace() == in;
    });
  };
  auto refuses = [&](KernelOp kernel, BufferAttr other, const char *message) {
    ArrayAttr own = kernel.getBuffersAttr();
    SmallVector<Attribute> buffers(own.getValue());
    buffers[0] = other;
    kernel.setBuffersAttr(ArrayAttr::get(&context, buffers));
    problem.clear();
    EXPECT_TRUE(failed(checkPlan(func, nullptr))) << message;
    EXPECT_NE(problem.find(message), std::string::npos) << message << "\n"
                                                        << problem;
    kernel.setBuffersAttr(own);
  };
  KernelOp inner = find(BufferPlace::Arena), outer = find(BufferPlace::Result);
  refuses(inner, place(BufferPlace::Argument, 1),
          "expected to overwrite only what is updated");
  refuses(inner, place(BufferPlace::Argument, 7),
          "expected to overwrite only what is updated");
  refuses(inner, place(BufferPlace::Result, 0),
          "expected only what is returned");
  refuses(inner, place(BufferPlace::Result, 9),
          "expected only what is returned");
  refuses(inner, place(BufferPlace::Constant, 0), "expected no result in");
  refuses(inner, place(BufferPlace::Arena, INT64_MAX - 63), "within the arena");
  refuses(inner, place(BufferPlace::Arena, 32), "aligned places");
  refuses(outer, place(BufferPlace::Arena, 0), "to lie in");
  PlanAttr own = planOf(func);
  int64_t arena = own.getArenaBytes(), peak = own.getPeakBytes(),
          least = own.getLowerBoundBytes();
  ASSERT_GT(least, 0);
  auto refusesSizes = [&](const char *name, int64_t arena, int64_t peak,
                          int64_t least, int64_t host) {
    func->setAttr(kPlanAttr, PlanAttr::get(&context, arena, peak, least, host));
    problem.clear();
    EXPECT_TRUE(failed(checkPlan(func, nullptr)));
    EXPECT_NE(problem.find(std::string("expected '") + name + "'"),
              std::string::npos)
        << problem;
  };
  refusesSizes("arena_bytes", arena + 64, peak, least, 0);
  refusesSizes("peak_bytes", arena + 64, peak + 64, least, 0);
  refusesSizes("lower_bound_bytes", arena, peak, least - 1, 0);
  refusesSizes("host_bytes", arena, peak, least, 64);
}

} // namespace
