//===- Schedules.cpp - the rate as a function of the number of updates ----===//
#include "passes/partition/optimizers/Schedules.h"

#include "passes/partition/OptimizerSpec.h"

#include "ir/Nearest.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <limits>

using namespace llvm;
using namespace tandem;

using Form = OptimizerOption::Form;

static Expr clamped(const Expr &x) {
  return minimum(maximum(x, x.like(0.0)), x.like(1.0));
}

/// From 1 at 0 to 0 at 1.
static Expr anneal(const ScheduleSpec &spec, const Expr &part) {
  switch (static_cast<int>(spec.option("anneal"))) {
  case 0:
    return 0.5 * (1.0 + cos(part * M_PI));
  case 1:
    return 1.0 - part;
  default:
    return 1.0 - sqrt(part);
  }
}

/// What of the updates between the warm-up and the end is done: 0 to 1.
static Expr progress(const ScheduleSpec &spec, const Expr &count) {
  double begin = spec.option("warmup"), end = spec.option("total");
  return clamped((count - begin) / (end - begin));
}

/// What `part`, from 1 to 0, is of the way from the least rate to the rate.
static Expr between(const ScheduleSpec &spec, const Expr &rate,
                    const Expr &part) {
  double least = spec.option("min");
  return least == 0 ? rate * part : least + (rate - least) * part;
}

static Expr atLeast(const ScheduleSpec &spec, const Expr &rate) {
  double least = spec.option("min");
  return least == 0 ? rate : maximum(rate, rate.like(least));
}

static Expr constant(const ScheduleSpec &, const Expr &rate, const Expr &) {
  return rate;
}

static Expr linear(const ScheduleSpec &spec, const Expr &rate,
                   const Expr &count) {
  return between(spec, rate, 1.0 - progress(spec, count));
}

static Expr cosine(const ScheduleSpec &spec, const Expr &rate,
                   const Expr &count) {
  Expr part = progress(spec, count);
  if (double cycles = spec.option("cycles"); cycles > 1) {
    Expr through = part * cycles;
    Expr isDone = compare(ComparePredicate::ge, part, part.like(1.0));
    part = select(isDone, part, through - floor(through));
  }
  return between(spec, rate, 0.5 * (1.0 + cos(part * M_PI)));
}

static Expr polynomial(const ScheduleSpec &spec, const Expr &rate,
                       const Expr &count) {
  Expr left = 1.0 - progress(spec, count);
  return between(spec, rate, pow(left, left.like(spec.option("power"))));
}

static Expr step(const ScheduleSpec &spec, const Expr &rate,
                 const Expr &count) {
  Expr falls = floor((count - spec.option("warmup")) / spec.option("every"));
  return atLeast(spec, rate * exp(maximum(falls, falls.like(0.0)) *
                                  std::log(spec.option("gamma"))));
}

static Expr exponential(const ScheduleSpec &spec, const Expr &rate,
                        const Expr &count) {
  Expr after = count - spec.option("warmup");
  return atLeast(spec, rate * exp(maximum(after, after.like(0.0)) *
                                  std::log(spec.option("gamma"))));
}

static Expr oneCycle(const ScheduleSpec &spec, const Expr &rate,
                     const Expr &count) {
  double top = spec.option("rise") * spec.option("total") - 1;
  double end = spec.option("total") - 1;
  Expr first = rate / spec.option("div");
  Expr last = first / spec.option("final_div");
  Expr rising = rate + (first - rate) * anneal(spec, clamped(count / top));
  Expr falling =
      last + (rate - last) * anneal(spec, clamped((count - top) / (end - top)));
  return select(compare(ComparePredicate::le, count, count.like(top)), rising,
                falling);
}

static Expr inverseSqrt(const ScheduleSpec &spec, const Expr &rate,
                        const Expr &count) {
  double warmup = spec.option("warmup"), scale = spec.option("timescale");
  if (scale == 0)
    scale = warmup == 0 ? 10000 : warmup;
  Expr after = count - warmup;
  after = maximum(after, after.like(0.0));
  return atLeast(spec, rate * rsqrt((after + scale) / scale));
}

static Expr stableDecay(const ScheduleSpec &spec, const Expr &rate,
                        const Expr &count) {
  double length = spec.option("decay");
  Expr part = clamped((count - (spec.option("total") - length)) / length);
  return between(spec, rate, anneal(spec, part));
}

