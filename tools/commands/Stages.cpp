//===- Stages.cpp - a model in stages, as commands train it ---------------===//
#include "tools/commands/Stages.h"

#include "runtime/artifact/FormatVersion.h"
#include "runtime/artifact/StageFiles.h"
#include "runtime/comm/Texts.h"
#include "runtime/io/Array.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace tandem::commands {

using artifact::Role;
using artifact::Value;
using runtime::Tensor;

Result<pipeline::Pipeline> openStages(const ModelOptions &options,
                                      const artifact::ArtifactReader &first) {
  const artifact::Pipeline &own = *first.manifest().pipeline;
  if (own.stage != 0)
    return Status::usage(io::inQuotes(options.artifact) + " is stage " +
                         std::to_string(own.stage) +
                         " of a pipeline: expected the file of stage 0");
  if (!options.profile.empty())
    return Status::unsupported("--profile is not there for a model in stages: "
                               "it is of one model");
  auto how = options.runtimeOptions();
  if (!how)
    return std::move(how).status();
  comm::Mesh mesh = {{"pipe", own.ranks}};
  for (const artifact::MeshAxis &axis : first.manifest().mesh)
    mesh.push_back(axis);
  // Between stages nothing is sent while one computes.
  bool hasSpare = comm::ranksOf(first.manifest().mesh) > 1 &&
                  how->threads < threadsOfRank();
  auto world = connectRanks(mesh, hasSpare, options.ranks);
  if (!world)
    return std::move(world).status();
  Facts facts = options.facts();
  facts.emplace_back("Tandem", TANDEM_VERSION);
  facts.emplace_back("the artifact",
                     first.manifest().model + " with digest " + own.digest);
  if (Status status = agree(facts); !status)
    return status;
  std::vector<runtime::Model> models;
  for (int64_t stage : pipeline::stagesOf(first.manifest(), (*world)->rank())) {
    std::string file = artifact::stagePath(options.artifact, stage);
    auto model = runtime::Model::load(file, *how);
    if (!model)
      return std::move(model).status();
    if (Status status = checkStage(model->manifest(), file, stage,
                                   first.manifest(), options.artifact);
        !status)
      return status;
    models.push_back(*std::move(model));
  }
  auto made = pipeline::Pipeline::make(std::move(models), *std::move(world));
  if (made && !options.params.empty())
    for (runtime::Model &model : made->models())
      if (Status status =
              loadParameters(model, options.params,
                             model.hasProgram("update") ? options.average : "");
          !status)
        return status;
  return made;
}

Result<std::vector<artifact::Manifest>>
manifestsOfStages(const std::string &path, const artifact::Manifest &first) {
  std::vector<artifact::Manifest> all;
  for (int64_t stage = 0; stage < first.pipeline->stages; ++stage) {
    std::string file = artifact::stagePath(path, stage);
    auto reader = artifact::ArtifactReader::open(file);
    if (!reader)
      return std::move(reader).status();
    if (Status status =
            checkStage(reader->manifest(), file, stage, first, path);
        !status)
      return status;
    all.push_back(reader->manifest());
  }
  return all;
}

Status checkStage(const artifact::Manifest &manifest, const std::string &file,
                  int64_t stage, const artifact::Manifest &first,
                  const std::string &path) {
  const auto &is = manifest.pipeline;
  return is && is->stage == stage && is->digest == first.pipeline->digest
             ? Status::success()
             : Status::usage(io::inQuotes(file) + " is not stage " +
                             std::to_string(stage) + " of " +
                             io::inQuotes(path) +
                             ": expected the files that one compilation wrote");
}

StageInputs::StageInputs(const artifact::Manifest &stage) {
  manifest.model = stage.model;
  manifest.graph = stage.graph;
  manifest.values = stage.pipeline->inputs;
  artifact::Program program;
  program.name = "step";
  for (const Value &value : manifest.values) {
    artifact::Slot slot;
    slot.role = Role::Input;
    slot.name = value.name;
    slot.dtype = value.dtype;
    slot.shape = value.shape;
    program.arguments.push_back(std::move(slot));
  }
  manifest.programs.push_back(std::move(program));
}

Result<std::vector<NamedTensor>> gatherTensors(std::vector<NamedTensor> own,
                                               comm::Communicator &world) {
  // A line for each: its type, rank and sizes, and its name.
  std::ostringstream lines;
  for (const NamedTensor &one : own) {
    lines << int(one.tensor.dtype()) << ' ' << one.tensor.rank();
    for (int64_t size : one.tensor.shape())
      lines << ' ' << size;
    lines << ' ' << one.name << '\n';
  }
  auto texts = comm::textsOfAll(&world, lines.str());
  if (!texts)
    return std::move(texts).status();
  std::set<std::string> seen;
  std::vector<NamedTensor> all;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    std::istringstream from((*texts)[size_t(rank)]);
    size_t number = 0;
    for (std::string line; std::getline(from, line); ++number) {
      std::istringstream words(line);
      int type = 0, sizes = 0;
      words >> type >> sizes;
      std::vector<int64_t> shape;
      for (int64_t size; sizes > 0 && words >> size; --sizes)
        shape.push_back(size);
      std::string name;
      std::getline(words >> std::ws, name);
      if (!seen.insert(name).second)
        continue;
      if (rank == world.rank()) {
        NamedTensor &mine = own[number];
        if (rank == 0)
          all.push_back(std::move(mine));
        else if (Status status =
                     world.send(mine.tensor.data(), mine.tensor.bytes(), 0);
                 !status)
          return status;
      } else if (world.rank() == 0) {
        auto tensor = Tensor::zeros(artifact::DType(type), shape);
        if (!tensor)
          return std::move(tensor).status();
        if (Status status =
                world.recv(tensor->mutableData(), tensor->bytes(), rank);
            !status)
          return status;
        all.push_back({name, *std::move(tensor)});
      }
    }
  }
  return all;
}

Status StageBatches::begin(pipeline::Pipeline &stages, int64_t batches) {
  stages_ = &stages;
  batches_ = batches;
  for (const runtime::Model &model : stages.models())
    for (const Value &value : model.manifest().values) {
      if (!value.name.starts_with(model.manifest().optimizer + ".summed:"))
        continue;
      auto tensor = model.get(value.name);
      if (!tensor)
        return std::move(tensor).status();
      pending_ = std::max(pending_, int64_t(tensor->at(0)));
    }
  return stages.world().allReduce(artifact::DType::I64, comm::Reduce::Max,
                                  &pending_, &pending_, 1);
}

Status StageBatches::step(int64_t most, bool endsPass,
                          const pipeline::Pipeline::GiveBatch &give,
                          Tensor &loss) {
  if (losses_.empty()) {
    int64_t count = std::clamp<int64_t>(batches_ - pending_, 1, most);
    bool updates = pending_ + count >= batches_ || (endsPass && count == most);
    std::vector<double> losses;
    if (Status status = stages_->train(count, updates, give, losses); !status)
      return status;
    losses_.assign(losses.begin(), losses.end());
    pending_ = updates ? 0 : pending_ + count;
    updated_ = updates;
  }
  double next = losses_.front();
  losses_.pop_front();
  return loss.fill(next);
}

} // namespace tandem::commands
