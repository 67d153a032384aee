//===- Session.cpp - one worker's part of a distributed backward ----------===//
#include "runtime/graph/distributed/Session.h"
#include "runtime/graph/distributed/Worker.h"

#include <algorithm>

namespace tandem::graph::distributed {

Session::Session(std::shared_ptr<Context> owner, uint64_t id,
                 SessionOptions options, std::vector<Root> roots)
    : id(id), options(options), context(std::move(owner)),
      roots(std::move(roots)) {
  for (const auto &[message, node] : context->sends) {
    nodes.push_back(node);
    outstanding[message] = node;
  }
  if (context->markedFor == id) // the caller looked before this part began
    dropUnused();
}

Session::~Session() = default;

bool Session::isCaller() const {
  return workerOf(id) == context->worker.number();
}

Status Session::run() {
  auto end = std::chrono::steady_clock::now() + context->worker.limit();
  if (context->worker.limit().count() > 0)
    deadline = end;
  BackwardOptions how;
  how.retainGraph = options.retainGraph;
  how.arrivals = this;
  how.collected = &context->gradients;
  Status status;
  {
    CurrentContext scope(context);
    status = backward(roots, how);
  }
  {
    std::lock_guard lock(context->mutex);
    isFinished = true;
    if (!status)
      failLocked(std::move(status));
    if (outcome.ok() && !options.retainGraph)
      for (uint64_t message : used)
        context->sends.erase(message);
    restIfPossible();
  }
  if (!isCaller())
    return Status::success();
  status = waitForAnswers();
  if (status && !isSettled && (options.isStrict || isOthersWaiting())) {
    status = settle();
    if (status)
      status = waitForAnswers();
  }
  if (status)
    status = checkNobodyWaits();
  if (!status)
    stopOthers(status);
  std::lock_guard lock(context->mutex);
  context->session = nullptr;
  return status;
}

Status Session::look(const Node &node) {
  if (!node.edges().empty() || node.isLeaf() ||
      dynamic_cast<const ReceiveNode *>(&node))
    return Status::success();
  return Status::usage("node " + describe(node) +
                       " leads nowhere, but is neither a leaf nor received "
                       "from a worker");
}

Status Session::goOn() {
  std::lock_guard lock(context->mutex);
  return outcome;
}

void Session::give(const Asker &asker, uint64_t message, Gradients gradients) {
  auto expected = outstanding.find(message);
  if (expected == outstanding.end())
    return context->worker.messages().answer(
        asker, Status::usage("the backward of message " + describeId(message) +
                             " was already run; the first backward must ask "
                             "for retain_graph if there is a second"));
  std::shared_ptr<SendNode> node = std::move(expected->second);
  outstanding.erase(expected);
  if (gradients.size() != node->inputs().size())
    return context->worker.messages().answer(
        asker, Status::failed("message " + describeId(message) + ": expected " +
                              std::to_string(node->inputs().size()) +
                              " gradients but got " +
                              std::to_string(gradients.size())));
  used.push_back(message);
  arrived.push_back({std::move(node), std::move(gradients), false});
  engage(asker);
}

void Session::resolve(const Asker &asker) {
  dropUnused();
  engage(asker);
}

void Session::dropUnused() {
  std::erase_if(outstanding, [&](const auto &message) {
    if (context->markedFor == id && context->marked.contains(message.first))
      return false;
    arrived.push_back({message.second, {}, true});
    return true;
  });
}

void Session::engage(const Asker &asker) {
  if (isCaller() || waker || !outcome.ok())
    context->worker.messages().answer(
        asker, outcome.ok() ? Result<Bytes>(report()) : outcome);
  else
    waker = asker;
  changed.notify_all();
}

Bytes Session::report() {
  std::vector<uint64_t> numbers;
  for (const auto &[worker, known] : reports)
    numbers.insert(numbers.end(), {worker, known.number, known.waiting});
  return Writer().put(std::span<const uint64_t>(numbers)).take();
}

/// Answers whoever waits for this part to rest or to end.
void Session::restIfPossible() {
  Messenger &messenger = context->worker.messages();
  bool isResting =
      unanswered == 0 && (isFinished || (isWaiting && arrived.empty()));
  if (waker && (isResting || !outcome.ok())) {
    if (outcome.ok()) {
      Report &own = reports[context->worker.number()];
      own = {own.number + 1, outstanding.size()};
    }
    messenger.answer(*waker, outcome.ok() ? Result<Bytes>(report()) : outcome);
    waker = std::nullopt;
  }
  if (!isFinished || (outcome.ok() && unanswered > 0))
    return;
  for (const Asker &stopper : stoppers)
    messenger.answer(stopper, Bytes());
  stoppers.clear();
  if (!outcome.ok())
    context->stopped.insert(id);
  if (!isCaller() && context->session.get() == this)
    context->session = nullptr;
}

void Session::failLocked(Status status) {
  if (outcome.ok())
    outcome = std::move(status);
  restIfPossible();
  changed.notify_all();
}

void Session::fail(Status status) {
  std::lock_guard lock(context->mutex);
  failLocked(std::move(status));
}

void Session::stop(const Asker &asker, Status status) {
  stoppers.push_back(asker);
  failLocked(std::move(status));
}

void Session::sendCounted(uint32_t to, Bytes request) {
  {
    std::lock_guard lock(context->mutex);
    ++unanswered;
  }
  context->worker.messages().request(
      to, std::move(request),
      [self = shared_from_this()](Result<Bytes> answer) {
        self->answered(std::move(answer));
      });
}

void Session::answered(Result<Bytes> answer) {
  std::shared_ptr<Session> kept = shared_from_this(); // the context may drop it
  std::lock_guard lock(context->mutex);
  --unanswered;
  if (!answer)
    return failLocked(std::move(answer).status());
  Reader reader(*answer);
  std::vector<uint64_t> numbers = reader.numbers();
  for (size_t i = 0; i + 2 < numbers.size(); i += 3) {
    Report &known = reports[static_cast<uint32_t>(numbers[i])];
    if (numbers[i + 1] > known.number)
      known = {numbers[i + 1], numbers[i + 2]};
  }
  restIfPossible();
  changed.notify_all();
}

Status Session::sendBack(const ReceiveNode &node, const Gradients &gradients) {
  Writer writer;
  writer.put(static_cast<uint8_t>(Verb::Gradient)).put(context->id).put(id);
  writer.put(static_cast<uint8_t>(options.retainGraph)).put(node.message);
  writer.put(static_cast<uint32_t>(gradients.size()));
  for (const Value &gradient : gradients)
    if (Status status = writer.put(gradient.tensor); !status)
      return status;
  sendCounted(node.peer, writer.take());
  return Status::success();
}

Result<std::optional<Arrival>> Session::next() {
  std::unique_lock lock(context->mutex);
  while (outcome.ok()) {
    if (!arrived.empty() || outstanding.empty()) {
      lock.unlock();
      return takeArrival();
    }
    isWaiting = true;
    restIfPossible();
    if (isCaller() && unanswered == 0) {
      isWaiting = false;
      if (isSettled)
        return Status::failed("no gradient came for message " +
                              describeId(outstanding.begin()->first));
      lock.unlock();
      if (Status status = settle(); !status)
        return status;
      lock.lock();
      continue;
    }
    wait(lock);
    isWaiting = false;
  }
  return outcome;
}

/// Moves gradients to where the forward's tensors were, in the order of the
/// current stream there.
Result<std::optional<Arrival>> Session::takeArrival() {
  Arrival arrival;
  {
    std::lock_guard lock(context->mutex);
    if (arrived.empty())
      return std::optional<Arrival>();
    arrival = std::move(arrived.front());
    arrived.pop_front();
  }
  for (size_t i = 0; i < arrival.gradients.size(); ++i) {
    Tensor &gradient = arrival.gradients[i].tensor;
    runtime::Device device = arrival.node->inputs()[i].device;
    if (!gradient.defined() || device.isHost())
      continue;
    Result<Tensor> moved = gradient.copyTo(device);
    if (!moved)
      return std::move(moved).status();
    gradient = std::move(*moved);
  }
  return std::optional<Arrival>(std::move(arrival));
}

/// Waits for a change; past the limit, the backward fails.
void Session::wait(std::unique_lock<std::mutex> &lock) {
  if (!deadline)
    return changed.wait(lock);
  if (changed.wait_until(lock, *deadline) == std::cv_status::timeout)
    failLocked(Status::failed("the backward of context " +
                              describeId(context->id) + " took longer than " +
                              std::to_string(context->worker.limit().count()) +
                              " ms"));
}

Status Session::waitForAnswers() {
  std::unique_lock lock(context->mutex);
  while (outcome.ok() && unanswered > 0)
    wait(lock);
  return outcome;
}

/// A part that still waits now has not collected all gradients, and would stand
/// in the way of the next backward.
Status Session::checkNobodyWaits() const {
  std::lock_guard lock(context->mutex);
  for (const auto &[worker, known] : reports)
    if (known.waiting > 0)
      return Status::failed("no gradient came for " +
                            std::to_string(known.waiting) +
                            " messages of worker " + std::to_string(worker));
  return Status::success();
}

bool Session::isOthersWaiting() const {
  std::lock_guard lock(context->mutex);
  return std::ranges::any_of(
      reports, [](const auto &known) { return known.second.waiting > 0; });
}

/// Follows the graph over all workers, from the roots and from what has run:
/// what is not reached is unused.
Status Session::settle() {
  isSettled = true;
  Worker &own = context->worker;
  std::map<uint32_t, std::vector<uint64_t>> toMark{{own.number(), {}}};
  std::map<uint32_t, std::vector<uint64_t>> unmarked;
  for (uint64_t peer : context->knownPeers())
    toMark[static_cast<uint32_t>(peer)];
  std::set<Node *> seen;
  std::vector<const ReceiveNode *> receives;
  for (const Root &root : roots)
    findReceives(root.edge.node, seen, receives);
  for (const ReceiveNode *receive : receives)
    toMark[receive->peer].push_back(receive->message);
  while (!toMark.empty()) {
    auto [worker, messages] = *toMark.begin();
    toMark.erase(toMark.begin());
    Marks found;
    if (worker == own.number()) {
      Result<Marks> marks = mark(*context, id, messages);
      if (!marks)
        return std::move(marks).status();
      found = std::move(*marks);
    } else {
      Bytes request = Writer()
                          .put(static_cast<uint8_t>(Verb::Mark))
                          .put(context->id)
                          .put(id)
                          .put(std::span<const uint64_t>(messages))
                          .take();
      Result<Bytes> answer = own.messages().ask(worker, std::move(request),
                                                own.limit(), "the backward");
      if (!answer)
        return std::move(answer).status();
      Result<Marks> marks = readMarks(*answer);
      if (!marks)
        return std::move(marks).status();
      found = std::move(*marks);
    }
    unmarked[worker] = std::move(found.unmarked);
    for (uint64_t peer : found.peers)
      if (auto number = static_cast<uint32_t>(peer); !unmarked.contains(number))
        toMark[number];
    for (size_t i = 0; i + 1 < found.reached.size(); i += 2)
      toMark[static_cast<uint32_t>(found.reached[i])].push_back(
          found.reached[i + 1]);
  }
  if (options.isStrict)
    for (const auto &[worker, messages] : unmarked)
      if (!messages.empty())
        return Messenger::errorOf(
            worker, Status::usage("message " + describeId(messages[0]) +
                                  " to worker " + std::to_string(messages[1]) +
                                  " is not used by the backward of context " +
                                  describeId(context->id)));
  std::vector<uint32_t> waiting;
  {
    std::lock_guard lock(context->mutex);
    dropUnused();
    for (const auto &[worker, known] : reports)
      if (known.waiting > 0)
        waiting.push_back(worker);
  }
  for (uint32_t worker : waiting)
    sendCounted(worker, Writer()
                            .put(static_cast<uint8_t>(Verb::Resolve))
                            .put(context->id)
                            .put(id)
                            .take());
  return Status::success();
}

void Session::stopOthers(const Status &status) {
  Worker &own = context->worker;
  Bytes request = Writer()
                      .put(static_cast<uint8_t>(Verb::Stop))
                      .put(context->id)
                      .put(id)
                      .put(status.message())
                      .take();
  (void)own.visit(
      *context, [&](uint32_t worker) -> Result<std::vector<uint64_t>> {
        Result<Bytes> answer = own.messages().ask(
            worker, request, own.silence(), "the end of a backward");
        if (!answer) // it is gone, and its part with it
          return std::vector<uint64_t>();
        return Reader(*answer).numbers();
      });
}

} // namespace tandem::graph::distributed
