//===- DeviceFiles.cpp - files that never end -----------------------------===//
#include "runtime/artifact/DeviceFiles.h"

#include <sys/stat.h>

namespace tandem::artifact {

Status expectNoDevice(const std::string &path) {
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0 ||
      !(S_ISCHR(facts.st_mode) || S_ISBLK(facts.st_mode)))
    return Status::success();
  return Status::failed("cannot read '" + path +
                        "': expected a file, but it is a device");
}

} // namespace tandem::artifact
