//===- Adapters.h - low-rank adapters of a checkpoint ---------------------===//
#ifndef TANDEM_TOOLS_TANDEM_ADAPTERS_H
#define TANDEM_TOOLS_TANDEM_ADAPTERS_H

#include "runtime/io/TensorFiles.h"

namespace tandem::commands {

/// Writes parameters and states to the file `output`, with each adapter added
/// to its weight (in f64, rounded once) and gone itself, and without what a
/// training knows of it. Fails where there is none, or one of three parts is
/// missing or has another shape.
Status foldAdapters(const io::TensorFiles &files, const std::string &output);

/// Writes the adapters alone to the file `output`, under PEFT's names, and
/// prints the `adapter_config.json` that goes with them.
Status extractAdapters(const io::TensorFiles &files, const std::string &output);

} // namespace tandem::commands

#endif
