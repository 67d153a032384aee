//===- OptimizerSpec.h - "adamw:lr=1e-3,weight_decay=0.1" -----------------===//
#ifndef TANDEM_PASSES_PARTITION_OPTIMIZERSPEC_H
#define TANDEM_PASSES_PARTITION_OPTIMIZERSPEC_H

#include "passes/partition/optimizers/Optimizers.h"

#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>

namespace tandem {

/// Returns the values that an option may have: "0, or from 1.18e-38 to 1e+06".
std::string rangeOf(const OptimizerOption &option);
/// Returns the value as it is written: "0.001", "true"; empty: none.
std::string valueText(const OptimizerOption &option);

/// An optimizer and a value for each of its options.
struct OptimizerSpec {
  const OptimizerKind *kind = nullptr;
  llvm::StringMap<double> values;
};

/// Parses `NAME` or `NAME:OPTION=NUMBER,...`. Otherwise returns nothing, and
/// `error` says everything that is wrong, and what would be right.
std::optional<OptimizerSpec> parseOptimizerSpec(llvm::StringRef text,
                                                std::string &error);

/// Parses `KEY=VALUE` entries of what has `options` ("optimizer 'adamw'") over
/// the values that there are; `problems` gets all that is wrong. `ownersOf`
/// says more of a key that it has not.
void readNumbers(const std::string &of, llvm::ArrayRef<OptimizerOption> options,
                 llvm::ArrayRef<llvm::StringRef> entries,
                 llvm::StringMap<double> &values,
                 llvm::SmallVectorImpl<std::string> &problems,
                 std::string (*ownersOf)(llvm::StringRef key) = nullptr);

/// Parses `OPTION=NUMBER` entries over the values that `spec` has; `problems`
/// gets all that is wrong.
void readOptions(OptimizerSpec &spec, llvm::ArrayRef<llvm::StringRef> entries,
                 llvm::SmallVectorImpl<std::string> &problems);

} // namespace tandem

#endif
