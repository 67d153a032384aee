//===- Slice.h - what some outputs of a program need ----------------------===//
//
// The launches that some of a program's outputs follow from, and the inputs
// that must be given for them: what runs where a caller wants these outputs
// alone. Found from what launches read and write, byte by byte, so that memory
// that is used again is told apart.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_SLICE_H
#define TANDEM_RUNTIME_ARTIFACT_SLICE_H

#include "runtime/artifact/Manifest.h"

namespace tandem::artifact {

struct Slice {
  std::vector<char> launches; ///< for each: it runs
  std::vector<char> reads; ///< for each argument: a launch that runs reads it
  /// For each argument: an output follows from it. A kernel that computes more
  /// than is wanted may read others; any values serve there.
  std::vector<char> needs;
};

/// Returns the slice for the results and aliases (`program.aliases`) that are
/// wanted, one entry for each.
Slice sliceOf(const Program &program, const std::vector<char> &wantedResults,
              const std::vector<char> &wantedAliases);

/// The same for outputs by their names; unknown ones are left out.
Slice sliceOf(const Program &program, const std::vector<std::string> &outputs);

} // namespace tandem::artifact

#endif
