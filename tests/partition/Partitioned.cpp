//===- Partitioned.cpp - what a partition chose, for tests ----------------===//
#include "tests/partition/Partitioned.h"

#include "compiler/Compile.h"
#include "ir/Ops.h"
#include "ir/Report.h"
#include "ir/Signature.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

static int contractionsIn(func::FuncOp func) {
  int n = 0;
  func.walk([&](CostOpInterface op) {
    n += op.getOpClass() == OpClass::Contraction;
  });
  return n;
}

bool Partitioned::repeats(const std::string &op) const {
  return llvm::is_contained(repeated, op);
}

static void readSaved(func::FuncOp forward, Partitioned &result) {
  for (unsigned i = 0, n = forward.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(forward, i);
    if (role.getKind() != RoleKind::Saved || role.has("alias"))
      continue;
    auto type = cast<RankedTensorType>(forward.getResultTypes()[i]);
    std::string text;
    llvm::raw_string_ostream(text) << role.getName().getValue() << ": " << type;
    result.saved.push_back(text);
    result.savedBytes += byteSize(type);
  }
}

Partitioned tandem::test::partition(const std::function<void(Trace &)> &program,
                                    const std::string &target,
                                    const std::string &kind) {
  Partitioned result;
  Trace trace("model");
  program(trace);
  auto text = trace.finish();
  EXPECT_TRUE(text.ok()) << text.status().message();
  if (!text.ok())
    return result;
  DialectRegistry registry;
  registerCompiler(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(*text, &context);
  CompileOptions options;
  options.target = target;
#ifdef __x86_64__
  // Choices depend on the length of vectors, and not on who runs the test.
  if (target == "cpu")
    options.target = "cpu:x86-64-v4";
#endif
  options.partition = kind;
  std::vector<PhaseTime> times;
  auto run = [&](const char *phase) {
    options.stopAfter = phase;
    Status status = runPhases(*module, options, times);
    EXPECT_TRUE(status.ok()) << status.message();
    options.target.clear();
    return status.ok();
  };
  if (!module || !run("optimize"))
    return result;
  result.contractions =
      contractionsIn(module->lookupSymbol<func::FuncOp>("joint"));
  if (!run("partition"))
    return result;
  for (const char *name : {"forward", "backward"})
    result.contractionsAfter +=
        contractionsIn(module->lookupSymbol<func::FuncOp>(name));
  readSaved(module->lookupSymbol<func::FuncOp>("forward"), result);
  auto report = (*module)->getAttrOfType<DictionaryAttr>(kPartitionReportAttr);
  EXPECT_TRUE(report);
  if (report)
    for (auto op :
         report.getAs<ArrayAttr>("repeated").getAsRange<DictionaryAttr>())
      result.repeated.push_back(op.getAs<StringAttr>("op").str());
  return result;
}
