//===- Summary.h - what is in an archive of torch.export, as text ---------===//
#ifndef TANDEM_COMPILER_IMPORT_TORCH_SUMMARY_H
#define TANDEM_COMPILER_IMPORT_TORCH_SUMMARY_H

#include "compiler/import/Import.h"
#include "compiler/import/torch/Program.h"

namespace tandem::torch {

/// A symbol that sizes of inputs have.
struct Dimension {
  std::string symbol;
  std::string input; ///< the first that has it
  size_t dim = 0;    ///< where that input has it
  std::optional<int64_t> hint;
  Range range;
  std::string derived; ///< what the dimension is, if more than the symbol

  /// "5 when it was exported, at least 2 and at most 64"; may be empty. Of a
  /// derived one: "2*s0, s0 at least 2".
  std::string facts() const;
};

/// The symbols of user inputs to which options give no size.
std::vector<Dimension> openDimensions(const Program &program,
                                      const ImportOptions &options);

/// What `inspect` prints of a program whose sizes are not known: inputs and
/// outputs with sizes as expressions of symbols, how many parameters and
/// buffers it has, and each of `open` with the option that gives it a size.
std::string summaryOf(const Program &program,
                      const std::vector<Dimension> &open);

} // namespace tandem::torch

#endif
