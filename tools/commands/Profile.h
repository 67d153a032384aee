//===- Profile.h - what --profile writes ----------------------------------===//
//
// A trace of what a device did while a command ran its programs.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_PROFILE_H
#define TANDEM_TOOLS_COMMANDS_PROFILE_H

#include "tools/commands/Inputs.h"

namespace tandem::commands {

class Profile {
public:
  /// Begins, if `options` ask for it. Unsupported on a device that has none.
  Status start(const ModelOptions &options, const runtime::Model &model);
  /// Writes the file, if `start` began.
  Status stop();

private:
  std::string path;
  runtime::Device device;
};

} // namespace tandem::commands

#endif
