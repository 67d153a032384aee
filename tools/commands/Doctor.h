//===- Doctor.h - what is installed, and what is missing ------------------===//
//
// `doctor` is a list of findings, which the tool's parts make: this room's are
// of the processor and the devices, a tool adds those of its own.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_DOCTOR_H
#define TANDEM_TOOLS_COMMANDS_DOCTOR_H

#include <string>
#include <vector>

namespace tandem::commands {

struct Finding {
  enum class State {
    Ok,
    Missing, ///< not there, and not needed by all
    Broken   ///< there, but it does not work
  };
  std::string name; ///< "processor"
  State state = State::Ok;
  std::string text;
  std::string remedy; ///< how to get it: a command; empty if nothing is missing
};

/// Adds to the findings.
using DoctorCheck = void (*)(std::vector<Finding> &findings);

} // namespace tandem::commands

#endif
