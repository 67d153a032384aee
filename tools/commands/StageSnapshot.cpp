//===- StageSnapshot.cpp - what is saved of a model in stages -------------===//
#include "runtime/checkpoint/Variables.h"
#include "runtime/comm/Texts.h"
#include "tools/commands/Print.h"
#include "tools/commands/Stages.h"

namespace tandem::commands {

/// All ranks of the stage's group call it.
static Result<runtime::Tensor> denseWhole(const runtime::Model &model,
                                          const std::string &name) {
  auto whole = model.getWhole(name);
  auto host = whole ? whole->onHost() : std::move(whole);
  return host ? host->dense() : std::move(host);
}

Result<Snapshot> Snapshot::of(const pipeline::Pipeline &stages,
                              const std::string &path) {
  Snapshot snapshot;
  snapshot.stages_ = &stages;
  snapshot.path_ = path;
  snapshot.inShards_ = io::isIndexName(path);
  std::set<std::string> names;
  for (const runtime::Model &model : stages.models())
    for (const artifact::Value *value : checkpoint::savedOf(model)) {
      if (!names.insert(value->name).second)
        continue;
      auto tensor =
          snapshot.inShards_
              ? checkpoint::valuesOf(model, value->name,
                                     checkpoint::ownPart(model, *value))
              : denseWhole(model, value->name);
      if (!tensor)
        return std::move(tensor).status();
      if (!snapshot.inShards_ && !stages.isFirstOfGroup())
        continue; // the first one has the same
      snapshot.tensors_.push_back({value->name, std::move(*tensor)});
      snapshot.kinds_.push_back(kindOf(*value, model.manifest()));
    }
  if (Status status = snapshot.lookAtStages(); !status)
    return status;
  if (snapshot.inShards_)
    return snapshot;
  auto all = gatherTensors(std::move(snapshot.tensors_), stages.world());
  if (!all)
    return std::move(all).status();
  snapshot.tensors_ = *std::move(all);
  return snapshot;
}

Status Snapshot::lookAtStages() {
  if (Status status = look(); !status)
    return status;
  std::string own;
  for (size_t i = 0; i < isBad_.size(); ++i)
    if (isBad_[i])
      own += char('0' + int(kinds_[i])) + tensors_[i].name + '\n';
  auto texts = comm::textsOfAll(&stages_->world(), own);
  if (!texts)
    return std::move(texts).status();
  for (const std::string &text : *texts)
    for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos;
         at = end + 1)
      bad_[Kind(text[at] - '0')].insert(text.substr(at + 1, end - at - 1));
  return Status::success();
}

std::string Snapshot::namesOf(Kind kind) const {
  std::string names;
  if (stages_) {
    if (auto found = bad_.find(kind); found != bad_.end())
      for (const std::string &name : found->second)
        names += (names.empty() ? "" : ", ") + io::inQuotes(name);
    return names;
  }
  for (size_t i = 0; i < isBad_.size(); ++i)
    if (isBad_[i] && kinds_[i] == kind)
      names += (names.empty() ? "" : ", ") + io::inQuotes(tensors_[i].name);
  return names;
}

} // namespace tandem::commands
