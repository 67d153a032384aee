//===- InspectEstimate.h - what programs would take on a GPU --------------===//
#ifndef TANDEM_TOOLS_TANDEM_INSPECTESTIMATE_H
#define TANDEM_TOOLS_TANDEM_INSPECTESTIMATE_H

#include "runtime/artifact/ArtifactReader.h"

#include <string>

namespace tandem::commands {

/// On what, as options say it.
struct EstimateOptions {
  std::string
      device; ///< a row of the table; empty: the typical one of the code
  std::string machines;    ///< a file with more rows; empty: none
  std::string calibration; ///< a file with measured kernels; empty: none
};

/// Prints what each program for CUDA would take, by kinds of kernels, and what
/// the time passes with; or all of it as JSON.
Status printEstimate(const artifact::ArtifactReader &reader,
                     const EstimateOptions &options, bool asJson);

} // namespace tandem::commands

#endif
