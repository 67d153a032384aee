//===- Method.cpp - ways to compute a kernel, as rows of a table ----------===//
#include "passes/lower/common/Method.h"

#include "passes/target/Rates.h"
#include "passes/target/Target.h"

#include "ir/Nearest.h"
#include "ir/ScheduleMethods.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

std::string lower::crossed(ArrayRef<int64_t> sizes) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(sizes, stream, "x");
  return text;
}

std::string lower::textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// The row of the name that a schedule says, if it says one.
static FailureOr<std::optional<size_t>>
askedRow(KernelOp kernel, ScheduleAttr schedule, const MethodChoices &choices) {
  if (!schedule || !schedule.getMethod())
    return std::optional<size_t>();
  StringRef asked = stringifyScheduleMethod(*schedule.getMethod());
  SmallVector<StringRef> names;
  for (size_t i = 0; i < choices.rows; ++i) {
    names.push_back(choices.about(i).first);
    if (names.back() == asked)
      return std::optional<size_t>(i);
  }
  return kernel.emitError()
         << "expected 'method' in the schedule of " << choices.of << " to be "
         << listOf(names) << ", but got '" << asked << "'";
}

namespace {
/// Sets a kernel's schedule, and puts back the one that was there.
class WithSchedule {
public:
  WithSchedule(KernelOp kernel, ScheduleAttr schedule)
      : kernel(kernel), before(kernel.getScheduleAttr()) {
    set(schedule);
  }
  ~WithSchedule() { set(before); }
  WithSchedule(const WithSchedule &) = delete;
  WithSchedule &operator=(const WithSchedule &) = delete;

private:
  void set(ScheduleAttr schedule) {
    if (schedule)
      kernel.setScheduleAttr(schedule);
    else
      kernel.removeScheduleAttr();
  }

  KernelOp kernel;
  ScheduleAttr before;
};
} // namespace

/// "'rows', 'block'", of the numbers of a method.
static std::string keysOf(const ScheduleOverride &numbers) {
  std::string list;
  for (const ScheduleKeyRow &row : scheduleKeys())
    if (row.key != ScheduleKey::Method && numbers.has(row.key))
      list += (list.empty() ? "'" : ", '") + row.name.str() + "'";
  return list.empty() ? "no numbers" : list;
}

std::string lower::shown(const ScheduleKeyRow &row, int64_t value) {
  return row.kind == ScheduleKeyRow::Flag ? value ? "true" : "false"
                                          : std::to_string(value);
}

/// Checks what `said` asks of a method against the numbers by which it cuts the
/// kernel.
static LogicalResult checkNumbers(KernelOp kernel, StringRef method,
                                  ScheduleAttr said,
                                  const ScheduleOverride &numbers) {
  if (!said)
    return success();
  bool isCuda = isForCuda(kernel);
  auto isOfOther = [&](const ScheduleKeyRow &row) {
    return row.target == (isCuda ? ScheduleKeyRow::Cpu : ScheduleKeyRow::Cuda);
  };
  for (const ScheduleEntry &entry : said.getEntries()) {
    const ScheduleKeyRow &row = rowOf(entry.key);
    if (isOfOther(row))
      return kernel.emitError()
             << "'" << row.name << "' of a schedule is of "
             << (isCuda ? "a CPU, but the kernel is for CUDA"
                        : "CUDA, but the kernel is for a CPU");
    if (entry.key != ScheduleKey::Method && !numbers.has(entry.key))
      return kernel.emitError()
             << "expected the schedule of method '" << method
             << "' to have, for this kernel, " << keysOf(numbers)
             << ", but got '" << row.name << "'";
  }
  ScheduleOverride own = ScheduleOverride::of(said);
  bool isWhole = own.has(ScheduleKey::Method);
  for (const ScheduleKeyRow &row : scheduleKeys())
    isWhole &= !numbers.has(row.key) || own.has(row.key);
  // For CUDA there are tiles that fit, and no others near them.
  bool isRefused = isWhole || isCuda;
  for (const ScheduleKeyRow &row : scheduleKeys()) {
    if (!own.has(row.key) || !numbers.has(row.key) ||
        own[row.key] == numbers[row.key])
      continue;
    if (!isRefused) {
      kernel.emitWarning() << "method '" << method
                           << "' cuts this kernel with '" << row.name
                           << "' = " << shown(row, numbers[row.key])
                           << " instead of " << shown(row, own[row.key]);
      continue;
    }
    return kernel.emitError()
           << "method '" << method << "' cannot cut this kernel with '"
           << row.name << "' = " << shown(row, own[row.key])
           << " and what else its schedule says; it would take "
           << shown(row, numbers[row.key]);
  }
  return success();
}

/// The schedule with all numbers of a method; those that `said` does not ask
/// for are the tables' choice.
static ScheduleAttr wholeSchedule(MLIRContext *context, StringRef method,
                                  ScheduleAttr said, ScheduleOverride numbers) {
  numbers.setMethod(*symbolizeScheduleMethod(method));
  SmallVector<ScheduleEntry> entries;
  for (const ScheduleKeyRow &row : scheduleKeys()) {
    if (!numbers.has(row.key))
      continue;
    bool isAsked = said && llvm::any_of(said.getEntries(), [&](auto &entry) {
                     return entry.key == row.key && !entry.isChosen;
                   });
    entries.push_back({row.key, numbers[row.key], !isAsked});
  }
  return ScheduleAttr::get(context, entries);
}

