//===- RateGroups.h - which learning rate each parameter has --------------===//
//
// A group with a learning rate of its own has it in the state OPT.groupN.lr,
// where N counts the options of one compilation: two artifacts may mean other
// parameters by one number. Which parameters a rate is of follows from the
// program that updates them; a checkpoint says it as metadata.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_RATEGROUPS_H
#define TANDEM_TOOLS_COMMANDS_RATEGROUPS_H

#include "runtime/model/Model.h"

#include <map>
#include <set>

namespace tandem::commands {

/// The metadata of a checkpoint with the lines of `RateGroups::text`.
inline constexpr const char *kRateGroups = "tandem.rate_groups";

struct RateGroups {
  /// Of each state of a group's rate the parameters that are trained by it.
  std::map<std::string, std::set<std::string>> members;
  /// Whether a parameter is trained by the optimizer's own rate, OPT.lr.
  bool hasOthers = false;

  /// A line for each member: "OPT.groupN.lr PARAM".
  std::string text() const;
  /// Adds the members of such lines; other lines say nothing.
  void add(const std::string &text);
};

/// Returns the groups of one model.
RateGroups rateGroupsOf(const artifact::Manifest &manifest);

/// Returns the groups of the models of all ranks, which call it.
Result<RateGroups> rateGroupsOf(std::span<const runtime::Model> models);

/// What a checkpoint's rates are for a model whose groups are `here`: of each
/// state of a group's rate the one of the checkpoint that was the rate of the
/// same parameters; none where that group is new, or puts several together,
/// which `notes` says. `there` is the checkpoint's metadata.
std::map<std::string, std::string>
sourcesOfRates(const artifact::Manifest &manifest, const RateGroups &here,
               const std::string &there, std::vector<std::string> &notes);

} // namespace tandem::commands

#endif
