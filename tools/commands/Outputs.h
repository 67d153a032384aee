//===- Outputs.h - what a command gives out -------------------------------===//
//
// `--output` arguments, and outputs on stdout: scalars as the shortest text
// that reads back the same, others as a summary.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_OUTPUTS_H
#define TANDEM_TOOLS_COMMANDS_OUTPUTS_H

#include "runtime/io/Argument.h"
#include "tools/commands/Inputs.h"

#include <deque>

namespace tandem::commands {

/// Matches `--output` arguments with the outputs of the program called
/// `program`. Fails with Usage, naming all that are wrong.
Result<std::vector<io::Argument>>
parseOutputs(const std::vector<std::string> &texts, const std::string &program,
             const std::vector<artifact::Slot> &outputs);

/// Fails with Usage if a file of `files` is an array that the command could not
/// have written itself: of another type, or with rows of another shape than the
/// output's (`outputs`; `isArgmax`: its indices).
Status checkReplaced(const std::vector<io::Argument> &files,
                     const std::vector<artifact::Slot> &outputs, bool isArgmax);

/// Prints dense tensors on the host.
void printOutputs(const std::deque<NamedTensor> &outputs);
/// Prints them as {"program": ..., "outputs": {...}}.
void printOutputsAsJson(const std::string &program,
                        const std::deque<NamedTensor> &outputs);

} // namespace tandem::commands

#endif
