//===- ScheduleCheck.cpp - kernels that say how they are cut --------------===//
#include "tests/lower/anchor/ScheduleCheck.h"

#include "ir/Dialect.h"
#include "ir/ScheduleMethods.h"
#include "passes/lower/cpu/ScheduleSearch.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

using namespace tandem;
using namespace tandem::test;

/// The schedules that tuning tries for the kernel of `text` by `method`, as
/// text: of what the first and the last variant of each round lead to, every
/// `step`th.
static std::vector<std::string> candidatesOf(const std::string &text,
                                             int vectorBits,
                                             const std::string &method,
                                             int step) {
  mlir::DialectRegistry registry;
  registry.insert<TandemDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  std::vector<std::string> list;
  if (!module)
    return list;
  setTarget(*module, cpuTarget(vectorBits));
  module->walk([&](KernelOp kernel) {
    lower::cpu::ScheduleSearch search(kernel);
    std::vector<lower::ScheduleOverride> from(1);
    if (auto known = symbolizeScheduleMethod(method))
      from.front().setMethod(*known);
    // Round 0 is that of methods.
    for (size_t round = 1; round < search.rounds(); ++round) {
      llvm::SmallVector<lower::ScheduleOverride> last;
      for (const lower::ScheduleOverride &best : from) {
        last = search.variants(round, best);
        for (size_t i = 0; i < last.size(); i += step) {
          list.emplace_back();
          llvm::raw_string_ostream(list.back())
              << last[i].attribute(kernel.getContext());
        }
      }
      if (!last.empty())
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
  tolerance.alwaysUsual = true; // as the schedules below: one code
  checkKernel(start, tolerance);
  JitKernel model(start, vectorBits);
  ASSERT_TRUE(model.ok()) << model.error;
  auto inputs = randomInputs(model.inputTypes, 8);
  auto expected = model.outputs(inputs, model.work);
  bool isProduct = text.find("matmul") != std::string::npos &&
                   text.find("bf16") == std::string::npos;
  auto candidates = candidatesOf(text, vectorBits, method, isProduct ? 1 : 3);
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
    JitKernel kernel(wished(text, schedule, cpuTarget(vectorBits)), vectorBits);
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    cutOtherwise += kernel.work != model.work;
    EXPECT_EQ(kernel.outputs(inputs, kernel.work), expected);
    EXPECT_EQ(kernel.outputs(inputs, 1, true), expected);
    EXPECT_EQ(kernel.error, "");
  }
  EXPECT_GT(cutOtherwise, 0);
}
