//===- MethodRows.cpp - what the tables of methods say, for tests ---------===//
#include "tests/lower/anchor/MethodRows.h"

#include "ir/Dialect.h"
#include "passes/lower/cpu/ExplainMethods.h"
#include "passes/lower/cuda/ExplainMethods.h"
#include "passes/target/Target.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/TargetParser/Host.h"

#include <gtest/gtest.h>

using namespace tandem;

std::string test::cpuTarget(int vectorBits) {
  static const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  if (vectorBits == 0)
    vectorBits = host.lookup("avx512f") ? 512 : host.lookup("avx2") ? 256 : 128;
  return "#tandem.target<cpu {vector_bits = " + std::to_string(vectorBits) +
         " : i64}>";
}

std::string test::cudaTarget(const std::string &arch,
                             const std::string &precision) {
  return R"(#tandem.target<cuda {arch = ")" + arch +
         R"(", matmul_precision = ")" + precision + "\"}>";
}

void test::setTarget(mlir::ModuleOp module, const std::string &target) {
  auto all =
      mlir::cast<TargetAttr>(mlir::parseAttribute(target, module.getContext()));
  if (TargetAttr own = TargetAttr::of(module))
    for (mlir::NamedAttribute field : own.getFields())
      all = all.with(field.getName(), field.getValue());
  module->setAttr(kTargetAttr, all);
}

lower::ExplainedKernel test::explained(const std::string &text,
                                       const std::string &target) {
  mlir::DialectRegistry registry;
  registry.insert<TandemDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
  lower::ExplainedKernel found;
  if (!module)
    return found;
  setTarget(*module, target);
  module->walk([&](KernelOp kernel) {
    auto one = isForCuda(kernel) ? lower::cuda::explainMethods(kernel)
                                 : lower::cpu::explainMethods(kernel);
    if (one)
      found = std::move(*one);
  });
  return found;
}

std::string test::chosen(const lower::ExplainedKernel &kernel) {
  for (const lower::ExplainedMethod &method : kernel.methods)
    if (method.isChosen)
      return method.name;
  return "";
}

std::vector<std::string> test::possible(const lower::ExplainedKernel &kernel) {
  std::vector<std::string> names;
  for (const lower::ExplainedMethod &method : kernel.methods)
    if (method.isPossible)
      names.push_back(method.name);
  return names;
}

std::string test::against(const lower::ExplainedKernel &kernel,
                          const std::string &name) {
  for (const lower::ExplainedMethod &method : kernel.methods)
    if (method.name == name)
      return method.against;
  return "no row";
}

std::string test::scheduled(std::string text, const std::string &schedule) {
  size_t at = text.find("{buffers = ");
  EXPECT_NE(at, std::string::npos);
  return text.insert(at + 1, "schedule = " + schedule + ", ");
}

std::string test::wished(const std::string &text, const std::string &schedule,
                         const std::string &target) {
  mlir::DialectRegistry registry;
  registry.insert<TandemDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
  if (!module)
    return text;
  setTarget(*module, target);
  auto said = mlir::dyn_cast_or_null<ScheduleAttr>(
      mlir::parseAttribute(schedule, &context));
  EXPECT_TRUE(said) << schedule;
  ScheduleAttr whole;
  module->walk([&](KernelOp kernel) {
    whole = lower::cpu::scheduleFor(kernel, lower::ScheduleOverride::of(said));
  });
  if (!whole)
    return text;
  std::string shown;
  llvm::raw_string_ostream(shown) << whole;
  return scheduled(text, shown);
}

std::string test::byMethod(const std::string &text, const std::string &method) {
  return scheduled(text, "#tandem.schedule<method = " + method + ">");
}
