//===- Pipeline.cpp - a model in stages, trained by several ranks ---------===//
//
// A batch that is under way in a stage keeps its inputs, what it took from the
// stage before and what it gave, since the backward may read all of these where
// they lie. A stage has at most as many batches under way as there are stages
// from it to the end, so memory is made for the first batches and used again.
//
//===----------------------------------------------------------------------===//
#include "runtime/pipeline/Pipeline.h"

#include "runtime/pipeline/Facts.h"
#include "runtime/pipeline/Pack.h"
#include "runtime/pipeline/Schedule.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

namespace tandem::pipeline {

using artifact::Program;
using artifact::Role;
using artifact::Slot;
using runtime::Argument;
using runtime::Destination;
using runtime::Tensor;

namespace {

using Tensors = std::vector<Tensor>;

Result<Tensor> tensorFor(const Slot &slot) {
  return Tensor::zeros(slot.dtype, slot.shape);
}

/// A batch between its forward and its backward.
struct Flight {
  runtime::Context context;
  Tensors inputs;
  std::unique_ptr<Buffer> taken, given;
};

/// A stage of this rank.
struct Stage {
  int64_t number = 0;
  runtime::Model *model = nullptr;
  const Program *backward = nullptr; ///< null: nothing has a gradient
  bool updates = false;              ///< it has parameters
  bool isLast = false;
  std::vector<const Slot *> inputs; ///< of the model
  std::vector<comm::Shard> pieces;  ///< of each, what this rank has
  /// What goes forward, and the gradients of these that go back.
  Pack takes, gives, takesBack, givesBack;
  std::vector<const Slot *> gradients; ///< of parameters
  Tensors gradient;                    ///< memory for each
  Tensor loss, one;
  std::map<int64_t, Flight> flights; ///< by the number of the batch
  std::vector<Tensors> freeInputs;
  int64_t mostLive = 0;
};

/// The names of values whose gradients go from `after` back to `before`.
std::vector<std::string> backNames(const std::vector<std::string> &names,
                                   const StageFacts &before,
                                   const StageFacts &after) {
  std::vector<std::string> found;
  for (size_t i = 0; i < names.size(); ++i)
    if (before.gives[i].hasGradient && after.takes[i].hasGradient)
      found.push_back(names[i]);
  return found;
}

/// Copies what a rank has of a whole input.
Status takePiece(const Tensor &whole, const comm::Shard &shard, Tensor &to) {
  if (shard.isWhole())
    return to.copyFrom(whole);
  if (!std::ranges::equal(whole.shape(), shard.whole) ||
      whole.dtype() != to.dtype())
    return Status::usage(
        "expected " + runtime::describe(to.dtype(), shard.whole) + " but got " +
        runtime::describe(whole.dtype(), whole.shape()));
  auto host = whole.onHost();
  auto dense = host ? host->dense() : std::move(host);
  if (!dense)
    return std::move(dense).status();
  comm::takePiece(shard, dense->data<std::byte>(), to.mutableData<std::byte>(),
                  byteSize(to.dtype()));
  return Status::success();
}

} // namespace

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

struct Pipeline::State {
  std::vector<runtime::Model> models;
  std::shared_ptr<comm::Communicator> world, group;
  std::unique_ptr<comm::Communicator> line;
  int64_t stageCount = 1, rankCount = 1;
  std::string lossName;
  artifact::DType lossType = artifact::DType::F32;
  std::vector<Stage> stages;

  /// What came of others, or of this rank, by the work that it is for.
  using Key = std::tuple<int64_t, int64_t, bool>;
  std::map<Key, std::unique_ptr<Buffer>> arrived, toSend;
  /// The schedules that were asked for, by the number of batches: this rank's.
  std::map<int64_t, std::vector<Step>> schedules;

  static Key keyOf(const Work &work) {
    return {work.stage, work.batch, work.isBackward};
  }
  Stage &stage(int64_t number) { return stages[size_t(number / rankCount)]; }
  /// The rank of the line that has a stage.
  int rankOf(int64_t number) const { return int(number % rankCount); }
  bool isHere(int64_t number) const { return rankOf(number) == line->rank(); }

