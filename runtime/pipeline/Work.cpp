//===- Work.cpp - what a rank of a pipeline does, piece by piece ----------===//
#include "runtime/pipeline/State.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace tandem::pipeline {

using runtime::Argument;
using runtime::Destination;

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

/// Gives the gradients of a batch to a program of the optimizer.
Status Pipeline::State::useGradients(Stage &own, const char *program,
                                     const Tensors &gradients) {
  if (!own.updates)
    return Status::success();
  std::vector<Argument> arguments;
  for (size_t i = 0; i < gradients.size(); ++i)
    arguments.emplace_back(own.gradients[i]->name, &gradients[i]);
  return own.model->run(program, arguments, {});
}

/// The last stage has gradients of the loss times the scale, which all stages
/// change alike.
Status Pipeline::State::scaleLoss() {
  if (!scaleStage)
    return Status::success();
  double scale = 0;
  if (isHere(*scaleStage)) {
    const runtime::Model &model = *stage(*scaleStage).model;
    auto found = model.get(scaleOf(model.manifest()));
    if (!found)
      return std::move(found).status();
    scale = found->at(0);
  }
  if (Status status =
          line->broadcast(&scale, sizeof scale, rankOf(*scaleStage));
      !status)
    return status;
  return isHere(stageCount - 1) ? stage(stageCount - 1).one.fill(scale)
                                : Status::success();
}

/// Updates all stages by the norm of what they have together.
Status Pipeline::State::update() {
  double squares = 0;
  auto normOf = [](const Stage &own) {
    return own.model->manifest().optimizer + ".grad_norm";
  };
  auto set = [&](Stage &own, double value) {
    auto tensor = Tensor::zeros(artifact::DType::F32, {});
    Status status = tensor ? tensor->fill(value) : tensor.status();
    return status ? own.model->set(normOf(own), *tensor) : status;
  };
  for (Stage &own : stages) {
    if (!own.hasNorm)
      continue;
    // Where no gradient is defined, none is computed.
    if (Status status = set(own, 0); !status)
      return status;
    if (Status status = useGradients(own, "norm", own.last); !status)
      return status;
    auto found = own.model->get(normOf(own));
    if (!found)
      return std::move(found).status();
    squares += found->at(0) * found->at(0);
  }
  if (Status status = line->allReduce(artifact::DType::F64, comm::Reduce::Sum,
                                      &squares, &squares, 1);
      !status)
    return status;
  norm = double(float(std::sqrt(squares)));
  for (Stage &own : stages) {
    if (own.hasNorm)
      if (Status status = set(own, *norm); !status)
        return status;
    if (Status status = useGradients(own, "update", own.last); !status)
      return status;
  }
  return Status::success();
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
    if (isUpdate && hasNorm)
      own.last = std::move(gradients);
    else if (Status status = useGradients(
                 own, isUpdate ? "update" : "accumulation", gradients);
             !status)
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

} // namespace tandem::pipeline
