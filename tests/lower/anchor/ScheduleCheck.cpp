//===- ScheduleCheck.cpp - kernels that say how they are cut --------------===//
#include "tests/lower/anchor/ScheduleCheck.h"

#include "ir/Dialect.h"
#include "passes/lower/cpu/ScheduleSearch.h"

#include "mlir/Parser/Parser.h"

using namespace tandem;
using namespace tandem::test;

std::string tandem::test::scheduled(std::string text,
                                    const std::string &schedule) {
  size_t at = text.find("{buffers = ");
  EXPECT_NE(at, std::string::npos);
  return text.insert(at + 1, "schedule = " + schedule + ", ");
}

/// Calls `use` with the kernel of `text` in a module for `vectorBits`.
template <typename Use>
static void withKernel(const std::string &text, Use use) {
  mlir::DialectRegistry registry;
  registry.insert<TandemDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module) << text;
  module->walk([&](KernelOp kernel) { use(kernel); });
}

/// The schedules that tuning tries for the kernel of `text` by `method`, as
/// text: of what the first and the last variant of each round lead to, every
/// `step`th.
static std::vector<std::string> candidatesOf(const std::string &text,
                                             const CpuModel &target,
                                             const std::string &method,
                                             int step) {
  std::vector<std::string> list;
  withKernel(text, [&](KernelOp kernel) {
    std::vector<cpu::AskedSchedule> from(1);
    from.front().method = symbolizeScheduleMethod(method);
    for (cpu::ScheduleRound round : cpu::scheduleRounds(kernel)) {
      if (round(from.front(), target).back().method != from.front().method)
        continue; // methods
      llvm::SmallVector<cpu::AskedSchedule> last;
      for (const cpu::AskedSchedule &best : from) {
        last = round(best, target);
        for (size_t i = 0; i < last.size(); i += step) {
          list.emplace_back();
          llvm::raw_string_ostream(list.back())
              << last[i].attribute(kernel.getContext());
        }
      }
      from = {from.front(), last.back()};
    }
  });
  return list;
}

void tandem::test::checkBits(const std::string &text, Tolerance tolerance,
                             const std::string &method) {
  int vectorBits = tolerance.vectorBits;
  SCOPED_TRACE(text);
  std::string start =
      method.empty()
          ? text
          : scheduled(text, "#tandem.schedule<method = " + method + ">");
  checkKernel(start, tolerance);
  JitKernel model(start, vectorBits);
  ASSERT_TRUE(model.ok()) << model.error;
  auto inputs = randomInputs(model.inputTypes, 8);
  auto expected = model.outputs(inputs, model.work);
  CpuModel target;
  target.bits = vectorBits ? vectorBits : 512;
  target.registers = target.bits == 512 ? 32 : 16;
  bool isProduct = text.find("matmul") != std::string::npos &&
                   text.find("bf16") == std::string::npos;
  auto candidates = candidatesOf(text, target, method, isProduct ? 1 : 3);
  EXPECT_FALSE(candidates.empty());
  std::string begin = method.empty() ? "" : "method = " + method + ", ";
  for (const char *extreme :
       {"rows = 1", "vectors = 8", "rows = 32, vectors = 8",
        "vectors = 1, block = 1, columns = 1",
        "block = 1099511627776, columns = 1099511627776, packs = true",
        "rows = 7, vectors = 3"})
    candidates.push_back("#tandem.schedule<" + begin + extreme + ">");
  int cutOtherwise = 0;
  for (const std::string &schedule : candidates) {
    SCOPED_TRACE(schedule);
    JitKernel kernel(scheduled(text, schedule), vectorBits);
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    cutOtherwise += kernel.work != model.work;
    EXPECT_EQ(kernel.outputs(inputs, kernel.work), expected);
    EXPECT_EQ(kernel.outputs(inputs, 1, true), expected);
    EXPECT_EQ(kernel.error, "");
  }
  EXPECT_GT(cutOtherwise, 0);
}
