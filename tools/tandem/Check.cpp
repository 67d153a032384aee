//===- Check.cpp - the command `check` ------------------------------------===//
//
// Checks every gradient of a model in three ways that have nothing in common
// but the model: the compiled backward (f32), the reference's evaluation of the
// same joint program (f64), and central differences of the reference's forward
// along one random direction for each parameter.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Text.h"
#include "tools/tandem/CheckModel.h"
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/EmulatedOrders.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <cstdio>
#include <limits>

using namespace tandem;
using namespace tandem::commands;

namespace {

/// What a gradient may be off by. Without a tolerance of the user's own a
/// compiled one may also be off by what rounding explains.
struct Tolerances {
  std::optional<double> compiled, numeric;

  double compiledOr() const { return compiled.value_or(kRelative); }
  double numericOr() const { return numeric.value_or(kRelative); }
  bool isRounding(const GradientCheck &check) const {
    return !compiled && check.compiledError > kRelative &&
           std::isfinite(check.roundingError) &&
           check.compiledError <= kOfRounding * check.roundingError;
  }
  bool isFineInCode(const GradientCheck &check) const {
    return check.compiledError <= compiledOr() || isRounding(check);
  }
  bool isFine(const GradientCheck &check) const {
    return isFineInCode(check) && check.numericError <= numericOr();
  }
};

} // namespace

/// What differs of the whole step; prints the one that is nearest to it.
static Status printStep(const std::vector<StepCheck> &checks,
                        const Tolerances &tolerances) {
  if (checks.empty())
    return Status::success();
  auto allowed = [&](const StepCheck &check) {
    double relative = tolerances.compiledOr() * check.size;
    return tolerances.compiled ? relative : std::max(relative, check.rounding);
  };
  auto part = [&](const StepCheck &check) {
    double error = check.error / std::max(allowed(check), 1e-300);
    return check.error == 0    ? 0
           : std::isnan(error) ? std::numeric_limits<double>::infinity()
                               : error;
  };
  int wrong = 0;
  const StepCheck *worst = &checks[0];
  for (const StepCheck &check : checks) {
    if (!(part(check) <= 1)) {
      ++wrong;
      std::printf("%-28s is off by %.2g of %.2g that are allowed  differs\n",
                  check.name.c_str(), check.error, allowed(check));
    }
    if (part(check) > part(*worst))
      worst = &check;
  }
  std::printf("%zu results of the step checked against the f64 reference "
              "(worst: %s, off by %.2g of %.2g that are allowed)\n",
              checks.size(), worst->name.c_str(), worst->error,
              allowed(*worst));
  if (!wrong)
    return Status::success();
  return {Code::Differs, std::to_string(wrong) + " of " +
                             std::to_string(checks.size()) +
                             " results of the step differ"};
}

static Status printTable(const std::vector<GradientCheck> &checks,
                         const Tolerances &tolerances, bool differences) {
  int wrong = 0, wrongInCode = 0;
  std::printf("%-28s %12s %14s %14s\n", "gradient of", "norm", "compiled",
              "differences");
  for (const GradientCheck &check : checks) {
    bool fine = tolerances.isFine(check);
    std::printf("%-28s %12.5g %14.2g ", check.name.c_str(), check.norm,
                check.compiledError);
    if (!differences)
      std::printf("%14s", "-");
    else if (check.trusted.empty())
      std::printf("%14.2g", check.numericError);
    else
      std::printf("%14s  through '%s', which is trusted", "-",
                  check.trusted.c_str());
    if (!fine)
      std::printf("  differs");
    else if (tolerances.isRounding(check))
      std::printf("  by rounding, which explains %.2g", check.roundingError);
    std::printf("\n");
    wrong += !fine;
    wrongInCode += !tolerances.isFineInCode(check);
  }
  std::printf("%zu gradients checked against the f64 reference (compiled, "
              "within %.0e%s)",
              checks.size(), tolerances.compiledOr(),
              tolerances.compiled ? "" : " or what rounding explains");
  if (differences)
    std::printf(" and central differences (within %.0e)",
                tolerances.numericOr());
  std::printf("\n");
  if (!wrong)
    return Status::success();
  std::string text = std::to_string(wrong) + " of " +
                     std::to_string(checks.size()) + " gradients differ";
  // A relu or a maximum has no derivative at its kink.
  if (!wrongInCode)
    text += ", all of them from central differences alone; where a function "
            "has a kink (relu, a maximum), these may step over it: does it "
            "differ with another --seed, too?";
  return {Code::Differs, text};
}

