//===- Check.cpp - the command `check` ------------------------------------===//
//
// Checks every gradient of a model in three ways that have nothing in common
// but the model: the compiled backward (f32), the reference's evaluation of the
// same joint program (f64), and central differences of the reference's forward
// along one random direction for each parameter.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/CheckModel.h"
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/CompilerCommands.h"

#include <cmath>
#include <cstdio>

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

static Status printTable(const std::vector<GradientCheck> &checks,
                         const Tolerances &tolerances) {
  int wrong = 0, wrongInCode = 0;
  std::printf("%-28s %12s %14s %14s\n", "gradient of", "norm", "compiled",
              "differences");
  for (const GradientCheck &check : checks) {
    bool fine = tolerances.isFine(check);
    std::printf("%-28s %12.5g %14.2g ", check.name.c_str(), check.norm,
                check.compiledError);
    if (check.trusted.empty())
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
              "within %.0e%s) and central differences (within %.0e)\n",
              checks.size(), tolerances.compiledOr(),
              tolerances.compiled ? "" : " or what rounding explains",
              tolerances.numericOr());
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

namespace {
struct CheckOptions {
  static constexpr std::string_view
      usage = "check MODEL [options]",
      description = "Checks the gradient of every parameter of a model: "
                    "compiled code and central differences against the f64 "
                    "reference. Inputs are drawn from the seed.";

  std::string model;
  std::optional<int64_t> seed;
  std::string trust;
  AnomalyOptions anomaly;
  Tolerances tolerances;
  CompileFlags flags;

  void declare(OptionTable &table) {
    table.positional("MODEL", model, "the model");
    table
        .integer("seed", "N", seed, 0, UINT32_MAX,
                 "seed of the parameters and inputs")
        .byDefault("0");
    table
        .number("tolerance", "X", tolerances.compiled,
                "relative error of the compiled gradients")
        .atLeast(0)
        .atMost(1)
        .byDefault("1e-4, or what rounding every result explains");
    table
        .number("numeric-tolerance", "X", tolerances.numeric,
                "relative error of the central differences")
        .atLeast(0)
        .atMost(1)
        .byDefault("1e-4");
    table.text("trust", "REGEX", trust,
               "custom_vjps of such names need not be derivatives (as those "
               "that pass a gradient straight through): what goes through them "
               "is not compared with differences");
    table
        .optionalText("detect-anomaly", "nan|infinity", anomaly.isOn,
                      anomaly.kind,
                      "look at what every op of forward and backward gives, "
                      "and fail with the first that makes a NaN (or infinity)")
        .oneOf({"nan", "infinity"})
        .byDefault("nan");
    table.groupOf("compile");
    flags.declare(table, /*withInference=*/false);
  }
};
} // namespace

static Status runCheck(const CheckOptions &command) {
  CompileOptions options;
  if (Status s = command.flags.finishWhole(options); !s)
    return s;
  Files files;
  command.flags.declare(files, command.model);
  if (Status s = files.check(command.flags.force); !s)
    return s;
  auto checks = checkGradients(command.model, options,
                               static_cast<uint64_t>(command.seed.value_or(0)),
                               command.trust, command.anomaly);
  if (!checks)
    return checks.status();
  return printTable(*checks, command.tolerances);
}

Command commands::checkCommand() {
  return commandOf<runCheck>("check", "check every gradient of a model");
}
