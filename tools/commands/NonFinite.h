//===- NonFinite.h - what of a step is no number --------------------------===//
//
// Looked for once a loss or a norm of gradients is NaN or infinite, and not
// before: the rows of the batch that are, and the parameters, or else the
// outputs and gradients of the batch, which is run again.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_NONFINITE_H
#define TANDEM_TOOLS_COMMANDS_NONFINITE_H

#include "tools/commands/Dataset.h"

namespace tandem::commands {

/// Returns what is NaN or infinite, in words, of the batch `rows` that `data`
/// holds: "row 3 of --data 'x' ('x.npy'); the gradients of 'w'". Empty where
/// that is not known. The model's states are as they were. Under a mesh all
/// ranks call it, and have the text of all ranks.
Result<std::string> whatIsNotFinite(runtime::Model &model, const Dataset &data,
                                    std::span<const int64_t> rows);

} // namespace tandem::commands

#endif
