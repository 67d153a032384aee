//===- Method.cpp - ways to compute a kernel, as rows of a table ----------===//
#include "passes/lower/common/Method.h"

#include "ir/PlannedScratch.h"
#include "passes/target/Rates.h"

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

/// The row of the name that the kernel asks for, if it is one.
static FailureOr<std::optional<size_t>> askedRow(KernelOp kernel,
                                                 const MethodChoices &choices) {
  ScheduleAttr schedule = kernel.getScheduleAttr();
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

FailureOr<ChosenMethod> lower::chooseMethod(KernelOp kernel,
                                            const MethodChoices &choices,
                                            MethodLog *log) {
  SmallVector<std::optional<Fit>> fits(choices.rows);
  auto fit = [&](size_t i) -> const Fit & {
    if (!fits[i])
      fits[i] = choices.fit(i);
    return *fits[i];
  };
  if (log) {
    *log = {choices.of.str(), {}, {}, choices.takesCheapest, choices.isTuned};
    for (size_t i = 0; i < choices.rows; ++i) {
      auto [name, summary] = choices.about(i);
      log->rows.push_back({name, summary, fit(i), {}});
      if (!fit(i).isPossible())
        continue;
      log->rows.back().seconds = choices.seconds(i);
      log->rows.back().scratchBytes = choices.scratch(i);
    }
  }
  FailureOr<std::optional<size_t>> asked = askedRow(kernel, choices);
  if (failed(asked))
    return failure();
  std::optional<size_t> row = *asked;
  if (row && !fit(*row).isPossible())
    return kernel.emitError()
           << "method '" << choices.about(*row).first
           << "' does not compute this kernel: " << fit(*row).reason();
  // Without a good one, the first that is possible.
  std::optional<size_t> possible;
  double least = 0;
  for (size_t i = 0; i < choices.rows && !*asked; ++i) {
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
  if (!row)
    row = possible;
  if (!row)
    return kernel.emitError()
           << "unsupported: no method computes this kernel, " << choices.of;
  if (log)
    log->chosen = row;
  return ChosenMethod{*row, choices.about(*row).first, choices.scratch(*row)};
}

LogicalResult lower::checkScratch(KernelOp kernel, const ChosenMethod &chosen,
                                  int64_t taken) {
  if (taken != chosen.scratchBytes)
    return kernel.emitError()
           << "the code of method '" << chosen.name << "' takes " << taken
           << " bytes of scratch, but its row says " << chosen.scratchBytes;
  return success();
}

ScheduleAttr lower::scheduleWith(KernelOp kernel, StringRef name) {
  MLIRContext *context = kernel.getContext();
  std::optional<ScheduleMethod> method = symbolizeScheduleMethod(name);
  ScheduleAttr said = kernel.getScheduleAttr();
  if (!said)
    return ScheduleAttr::get(context, method, 0, 0, 0, 0, {}, {});
  return ScheduleAttr::get(context, method, said.getRows(), said.getVectors(),
                           said.getBlock(), said.getColumns(), said.getPacks(),
                           said.getAhead());
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

void lower::dropChosenMethod(KernelOp kernel) {
  ScheduleAttr said = kernel.getScheduleAttr();
  if (!kernel->removeAttr(kScratchBytesAttr) || !said)
    return;
  auto rest = ScheduleAttr::get(
      kernel.getContext(), std::nullopt, said.getRows(), said.getVectors(),
      said.getBlock(), said.getColumns(), said.getPacks(), said.getAhead());
  auto nothing =
      ScheduleAttr::get(kernel.getContext(), std::nullopt, 0, 0, 0, 0, {}, {});
  if (rest == nothing)
    kernel.removeScheduleAttr();
  else
    kernel.setScheduleAttr(rest);
}
