//===- UpdatePrograms.h - which programs are an optimizer's ---------------===//
#ifndef TANDEM_IR_UPDATEPROGRAMS_H
#define TANDEM_IR_UPDATEPROGRAMS_H

#include "llvm/ADT/StringRef.h"

namespace tandem {

/// True of programs that are called with gradients, of which any may be
/// undefined: `update`; `accumulation`, which adds them to their sums; and
/// `norm`, by which stages of a pipeline find that of all gradients.
inline bool takesGradients(llvm::StringRef program) {
  return program == "update" || program == "accumulation" || program == "norm";
}

} // namespace tandem

#endif
