//===- StageFiles.h - the files of a model that is cut into stages --------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_STAGEFILES_H
#define TANDEM_RUNTIME_ARTIFACT_STAGEFILES_H

#include <cstdint>
#include <string>

namespace tandem::artifact {

/// Returns the file of a stage of the artifact `path`: of stage 0 that itself,
/// of others "x.stage2.tdm" for "x.tdm".
std::string stagePath(const std::string &path, int64_t stage);

} // namespace tandem::artifact

#endif