/// What does not hold of a law; prints the one that is nearest to that.
static Status printLaw(const std::vector<LawCheck> &checks,
                       const Tolerances &tolerances, const char *law) {
  if (checks.empty())
    return Status::success();
  auto allowed = [&](const LawCheck &check) {
    return tolerances.compiled
               ? *tolerances.compiled
               : std::max(kRelative, kOfRounding * check.rounding);
  };
  int wrong = 0, infinite = 0;
  const LawCheck *worst = &checks[0];
  for (const LawCheck &check : checks) {
    if (!check.isFinite) {
      ++infinite;
      continue;
    }
    if (!(check.reference <= kLawOfReference &&
          check.compiled <= allowed(check))) {
      ++wrong;
      std::printf("%-28s is not %s: off by %.2g in the reference, by %.2g of "
                  "%.2g that are allowed in compiled code  differs\n",
                  check.name.c_str(), law, check.reference, check.compiled,
                  allowed(check));
    }
    if (!(check.compiled <= worst->compiled))
      worst = &check;
  }
  std::printf("%zu results are %s (worst: %s, off by %.2g in the reference, by "
              "%.2g in compiled code)",
              checks.size() - size_t(wrong + infinite), law,
              worst->name.c_str(), worst->reference, worst->compiled);
  if (infinite)
    std::printf("; %d are not finite, which says nothing", infinite);
  std::printf("\n");
  if (!wrong)
    return Status::success();
  return {Code::Differs, std::to_string(wrong) + " of " +
                             std::to_string(checks.size()) +
                             " results are not " + law};
}

namespace {
struct CheckOptions {
  static constexpr std::string_view
      usage = "check MODEL ... [options]",
      description = "Checks the gradient of every parameter of a model, or of "
                    "several models one after the other: compiled code and "
                    "central differences against the f64 reference; with "
                    "--optimizer also what a whole step "
                    "leaves. Inputs are drawn from the seed. With --emulation "
                    "the kernels for cuda run on the device cuda-emu, in "
                    "three orders of their blocks and threads that must give "
                    "the same bits.";

  std::string first;
  std::vector<std::string> models;
  std::optional<int64_t> seed;
  CheckSettings settings;
  std::string differences = "yes";
  Tolerances tolerances;
  CompileFlags flags;

  void declare(OptionTable &table) {
    table.positionals("MODEL", first, models,
                      "a model; the others are checked whatever is wrong with "
                      "one of them");
    table
        .integer("seed", "N", seed, 0, UINT32_MAX,
                 "seed of the parameters and inputs")
        .byDefault("0");
    table
        .number("tolerance", "X", tolerances.compiled,
                "relative error of the compiled gradients, and of what a step "
                "leaves")
        .atLeast(0)
        .atMost(1)
        .byDefault("1e-4, or what rounding every result explains");
    table
        .number("numeric-tolerance", "X", tolerances.numeric,
                "relative error of the central differences")
        .atLeast(0)
        .atMost(1)
        .excludes("differences=no", "nothing is compared with them")
        .byDefault("1e-4");
    table
        .text("differences", "yes|no", differences,
              "compare with central differences, too; what compiled code "
              "computes is known without them")
        .oneOf({"yes", "no"})
        .byDefault("yes");
    table.flag("linear", settings.linear,
               "compare gradients at other cotangents than ones, too: at g "
               "and h, which are drawn, and at 2g - h/2, where what is linear "
               "adds up");
    table.flag("rows-alike", settings.rowsAlike,
               "permute the rows of the inputs, too, which the model treats "
               "alike: gradients of parameters stay, and rows of outputs and "
               "of gradients of inputs are permuted as they");
    table.text("trust", "REGEX", settings.trust,
               "custom_vjps of such names need not be derivatives (as those "
               "that pass a gradient straight through): what goes through them "
               "is not compared with differences");
    table
        .optionalText("detect-anomaly", "nan|infinity", settings.anomaly.isOn,
                      settings.anomaly.kind,
                      "look at what every op of forward and backward gives, "
                      "and fail with the first that makes a NaN (or infinity)")
        .oneOf({"nan", "infinity"})
        .byDefault("nan");
    table.groupOf("compile");
    flags.declare(table, /*withInference=*/false);
  }
};
} // namespace

