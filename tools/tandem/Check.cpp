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

#include <cstdio>

using namespace tandem;
using namespace tandem::commands;

static Status printTable(const std::vector<GradientCheck> &checks,
                         double compiledTolerance, double numericTolerance) {
  int wrong = 0;
  std::printf("%-28s %12s %14s %14s\n", "gradient of", "norm", "compiled",
              "differences");
  for (const GradientCheck &check : checks) {
    bool fine = check.compiledError <= compiledTolerance &&
                check.numericError <= numericTolerance;
    std::printf("%-28s %12.5g %14.2g %14.2g%s\n", check.name.c_str(),
                check.norm, check.compiledError, check.numericError,
                fine ? "" : "  differs");
    wrong += !fine;
  }
  std::printf("%zu gradients checked against the f64 reference (compiled, "
              "within %.0e) and central differences (within %.0e)\n",
              checks.size(), compiledTolerance, numericTolerance);
  if (!wrong)
    return Status::success();
  return {Code::Differs, std::to_string(wrong) + " of " +
                             std::to_string(checks.size()) +
                             " gradients differ"};
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
  std::optional<double> tolerance, numeric;
  CompileFlags flags;

  void declare(OptionTable &table) {
    table.positional("MODEL", model, "the model");
    table
        .integer("seed", "N", seed, 0, UINT32_MAX,
                 "seed of the parameters and inputs")
        .byDefault("0");
    table
        .number("tolerance", "X", tolerance,
                "relative error of the compiled gradients")
        .atLeast(0)
        .atMost(1)
        .byDefault("1e-4");
    table
        .number("numeric-tolerance", "X", numeric,
                "relative error of the central differences")
        .atLeast(0)
        .atMost(1)
        .byDefault("1e-4");
    table.groupOf("compile");
    flags.declare(table, /*withInference=*/false);
  }
};
} // namespace

static Status runCheck(const CheckOptions &command) {
  CompileOptions options;
  if (Status s = command.flags.finish(options); !s)
    return s;
  auto checks = checkGradients(command.model, options,
                               static_cast<uint64_t>(command.seed.value_or(0)));
  if (!checks)
    return checks.status();
  return printTable(*checks, command.tolerance.value_or(1e-4),
                    command.numeric.value_or(1e-4));
}

Command commands::checkCommand() {
  return commandOf<runCheck>("check", "check every gradient of a model");
}
