//===- StageEvaluation.cpp - `evaluate` of a model in stages --------------===//
#include "tools/commands/StageEvaluation.h"

#include "runtime/io/Array.h"
#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"
#include "tools/commands/Stages.h"

#include <algorithm>

namespace tandem::commands {

using artifact::Manifest;

Result<StageEvaluation> StageEvaluation::of(pipeline::Pipeline &stages,
                                            const std::string &path) {
  StageEvaluation made;
  made.stages_ = &stages;
  const Manifest &first = stages.models().front().manifest();
  auto all = manifestsOfStages(path, first);
  if (!all)
    return std::move(all).status();
  made.all_ = *std::move(all);
  auto whole = pipeline::wholeEvaluate(made.all_);
  if (!whole)
    return std::move(whole).status().in(io::inQuotes(path));
  made.whole_ = std::make_unique<Manifest>(*std::move(whole));
  return made;
}

Status StageEvaluation::checkVariables() const {
  for (const runtime::Model &model : stages_->models())
    if (Status status = commands::checkVariables(
            model, *model.manifest().findProgram("evaluate"));
        !status)
      return status;
  return Status::success();
}

Result<pipeline::Forward>
StageEvaluation::forward(const std::vector<std::string> &outputs) {
  return pipeline::Forward::make(*stages_, all_, outputs);
}

Status StageEvaluation::checkAverage(const std::string &average) const {
  if (stages_->models().front().communicators())
    return Status::unsupported("--average while stages of several ranks are "
                               "trained; 'train --steps=0 --params=F' "
                               "evaluates what was saved");
  const AverageKind &kind = averageKind(average);
  for (const Manifest &stage : all_)
    for (const artifact::Value &value : stage.values)
      if (value.role == artifact::Role::Param &&
          stage.findValue(std::string(kind.count) + value.name))
        return Status::success();
  return Status::usage("the artifact has no averages " + io::inQuotes(average) +
                       " of parameters: compile with " +
                       std::string(kind.option));
}

Result<Evaluation> StageEvaluation::evaluate(Dataset &data, Counters counters,
                                             const std::string &average) {
  if (!forward_) {
    auto made = forward(evaluatedOutputs(program(), counters));
    if (!made)
      return std::move(made).status();
    forward_ = *std::move(made);
  }
  std::vector<Averaged> averaged;
  bool none = true;
  if (!average.empty()) {
    for (runtime::Model &model : stages_->models()) {
      auto one = Averaged::of(model, average);
      if (!one)
        return std::move(one).status();
      none &= one->none();
      averaged.push_back(*std::move(one));
    }
    auto any = onAnyRank(!none);
    if (!any)
      return std::move(any).status();
    if (!*any)
      note("no update has made an average '" + average +
           "' until now: parameters are evaluated");
  }
  auto evaluation =
      commands::evaluate(manifest(), program(), data, std::move(counters),
                         [&](std::span<const runtime::Argument> inputs) {
                           return forward_->run(inputs);
                         });
  for (Averaged &one : averaged)
    if (Status status = one.restore(); !status)
      return status;
  return evaluation;
}

} // namespace tandem::commands
