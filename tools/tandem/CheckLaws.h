//===- CheckLaws.h - what holds of gradients without knowing them ---------===//
//
// A backward is linear in its cotangents, and a model that treats the rows of a
// batch alike gives the same gradients whatever their order. Both are looked at
// in the reference, whose derivatives may be wrong (a custom_vjp's, at other
// cotangents than ones), and in compiled code.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_CHECKLAWS_H
#define TANDEM_TOOLS_TANDEM_CHECKLAWS_H

#include "ir/reference/Evaluator.h"
#include "runtime/artifact/Status.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tandem {

/// By the names of cotangents, gradients or outputs.
using NamedArrays = std::map<std::string, reference::Array>;

/// How far one result is from what a law says. Errors are Euclidean, and
/// relative to the result, or to the largest gradient where it is small.
struct LawCheck {
  std::string name; ///< "w", or "output 'y'"
  double reference = 0, compiled = 0;
  double rounding = 0;  ///< what the rounding of results explains
  bool isFinite = true; ///< false: the law says nothing of it
};

/// Of doubles.
inline constexpr double kLawOfReference = 1e-9;

/// Looks at the gradients of `joint` at cotangents g and h that are drawn from
/// the seed, and at 2 g - h / 2: what it gives for that, and what it gives for
/// g and h, put together. `arguments` are the joint's; `run` gives the
/// gradients of compiled code, which are compared with the reference's, too.
Result<std::vector<LawCheck>>
checkLinear(mlir::func::FuncOp joint,
            const std::vector<reference::Array> &arguments, uint64_t seed,
            const std::function<Result<NamedArrays>(const NamedArrays &)> &run);

/// Looks at gradients and outputs of `joint` where the rows of its inputs are
/// in another order: as they were, and those with a row for each of the inputs'
/// in that order. Inputs with other numbers of rows than the first one that has
/// rows stay. `run` gives gradients of compiled code, and outputs as "output
/// 'y'", for other inputs. Fails with Usage where no input has two rows.
Result<std::vector<LawCheck>>
checkRows(mlir::func::FuncOp joint,
          const std::vector<reference::Array> &arguments, uint64_t seed,
          const std::function<Result<NamedArrays>(const NamedArrays &)> &run);

} // namespace tandem

#endif
