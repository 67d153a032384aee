//===- ExplainMethods.cpp - what the tables of methods say of a kernel ----===//
#include "passes/lower/common/ExplainMethods.h"
#include "passes/lower/common/Trial.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

namespace {
/// The first error within this scope, which nobody else sees.
class FirstError {
public:
  explicit FirstError(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (text.empty())
            text = diagnostic.str();
          return success();
        }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};
} // namespace

MethodLog lower::considerMethods(KernelOp kernel, TrialChooser choose) {
  MethodLog log;
  FirstError error(kernel.getContext());
  Trial trial(kernel);
  trial.kernel.removeScheduleAttr();
  (void)choose(trial.kernel, &log);
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

std::optional<ExplainedKernel>
lower::explainMethods(KernelOp kernel, TrialChooser choose, TrialEmitter emit) {
  MethodLog log;
  std::string problem;
  {
    FirstError error(kernel.getContext());
    Trial trial(kernel);
    if (failed(choose(trial.kernel, &log)))
      problem = error.text;
  }
  if (log.rows.empty())
    return std::nullopt;
  ExplainedKernel explained{log.of, {}, problem};
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
    if (method.isPossible) {
      FirstError error(kernel.getContext());
      Trial trial(kernel);
      trial.kernel.setScheduleAttr(scheduleWith(kernel, row.name));
      FailureOr<MethodCut> cut = emit(trial.kernel);
      if (succeeded(cut)) {
        method.cut = *cut;
        method.cut->scratchBytes = row.scratchBytes;
      } else if (method.isChosen) {
        explained.problem = error.text;
      } else {
        method.isPossible = false;
        method.against = error.text;
      }
    }
    explained.methods.push_back(std::move(method));
  }
  return explained;
}
