//===- Facts.h - what ranks tell each other of their stages ---------------===//
#ifndef TANDEM_RUNTIME_PIPELINE_FACTS_H
#define TANDEM_RUNTIME_PIPELINE_FACTS_H

#include "runtime/comm/Communicator.h"
#include "runtime/model/Model.h"

#include <string>
#include <vector>

namespace tandem::pipeline {

/// A value between two stages, as one of them has it.
struct Crossing {
  std::string text; ///< name, type and shape
  bool hasGradient = false;
};

/// Returns what the state is called that the loss is multiplied by, where there
/// is one.
inline std::string scaleOf(const artifact::Manifest &manifest) {
  return manifest.optimizer + ".scale";
}

struct StageFacts {
  std::string digest; ///< empty: no rank has the stage
  std::string lossName;
  artifact::DType lossType = artifact::DType::F32; ///< of the last stage
  bool hasNorm = false;  ///< its update needs the norm of all gradients
  bool hasScale = false; ///< it has the scale of the loss
  std::vector<Crossing> takes, gives;
};

/// Returns what is known of all stages, in their order; all ranks call it.
/// Fails on all of them, with Usage, where stages are missing, are of different
/// compilations, or do not fit.
Result<std::vector<StageFacts>>
factsOfAll(const std::vector<runtime::Model> &models,
           comm::Communicator *world);

} // namespace tandem::pipeline

#endif