/// The row that is taken if none is asked for: the first that is good, or the
/// cheapest; without a good one the first that is possible.
static std::optional<size_t>
rowOfTable(const MethodChoices &choices,
           llvm::function_ref<const Fit &(size_t)> fit) {
  std::optional<size_t> row, possible;
  double least = 0;
  for (size_t i = 0; i < choices.rows; ++i) {
    if (!possible && fit(i).isPossible())
      possible = i;
    if (!fit(i).isGood())
      continue;
    double seconds = choices.takesCheapest ? choices.seconds(i).value_or(0) : 0;
    if (!row || seconds < least) {
      row = i;
      least = seconds;
    }
    if (!choices.takesCheapest)
      break;
  }
  return row ? row : possible;
}

FailureOr<ChosenMethod> lower::chooseMethod(KernelOp kernel,
                                            const MethodChoices &choices,
                                            const MethodQuestion &question) {
  MethodLog *log = question.log;
  MLIRContext *context = kernel.getContext();
  ScheduleAttr said = kernel.getScheduleAttr();
  SmallVector<std::optional<Fit>> fits(choices.rows);
  auto fit = [&](size_t i) -> const Fit & {
    if (!fits[i])
      fits[i] = choices.fit(i);
    return *fits[i];
  };
  auto nameOf = [&](size_t i) { return choices.about(i).first; };
  // Whether a row fits, and which one is taken, does not follow from numbers.
  WithSchedule none(kernel, ScheduleAttr());
  if (log) {
    *log = {choices.of.str(), {}, {}, choices.takesCheapest, choices.isTuned};
    for (size_t i = 0; i < choices.rows; ++i) {
      auto [name, summary] = choices.about(i);
      MethodLog::Row &row =
          log->rows.emplace_back(name, summary, fit(i), std::nullopt);
      if (!fit(i).isPossible())
        continue;
      row.schedule = wholeSchedule(context, name, {}, choices.cut(i));
      WithSchedule own(kernel, row.schedule);
      row.seconds = choices.seconds(i);
      row.scratchBytes = choices.scratch(i);
    }
  }
  FailureOr<std::optional<size_t>> asked = askedRow(kernel, said, choices);
  if (failed(asked))
    return failure();
  std::optional<size_t> row = *asked ? *asked : rowOfTable(choices, fit);
  if (!row)
    return kernel.emitError()
           << "unsupported: no method computes this kernel, " << choices.of;
  if (!fit(*row).isPossible())
    return kernel.emitError()
           << "method '" << nameOf(*row)
           << "' does not compute this kernel: " << fit(*row).reason();
  ChosenMethod chosen{*row, nameOf(*row), {}, 0};
  ScheduleOverride numbers;
  {
    WithSchedule own(kernel, said);
    numbers = choices.cut(*row);
  }
  if (!question.isWish &&
      failed(checkNumbers(kernel, chosen.name, said, numbers)))
    return failure();
  chosen.schedule = wholeSchedule(context, chosen.name, said, numbers);
  WithSchedule own(kernel, chosen.schedule);
  chosen.scratchBytes = choices.scratch(*row);
  if (log) {
    log->chosen = row;
    MethodLog::Row &taken = log->rows[*row];
    taken.schedule = chosen.schedule;
    taken.seconds = choices.seconds(*row);
    taken.scratchBytes = chosen.scratchBytes;
  }
  return chosen;
}

LogicalResult lower::checkScratch(KernelOp kernel, const ChosenMethod &chosen,
                                  int64_t taken) {
  if (taken != chosen.scratchBytes)
    return kernel.emitError()
           << "the code of method '" << chosen.name << "' takes " << taken
           << " bytes of scratch, but its row says " << chosen.scratchBytes;
  return success();
}

double lower::secondsOf(KernelOp kernel, Operation *anchor, double multiplyAdds,
                        bool narrow) {
  const Rates rates = Rates::of(kernel);
  double computing =
      2 * multiplyAdds / (narrow ? rates.narrow : rates.products);
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (&op != anchor)
      computing += rates.arithmetic(&op);
  double bytes = 0;
  for (TypeRange types : {TypeRange(kernel->getOperandTypes()),
                          TypeRange(kernel->getResultTypes())})
    for (Type type : types)
      bytes += static_cast<double>(byteSize(cast<RankedTensorType>(type)));
  return rates.seconds(computing, bytes);
}

void lower::dropChosen(KernelOp kernel) {
  kernel.removeScratchBytesAttr();
  ScheduleAttr said = kernel.getScheduleAttr();
  if (ScheduleAttr asked = said ? said.getAsked() : ScheduleAttr())
    kernel.setScheduleAttr(asked);
  else
    kernel.removeScheduleAttr();
}
