//===- CodeGenTest.cpp - LLVM's pipelines without one of their passes -----===//
#include "compiler/emit/CodeGen.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

using namespace tandem;

/// The instructions that are left of x + 0 behind `instcombine`.
static unsigned countLeft(llvm::StringRef skipped) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(
      "define i32 @f(i32 %x) {\n  %y = add i32 %x, 0\n  ret i32 %y\n}\n", error,
      context);
  EXPECT_TRUE(module) << error.getMessage().str();
  Status status =
      runPasses(*module, nullptr, "function(instcombine)", {}, skipped);
  EXPECT_TRUE(status.ok()) << status.message();
  return module->getFunction("f")->getInstructionCount();
}

TEST(CodeGen, PassesAreSkippedByTheNameOfTheirClass) {
  EXPECT_EQ(countLeft(""), 1u);
  EXPECT_EQ(countLeft("InstCombinePass"), 2u);
}
