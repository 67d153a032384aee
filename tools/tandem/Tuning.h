//===- Tuning.h - --tune on the command line ------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_TUNING_H
#define TANDEM_TOOLS_TANDEM_TUNING_H

#include "compiler/Compile.h"
#include "tools/tandem/RunKernels.h"

namespace tandem::commands {

/// What times kernels for a compilation, and says on stderr how that goes: on a
/// terminal a line that is rewritten, at the end one that stays.
class Tuning {
public:
  /// Makes a compilation with `options` tune with this.
  void attach(CompileOptions &options);
  /// Says what was found, if anything was measured.
  void finish();

private:
  void show(const TuneReport &report);

  RunKernels timer_;
  TuneReport report_;
  bool shown_ = false;
};

} // namespace tandem::commands

#endif
