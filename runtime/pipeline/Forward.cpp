//===- Forward.cpp - `evaluate` of a model in stages ----------------------===//
#include "runtime/pipeline/Forward.h"

#include "runtime/model/Pieces.h"
#include "runtime/pipeline/State.h"

#include <algorithm>
#include <set>

namespace tandem::pipeline {

using artifact::Manifest;
using artifact::Role;
using runtime::Argument;
using runtime::Destination;

namespace {

/// What the wanted outputs need of a stage.
struct Needs {
  std::set<std::string> inputs, takes, gives, outputs;
  bool runs() const { return !gives.empty() || !outputs.empty(); }
};

/// Of all stages, by their `evaluate`.
std::vector<Needs> needsOf(const std::vector<Manifest> &stages,
                           const std::vector<std::string> &outputs) {
  std::vector<Needs> needs(stages.size());
  for (size_t s = stages.size(); s-- > 0;) {
    Needs &own = needs[s];
    if (s + 1 < stages.size())
      own.gives = needs[s + 1].takes;
    const artifact::Pipeline &pipeline = *stages[s].pipeline;
    const Program &program = *stages[s].findProgram("evaluate");
    for (const Slot &slot : artifact::outputsOf(program)) {
      bool isOutput = std::ranges::find(outputs, slot.name) != outputs.end();
      if (isOutput)
        own.outputs.insert(slot.name);
      if (!isOutput && !own.gives.contains(slot.name))
        continue;
      for (const Slot &argument : program.arguments) {
        if (argument.role != Role::Input ||
            (slot.inputs && std::ranges::find(*slot.inputs, argument.name) ==
                                slot.inputs->end()))
          continue;
        bool isTaken = std::ranges::find(pipeline.takes, argument.name) !=
                       pipeline.takes.end();
        (isTaken ? own.takes : own.inputs).insert(argument.name);
      }
    }
  }
  return needs;
}

/// A stage of this rank, with memory for what a batch has there.
struct Part {
  int64_t number = 0;
  runtime::Model *model = nullptr;
  bool takes = false, gives = false; ///< anything
  std::vector<const Slot *> inputs;
  std::vector<comm::Shard> pieces;
  Tensors inputTensors, outputTensors;
  std::unique_ptr<Buffer> taken, given;
  int64_t takenBytes = 0, givenBytes = 0;
  std::vector<Argument> arguments;
  std::vector<Destination> results;
  std::vector<Slot> slots; ///< of all outputs
  Pack takesPack, givesPack;
};

} // namespace

struct Forward::State {
  Pipeline::State *pipeline = nullptr;
  std::vector<std::unique_ptr<Part>> parts;
  /// Of each output: its name, the stage, where it lies there, the whole.
  struct Output {
    std::string name;
    int64_t stage = 0;
    size_t index = 0; ///< among the part's, where the stage is here
  };
  std::vector<Output> outputs;
  Tensors whole;

