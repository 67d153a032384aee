//===- Pipeline.h - a model that is cut into stages -----------------------===//
//
// Attributes from capture on. Of the module:
//
//   tandem.pipeline = {stages = 4 : i64, ranks = 2 : i64}
//
// and of one that is a stage already (tandem-take-stage), beside these:
//
//   stage = 1 : i64               its number
//   takes, gives = ["pipe.0"]     what comes from the stage before, and what
//                                 goes to the next one, in the order in which
//                                 it is sent
//   inputs = [{role, type}]       those of the whole model
//   params = {"pipe.0" = "w"}     which of what it takes and gives are params
//   digest = "..."                the same in all stages of one compilation
//
// Of an op: the number of its stage. What a model says of some ops is said of
// all by tandem-assign-stages: an op is of the stage of the last one in front
// of it that says so.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_PIPELINE_H
#define TANDEM_IR_PIPELINE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace tandem {

inline constexpr llvm::StringLiteral kPipelineAttr = "tandem.pipeline";
inline constexpr llvm::StringLiteral kStageAttr = "tandem.stage";

/// The keys of `tandem.pipeline`.
namespace pipeline {
inline constexpr llvm::StringLiteral kStages = "stages", kRanks = "ranks",
                                     kStage = "stage", kTakes = "takes",
                                     kGives = "gives", kInputs = "inputs",
                                     kParams = "params", kDigest = "digest",
                                     kRole = "role", kType = "type";
} // namespace pipeline

/// What the names of values between stages begin with.
inline constexpr llvm::StringLiteral kCrossingPrefix = "pipe.";

/// What `tandem.pipeline` says, as a view.
struct Pipeline {
  int64_t stages = 1, ranks = 1;
  std::optional<int64_t> stage;

  /// Returns that of a module; none if it has no such attribute.
  static std::optional<Pipeline> of(mlir::ModuleOp module);
  bool isLast() const { return stage && *stage == stages - 1; }
};

/// Returns a field of the module's `tandem.pipeline`; null without it.
template <typename T>
T pipelineField(mlir::ModuleOp module, llvm::StringRef key) {
  auto fields = module->getAttrOfType<mlir::DictionaryAttr>(kPipelineAttr);
  return fields ? fields.getAs<T>(key) : T();
}

/// Sets a field of the module's `tandem.pipeline`.
void setPipelineField(mlir::ModuleOp module, llvm::StringRef key,
                      mlir::Attribute value);

/// The most stages that there can be.
inline constexpr int64_t kMostStages = 4096;

/// Checks the attributes above, of the module or of an op.
mlir::LogicalResult verifyPipeline(mlir::Operation *op,
                                   mlir::NamedAttribute attribute);

} // namespace tandem

#endif
