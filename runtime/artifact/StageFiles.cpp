//===- StageFiles.cpp - the files of a model that is cut into stages ------===//
#include "runtime/artifact/StageFiles.h"

namespace tandem::artifact {

std::string stagePath(const std::string &path, int64_t stage) {
  if (stage == 0)
    return path;
  constexpr std::string_view extension = ".tdm";
  bool has = path.ends_with(extension);
  std::string made = path.substr(0, path.size() - (has ? 4 : 0));
  return made + ".stage" + std::to_string(stage) + std::string(extension);
}

} // namespace tandem::artifact
