//===- TarRows.h - samples of tars as rows --------------------------------===//
//
// NAME=@F-{000..003}.tar:ENDING has a row for each sample of the tars, as
// WebDataset writes them: the files that lie side by side and have one name up
// to its first dot. ENDING is what follows it: jpg, jpeg or png, behind which
// `,resize=N` and the like may stand as of a folder of images; cls, an integer
// in decimal digits; npy or NAME.npy, an array without a batch.
//
// Headers are read once, and what a file holds when its row is needed.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_TARROWS_H
#define TANDEM_TOOLS_COMMANDS_TARROWS_H

#include "tools/commands/Arrays.h"

namespace tandem::commands {

/// Reads the rows for the input `value`. Fails with Usage, naming tars and
/// samples, where there are none that fit.
Result<NamedArray> readTars(const io::Argument &argument,
                            const artifact::Value &value);

} // namespace tandem::commands

#endif
