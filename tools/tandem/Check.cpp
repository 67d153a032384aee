//===- Check.cpp - the command `check` ------------------------------------===//
//
// Checks every gradient of a model in three ways that have nothing in common
// but the model: the compiled backward (f32), the reference's evaluation of the
// same joint program (f64), and central differences of the reference's forward
// along one random direction for each parameter.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/CheckModel.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/Session.h"

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

Status commands::check(std::string_view tool, Words words) {
  OptionTable table("check MODEL [options]",
                    "Checks the gradient of every parameter of a model: "
                    "compiled code and central\ndifferences against the f64 "
                    "reference. Inputs are drawn from the seed.");
  std::string model;
  std::optional<int64_t> seed;
  std::optional<double> tolerance, numeric;
  CompileFlags flags;
  table.positional("MODEL", model, "the model");
  table.integer("seed", "N", seed, 0, UINT32_MAX,
                "seed of the parameters and inputs (default: 0)");
  table.number("tolerance", "X", tolerance,
               "relative error of the compiled gradients (default: 1e-4)");
  table.number("numeric-tolerance", "X", numeric,
               "relative error of the central differences (default: 1e-4)");
  flags.declare(table);
  if (Status s = table.parse(words); !s)
    return s;
  if (table.helpAsked()) {
    std::fputs(table.help(tool).c_str(), stdout);
    return Status::success();
  }
  CompileOptions options;
  if (Status s = flags.finish(options); !s)
    return s;
  if (options.inference)
    return Status::usage("--inference leaves no gradients to check");
  auto checks =
      checkGradients(model, options, static_cast<uint64_t>(seed.value_or(0)));
  if (!checks)
    return checks.status();
  return printTable(*checks, tolerance.value_or(1e-4), numeric.value_or(1e-4));
}
