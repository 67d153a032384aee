//===- PropertyTest.cpp - random programs that mutate, alias and save -----===//
//
// Makes random programs, runs each by the oracle and as compiled, and compares
// (Check.h). What fails is made small and printed, with the seed that makes it
// again.
//
//===----------------------------------------------------------------------===//
#include "tests/property/Check.h"

#include "compiler/Compile.h"

#include "mlir/IR/MLIRContext.h"

#include <cstdlib>
#include <cstring>
#include <iostream>

using namespace mlir;
using namespace tandem;
using namespace tandem::property;

namespace {

struct Options {
  uint64_t seed = 1;
  int programs = 2000;
  int compiled = 60; ///< of the programs, are run as compiled code too
  int failures = 1;  ///< after so many it stops
  std::string stopAfter = "partition";
  bool print = false; ///< the first program, and nothing else
};

} // namespace

static bool parse(int count, char **arguments, Options &options) {
  for (int i = 1; i < count; ++i) {
    std::string argument = arguments[i];
    auto value = [&](const char *name) -> const char * {
      size_t length = std::strlen(name);
      return argument.compare(0, length, name) == 0 ? argument.c_str() + length
                                                    : nullptr;
    };
    if (const char *seed = value("--seed="))
      options.seed = std::strtoull(seed, nullptr, 10);
    else if (const char *programs = value("--programs="))
      options.programs = std::atoi(programs);
    else if (const char *compiled = value("--compiled="))
      options.compiled = std::atoi(compiled);
    else if (const char *failures = value("--failures="))
      options.failures = std::atoi(failures);
    else if (const char *phase = value("--stop-after="))
      options.stopAfter = phase;
    else if (argument == "--print")
      options.print = true;
    else
      return false;
  }
  return true;
}

using Check = std::function<Verdict(const Recipe &)>;

static void report(const Recipe &recipe, const Verdict &verdict,
                   MLIRContext &context, const Check &check) {
  Recipe small = shrink(recipe, [&](const Recipe &candidate) {
    Verdict other = check(candidate);
    return other.kind == Verdict::Fails && other.what == verdict.what;
  });
  std::cout << "seed " << recipe.seed << ": " << verdict.what << "\n"
            << check(small).details << "\n"
            << textOf(small, context) << "\n";
}

int main(int count, char **arguments) {
  Options options;
  if (!parse(count, arguments, options)) {
    std::cerr << "usage: property-test [--seed=N] [--programs=N] "
                 "[--compiled=N] [--failures=N] [--stop-after=PHASE] "
                 "[--print]\n";
    return 2;
  }
  DialectRegistry registry;
  registerCompiler(registry);
  MLIRContext context(registry);
  context.disableMultithreading();
  context.loadAllAvailableDialects();
  if (options.print) {
    Recipe recipe = generate(options.seed);
    std::cout << textOf(recipe, context);
    return 0;
  }
  int counts[4] = {};
  int failures = 0, compiled = 0;
  for (int i = 0; i < options.programs && failures < options.failures; ++i) {
    Recipe recipe = generate(options.seed + i);
    Check evaluated = [&](const Recipe &candidate) {
      return check(candidate, context, options.stopAfter);
    };
    Check run = [&](const Recipe &candidate) {
      return checkCompiled(candidate, context);
    };
    Verdict verdict = evaluated(recipe);
    bool isRun = verdict.kind == Verdict::Agrees &&
                 options.stopAfter == "partition" &&
                 compiled < options.compiled && recipe.steps.size() > 6;
    if (isRun) {
      ++compiled;
      verdict = run(recipe);
    }
    ++counts[verdict.kind];
    if (verdict.kind != Verdict::Fails)
      continue;
    ++failures;
    report(recipe, verdict, context, isRun ? run : evaluated);
  }
  std::cout << "seeds " << options.seed << " to "
            << options.seed + options.programs - 1 << ": "
            << counts[Verdict::Agrees] << " programs agree (" << compiled
            << " as compiled code too), " << counts[Verdict::Refused]
            << " are refused for the same reason, " << counts[Verdict::Skipped]
            << " say nothing, " << counts[Verdict::Fails] << " fail\n";
  // A test of programs that all say nothing would pass for nothing.
  bool isThin = counts[Verdict::Agrees] * 2 < options.programs;
  if (isThin && !failures)
    std::cout << "expected at least half of the programs to agree\n";
  return failures || isThin ? 1 : 0;
}
