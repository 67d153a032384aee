//===- NonFinite.h - what of a step is no number --------------------------===//
//
// Parameters are looked at before the first step, since after it all may be NaN
// where one was. The rest is looked for once a loss or a norm of gradients is:
// the rows of the batch that are, and the parameters, or else the outputs and
// gradients of the batch, which is run again.
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

/// Returns the parameters that are NaN or infinite, in words: "parameters 'w'".
/// Empty if none is. Under a mesh as above.
Result<std::string> parametersNotFinite(std::span<const runtime::Model> models);

} // namespace tandem::commands

#endif
