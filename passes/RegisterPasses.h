//===- RegisterPasses.h - registerTandemPasses() --------------------------===//
//
// Apart from Passes.h, which each pass includes: the functions that register
// all of them take longer to compile than most passes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_REGISTERPASSES_H
#define TANDEM_PASSES_REGISTERPASSES_H

#include "passes/Passes.h"

namespace tandem {

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace tandem

#endif
