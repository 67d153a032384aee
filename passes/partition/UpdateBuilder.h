//===- UpdateBuilder.h - an optimizer as a program ------------------------===//
//
// What an optimizer computes is a row of a table (optimizers/Optimizers.h);
// here it gets its states and its place in a function. Parameters of f16 and
// bf16 have states in f32. Each parameter counts its own steps, as in PyTorch:
// one whose gradient was undefined is corrected later for the steps that it
// took, not for those that others took.
//
// Where gradients are clipped by their norm, or are of a loss that was scaled,
// an update whose norm is not finite changes nothing but the count of such
// updates, and the scale.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_UPDATEBUILDER_H
#define TANDEM_PASSES_PARTITION_UPDATEBUILDER_H

#include "passes/partition/AverageSpec.h"
#include "passes/partition/ClipSpec.h"
#include "passes/partition/GroupSpec.h"
#include "passes/partition/LossScaleSpec.h"
#include "passes/partition/NoiseSpec.h"
#include "passes/partition/OptimizerSpec.h"

#include "ir/Pipeline.h"
#include "ir/Signature.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace tandem {

/// What the module asks for.
struct UpdateSpec {
  OptimizerSpec optimizer;
  std::optional<ClipSpec> clip;
  std::optional<LossScaleSpec> scaling;
  std::optional<ScheduleSpec> schedule;
  llvm::SmallVector<GroupSpec> groups;
  llvm::SmallVector<AverageSpec> averages;
  std::optional<NoiseSpec> noise;
  bool accumulates = false, centralizes = false;
};

class UpdateBuilder {
public:
  UpdateBuilder(mlir::func::FuncOp forward, mlir::func::FuncOp backward,
                UpdateSpec asked)
      : forward(forward), backward(backward),
        isStage(Pipeline::of(backward->getParentOfType<mlir::ModuleOp>())
                    .has_value()),
        asked(std::move(asked)), spec(this->asked.optimizer),
        clip(this->asked.clip), scaling(this->asked.scaling),
        accumulates(this->asked.accumulates), builder(backward.getContext()),
        loc(mlir::NameLoc::get(builder.getStringAttr("update"),
                               backward.getLoc())) {}

  mlir::FailureOr<mlir::func::FuncOp> run();
  /// Behind run(): @accumulation, which adds gradients to their sums.
  mlir::func::FuncOp buildAccumulation();
  /// Behind run(), of a stage of a pipeline: @norm, which sets the state
  /// `grad_norm` to the norm of this stage's gradients. Whoever calls it sets
  /// the state to that of all stages before @update, which reads it. Null where
  /// nobody asks for the norm.
  mlir::FailureOr<mlir::func::FuncOp> buildNorm();

private:
  /// The type of a state of a param of this type; null if there is none.
  mlir::RankedTensorType typeOf(const OptimizerState &state,
                                size_t param) const;
  const OptimizerSpec &specOf(size_t param) const {
    return groupOf[param] ? asked.groups[groupOf[param] - 1].spec : spec;
  }
  std::string stateName(llvm::StringRef variable,
                        llvm::StringRef param = "") const;

  /// True if it looks at the norm, and an update may be left out.
  bool findsNorm() const {
    return scaling || (clip && clip->kind == ClipSpec::Kind::Norm);
  }

  llvm::LogicalResult collectSlots();
  /// The sum of the gradients of `param`, whose slots are the last ones.
  void addSum(llvm::StringRef param, mlir::RankedTensorType type,
              mlir::ArrayAttr axes);
  /// Makes results of the backward of gradients that ranks sum up: the parts.
  void leaveParts();
  /// Says of which group each param is.
  llvm::LogicalResult findGroups();
  llvm::LogicalResult checkNames();
  /// Behind the updates of all params: what is asked for changes one of them.
  llvm::LogicalResult checkEffects();
  void addState(std::string name, mlir::RankedTensorType type, double init);
  /// The argument that is the param or state `name`.
  mlir::Value argument(llvm::StringRef name);
  mlir::Value meanOf(size_t i, mlir::Value gradient);
  /// Says that the sum of a param's gradients is used up.
  void clearSum(size_t i);
  /// Finds the gradients that are used; their sums are used up if `clears`.
  void findUsed(bool clears);
  mlir::Value normOfUsed();
  /// The same, and what follows from the norm.
  void checkGradients();
  /// Finds the next scale, and how many updates in a row it has had.
  void updateScale();
  /// The gradient of param `i` as the optimizer sees it.
  mlir::Value gradientOf(size_t i);
  /// Makes `value` the new value of the param or state `name`: unless this
  /// update is skipped.
  void update(std::string name, mlir::Value value);
  /// The number of the update of `param` that this one is.
  mlir::Value createStep(llvm::StringRef param);
  const std::optional<ScheduleSpec> &scheduleOf(size_t group) const {
    return group && asked.groups[group - 1].schedule
               ? asked.groups[group - 1].schedule
               : asked.schedule;
  }
  /// True if rates differ from those of the params that are of no group.
  bool hasOwnRate(size_t group) const {
    return group && (asked.groups[group - 1].hasRate ||
                     asked.groups[group - 1].schedule);
  }
  /// "lr", and of group 1 with a rate of its own "group1.lr".
  std::string rateVariable(size_t group, llvm::StringRef variable) const {
    std::string name = variable.str();
    return group ? "group" + std::to_string(group) + "." + name : name;
  }
  /// Counts the update for the noise of the next one.
  void updateNoise();
  void addRates();
  /// Counts the update, and finds the rate of each group.
  void findRates();
  /// Updates param `i` and the optimizer's states of it.
  void updateParam(size_t i);
  void average(size_t i);
  void setResults();

  mlir::func::FuncOp forward, backward;
  bool isStage; ///< of a pipeline
  UpdateSpec asked;
  const OptimizerSpec &spec;
  const std::optional<ClipSpec> &clip;
  const std::optional<LossScaleSpec> &scaling;
  bool accumulates;
  mlir::OpBuilder builder;
  mlir::Location loc;
  /// Params, gradients, states: the arguments.
  llvm::SmallVector<Slot> params, gradients, states;
  llvm::SmallVector<size_t> groupOf;    ///< of each param; 0: none, else from 1
  llvm::SmallVector<mlir::Value> rates; ///< of each group, in f32
  /// Of each group the options that its params' updates follow from.
  llvm::SmallVector<llvm::StringSet<>> usedOptions;
  /// Of each gradient that ranks sum up at the end of the backward: the slot of
  /// their parts, one beside the other along a dimension in front.
  llvm::SmallVector<std::optional<Slot>> parts;
  mlir::func::FuncOp func;
  std::optional<RoleIndex> roles; ///< of `func`
  llvm::SmallVector<mlir::Value>
      used;             ///< the gradients, with what was added up before
  mlir::Value norm;     ///< of the gradients; null if nobody asked for it
  mlir::Value isFinite; ///< else this update is skipped; null if none is
  /// New values, by the name of the param or state, and the gradients without
  /// which there is none, where that does not follow from the value.
  llvm::StringMap<mlir::Value> updates;
  llvm::StringMap<mlir::ArrayAttr> needs;
};

} // namespace tandem

#endif
