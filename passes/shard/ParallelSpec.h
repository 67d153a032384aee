//===- ParallelSpec.h - what a user says of shardings, as text ------------===//
//
// `--mesh=data=4,tensor=2`, `--parallel=ddp+tp` and the plan of `--shard`.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_SHARD_PARALLELSPEC_H
#define TANDEM_PASSES_SHARD_PARALLELSPEC_H

#include "ir/Dialect.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <optional>
#include <string>
#include <vector>

namespace tandem {

/// A ready-made plan.
struct ParallelKind {
  llvm::StringLiteral name;
  llvm::StringLiteral axis; ///< of the mesh, that it needs
  llvm::StringLiteral meaning;
};

/// Returns all plans, in the order in which messages name them.
llvm::ArrayRef<ParallelKind> parallelKinds();

/// The axes of a mesh as they are written, with their sizes.
using MeshSpec = std::vector<std::pair<std::string, int64_t>>;

/// The axis whose ranks have stages, and nothing else in common.
inline constexpr llvm::StringLiteral kPipeAxis = "pipe";

/// Returns how many stages each rank of that axis has, if the plan is `pp` (1)
/// or `pp:4`; 0 for other plans.
int64_t stagesOfEachRank(llvm::StringRef plan);

/// Parses `data=4,tensor=2`. Otherwise returns nothing, and `error` says what
/// is wrong.
std::optional<MeshSpec> parseMeshSpec(llvm::StringRef text, std::string &error);

/// Parses `ddp`, `zero1+tp`. Otherwise returns nothing, and `error` says what
/// is wrong: names of no plan, two plans that exclude each other, an axis that
/// a plan needs and `mesh` does not have.
std::optional<std::vector<std::string>> parseParallelSpec(llvm::StringRef text,
                                                          const MeshSpec &mesh,
                                                          std::string &error);

/// Parses a plan: an object of regular expressions for the names of inputs,
/// params, states and outputs, each with a list that names for every dimension
/// the axis that cuts it, a list of them, or null: `{"fc\\.w": ["tensor",
/// null]}`. Otherwise returns null, and `error` says what is wrong.
mlir::DictionaryAttr parseShardPlan(llvm::StringRef json,
                                    mlir::MLIRContext *context,
                                    std::string &error);

} // namespace tandem

#endif