  Part *part(int64_t number) {
    for (auto &one : parts)
      if (one->number == number)
        return one.get();
    return nullptr;
  }
  Status prepare(Part &part, const Needs &needs);
  Status compute(Part &part, std::span<const Argument> inputs);
  Status spread();
};

Status Forward::State::prepare(Part &part, const Needs &needs) {
  const Manifest &manifest = part.model->manifest();
  const Program &program = *manifest.findProgram("evaluate");
  part.slots = artifact::outputsOf(program);
  auto among = [](const std::vector<std::string> &names,
                  const std::set<std::string> &wanted) {
    std::vector<std::string> found;
    for (const std::string &name : names)
      if (wanted.contains(name))
        found.push_back(name);
    return found;
  };
  part.takesPack = Pack(among(manifest.pipeline->takes, needs.takes),
                        program.arguments, Role::Input);
  part.givesPack = Pack(among(manifest.pipeline->gives, needs.gives),
                        part.slots, Role::Output);
  if (part.givesPack.slots().size() != needs.gives.size())
    return Status::unsupported("'evaluate' does not give all that it should");
  part.takes = !needs.takes.empty();
  part.gives = !needs.gives.empty();
  auto taken = part.takesPack.take(pipeline->account),
       given = part.givesPack.take(pipeline->account);
  if (!taken || !given)
    return (taken ? given : taken).status();
  part.taken = *std::move(taken);
  part.given = *std::move(given);
  for (const Slot &slot : program.arguments)
    if (slot.role == Role::Input && needs.inputs.contains(slot.name)) {
      auto made = tensorFor(slot, pipeline->account);
      if (!made)
        return std::move(made).status();
      part.inputs.push_back(&slot);
      part.pieces.push_back(comm::shardOf(manifest.mesh,
                                          *manifest.findValue(slot.name),
                                          pipeline->group->rank()));
      part.inputTensors.push_back(*std::move(made));
    }
  for (const Slot &slot : part.slots)
    if (needs.outputs.contains(slot.name)) {
      auto made = tensorFor(slot, pipeline->account);
      if (!made)
        return std::move(made).status();
      part.outputTensors.push_back(*std::move(made));
    }
  for (size_t i = 0; i < part.inputs.size(); ++i)
    part.arguments.emplace_back(part.inputs[i]->name, &part.inputTensors[i]);
  for (size_t i = 0; i < part.takesPack.slots().size(); ++i)
    part.arguments.emplace_back(part.takesPack.slots()[i]->name,
                                &part.taken->parts[i]);
  size_t index = 0;
  for (const Slot &slot : part.slots)
    if (needs.outputs.contains(slot.name)) {
      for (Output &output : outputs)
        if (output.name == slot.name)
          output.index = index;
      part.results.push_back({slot.name, &part.outputTensors[index++]});
    }
  for (size_t i = 0; i < part.givesPack.slots().size(); ++i)
    part.results.push_back(
        {part.givesPack.slots()[i]->name, &part.given->parts[i]});
  return Status::success();
}

Status Forward::State::compute(Part &part, std::span<const Argument> inputs) {
  for (size_t i = 0; i < part.inputs.size(); ++i) {
    const std::string &name = part.inputs[i]->name;
    auto found = std::ranges::find(inputs, name, &Argument::name);
    if (found == inputs.end() || !found->tensor)
      return Status::usage("missing input '" + name + "'");
    if (Status status =
            takePiece(*found->tensor, part.pieces[i], part.inputTensors[i]);
        !status)
      return std::move(status).in("'" + name + "'");
  }
  comm::Communicator &line = *pipeline->line;
  if (part.takes) {
    int from = pipeline->rankOf(part.number - 1);
    Tensor &memory = part.taken->memory;
    if (from != line.rank()) {
      if (Status status =
              line.recv(memory.mutableData(), part.takesPack.bytes(), from);
          !status)
        return status;
    } else if (Status status =
                   memory.copyFrom(this->part(part.number - 1)->given->memory);
               !status) {
      return status;
    }
  }
  if (Status status =
          part.model->runWanted("evaluate", part.arguments, part.results);
      !status)
    return status;
  if (!part.gives)
    return Status::success();
  int to = pipeline->rankOf(part.number + 1);
  return to == line.rank()
             ? Status::success()
             : line.send(part.given->memory.data(), part.givesPack.bytes(), to);
}

/// Gives all ranks the outputs: a group makes the whole of its pieces, and each
/// of its ranks sends it along its line.
Status Forward::State::spread() {
  for (size_t i = 0; i < outputs.size(); ++i) {
    Output &output = outputs[i];
    if (Part *own = part(output.stage)) {
      auto made =
          runtime::wholeOf(own->outputTensors[output.index],
                           own->model->manifest().findOutput(output.name),
                           own->model->communicators());
      Status status = made ? whole[i].copyFrom(*made) : made.status();
      if (!status)
        return status;
    }
    if (Status status =
            pipeline->line->broadcast(whole[i].mutableData(), whole[i].bytes(),
                                      pipeline->rankOf(output.stage));
        !status)
      return status;
  }
  return Status::success();
}

Forward::Forward(std::unique_ptr<State> state) : state_(std::move(state)) {}
Forward::Forward(Forward &&) noexcept = default;
Forward &Forward::operator=(Forward &&) noexcept = default;
Forward::~Forward() = default;

Result<Forward> Forward::make(Pipeline &pipeline,
                              const std::vector<Manifest> &stages,
                              const std::vector<std::string> &outputs) {
  auto whole = wholeEvaluate(stages);
  if (!whole)
    return std::move(whole).status();
  auto state = std::make_unique<State>();
  state->pipeline = pipeline.state_.get();
  std::vector<Needs> needs = needsOf(stages, outputs);
  for (const std::string &name : outputs) {
    State::Output &output = state->outputs.emplace_back();
    output.name = name;
    while (output.stage < std::ssize(stages) &&
           !needs[size_t(output.stage)].outputs.contains(name))
      ++output.stage;
    const artifact::Value *value = whole->findOutput(name);
    if (!value || output.stage == std::ssize(stages))
      return Status::usage("program 'evaluate' has no output '" + name + "'");
    auto tensor = Tensor::zeros(value->dtype, value->shape);
    if (!tensor)
      return std::move(tensor).status();
    state->whole.push_back(*std::move(tensor));
  }
  for (runtime::Model &model : pipeline.models()) {
    auto part = std::make_unique<Part>();
    part->number = model.manifest().pipeline->stage;
    part->model = &model;
    const Needs &own = needs[size_t(part->number)];
    if (!own.runs())
      continue;
    if (Status status = state->prepare(*part, own); !status)
      return std::move(status).in("stage " + std::to_string(part->number));
    state->parts.push_back(std::move(part));
  }
  return Forward(std::move(state));
}

Result<std::span<const Tensor>> Forward::run(std::span<const Argument> inputs) {
  for (auto &part : state_->parts)
    if (Status status = state_->compute(*part, inputs); !status)
      return std::move(status).in("stage " + std::to_string(part->number));
  if (Status status = state_->spread(); !status)
    return status;
  return std::span<const Tensor>(state_->whole);
}

} // namespace tandem::pipeline
