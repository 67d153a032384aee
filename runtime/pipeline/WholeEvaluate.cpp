//===- WholeEvaluate.cpp - what the stages' `evaluate` are together -------===//
#include "runtime/model/Pieces.h"
#include "runtime/pipeline/Forward.h"

#include <algorithm>
#include <map>
#include <set>

namespace tandem::pipeline {

using artifact::Manifest;
using artifact::Program;
using artifact::Role;
using artifact::Rows;
using artifact::Slot;
using artifact::Value;

namespace {

/// Of a value between stages, what the next one may assume of it.
struct Origin {
  std::set<std::string> inputs; ///< of the whole model
  /// A row for each of the batch, or the same for every batch: what a stage
  /// says of rows holds for the whole model.
  bool keepsRows = false;
};

/// The first dimension of the first input that has one.
int64_t batchOf(const std::vector<Slot> &slots) {
  for (const Slot &slot : slots)
    if (slot.role == Role::Input && !slot.shape.empty())
      return slot.shape[0];
  return 0;
}

class Joiner {
public:
  explicit Joiner(const Manifest &first) {
    whole.model = first.model;
    whole.graph = first.graph;
    whole.values = first.pipeline->inputs;
    program.name = "evaluate";
    for (const Value &value : whole.values) {
      Slot slot;
      slot.role = Role::Input;
      slot.name = value.name;
      slot.dtype = value.dtype;
      slot.shape = value.shape;
      program.arguments.push_back(std::move(slot));
    }
    batch = batchOf(program.arguments);
  }

  void add(const Manifest &stage, const Program &evaluate) {
    const std::vector<std::string> &gives = stage.pipeline->gives;
    // A stage takes the first dimension of its own first input for the rows.
    bool seesRows = batchOf(evaluate.arguments) == batch;
    std::map<std::string, Origin> given;
    for (Slot &slot : artifact::outputsOf(evaluate)) {
      Origin origin = originOf(slot, evaluate);
      if (!seesRows || !origin.keepsRows)
        slot.rows = Rows::Unknown;
      if (std::find(gives.begin(), gives.end(), slot.name) != gives.end()) {
        bool isRow = slot.rows == Rows::Each && slot.shape[0] == batch;
        bool isFixed = origin.inputs.empty() &&
                       (slot.shape.empty() || slot.shape[0] != batch);
        origin.keepsRows = isRow || isFixed;
        given[slot.name] = std::move(origin);
        continue;
      }
      if (slot.rows != Rows::Mean)
        slot.counted.clear();
      slot.inputs.emplace(origin.inputs.begin(), origin.inputs.end());
      program.results.push_back(std::move(slot));
    }
    crossing = std::move(given);
  }

  Manifest finish() {
    for (const Slot &slot : program.results) {
      Value &value = whole.values.emplace_back();
      value.role = Role::Output;
      value.name = slot.name;
      value.dtype = slot.dtype;
      value.shape = slot.shape;
    }
    whole.programs.push_back(std::move(program));
    return std::move(whole);
  }

private:
  /// What an output of a stage follows from; without a word from all.
  Origin originOf(const Slot &slot, const Program &evaluate) const {
    Origin origin;
    origin.keepsRows = true;
    for (const Slot &argument : evaluate.arguments) {
      if (argument.role != Role::Input ||
          (slot.inputs && std::find(slot.inputs->begin(), slot.inputs->end(),
                                    argument.name) == slot.inputs->end()))
        continue;
      auto found = crossing.find(argument.name);
      if (found == crossing.end()) {
        origin.inputs.insert(argument.name);
        continue;
      }
      origin.inputs.insert(found->second.inputs.begin(),
                           found->second.inputs.end());
      origin.keepsRows &= found->second.keepsRows;
    }
    return origin;
  }

  Manifest whole;
  Program program;
  int64_t batch = 0;
  std::map<std::string, Origin> crossing; ///< what the next stage takes
};

} // namespace

Result<Manifest> wholeEvaluate(const std::vector<Manifest> &stages) {
  Joiner joiner(stages.front());
  for (const Manifest &stage : stages) {
    Manifest whole = runtime::wholeManifest(stage);
    const Program *evaluate = whole.findProgram("evaluate");
    if (!evaluate)
      return Status::unsupported("stage " +
                                 std::to_string(stage.pipeline->stage) +
                                 " has no program 'evaluate'");
    joiner.add(stage, *evaluate);
  }
  return joiner.finish();
}

} // namespace tandem::pipeline
