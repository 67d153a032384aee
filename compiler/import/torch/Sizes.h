//===- Sizes.h - sizes that are expressions of symbols --------------------===//
//
// torch.export writes sizes as SymPy's expressions, in its `srepr` form
// ("Mul(Integer(2), Symbol('s0', integer=True))") or as arithmetic
// ("2*s0 + 1"). With all symbols known they are numbers.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_TORCH_SIZES_H
#define TANDEM_COMPILER_IMPORT_TORCH_SIZES_H

#include "compiler/import/torch/Program.h"

#include "llvm/ADT/StringRef.h"

#include <utility>

namespace tandem::torch {

using Symbols = std::map<std::string, int64_t>;

/// The number; none if a symbol has none, or the expression has what is not
/// known. `unknown` gets the symbols without a number.
std::optional<int64_t> evaluate(const Size &size, const Symbols &symbols,
                                std::vector<std::string> *unknown = nullptr);

/// The symbol without a number and the number with which the size is `value`,
/// where it is linear in that one symbol ("2*s0 + 1"); none if no number is.
std::optional<std::pair<std::string, int64_t>>
solve(const Size &size, const Symbols &symbols, int64_t value);

/// SymPy's text for people: "Mul(Integer(2), Symbol('s0', integer=True))" is
/// "Mul(2, s0)".
std::string textOf(const Size &size);

/// The symbol's name, if the expression is one symbol; or "".
std::string symbolOf(const Size &size);

} // namespace tandem::torch

#endif
