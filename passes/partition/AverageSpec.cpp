//===- AverageSpec.cpp - averages of params over updates ------------------===//
#include "passes/partition/AverageSpec.h"

#include "passes/partition/OptimizerSpec.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tandem;

static const OptimizerOption kEma[] = {
    below1("decay", 0, "decay of the average")};
static const OptimizerOption kSwa[] = {
    {"start", 1, 1, 1 << 24, false, "the first update that is averaged",
     OptimizerOption::Form::Integer},
    {"every", 1, 1, 1 << 24, false, "updates from one to the next",
     OptimizerOption::Form::Integer}};

/// Reads `entries`; false, with what is wrong in `error`, if they are wrong.
static bool read(const std::string &of, ArrayRef<OptimizerOption> options,
                 StringRef list, StringMap<double> &values,
                 std::string &error) {
  SmallVector<StringRef> entries;
  list.split(entries, ',');
  SmallVector<std::string> problems;
  readNumbers(of, options, entries, values, problems);
  error = join(problems, "; ");
  return problems.empty();
}

std::optional<AverageSpec> tandem::parseEmaSpec(StringRef text,
                                                std::string &error) {
  StringMap<double> values;
  if (!read("--ema", kEma, ("decay=" + text).str(), values, error)) {
    error = "expected a decay from 1.18e-38 and below 1, or 0, but got '" +
            text.str() + "'";
    return std::nullopt;
  }
  AverageSpec spec{"ema"};
  spec.decay = values.lookup("decay");
  return spec;
}

std::optional<AverageSpec> tandem::parseSwaSpec(StringRef text,
                                                std::string &error) {
  StringMap<double> values;
  values["start"] = values["every"] = 1;
  if (!read("--swa", kSwa, text, values, error))
    return std::nullopt;
  AverageSpec spec{"swa"};
  spec.start = values.lookup("start");
  spec.every = values.lookup("every");
  return spec;
}

Expr AverageSpec::count(const Expr &update) const {
  if (name == "ema")
    return update;
  Expr passed = floor((update - start) / every) + 1.0;
  return maximum(passed, passed.like(0.0));
}

Expr AverageSpec::average(const Expr &old, const Expr &param,
                          const Expr &update) const {
  Expr weight = update.like(1 - decay);
  Expr isFirst = compare(ComparePredicate::eq, update, update.like(1.0));
  Expr first = update.like(1.0), none = update.like(0.0);
  if (name == "ema") {
    weight = select(isFirst, first, weight);
  } else {
    Expr since = (update - start) / every;
    Expr isOne = logicalAnd(compare(ComparePredicate::ge, since, none),
                            compare(ComparePredicate::eq, since, floor(since)));
    weight = select(isOne, 1.0 / maximum(count(update), first), none);
  }
  Expr each =
      weight.cast(old.type().getElementType()).broadcastTo(old.shape(), {});
  return old + each * (param - old);
}
