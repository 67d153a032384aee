//===- CallFrame.cpp - the tables of one call -----------------------------===//
#include "runtime/call/CallFrame.h"
#include "runtime/call/SavedValues.h"
#include "runtime/call/Workspace.h"

#include <algorithm>

namespace tandem::runtime {

void MatchedCall::resize(const artifact::Program &plan) {
  size_t arguments = plan.arguments.size();
  given.resize(arguments);
  handles.resize(arguments);
  tensors.resize(arguments);
  isDefined.resize(arguments);
  isZeros.resize(arguments);
  wanted.resize(plan.results.size());
  aliases.resize(plan.aliases.size());
}

void MatchedCall::clear() {
  std::fill(given.begin(), given.end(), nullptr);
  std::fill(handles.begin(), handles.end(), nullptr);
  std::fill(wanted.begin(), wanted.end(), nullptr);
  std::fill(aliases.begin(), aliases.end(), nullptr);
  absent.clear();
  allDefined = true;
  isIdle = false;
}

bool MatchedCall::holds(const BoundCondition &condition) const {
  return std::all_of(
      condition.begin(), condition.end(), [&](const std::vector<int> &group) {
        return std::any_of(group.begin(), group.end(),
                           [&](int a) { return isDefined[a] != 0; });
      });
}

void SharedViews::resize(const artifact::Program &plan) {
  views.resize(plan.aliases.size());
  isShown.resize(plan.aliases.size());
  newHandles.resize(plan.arguments.size());
  ranges.reserve(plan.arguments.size() + plan.results.size() +
                 plan.aliases.size());
}

void PlacedCall::resize(const artifact::Program &plan) {
  argumentData.resize(plan.arguments.size());
  unpacked.resize(plan.arguments.size());
  copies.reserve(plan.arguments.size());
  resultData.resize(plan.results.size());
  homes.resize(plan.results.size());
  fresh.resize(plan.results.size());
}

void LaunchTables::resize(const artifact::Program &plan) {
  buffers.resize(plan.buffers.size());
  actions.resize(plan.launches.size());
}

CallFrame::CallFrame(const Program &program) {
  matched.resize(*program.plan);
  shared.resize(*program.plan);
  placed.resize(*program.plan);
  launched.resize(*program.plan);
}

Workspace::Workspace(const Program &program, bool isQueued)
    : staged(program.arguments.size()), internal(program.results.size()),
      uploads(isQueued ? program.arguments.size() : 0),
      downloads(isQueued ? program.results.size() : 0),
      preparedFor(program.arguments.size()) {}

} // namespace tandem::runtime