  Status connect();
  Status prepare(const std::vector<StageFacts> &facts);
  Status prepareStage(Stage &stage, const std::vector<StageFacts> &facts);
  Result<const std::vector<Step> *> schedule(int64_t batches);
  Status takeInputs(Stage &stage, const GiveBatch &give, int64_t batch,
                    Flight &flight);
  Status forward(const Work &work, const GiveBatch &give, double &loss);
  Status backward(const Work &work, bool isUpdate);
  Status useGradients(Stage &stage, const Tensors &gradients, bool isUpdate);
  Status exchange(const Step &step);
  Status hand(const Work &work);
};

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
  if (stage.isLast) {
    auto loss = Tensor::zeros(lossType, {});
    auto one = Tensor::zeros(lossType, {});
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
    auto gradient = tensorFor(slot);
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

/// Copies what the stage needs of a batch: the next one comes before its
/// backward.
Status Pipeline::State::takeInputs(Stage &stage, const GiveBatch &give,
                                   int64_t batch, Flight &flight) {
  if (stage.inputs.empty())
    return Status::success();
  if (stage.freeInputs.empty()) {
    for (const Slot *slot : stage.inputs) {
      auto made = tensorFor(*slot);
      if (!made)
        return std::move(made).status();
      flight.inputs.push_back(*std::move(made));
    }
  } else {
    flight.inputs = std::move(stage.freeInputs.back());
    stage.freeInputs.pop_back();
  }
  auto given = give(batch);
  if (!given)
    return std::move(given).status();
  for (size_t i = 0; i < stage.inputs.size(); ++i) {
    const std::string &name = stage.inputs[i]->name;
    auto found =
        std::find_if(given->begin(), given->end(),
                     [&](const Argument &one) { return one.name == name; });
    if (found == given->end() || !found->tensor)
      return Status::usage("missing input '" + name + "'");
    if (Status status =
            takePiece(*found->tensor, stage.pieces[i], flight.inputs[i]);
        !status)
      return std::move(status).in("'" + name + "'");
  }
  return Status::success();
}

/// Puts what `work` made where whoever needs it finds it.
Status Pipeline::State::hand(const Work &work) {
  bool isEnd = work.isBackward ? work.stage == 0 : work.stage == stageCount - 1;
  if (isEnd)
    return Status::success();
  int64_t next = work.stage + (work.isBackward ? -1 : 1);
  if (!isHere(next))
    return Status::success();
  Work to = work;
  to.stage = next;
  Stage &other = stage(next);
  Pack &pack = work.isBackward ? other.givesBack : other.takes;
  auto buffer = pack.take();
  if (!buffer)
    return std::move(buffer).status();
  const Buffer &from = work.isBackward
                           ? *toSend.at(keyOf(work))
                           : *stage(work.stage).flights.at(work.batch).given;
  std::memcpy((*buffer)->memory.mutableData(), from.memory.data(),
              size_t(pack.bytes()));
  arrived[keyOf(to)] = *std::move(buffer);
  if (work.isBackward)
    stage(work.stage)
        .takesBack.giveBack(std::move(toSend.extract(keyOf(work)).mapped()));
  return Status::success();
}

Status Pipeline::State::forward(const Work &work, const GiveBatch &give,
                                double &loss) {
  Stage &own = stage(work.stage);
  Flight &flight = own.flights[work.batch];
  own.mostLive = std::max(own.mostLive, int64_t(own.flights.size()));
  if (Status status = takeInputs(own, give, work.batch, flight); !status)
    return status;
  if (work.stage > 0)
    flight.taken = std::move(arrived.extract(keyOf(work)).mapped());
  std::vector<Argument> arguments;
  for (size_t i = 0; i < own.inputs.size(); ++i)
    arguments.emplace_back(own.inputs[i]->name, &flight.inputs[i]);
  for (size_t i = 0; i < own.takes.slots().size(); ++i)
    arguments.emplace_back(own.takes.slots()[i]->name, &flight.taken->parts[i]);
  std::vector<Destination> results;
  if (!own.isLast) {
    auto given = own.gives.take();
    if (!given)
      return std::move(given).status();
    flight.given = *std::move(given);
    for (size_t i = 0; i < own.gives.slots().size(); ++i)
      results.push_back({own.gives.slots()[i]->name, &flight.given->parts[i]});
  } else {
    results.push_back({lossName, &own.loss});
  }
  auto context = own.model->forward(arguments, results);
  if (!context)
    return std::move(context).status();
  flight.context = *std::move(context);
  if (own.isLast)
    loss = own.loss.at(0);
  return hand(work);
}

/// Adds the gradients of a batch, or updates by them and what was added up.
Status Pipeline::State::useGradients(Stage &own, const Tensors &gradients,
                                     bool isUpdate) {
  if (!own.updates)
    return Status::success();
  std::vector<Argument> arguments;
  for (size_t i = 0; i < gradients.size(); ++i)
    arguments.emplace_back(own.gradients[i]->name, &gradients[i]);
  return own.model->run(isUpdate ? "update" : "accumulation", arguments, {});
}

Status Pipeline::State::backward(const Work &work, bool isUpdate) {
  Stage &own = stage(work.stage);
  Flight &flight = own.flights.at(work.batch);
  std::unique_ptr<Buffer> came;
  if (!own.isLast)
    came = std::move(arrived.extract(keyOf(work)).mapped());
  auto back = own.takesBack.take();
  if (!back)
    return std::move(back).status();
  if (own.backward) {
    std::vector<Argument> cotangents;
    if (own.isLast)
      cotangents.emplace_back(lossName, &own.one);
    for (size_t i = 0; i < own.givesBack.slots().size(); ++i)
      cotangents.emplace_back(own.givesBack.slots()[i]->name, &came->parts[i]);
    // Handles of their own: of what comes to be undefined they are reset.
    Tensors gradients = own.gradient, backs = (*back)->parts;
    std::vector<Destination> results;
    for (size_t i = 0; i < gradients.size(); ++i)
      results.push_back({own.gradients[i]->name, &gradients[i]});
    for (size_t i = 0; i < backs.size(); ++i)
      results.push_back({own.takesBack.slots()[i]->name, &backs[i]});
    if (Status status =
            own.model->backward(flight.context, cotangents, results);
        !status)
      return status;
    for (size_t i = 0; i < backs.size(); ++i)
      if (!backs[i].defined())
        if (Status status = (*back)->parts[i].zero(); !status)
          return status;
    if (Status status = useGradients(own, gradients, isUpdate); !status)
      return status;
  }
  own.givesBack.giveBack(std::move(came));
  own.takes.giveBack(std::move(flight.taken));
  own.gives.giveBack(std::move(flight.given));
  if (!flight.inputs.empty())
    own.freeInputs.push_back(std::move(flight.inputs));
  own.flights.erase(work.batch);
  if (work.stage > 0)
    toSend[keyOf(work)] = *std::move(back);
  else
    own.takesBack.giveBack(*std::move(back));
  return hand(work);
}

Status Pipeline::State::exchange(const Step &step) {
  std::vector<comm::Outgoing> outgoing;
  std::vector<comm::Incoming> incoming;
  if (const auto &sent = step.sent) {
    Stage &own = stage(sent->stage);
    const Pack &pack = sent->isBackward ? own.takesBack : own.gives;
    const Buffer &buffer = sent->isBackward
                               ? *toSend.at(keyOf(*sent))
                               : *own.flights.at(sent->batch).given;
    outgoing.push_back({rankOf(sent->stage + (sent->isBackward ? -1 : 1)),
                        buffer.memory.data(), pack.bytes()});
  }
  std::unique_ptr<Buffer> *place = nullptr;
  if (const auto &received = step.received) {
    Work to = *received;
    to.stage += received->isBackward ? -1 : 1;
    Stage &own = stage(to.stage);
    Pack &pack = received->isBackward ? own.givesBack : own.takes;
    auto buffer = pack.take();
    if (!buffer)
      return std::move(buffer).status();
    place = &arrived[keyOf(to)];
    *place = *std::move(buffer);
    incoming.push_back({rankOf(received->stage), (*place)->memory.mutableData(),
                        pack.bytes()});
  }
  if (Status status = line->exchange(outgoing, incoming); !status)
    return status;
  if (const auto &sent = step.sent; sent && sent->isBackward)
    stage(sent->stage)
        .takesBack.giveBack(std::move(toSend.extract(keyOf(*sent)).mapped()));
  return Status::success();
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
  return state_->line->broadcast(losses.data(),
                                 int64_t(losses.size() * sizeof(double)),
                                 state_->rankOf(state_->stageCount - 1));
}

int64_t Pipeline::mostLive(int64_t stage) const {
  for (const Stage &own : state_->stages)
    if (own.number == stage)
      return own.mostLive;
  return 0;
}

} // namespace tandem::pipeline
