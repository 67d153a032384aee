//===- Feed.cpp - steps on the batches that a callback gives --------------===//
//
// Two batches by turns: while the step of one runs, a thread lets the callback
// write the other, and takes it to the model's device on a stream beside that
// of the steps. What a step needs has arrived before it, and a batch is written
// anew behind the step that read it: by fences, so that the host waits for
// neither. A tensor over registered memory that the callback gives is copied
// from where it is.
//
//===----------------------------------------------------------------------===//
#include "runtime/c_api/GraphCApi.h"
#include "runtime/call/CheckValues.h"
#include "runtime/device/DeviceMemory.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

using namespace tandem;
using namespace tandem::capi;
using namespace tandem::runtime;

namespace {

static_assert(sizeof(tdm_feed) == offsetof(tdm_feed, steps) + sizeof(int64_t));

/// One of the device's own streams, beyond those that most programs have.
constexpr int kSideStream = 7;

/// The inputs of one step.
struct Batch {
  struct Input {
    /// Registered memory of the callback's, in place of `host`; else undefined.
    /// Outlives `pinned`, which waits for what reads it.
    Tensor direct;
    PinnedBuffer pinned; ///< the memory of `host`, for a device
    Tensor host;
    tdm_tensor handle; ///< of `host`, for the callback
    Tensor there;      ///< what the program reads
    const artifact::Value *value = nullptr;
  };
  std::deque<Input> inputs; // which handles and arguments point into
  std::vector<tdm_argument> handles;
  std::vector<Argument> arguments;
  Fence arrived = nullptr, read = nullptr;
};

class Feeder {
public:
  Feeder(Model &model, const tdm_feed &feed) : model(model), feed(feed) {}
  Feeder(const Feeder &) = delete;
  ~Feeder();

  Status prepare(const std::string &program);
  Status run(const std::string &program, std::span<const Destination> outputs,
             int64_t &steps);

private:
  Status prepareInput(Batch &batch, const artifact::Slot &slot);
  Status checkInput(const Batch::Input &input) const;
  /// On the thread: batches that are asked for.
  void serve();
  Status fill(Batch &batch, int64_t number, bool &isEnd);
  Status send(Batch &batch);
  /// Begins to make a batch, and waits for it.
  void ask(int64_t number);
  Status wait(bool &isEnd);

  Model &model;
  tdm_feed feed;
  DeviceMemory place;
  Stream stream = nullptr, side = nullptr;
  Batch batches[2];
  std::mutex mutex;
  std::condition_variable changed;
  int64_t asked = -1; ///< the batch to make; -1: it is made
  bool isOver = false, wasEnd = false;
  Status made;
  std::thread thread;
};

} // namespace

