//===- PassLog.h - what each pass of a compilation did --------------------===//
#ifndef TANDEM_COMPILER_PASSLOG_H
#define TANDEM_COMPILER_PASSLOG_H

#include "compiler/PassSteps.h"

#include "mlir/Pass/PassManager.h"

#include <functional>
#include <memory>
#include <optional>

namespace tandem {

/// What one pass did.
struct PassWork {
  std::string phase;
  std::string label; ///< of the target or stage; empty where there is one
  std::string name;  ///< "fuse-composites"
  int number = 0;    ///< as in PassStep
  /// On how many ops it ran: on functions, or the module.
  int64_t runs = 0;
  /// The ops in what it ran on, before and after all its runs. The same each
  /// time, as is `runs`; nothing where both depend on the kernel cache, as no
  /// code is made of kernels that it has.
  std::optional<int64_t> before, after;
  /// Of all its runs, of which several may go at a time.
  double seconds = 0;
};

/// Gets what passes do, phase by phase in the order in which they run.
class PassLog {
public:
  /// Watches `manager`, which runs `steps`. What is returned is called when it
  /// has run, and adds them to `passes`.
  std::function<void()> watch(mlir::PassManager &manager,
                              llvm::ArrayRef<PassStep> steps,
                              llvm::StringRef label, bool isCounted);

  std::vector<PassWork> passes;
};

} // namespace tandem

#endif
