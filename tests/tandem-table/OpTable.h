//===- OpTable.h - what is known of every op of the dialect ---------------===//
//
// Walks the registered ops and asks their interfaces. The page docs/support.md
// is this table, and a test demands that nothing in it is missing.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_TABLE_OPTABLE_H
#define TANDEM_TOOLS_TANDEM_TABLE_OPTABLE_H

#include "mlir/IR/MLIRContext.h"

#include <string>
#include <vector>

namespace tandem {

/// One row. An empty text means that the op lacks it.
struct OpSupport {
  std::string name;          ///< "tandem.add"
  std::string opClass;       ///< "pointwise", ..., "storage", "program"
  std::string gradient;      ///< "rule", "none", "refused", "decomposes", ...
  std::string reference;     ///< "yes", "generic", "evaluator"
  std::string cpu, cuda;     ///< "loops", "anchor", "decomposes", ...
  unsigned gradientRows = 0; ///< of tests/gradients

  /// What the op must have and lacks, in words; empty if nothing.
  std::vector<std::string> missing() const;
};

/// The table, by name.
std::vector<OpSupport> opTable(mlir::MLIRContext &context);

} // namespace tandem

#endif
