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

std::unique_ptr<Buffer> &Messages::of(int64_t batch) {
  for (auto &[number, buffer] : all_)
    if (number == batch)
      return buffer;
  for (auto &[number, buffer] : all_)
    if (!buffer) {
      number = batch;
      return buffer;
    }
  return all_.emplace_back(batch, nullptr).second;
}

std::unique_ptr<Buffer> Messages::take(int64_t batch) {
  return std::move(of(batch));
}

/// Copies what the stage needs of a batch: the next one comes before its
/// backward.
Status Pipeline::State::takeInputs(Stage &stage, const GiveBatch &give,
                                   int64_t batch, Flight &flight) {
  if (stage.inputs.empty())
    return Status::success();
  while (flight.inputs.size() < stage.inputs.size()) {
    auto made = tensorFor(*stage.inputs[flight.inputs.size()], account);
    if (!made)
      return std::move(made).status();
    flight.inputs.push_back(*std::move(made));
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
  auto buffer = pack.take(account);
  if (!buffer)
    return std::move(buffer).status();
  Stage &own = stage(work.stage);
  const Buffer &from = work.isBackward ? *own.toSend.of(work.batch)
                                       : *own.flight(work.batch).given;
  std::memcpy((*buffer)->memory.mutableData(), from.memory.data(),
              size_t(pack.bytes()));
  arrived(other, to).of(to.batch) = *std::move(buffer);
  if (work.isBackward)
    own.takesBack.giveBack(own.toSend.take(work.batch));
  return Status::success();
}

Status Pipeline::State::forward(const Work &work, const GiveBatch &give,
                                double &loss) {
  Stage &own = stage(work.stage);
  Flight &flight = own.flight(work.batch);
  flight.isLive = true;
  own.mostLive =
      std::max(own.mostLive,
               int64_t(std::ranges::count(own.flights, true, &Flight::isLive)));
  if (Status status = takeInputs(own, give, work.batch, flight); !status)
    return status;
  if (work.stage > 0)
    flight.taken = own.forThere.take(work.batch);
  arguments.clear();
  for (size_t i = 0; i < own.inputs.size(); ++i)
    arguments.emplace_back(own.inputs[i]->name, &flight.inputs[i]);
  for (size_t i = 0; i < own.takes.slots().size(); ++i)
    arguments.emplace_back(own.takes.slots()[i]->name, &flight.taken->parts[i]);
  results.clear();
  if (!own.isLast) {
    auto given = own.gives.take(account);
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
  arguments.clear();
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
  if (Status status = alongLine([&](comm::Communicator &line) {
        return line.broadcast(&scale, sizeof scale, rankOf(*scaleStage));
      });
      !status)
    return status;
  return isHere(stageCount - 1) ? stage(stageCount - 1).one.fill(scale)
                                : Status::success();
}

/// Updates all stages by the norm of what they have together.
Status Pipeline::State::update() {
  double squares = 0;
  auto set = [&](Stage &own, double value) {
    Status status = number.fill(value);
    return status ? own.model->set(own.normName, number) : status;
  };
  for (Stage &own : stages) {
    if (!own.hasNorm)
      continue;
    // Where no gradient is defined, none is computed.
    if (Status status = set(own, 0); !status)
      return status;
    if (Status status = useGradients(own, "norm", own.last); !status)
      return status;
    auto found = own.model->get(own.normName);
    if (!found)
      return std::move(found).status();
    squares += found->at(0) * found->at(0);
  }
  if (Status status = alongLine([&](comm::Communicator &line) {
        return line.allReduce(artifact::DType::F64, comm::Reduce::Sum, &squares,
                              &squares, 1);
      });
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
  Flight &flight = own.flight(work.batch);
  std::unique_ptr<Buffer> came;
  if (!own.isLast)
    came = own.forBack.take(work.batch);
  auto back = own.takesBack.take(account);
  if (!back)
    return std::move(back).status();
  if (own.backward) {
    arguments.clear();
    if (own.isLast)
      arguments.emplace_back(lossName, &own.one);
    for (size_t i = 0; i < own.givesBack.slots().size(); ++i)
      arguments.emplace_back(own.givesBack.slots()[i]->name, &came->parts[i]);
    Tensors &gradients = own.gradientResults, &backs = own.backResults;
    gradients = own.gradient;
    backs = (*back)->parts;
    results.clear();
    for (size_t i = 0; i < gradients.size(); ++i)
      results.push_back({own.gradients[i]->name, &gradients[i]});
    for (size_t i = 0; i < backs.size(); ++i)
      results.push_back({own.takesBack.slots()[i]->name, &backs[i]});
    if (Status status = own.model->backward(flight.context, arguments, results);
        !status)
      return status;
    for (size_t i = 0; i < backs.size(); ++i)
      if (!backs[i].defined())
        if (Status status = (*back)->parts[i].zero(); !status)
          return status;
    if (isUpdate && hasNorm)
      own.last = gradients;
    else if (Status status = useGradients(
                 own, isUpdate ? "update" : "accumulation", gradients);
             !status)
      return status;
  }
  own.givesBack.giveBack(std::move(came));
  own.takes.giveBack(std::move(flight.taken));
  own.gives.giveBack(std::move(flight.given));
  flight.context = {};
  flight.isLive = false;
  if (work.stage > 0)
    own.toSend.of(work.batch) = *std::move(back);
  else
    own.takesBack.giveBack(*std::move(back));
  return hand(work);
}

Status Pipeline::State::exchange(const Step &step) {
  comm::Outgoing outgoing;
  comm::Incoming incoming;
  if (const auto &sent = step.sent) {
    Stage &own = stage(sent->stage);
    const Pack &pack = sent->isBackward ? own.takesBack : own.gives;
    const Buffer &buffer = sent->isBackward ? *own.toSend.of(sent->batch)
                                            : *own.flight(sent->batch).given;
    outgoing = {rankOf(sent->stage + (sent->isBackward ? -1 : 1)),
                buffer.memory.data(), pack.bytes()};
  }
  if (const auto &received = step.received) {
    Work to = *received;
    to.stage += received->isBackward ? -1 : 1;
    Stage &own = stage(to.stage);
    Pack &pack = received->isBackward ? own.givesBack : own.takes;
    auto buffer = pack.take(account);
    if (!buffer)
      return std::move(buffer).status();
    incoming = {rankOf(received->stage), (*buffer)->memory.mutableData(),
                pack.bytes()};
    arrived(own, to).of(to.batch) = *std::move(buffer);
  }
  if (Status status = alongLine([&](comm::Communicator &line) {
        return line.exchange({&outgoing, size_t(step.sent.has_value())},
                             {&incoming, size_t(step.received.has_value())});
      });
      !status)
    return status;
  if (const auto &sent = step.sent; sent && sent->isBackward) {
    Stage &own = stage(sent->stage);
    own.takesBack.giveBack(own.toSend.take(sent->batch));
  }
  return Status::success();
}

} // namespace tandem::pipeline
