//===- Run.h - cases as programs ------------------------------------------===//
#ifndef TANDEM_TESTS_ORACLE_RUN_H
#define TANDEM_TESTS_ORACLE_RUN_H

#include "tests/oracle/Fixtures.h"

namespace tandem::oracle {

using Cases = std::vector<const Case *>;

/// Evaluates one program of all `cases` on the reference: for values the
/// program as it was imported, for derivatives what the phase `joint` makes of
/// it. Returns what went wrong, or "".
std::string evaluate(const Cases &cases, const std::string &type, Asked asked,
                     NamedNumbers &outputs);

/// Compiles one program of all `cases` for the CPU, with derivatives, and runs
/// it. Returns what went wrong, or "". What trains is compiled for training,
/// the rest for inference, which is one program instead of two: `cases` are of
/// one kind. `effort` is that of CompileOptions.
std::string runCompiled(const Cases &cases, const std::string &type, int effort,
                        NamedNumbers &outputs);

} // namespace tandem::oracle

#endif
