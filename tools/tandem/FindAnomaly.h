//===- FindAnomaly.h - which op made a NaN --------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_FINDANOMALY_H
#define TANDEM_TOOLS_TANDEM_FINDANOMALY_H

#include "ir/reference/Evaluator.h"
#include "tools/commands/Anomaly.h"

namespace tandem::commands {

/// Runs `func` on the reference, with every float rounded to its type, and
/// returns which op is the first to give a NaN (or, with `findsInfinity`, an
/// infinity) of operands without one: "'tandem.log' at m.json:14:5 gave NaN
/// ...". Empty if none does.
Result<std::string> findAnomaly(mlir::func::FuncOp func,
                                const reference::Call &call,
                                bool findsInfinity);

/// The locator of tools that have the compiler.
Result<AnomalyPlace> locateInModel(const AnomalyStep &step);

} // namespace tandem::commands

#endif
