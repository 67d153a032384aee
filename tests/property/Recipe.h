//===- Recipe.h - random programs as lists of choices ---------------------===//
//
// A recipe is what a random program is made of: some arguments, and steps that
// each add a few ops. A step says what it does by numbers that are read modulo
// what is there at that point, so that every list of steps is a program: taking
// steps away from a recipe that fails makes smaller programs to try.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_PROPERTY_RECIPE_H
#define TANDEM_TESTS_PROPERTY_RECIPE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace tandem::property {

enum class Action : uint32_t {
  Read,
  ViewOfRef,
  ViewOfTensor,
  Compute,
  Write,
  NewStorage,
  ToggleNoGrad,
  Transpose,
  Set,
  Custom,
  Output,
};

struct Step {
  Action action;
  std::array<uint32_t, 4> choice; ///< read modulo what there is to choose from
};

enum class Kind : uint32_t { Input, Param, State };

struct Argument {
  Kind kind;
  bool requiresGrad;
  uint32_t shape; ///< in the list of shapes
  /// Of an input: what storage it is declared to share; 0: none.
  uint32_t alias = 0;
};

struct Recipe {
  uint64_t seed; ///< of the numbers that the program runs on
  std::vector<Argument> arguments;
  std::vector<Step> steps;
};

/// A program of 1 to 4 refs and 2 to `longest` steps.
Recipe generate(uint64_t seed, unsigned longest = 16);

/// The captured module that a recipe stands for. Values are f64, of 1 to 12
/// elements.
mlir::OwningOpRef<mlir::ModuleOp> build(const Recipe &recipe,
                                        mlir::MLIRContext &context);

/// The smallest recipe that is found for which `fails` still holds.
Recipe shrink(Recipe recipe, const std::function<bool(const Recipe &)> &fails);

} // namespace tandem::property

#endif
