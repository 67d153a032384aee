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
  (void)choose(trial.kernel, {&log});
  return log;
}

ScheduleAttr lower::scheduleFor(KernelOp kernel, const ScheduleOverride &wish,
                                TrialChooser choose) {
  FirstError error(kernel.getContext());
  Trial trial(kernel);
  if (ScheduleAttr asked = wish.attribute(kernel.getContext()))
    trial.kernel.setScheduleAttr(asked);
  else
    trial.kernel.removeScheduleAttr();
  FailureOr<ChosenMethod> chosen =
      choose(trial.kernel, {/*log=*/nullptr, /*isWish=*/true});
  return succeeded(chosen) ? chosen->schedule : ScheduleAttr();
}

/// "rows = 6, packs = true": the numbers of a schedule, whoever chose them.
static std::string numbersOf(ScheduleAttr schedule) {
  std::string text;
  for (const ScheduleEntry &entry : schedule.getEntries()) {
    const ScheduleKeyRow &row = rowOf(entry.key);
    if (row.kind == ScheduleKeyRow::Method)
      continue;
    text += (text.empty() ? "" : ", ") + row.name.str() + " = " +
            shown(row, entry.value);
  }
  return text;
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
                                                     TrialChooser choose) {
  MethodLog log;
  std::string problem;
  {
    FirstError error(kernel.getContext());
    Trial trial(kernel);
    if (failed(choose(trial.kernel, {&log})))
      problem = error.text;
  }
  if (log.rows.empty())
    return std::nullopt;
  ExplainedKernel explained{log.of, {}, problem};
  for (auto [i, row] : llvm::enumerate(log.rows)) {
    ExplainedMethod &method = explained.methods.emplace_back();
    method.name = row.name.str();
    method.summary = row.summary.str();
    method.isChosen = log.chosen == i;
    method.isPossible = row.fit.isPossible();
    if (!method.isChosen)
      method.against =
          row.fit.isGood() ? againstGood(log, i) : row.fit.reason();
    if (!method.isPossible)
      continue;
    method.seconds = row.seconds;
    method.scratchBytes = row.scratchBytes;
    method.schedule = numbersOf(row.schedule);
  }
  return explained;
}
