//===- Pipeline.cpp - a model in stages, trained by several ranks ---------===//
#include "runtime/pipeline/Pipeline.h"

#include "runtime/pipeline/State.h"

#include <algorithm>
#include <utility>

namespace tandem::pipeline {

using artifact::Role;

/// The names of values whose gradients go from `after` back to `before`.
static std::vector<std::string> backNames(const std::vector<std::string> &names,
                                          const StageFacts &before,
                                          const StageFacts &after) {
  std::vector<std::string> found;
  for (size_t i = 0; i < names.size(); ++i)
    if (before.gives[i].hasGradient && after.takes[i].hasGradient)
      found.push_back(names[i]);
  return found;
}

int64_t ranksOf(const artifact::Manifest &stage) {
  return stage.pipeline->ranks * comm::ranksOf(stage.mesh);
}

std::vector<int64_t> stagesOf(const artifact::Manifest &stage, int64_t rank) {
  const artifact::Pipeline &own = *stage.pipeline;
  std::vector<int64_t> stages;
  for (int64_t s = rank / comm::ranksOf(stage.mesh); s < own.stages;
       s += own.ranks)
    stages.push_back(s);
  return stages;
}

/// Checks that these are the stages of this rank, and makes its group and its
/// line.
Status Pipeline::State::connect() {
  const artifact::Manifest &first = models.front().manifest();
  stageCount = first.pipeline->stages;
  rankCount = first.pipeline->ranks;
  if (world->ranks() != ranksOf(first))
    return Status::usage("expected " + std::to_string(ranksOf(first)) +
                         " ranks but got " + std::to_string(world->ranks()));
  std::vector<int64_t> wanted = stagesOf(first, world->rank());
  if (models.size() != wanted.size())
    return Status::usage("expected " + std::to_string(wanted.size()) +
                         " stages of this rank but got " +
                         std::to_string(models.size()));
  for (size_t i = 0; i < models.size(); ++i) {
    const auto &has = models[i].manifest().pipeline;
    if (!has || has->stage != wanted[i] || has->stages != stageCount)
      return Status::usage("expected stage " + std::to_string(wanted[i]) +
                           " of " + std::to_string(stageCount));
    if (models[i].manifest().mesh != first.mesh)
      return Status::usage("expected stages of one mesh");
  }
  auto ofGroup = int(comm::ranksOf(first.mesh));
  for (const runtime::Model &model : models)
    if (ofGroup > 1 && !model.device().isHost())
      return Status::unsupported("a stage of several ranks runs on the CPU, "
                                 "and not on a GPU yet");
  auto groups = world->split(world->rank() / ofGroup, world->rank());
  if (!groups)
    return std::move(groups).status();
  group = *std::move(groups);
  auto lines = world->split(world->rank() % ofGroup, world->rank());
  if (!lines)
    return std::move(lines).status();
  line = *std::move(lines);
  for (runtime::Model &model : models)
    if (Status status = model.setCommunicator(group); !status)
      return status;
  return Status::success();
}

Status Pipeline::State::prepare(const std::vector<StageFacts> &facts) {
  lossName = facts.back().lossName;
  lossType = facts.back().lossType;
  for (const StageFacts &stage : facts)
    hasNorm |= stage.hasNorm;
  for (size_t s = facts.size(); s-- > 0;)
    if (facts[s].hasScale)
      scaleStage = int64_t(s);
  auto made = Tensor::zeros(artifact::DType::F32, {}, account);
  if (!made)
    return std::move(made).status();
  number = *std::move(made);
  for (runtime::Model &model : models) {
    Stage stage;
    stage.model = &model;
    stage.number = model.manifest().pipeline->stage;
    if (Status status = prepareStage(stage, facts); !status)
      return std::move(status).in("stage " + std::to_string(stage.number));
    stages.push_back(std::move(stage));
  }
  return Status::success();
}

Status Pipeline::State::prepareStage(Stage &stage,
                                     const std::vector<StageFacts> &facts) {
  const artifact::Manifest &manifest = stage.model->manifest();
  const artifact::Pipeline &own = *manifest.pipeline;
  auto number = size_t(stage.number);
  stage.isLast = stage.number == stageCount - 1;
  const Program *forward = manifest.findProgram("forward");
  stage.backward = manifest.findProgram("backward");
  stage.updates = manifest.findProgram("update") != nullptr;
  stage.hasNorm = manifest.findProgram("norm") != nullptr;
  if (!forward)
    return Status::unsupported("there is no program 'forward'");
  if (stage.updates && !manifest.findProgram("accumulation"))
    return Status::unsupported("there is no program 'accumulation'");
  stage.takes = Pack(own.takes, forward->arguments, Role::Input);
  stage.gives = Pack(own.gives, forward->results, Role::Output);
  if (stage.gives.slots().size() != own.gives.size())
    return Status::unsupported("'forward' does not give all that it should");
  for (const Slot &slot : forward->arguments)
    if (slot.role == Role::Input &&
        std::find(own.takes.begin(), own.takes.end(), slot.name) ==
            own.takes.end())
      stage.inputs.push_back(&slot);
  for (const Slot *slot : stage.inputs)
    stage.pieces.push_back(comm::shardOf(
        manifest.mesh, *manifest.findValue(slot->name), group->rank()));
  stage.normName = manifest.optimizer + ".grad_norm";
  stage.flights.resize(size_t(stageCount - stage.number));
  if (stage.isLast) {
    auto loss = Tensor::zeros(lossType, {}, account);
    auto one = Tensor::zeros(lossType, {}, account);
    if (!loss || !one)
      return (loss ? one : loss).status();
    stage.loss = *std::move(loss);
    stage.one = *std::move(one);
    if (Status status = stage.one.fill(1); !status)
      return status;
  }
  if (!stage.backward)
    return Status::success();
  if (stage.number > 0)
    stage.takesBack =
        Pack(backNames(own.takes, facts[number - 1], facts[number]),
             stage.backward->results, Role::Grad);
  if (!stage.isLast)
    stage.givesBack =
        Pack(backNames(own.gives, facts[number], facts[number + 1]),
             stage.backward->arguments, Role::Cotangent);
  for (const Slot &slot : stage.backward->results) {
    const artifact::Value *value = manifest.findValue(slot.name);
    if (slot.role != Role::Grad || !value || value->role != Role::Param)
      continue;
    auto gradient = tensorFor(slot, account);
    if (!gradient)
      return std::move(gradient).status();
    stage.gradients.push_back(&slot);
    stage.gradient.push_back(*std::move(gradient));
  }
  return Status::success();
}

Result<const std::vector<Step> *> Pipeline::State::schedule(int64_t batches) {
  auto found = schedules.find(batches);
  if (found == schedules.end()) {
    auto all = scheduleOf(stageCount, rankCount, batches);
    if (!all)
      return std::move(all).status();
    found = schedules.emplace(batches, std::move((*all)[size_t(line->rank())]))
                .first;
  }
  return &found->second;
}

Pipeline::Pipeline(std::unique_ptr<State> state) : state_(std::move(state)) {}
Pipeline::Pipeline(Pipeline &&) noexcept = default;
Pipeline &Pipeline::operator=(Pipeline &&) noexcept = default;
Pipeline::~Pipeline() = default;

std::vector<runtime::Model> &Pipeline::models() { return state_->models; }
const std::vector<runtime::Model> &Pipeline::models() const {
  return state_->models;
}
comm::Communicator &Pipeline::world() const { return *state_->world; }
comm::Communicator &Pipeline::line() const { return *state_->line; }
bool Pipeline::isFirstOfGroup() const { return state_->group->rank() == 0; }
bool Pipeline::hasNorm() const { return state_->hasNorm; }
std::optional<double> Pipeline::norm() const { return state_->norm; }
const std::string &Pipeline::lossName() const { return state_->lossName; }
artifact::DType Pipeline::lossType() const { return state_->lossType; }

Result<Pipeline> Pipeline::make(std::vector<runtime::Model> models,
                                std::shared_ptr<comm::Communicator> world) {
  if (models.empty() || !models.front().manifest().pipeline || !world)
    return Status::usage("expected stages of a pipeline, and their ranks");
  auto state = std::make_unique<State>();
  state->models = std::move(models);
  state->world = std::move(world);
  if (Status status = state->connect(); !status)
    return status;
  auto facts = factsOfAll(state->models, state->line.get());
  if (!facts)
    return std::move(facts).status();
  if (Status status = state->prepare(*facts); !status)
    return status;
  return Pipeline(std::move(state));
}

Status Pipeline::train(int64_t batches, bool updates, const GiveBatch &give,
                       std::vector<double> &losses) {
  auto steps = state_->schedule(batches);
  if (!steps)
    return std::move(steps).status();
  losses.assign(size_t(batches), 0);
  state_->waited = 0;
  if (Status status = state_->scaleLoss(); !status)
    return status;
  for (const Step &step : **steps) {
    Status status;
    if (!step.work)
      status = state_->exchange(step);
    else if (step.work->isBackward)
      status = state_->backward(*step.work,
                                updates && step.work->batch == batches - 1);
    else
      status =
          state_->forward(*step.work, give, losses[size_t(step.work->batch)]);
    if (!status)
      return status;
  }
  if (updates && state_->hasNorm)
    if (Status status = state_->update(); !status)
      return status;
  return state_->alongLine([&](comm::Communicator &line) {
    return line.broadcast(losses.data(),
                          int64_t(losses.size() * sizeof(double)),
                          state_->rankOf(state_->stageCount - 1));
  });
}

int64_t Pipeline::peak() const {
  int64_t bytes = state_->account->peak;
  for (const runtime::Model &model : state_->models)
    bytes += model.memory().peak;
  return bytes;
}

double Pipeline::waited() const { return state_->waited; }

int64_t Pipeline::mostLive(int64_t stage) const {
  for (const Stage &own : state_->stages)
    if (own.number == stage)
      return own.mostLive;
  return 0;
}

} // namespace tandem::pipeline
