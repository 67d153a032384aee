//===- RankedClassifier.h - the classifier on a mesh ----------------------===//
//
// Rows of a batch, and classes, are cut over ranks.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_CLI_RANKEDCLASSIFIER_H
#define TANDEM_TESTS_RUNTIME_CLI_RANKEDCLASSIFIER_H

#include "tests/runtime/cli/Classifier.h"

namespace tandem::commands::test {

/// The classifier that trains with 4 rows on `ranks` ranks.
inline artifact::Manifest trained(int64_t ranks) {
  using namespace artifact;
  Manifest m = classifierManifest();
  m.mesh = {{"data", ranks}};
  auto cut = [&](Value *value) {
    value->shape[0] /= ranks;
    value->sharding.assign(value->shape.size(), {});
    value->sharding[0] = {"data"};
  };
  for (Value &value : m.values)
    if (value.name == "x" || value.name == "labels" || value.name == "logits")
      cut(&value);
  for (Program &program : m.programs) {
    int64_t logits = 0, next = int64_t(program.buffers.size());
    for (Slot &slot : program.arguments)
      if (slot.name == "x" || slot.name == "labels")
        slot.shape[0] /= ranks;
    for (Slot &slot : program.results)
      if (slot.name == "logits")
        slot.shape[0] /= ranks;
    auto gather = [&](int64_t from, int64_t to, DType type, int64_t elements) {
      Collective all;
      all.op = Collective::Op::AllGather;
      all.axes = {"data"};
      all.dtype = type;
      all.elements = elements / ranks;
      return Launch::over(all, {from, to});
    };
    // x, labels, logits of all ranks; logits of this one.
    program.buffers.push_back(Buffer::arena(64, 48));
    program.buffers.push_back(Buffer::arena(128, 16));
    program.buffers.push_back(Buffer::arena(192, 32));
    program.arenaBytes = 256;
    program.peakBytes = 256;
    bool isStep = program.name == "step";
    if (isStep) {
      logits = 5;
      program.buffers[5] = Buffer::arena(0, 32 / ranks);
    } else {
      logits = 3;
    }
    std::vector<Launch> launches = std::move(program.launches);
    launches[0].work = 4 / ranks;
    launches[1].buffers[0] = next + 2;
    launches[1].buffers[1] = next + 1;
    program.launches = {launches[0], gather(1, next + 1, DType::I32, 4),
                        gather(logits, next + 2, DType::F32, 8), launches[1]};
    if (isStep) {
      program.launches.push_back(gather(0, next, DType::F32, 12));
      launches[2].buffers[0] = next;
      launches[2].buffers[1] = next + 2;
      launches[2].buffers[2] = next + 1;
      program.launches.push_back(launches[2]);
    }
  }
  return m;
}

/// A classifier of more rows and classes, of which each rank has 4 and 2.
inline artifact::Manifest predicted(std::vector<artifact::MeshAxis> mesh) {
  using namespace artifact;
  Manifest m = classifierManifest(false);
  m.mesh = std::move(mesh);
  m.loss.clear();
  m.values.pop_back(); // the loss
  Program &program = m.programs[0];
  program.results.pop_back();
  program.launches.pop_back();
  program.buffers.pop_back();
  for (Value &value : m.values) {
    value.sharding.assign(value.shape.size(), {});
    if (value.name != "w")
      value.sharding[0] = {"data"};
    if (value.name == "w")
      value.sharding[0] = {"tensor"};
    if (value.name == "logits")
      value.sharding[1] = {"tensor"};
  }
  return m;
}

} // namespace tandem::commands::test

#endif