static Status checkModel(const CheckOptions &command,
                         const CompileOptions &options,
                         const std::string &model) {
  CheckSettings settings = command.settings;
  settings.seed = static_cast<uint64_t>(command.seed.value_or(0));
  settings.differences = command.differences == "yes";
  auto check = checkGradients(model, options, settings);
  if (!check)
    return check.status();
  Status table =
      printTable(check->gradients, command.tolerances, settings.differences);
  Status step = printStep(check->step, command.tolerances);
  if (options.emulation)
    std::printf("%zu kernels, %zu launches: the same bits in %zu orders\n",
                check->kernels, check->launches, std::size(kEmulatedOrders));
  Status linear =
      printLaw(check->linear, command.tolerances, "linear in the cotangents");
  Status rows = printLaw(check->rows, command.tolerances,
                         "the same in another order of rows");
  for (Status *status : {&table, &step, &linear})
    if (!*status)
      return std::move(*status);
  return rows;
}

/// Each model's table comes behind its name, which is there before the work: a
/// model that ends the process is the last one that is named.
static Status checkModels(const CheckOptions &command,
                          const CompileOptions &options) {
  Status first;
  size_t failed = 0;
  for (const std::string &model : command.models) {
    std::printf("%s:\n", artifact::forScreen(model).c_str());
    std::fflush(stdout);
    Status status = checkModel(command, options, model);
    if (status)
      continue;
    std::printf("%s: error: %s\n", artifact::forScreen(model).c_str(),
                artifact::forScreen(status.message()).c_str());
    if (!failed++)
      first = std::move(status).in(model);
  }
  std::printf("%zu models checked, %zu of them with errors\n",
              command.models.size(), failed);
  if (!failed)
    return Status::success();
  return {first.code(), std::to_string(failed) + " of " +
                            std::to_string(command.models.size()) +
                            " models have errors; " + first.message()};
}

/// Rules for options look at one name, and files that are written have one.
static Status fitTogether(const CheckOptions &command,
                          const CompileOptions &options) {
  auto suffix = llvm::sys::path::extension(command.first);
  for (const std::string &model : command.models)
    if (llvm::sys::path::extension(model) != suffix)
      return Status::usage("expected models of one format, but got " +
                           artifact::inQuotes(command.first) + " and " +
                           artifact::inQuotes(model));
  for (auto [option, value] : {std::pair("dump-phases", &options.dumpPhases),
                               {"dump-passes", &options.dumpPasses},
                               {"reproducer", &options.reproducerFile}})
    if (!value->empty())
      return Status::usage(std::string("--") + option +
                           " is of one model, but got " +
                           std::to_string(command.models.size()));
  return Status::success();
}

static Status runCheck(const CheckOptions &command) {
  CompileOptions options;
  if (Status s = command.flags.finishWhole(options); !s)
    return s;
  if (command.models.size() > 1)
    if (Status s = fitTogether(command, options); !s)
      return s;
  Files files;
  command.flags.declare(files, command.first);
  for (const std::string &model : llvm::drop_begin(command.models))
    files.reads("the model", model);
  if (Status s = files.check(command.flags.force); !s)
    return s;
  return command.models.size() == 1
             ? checkModel(command, options, command.first)
             : checkModels(command, options);
}

Command commands::checkCommand() {
  return commandOf<runCheck>("check", "check every gradient of a model");
}
