//===- StateKinds.h - what a state of a training is, by its name ----------===//
//
// States that the compiler adds are called OPT.VARIABLE ("adamw.lr"),
// OPT.VARIABLE:PARAM ("adamw.m:w"), OPT.groupN.VARIABLE ("adamw.group1.lr") and
// AVERAGE:PARAM ("ema:w").
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_STATEKINDS_H
#define TANDEM_TOOLS_COMMANDS_STATEKINDS_H

#include "runtime/artifact/Manifest.h"

namespace tandem::commands {

/// True for a state of the optimizer.
bool isOptimizers(const artifact::Value &value,
                  const artifact::Manifest &manifest);

/// True for the state of random numbers, which starts from the seed.
bool isSeed(const artifact::Value &value);

/// The param of a state "adamw.m:w" or "ema:w"; empty: it is of none.
std::string_view paramOf(const artifact::Value &value,
                         const artifact::Manifest &manifest);

/// True for an average of a param, or a count of it.
bool isAverage(const artifact::Value &value,
               const artifact::Manifest &manifest);

/// True for a state of a training, and not of the model.
bool isTrainings(const artifact::Value &value,
                 const artifact::Manifest &manifest);

/// What the optimizer calls a state of its own: "step" of "adamw.step:w",
/// "rate" of "adamw.group1.rate".
std::string_view variableOf(const artifact::Value &value,
                            const artifact::Manifest &manifest);

/// True for what is of a group of params alone: "adamw.group1.lr".
bool isGroups(const artifact::Value &value, const artifact::Manifest &manifest);

/// True for the learning rate of a group: "adamw.group1.lr".
bool isGroupsRate(const artifact::Value &value,
                  const artifact::Manifest &manifest);

/// True for what the optimizer only tells, and no step depends on.
bool isReport(const artifact::Value &value, const artifact::Manifest &manifest);

/// True for what a checkpoint may lack, of an artifact that neither clips,
/// scales, accumulates nor averages, and has no noise, schedule or groups: it
/// stays as it begins.
bool isOptional(const artifact::Value &value,
                const artifact::Manifest &manifest);

} // namespace tandem::commands

#endif
