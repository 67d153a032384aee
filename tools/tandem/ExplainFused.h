//===- ExplainFused.h - why two ops of a model are not in one kernel ------===//
#ifndef TANDEM_TOOLS_TANDEM_EXPLAINFUSED_H
#define TANDEM_TOOLS_TANDEM_EXPLAINFUSED_H

#include "compiler/Compile.h"

#include <nlohmann/json.hpp>

namespace tandem::commands {

/// Returns an answer (ExplainFacts.h) for each target about two ops of the
/// model, "A,B": each is a path, "LINE:COLUMN", or "OP@LINE:COLUMN" (a path or
/// a place behind the @). What fusion did is asked of the pass's own code
/// (passes/plan/ExplainFusion.h). Fails with Usage if there is no such op.
Result<nlohmann::ordered_json> explainFused(const std::string &path,
                                            CompileOptions options,
                                            const std::string &pair);

/// Adds `not_fused` (docs/INSPECT_JSON.md) to the facts of a page: for each
/// target the reasons for which kernels of the model's programs were not
/// joined. Not where `planned` is empty or it has several sizes.
Status addNotFused(nlohmann::ordered_json &facts, const std::string &model,
                   CompileOptions options);

} // namespace tandem::commands

#endif
