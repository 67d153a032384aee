//===- Check.h - a program as compiled, against the oracle ----------------===//
#ifndef TANDEM_TESTS_PROPERTY_CHECK_H
#define TANDEM_TESTS_PROPERTY_CHECK_H

#include "tests/property/Oracle.h"
#include "tests/property/Recipe.h"

#include <string>

namespace tandem::property {

struct Verdict {
  enum Kind {
    Agrees,
    Refused, ///< both found the same kind of error
    Skipped, ///< nothing can be said: numbers too large, or an open case
    Fails
  } kind = Agrees;
  /// Of what fails: the phase and what is wrong in it, without numbers.
  std::string what;
  std::string details;
};

/// Builds the program of a recipe, runs it by the oracle and phase by phase as
/// the compiler makes it (up to `lastPhase`: functionalize, joint, optimize or
/// partition), and compares.
Verdict check(const Recipe &recipe, mlir::MLIRContext &context,
              const std::string &lastPhase = "partition");

/// The same, and the program as the runtime runs it.
Verdict checkCompiled(const Recipe &recipe, mlir::MLIRContext &context);

/// The module of a recipe as text.
std::string textOf(const Recipe &recipe, mlir::MLIRContext &context);

/// The values of the arguments, the same for the same seed.
std::vector<Array> valuesOf(const Recipe &recipe, mlir::func::FuncOp func);
/// A cotangent of that name.
Array cotangentOf(const Recipe &recipe, llvm::StringRef name,
                  llvm::ArrayRef<int64_t> shape);
/// Makes some cotangents of some recipes undefined.
void dropSome(const Recipe &recipe, std::map<std::string, Array> &cotangents);

} // namespace tandem::property

#endif
