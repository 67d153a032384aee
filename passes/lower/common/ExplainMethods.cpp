//===- ExplainMethods.cpp - what the tables of methods say of a kernel ----===//
#include "passes/lower/common/ExplainMethods.h"

#include "ir/ScheduleMethods.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

/// A module for the target of `kernel`, with a copy of the kernel alone.
static std::pair<OwningOpRef<ModuleOp>, KernelOp> aloneIn(KernelOp kernel) {
  Location loc = kernel.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc, "trial");
  if (auto whole = kernel->getParentOfType<ModuleOp>())
    (*module)->setDiscardableAttrs(whole->getDiscardableAttrDictionary());
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  auto func = func::FuncOp::create(
      b, loc, "trial", b.getFunctionType(kernel->getOperandTypes(), {}));
  Block *entry = func.addEntryBlock();
  b.setInsertionPointToStart(entry);
  auto copy = cast<KernelOp>(b.clone(*kernel));
  copy->setOperands(entry->getArguments());
  func::ReturnOp::create(b, loc);
  return {std::move(module), copy};
}

/// The schedule with another method.
static ScheduleAttr withMethod(KernelOp kernel, StringRef name) {
  MLIRContext *context = kernel.getContext();
  std::optional<ScheduleMethod> method = symbolizeScheduleMethod(name);
  ScheduleAttr said = kernel.getScheduleAttr();
  if (!said)
    return ScheduleAttr::get(context, method, 0, 0, 0, 0, {}, {});
  return ScheduleAttr::get(context, method, said.getRows(), said.getVectors(),
                           said.getBlock(), said.getColumns(), said.getPacks(),
                           said.getAhead());
}

namespace {
struct Trial {
  std::optional<MethodCut> cut;
  std::string problem; ///< if there is no cut
};
} // namespace

static Trial run(KernelOp kernel, TrialEmitter emit, StringRef method,
                 MethodLog *log) {
  Trial trial;
  auto note = [&](Diagnostic &diagnostic) {
    if (trial.problem.empty())
      trial.problem = diagnostic.str();
    return success();
  };
  ScopedDiagnosticHandler handler(kernel.getContext(), note);
  auto [module, copy] = aloneIn(kernel);
  if (!method.empty())
    copy.setScheduleAttr(withMethod(kernel, method));
  FailureOr<MethodCut> cut = emit(copy, log);
  if (succeeded(cut))
    trial.cut = *cut;
  return trial;
}

MethodLog lower::considerMethods(KernelOp kernel, TrialEmitter emit) {
  MethodLog log;
  run(kernel, emit, "", &log);
  return log;
}

/// Why a method that is good, or as good as the chosen one, is not chosen.
static std::string againstGood(const MethodLog &log, size_t row) {
  if (!log.chosen)
    return "another one is asked for";
  const MethodLog::Row &chosen = log.rows[*log.chosen];
  const MethodLog::Row &own = log.rows[row];
  if (log.takesCheapest && own.seconds && chosen.seconds &&
      *own.seconds >= *chosen.seconds)
    return llvm::formatv(
               "expected less than the {0:F2} us of '{1}' but got {2:F2} us",
               *chosen.seconds * 1e6, chosen.name, *own.seconds * 1e6)
        .str();
  if (row > *log.chosen)
    return ("'" + chosen.name + "' is asked first").str();
  return ("'" + chosen.name + "' is asked for").str();
}

std::optional<ExplainedKernel> lower::explainMethods(KernelOp kernel,
                                                     TrialEmitter emit) {
  MethodLog log;
  Trial own = run(kernel, emit, "", &log);
  if (log.rows.empty())
    return std::nullopt;
  ExplainedKernel explained{log.of, {}, own.cut ? "" : own.problem};
  for (auto [i, row] : llvm::enumerate(log.rows)) {
    ExplainedMethod method;
    method.name = row.name.str();
    method.summary = row.summary.str();
    method.isChosen = log.chosen == i;
    method.isPossible = row.fit.isPossible();
    method.seconds = row.seconds;
    if (!method.isChosen)
      method.against =
          row.fit.isGood() ? againstGood(log, i) : row.fit.reason();
    if (method.isChosen) {
      method.cut = own.cut;
    } else if (method.isPossible) {
      Trial trial = run(kernel, emit, row.name, nullptr);
      method.cut = trial.cut;
      if (!trial.cut) {
        method.isPossible = false;
        method.against = trial.problem;
      }
    }
    explained.methods.push_back(std::move(method));
  }
  return explained;
}
