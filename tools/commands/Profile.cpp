//===- Profile.cpp - what --profile writes --------------------------------===//
#include "tools/commands/Profile.h"
#include "runtime/device/Backend.h"
#include "runtime/io/File.h"

#include <utility>
#include <vector>

namespace tandem::commands {

Status Profile::start(const ModelOptions &options,
                      const runtime::Model &model) {
  if (options.profile.empty())
    return Status::success();
  device = model.device();
  auto backend = runtime::backendOf(device);
  if (!backend)
    return std::move(backend).status();
  if (Status status = (*backend)->startProfile(); !status)
    return std::move(status).in("--profile");
  path = options.profile;
  return Status::success();
}

Status Profile::stop() {
  if (path.empty())
    return Status::success();
  auto backend = runtime::backendOf(device);
  if (!backend)
    return std::move(backend).status();
  Result<std::string> trace = (*backend)->stopProfile();
  if (!trace)
    return std::move(trace).status().in("--profile");
  return io::replaceFile(
      std::exchange(path, {}),
      std::vector{io::Bytes(reinterpret_cast<const std::byte *>(trace->data()),
                            trace->size())});
}

} // namespace tandem::commands