Feeder::~Feeder() {
  {
    std::lock_guard lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
  for (Batch &batch : batches)
    for (Fence fence : {batch.arrived, batch.read})
      if (fence)
        place.backend().releaseFence(fence);
}

Status Feeder::prepareInput(Batch &batch, const artifact::Slot &slot) {
  if (slot.alias || slot.freed)
    return Status::unsupported("the input '" + slot.name +
                               "' shares memory with others, or has none: "
                               "tdm_run takes such inputs");
  Batch::Input &input = batch.inputs.emplace_back();
  Result<Tensor> host = Tensor::zeros(slot.dtype, slot.shape, Device{});
  if (host && !place.isHost() && host->bytes()) {
    if (Status status = input.pinned.reserve(place.backend(), host->bytes());
        !status)
      return status;
    void *data = input.pinned.forHost(host->bytes(), /*isWrite=*/true);
    std::memset(data, 0, host->bytes());
    host = Tensor::wrap(data, slot.dtype, slot.shape);
  }
  if (!host)
    return std::move(host).status();
  input.host = *std::move(host);
  input.value = model.manifest().findValue(slot.name);
  input.there = input.host;
  if (!place.isHost()) {
    Result<Tensor> there =
        Tensor::zeros(slot.dtype, slot.shape, place.device());
    if (!there)
      return std::move(there).status();
    input.there = *std::move(there);
  }
  batch.handles.push_back({slot.name.c_str(), &input.handle});
  batch.arguments.emplace_back(slot.name, &input.there);
  return Status::success();
}

/// Of a model on a device, whose call finds them there: labels and indices.
Status Feeder::checkInput(const Batch::Input &input) const {
  std::optional<comm::MeshRank> rank;
  if (model.communicators() && !input.value->sharding.empty())
    rank.emplace(comm::MeshRank{model.manifest().mesh,
                                model.communicators()->world().rank()});
  std::string problem =
      valuesOutside(input.direct.defined() ? input.direct : input.host,
                    *input.value, rank ? &*rank : nullptr);
  return problem.empty() ? Status::success() : Status::usage(problem);
}

Status Feeder::prepare(const std::string &program) {
  const artifact::Program *found = model.manifest().findProgram(program);
  if (!found)
    return Status::usage("the artifact has no program '" + program + "'");
  Result<DeviceMemory> at = DeviceMemory::at(model.device());
  if (!at)
    return std::move(at).status();
  place = *std::move(at);
  stream = currentStream(place.device());
  if (place.isCapturing(stream))
    return Status::usage("cannot take batches from a callback while a stream "
                         "is captured");
  if (!place.isHost()) {
    Result<Stream> made = place.backend().side(kSideStream);
    if (!made)
      return std::move(made).status();
    side = *made;
  }
  for (Batch &batch : batches) {
    for (const artifact::Slot &slot : found->arguments)
      if (slot.role == artifact::Role::Input)
        if (Status status = prepareInput(batch, slot); !status)
          return status;
    // The zeros of the device's tensors are there before the first batch.
    if (!place.isHost())
      if (Status status = place.backend().record(batch.read, stream); !status)
        return status;
  }
  thread = std::thread([this] { serve(); });
  return Status::success();
}

Status Feeder::fill(Batch &batch, int64_t number, bool &isEnd) {
  for (Batch::Input &input : batch.inputs) {
    if (input.pinned.forDevice()) { // none on the host, or without elements
      if (Status status = input.pinned.await(); !status)
        return status;
      input.pinned.forHost(input.host.bytes(), /*isWrite=*/true);
    }
    input.direct = Tensor();
    input.handle = tdm_tensor{input.host};
  }
  int end = 0;
  Status status = callUser("the callback for batches", nullptr, [&] {
    return feed.next(feed.user, number, batch.handles.data(),
                     batch.handles.size(), &end);
  });
  isEnd = end != 0;
  if (!status || isEnd)
    return status;
  for (size_t i = 0; i < batch.inputs.size(); ++i) {
    Batch::Input &input = batch.inputs[i];
    // The callback may have made the handle show a tensor of its own.
    Tensor given = std::exchange(input.handle, tdm_tensor{}).tensor;
    bool isAlike =
        given.defined() && given.isDense() &&
        given.dtype() == input.host.dtype() &&
        std::equal(given.shape().begin(), given.shape().end(),
                   input.host.shape().begin(), input.host.shape().end());
    if (isAlike && !place.isHost() && given.elements() &&
        given.device().isHost() && given.isBacked() &&
        given.storage()->isDirect())
      input.direct = std::move(given);
    else if (!isAlike || given.data() != input.host.data())
      status = input.host.copyFrom(given);
    if (status && !place.isHost())
      status = checkInput(input);
    if (!status)
      return std::move(status).in("batch " + std::to_string(number) +
                                  ", input '" + batch.handles[i].name + "'");
  }
  return place.isHost() ? status : send(batch);
}

Status Feeder::send(Batch &batch) {
  StreamScope scope(place.device(), side);
  Backend &backend = place.backend();
  if (Status status = backend.waitFor(side, batch.read); !status)
    return status;
  for (Batch::Input &input : batch.inputs) {
    Status status = input.there.copyFrom(input.direct.defined() ? input.direct
                                                                : input.host);
    if (status && input.pinned.forDevice())
      status = input.pinned.useUntilNow(side);
    if (!status)
      return status;
  }
  return backend.record(batch.arrived, side);
}

void Feeder::serve() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return isOver || asked >= 0; });
    if (isOver)
      return;
    int64_t number = asked;
    lock.unlock();
    bool isEnd = false;
    Status status;
    try {
      status = fill(batches[number % 2], number, isEnd);
    } catch (const std::exception &error) {
      status = Status::failed(error.what());
    } catch (...) {
      status = Status::failed("an exception of an unknown type");
    }
    lock.lock();
    made = std::move(status);
    wasEnd = isEnd;
    asked = -1;
    changed.notify_all();
  }
}

void Feeder::ask(int64_t number) {
  std::lock_guard lock(mutex);
  asked = number;
  changed.notify_all();
}

Status Feeder::wait(bool &isEnd) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return asked < 0; });
  isEnd = wasEnd;
  return std::move(made);
}

Status Feeder::run(const std::string &program,
                   std::span<const Destination> outputs, int64_t &steps) {
  auto isWanted = [&](int64_t number) {
    return !feed.steps || number < feed.steps;
  };
  ask(0);
  for (int64_t number = 0; isWanted(number); ++number) {
    bool isEnd = false;
    if (Status status = wait(isEnd); !status || isEnd)
      return status;
    if (isWanted(number + 1))
      ask(number + 1);
    Batch &batch = batches[number % 2];
    Status status;
    if (!place.isHost())
      status = place.backend().waitFor(stream, batch.arrived);
    if (status)
      status = model.run(program, batch.arguments, outputs);
    if (status && !place.isHost())
      status = place.backend().record(batch.read, stream);
    if (!status)
      return status;
    ++steps;
    int end = 0;
    if (feed.stepped)
      status = callUser("the callback for steps", nullptr,
                        [&] { return feed.stepped(feed.user, number, &end); });
    if (!status || end)
      return status;
  }
  return Status::success();
}

tdm_status tdm_train(tdm_model *model, const char *program,
                     const tdm_feed *feed, const tdm_argument *outputs,
                     size_t output_count, int64_t *steps) {
  int64_t done = 0;
  tdm_status result = call([&]() -> Status {
    if (!model || !feed)
      return null(model ? "feed" : "model");
    tdm_feed known;
    if (Status status = takeStruct("tdm_feed", *feed, known); !status)
      return status;
    if (!known.next)
      return null("callback for batches");
    if (known.steps < 0)
      return Status::usage("expected 'steps' to be at least 0 but got " +
                           std::to_string(known.steps));
    if (Status status = checkList(outputs, output_count, "output"); !status)
      return status;
    std::vector<Destination> wanted;
    std::vector<tdm_tensor *> handles;
    for (size_t i = 0; i < output_count; ++i) {
      wanted.push_back({outputs[i].name, &outputs[i].tensor->tensor});
      handles.push_back(outputs[i].tensor);
    }
    std::string name = program ? program : "step";
    Feeder feeder(model->model, known);
    Status status = feeder.prepare(name);
    if (status)
      status = feeder.run(name, wanted, done);
    // What a program makes has no history of a graph.
    for (tdm_tensor *handle : handles)
      if (status)
        handle->edge = {};
    return status;
  });
  if (steps)
    *steps = done;
  return result;
}