/// From the last line between two points to the first.
static Expr table(const ScheduleSpec &spec, const Expr &rate,
                  const Expr &count) {
  const auto &points = spec.points;
  Expr after = count - spec.option("warmup");
  Expr part = after.like(points.back().second);
  for (size_t i = points.size() - 1; i-- > 0;) {
    auto [begin, first] = points[i];
    auto [end, last] = points[i + 1];
    Expr on = first + (last - first) * ((after - begin) / (end - begin));
    part =
        select(compare(ComparePredicate::lt, after, after.like(end)), on, part);
  }
  return rate * part;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static constexpr double kMostUpdates = 1 << 24; // which f32 can count
static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

static constexpr OptimizerOption kTotal = {
    "total",      kNone, 1, kMostUpdates, false, "updates until the last rate",
    Form::Integer};
static constexpr OptimizerOption kLeast = {"min", 0,    kTiny,
                                           kMost, true, "the least rate"};
static constexpr OptimizerOption kAnneal = {
    "anneal", 0, 0, 0, false, "the curve of the rate", Form::Anneal};

static const OptimizerOption kWarmup[] = {
    {"warmup", 0, 1, kMostUpdates, true,
     "updates before, in which the rate rises along a line", Form::Integer},
    {"from", 0, kTiny, 1, true, "the part of the rate that it rises from"}};
static const OptimizerOption kLinear[] = {kTotal, kLeast};
static const OptimizerOption kCosine[] = {
    kTotal,
    kLeast,
    {"cycles", 1, 1, kMostUpdates, false, "how often it falls", Form::Integer}};
static const OptimizerOption kPolynomial[] = {
    kTotal, kLeast, {"power", 1, kTiny, 100, false, "the exponent"}};
static const OptimizerOption kStep[] = {
    {"every", kNone, 1, kMostUpdates, false, "updates of one rate",
     Form::Integer},
    {"gamma", 0.1, kTiny, 1, false, "what each rate is of the one before"},
    kLeast};
static const OptimizerOption kExponential[] = {
    {"gamma", kNone, kTiny, 1, false, "what each rate is of the one before"},
    kLeast};
static const OptimizerOption kOneCycle[] = {
    kTotal,
    {"rise", 0.3, kTiny, kBelowOne, false,
     "the part of total in which it rises"},
    {"div", 25, 1, kMost, false, "what of the rate it begins with"},
    {"final_div", 1e4, 1, 1e12, false, "what of that it ends with"},
    kAnneal};
static const OptimizerOption kInverseSqrt[] = {
    {"timescale", 0, 1, kMostUpdates, true,
     "updates after which it is 1/sqrt(2); 0: as many as the warm-up has, or "
     "10000",
     Form::Integer},
    kLeast};
static const OptimizerOption kStable[] = {kTotal,
                                          {"decay", kNone, 1, kMostUpdates,
                                           false,
                                           "updates of total in which it "
                                           "falls",
                                           Form::Integer},
                                          kLeast,
                                          kAnneal};

ArrayRef<OptimizerOption> tandem::warmupOptions() { return kWarmup; }

ArrayRef<ScheduleKind> tandem::scheduleKinds() {
  static const ScheduleKind kinds[] = {
      {"constant",
       {},
       true,
       constant,
       "lr",
       "transformers.get_constant_schedule_with_warmup"},
      {"linear", kLinear, true, linear, "a line from lr to min",
       "transformers.get_linear_schedule_with_warmup"},
      {"cosine", kCosine, true, cosine,
       "half a cosine from lr to min, cycles times",
       "transformers.get_cosine_with_hard_restarts_schedule_with_warmup"},
      {"polynomial", kPolynomial, true, polynomial,
       "min + (lr - min) * left^power, where left goes from 1 to 0",
       "transformers.get_polynomial_decay_schedule_with_warmup"},
      {"step", kStep, true, step, "lr * gamma^floor(updates / every)",
       "torch.optim.lr_scheduler.StepLR"},
      {"exponential", kExponential, true, exponential, "lr * gamma^updates",
       "torch.optim.lr_scheduler.ExponentialLR"},
      {"onecycle", kOneCycle, false, oneCycle,
       "from lr / div up to lr, then down to lr / div / final_div",
       "torch.optim.lr_scheduler.OneCycleLR"},
      {"inverse_sqrt", kInverseSqrt, true, inverseSqrt,
       "lr / sqrt(1 + updates / timescale)",
       "transformers.get_inverse_sqrt_schedule"},
      {"wsd", kStable, true, stableDecay,
       "lr, and in the last updates of total down to min",
       "transformers.get_wsd_schedule"},
      {"table",
       {},
       true,
       table,
       "lr times what UPDATES=PART,... says, along lines from 0=PART on; "
       "table:@F.csv reads lines of UPDATES,PART; UPDATES are those after a "
       "warm-up, which rises to the first PART",
       "numpy.interp"}};
  return kinds;
}

Expr ScheduleSpec::rate(const Expr &base, const Expr &count) const {
  Expr after = kind->at(*this, base, count);
  double warmup = option("warmup"), from = option("from");
  if (warmup == 0)
    return after;
  Expr top = points.empty() ? base : base * points.front().second;
  Expr rising = top * (from + (1 - from) * (count / warmup));
  return select(compare(ComparePredicate::lt, count, count.like(warmup)),
                rising, after);
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

/// Reads the points of a table: `list` is UPDATES=PART,... Returns the options
/// that stand between them.
static SmallVector<StringRef>
readPoints(StringRef list, ArrayRef<OptimizerOption> options,
           ScheduleSpec &spec, SmallVectorImpl<std::string> &problems) {
  constexpr size_t most = 100;
  SmallVector<StringRef> entries, others;
  list.split(entries, ',');
  for (StringRef entry : entries) {
    auto [updates, part] = entry.split('=');
    StringRef key = updates;
    if (any_of(options, [&](const auto &one) { return one.name == key; })) {
      others.push_back(entry);
      continue;
    }
    int64_t count = 0;
    double value = 0;
    if (updates.getAsInteger(10, count) || count < 0 || count > kMostUpdates ||
        part.getAsDouble(value) || !(value == 0 || value >= kTiny) ||
        !(value <= kMost))
      problems.push_back("expected UPDATES=PART, an integer from 0 to 1.68e+07 "
                         "and 0 or a number from 1.18e-38 to 1e+06, but got '" +
                         entry.str() + "'");
    else if (spec.points.empty() ? count != 0
                                 : count <= spec.points.back().first)
      problems.push_back("expected updates that rise from 0 on but got '" +
                         entry.str() + "'");
    else
      spec.points.emplace_back(double(count), value);
  }
  size_t points = entries.size() - others.size();
  if (points > most || points == 0)
    problems.push_back(
        points ? "expected at most " + std::to_string(most) +
                     " points but got " + std::to_string(points)
               : std::string("expected UPDATES=PART from 0=PART on"));
  return others;
}

/// What is wrong with values that are right by themselves.
static void checkTogether(const ScheduleSpec &spec,
                          SmallVectorImpl<std::string> &problems) {
  auto less = [&](StringRef a, StringRef b) {
    if (spec.values.count(a) && spec.values.count(b) &&
        !(spec.option(a) < spec.option(b)))
      problems.push_back(
          ("expected '" + a + "' to be less than '" + b + "'").str());
  };
  less("warmup", "total");
  if (spec.kind->name == "onecycle" &&
      !(spec.option("rise") * spec.option("total") > 1))
    problems.push_back("expected 'rise' of 'total' to be more than one update");
  if (spec.kind->name == "wsd" &&
      spec.option("warmup") + spec.option("decay") > spec.option("total"))
    problems.push_back(
        "expected 'warmup' and 'decay' to be at most 'total' together");
  if (spec.option("from") != 0 && spec.option("warmup") == 0)
    problems.push_back("'from' is of a 'warmup', and there is none");
}

std::optional<ScheduleSpec> tandem::parseScheduleSpec(StringRef text,
                                                      std::string &error) {
  auto [name, list] = text.split(':');
  SmallVector<StringRef> names;
  for (const ScheduleKind &kind : scheduleKinds())
    names.push_back(kind.name);
  const auto *kind = find_if(
      scheduleKinds(), [&](const ScheduleKind &k) { return k.name == name; });
  if (kind == scheduleKinds().end()) {
    error = "unknown schedule '" + name.str() + "'" + didYouMean(name, names) +
            "; known are '" + join(names, "', '") + "'";
    return std::nullopt;
  }
  SmallVector<OptimizerOption> options(kind->options);
  if (kind->warmsUp)
    append_range(options, warmupOptions());
  ScheduleSpec spec;
  spec.kind = kind;
  for (const OptimizerOption &option : options)
    if (!std::isnan(option.value))
      spec.values[option.name] = option.value;
  SmallVector<StringRef> entries;
  if (text.contains(':'))
    list.split(entries, ',');
  SmallVector<std::string> problems;
  if (name == "table")
    entries = readPoints(list, options, spec, problems);
  readNumbers("schedule '" + name.str() + "'", options, entries, spec.values,
              problems);
  for (const OptimizerOption &option : options)
    if (problems.empty() && !spec.values.count(option.name))
      problems.push_back("expected option '" + option.name.str() +
                         "': " + option.meaning.str());
  if (problems.empty())
    checkTogether(spec, problems);
  if (problems.empty())
    return spec;
  error = join(problems, "; ");
  return std::nullopt;
}
