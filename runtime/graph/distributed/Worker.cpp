//===- Worker.cpp - one of several that compute one gradient --------------===//
#include "runtime/graph/distributed/Worker.h"
#include "runtime/graph/Modes.h"

#include <algorithm>

namespace tandem::graph::distributed {

Worker::Worker(std::unique_ptr<Transport> transport,
               const WorkerOptions &options)
    : options(options),
      messenger(std::make_unique<Messenger>(
          std::move(transport), options.silence,
          Messenger::Calls{[this](Asker from, Bytes request) {
                             handle(from, std::move(request));
                           },
                           [this](uint32_t worker) { gone(worker); }})),
      crew(std::make_unique<Crew>()) {
  std::lock_guard lock(mutex);
  isReady = true;
  changed.notify_all();
}

Worker::~Worker() {
  std::vector<uint64_t> live;
  {
    std::lock_guard lock(mutex);
    for (const auto &[id, context] : contexts)
      live.push_back(id);
  }
  for (uint64_t id : live)
    releaseHere(id);
  messenger->close(); // ends what waits
  crew = nullptr;
}

Status Worker::serve(std::string name, Served function) {
  std::lock_guard lock(mutex);
  if (functions.contains(name))
    return Status::usage("'" + name + "' is served already");
  functions[std::move(name)] = std::move(function);
  return Status::success();
}

//===----------------------------------------------------------------------===//
// Contexts

Result<uint64_t> Worker::begin() {
  if (const std::shared_ptr<Context> &now = currentContext())
    return Status::usage("the thread is in context " + describeId(now->id) +
                         " already");
  auto context = std::make_shared<Context>(newId(), *this);
  {
    std::lock_guard lock(mutex);
    contexts[context->id] = context;
  }
  exchangeContext(context);
  return context->id;
}

Status Worker::enter(uint64_t id) {
  if (id == 0) {
    exchangeContext(nullptr);
    return Status::success();
  }
  if (const std::shared_ptr<Context> &now = currentContext();
      now && now->id != id)
    return Status::usage("the thread is in context " + describeId(now->id) +
                         " already");
  Result<std::shared_ptr<Context>> context = find(id);
  if (!context)
    return std::move(context).status();
  exchangeContext(std::move(*context));
  return Status::success();
}

static Status unknown(uint64_t id) {
  return Status::usage("there is no context " + describeId(id) +
                       ": it was released, or never begun");
}

Result<std::shared_ptr<Context>> Worker::find(uint64_t id) const {
  std::lock_guard lock(mutex);
  auto found = contexts.find(id);
  if (found == contexts.end())
    return unknown(id);
  return found->second;
}

/// The context of a message that came from a peer; a new one if it was begun
/// elsewhere.
Result<std::shared_ptr<Context>> Worker::findOrJoin(uint64_t id,
                                                    uint32_t peer) {
  std::shared_ptr<Context> context;
  {
    std::lock_guard lock(mutex);
    if (auto found = contexts.find(id); found != contexts.end()) {
      context = found->second;
    } else {
      uint32_t owner = workerOf(id);
      if (owner == number() || owner >= count() || released.contains(id))
        return unknown(id);
      context = std::make_shared<Context>(id, *this);
      contexts[id] = context;
      messenger->watch(owner);
    }
  }
  context->addPeer(peer);
  return context;
}

void Worker::releaseHere(uint64_t id) {
  constexpr size_t mostReleased = 4096;
  std::shared_ptr<Context> context;
  {
    std::lock_guard lock(mutex);
    released.insert(id);
    if (released.size() > mostReleased)
      released.erase(released.begin());
    auto found = contexts.find(id);
    if (found == contexts.end())
      return;
    context = std::move(found->second);
    contexts.erase(found);
  }
  if (workerOf(id) != number())
    messenger->forget(workerOf(id));
  std::shared_ptr<Session> session;
  {
    std::lock_guard lock(context->mutex);
    session = context->session;
  }
  if (session)
    session->fail(
        Status::failed("context " + describeId(id) + " was released"));
}

void Worker::release(uint64_t id) {
  if (const std::shared_ptr<Context> &now = currentContext();
      now && now->id == id)
    exchangeContext(nullptr);
  Result<std::shared_ptr<Context>> context = find(id);
  if (!context)
    return;
  std::vector<uint64_t> peers = (*context)->knownPeers();
  *context = nullptr;
  releaseHere(id);
  Bytes request =
      Writer().put(static_cast<uint8_t>(Verb::Release)).put(id).take();
  for (uint64_t peer : peers)
    if (peer != number())
      messenger->request(static_cast<uint32_t>(peer), request,
                         [](Result<Bytes>) {});
}

//===----------------------------------------------------------------------===//
// Calls

/// Each tensor with whether it has history.
static Status writeValues(Writer &writer, std::span<const Value> values,
                          bool hasHistory) {
  writer.put(static_cast<uint32_t>(values.size()));
  for (const Value &value : values) {
    writer.put(static_cast<uint8_t>(hasHistory && value.edge));
    if (Status status = writer.put(value.tensor); !status)
      return status;
  }
  return Status::success();
}

static Result<std::vector<Value>> readValues(Reader &reader,
                                             std::vector<bool> &marked) {
  auto count = reader.get<uint32_t>();
  std::vector<Value> values;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    marked.push_back(reader.get<uint8_t>() != 0);
    Result<Tensor> tensor = reader.tensor();
    if (!tensor)
      return std::move(tensor).status();
    values.emplace_back(std::move(*tensor));
  }
  return values;
}

Result<std::vector<Value>> Worker::call(uint32_t to, const std::string &name,
                                        std::span<const Value> inputs,
                                        size_t wanted) {
  std::shared_ptr<Context> context = currentContext();
  if (context && &context->worker != this)
    return Status::usage("the thread is in context " + describeId(context->id) +
                         " of another worker");
  uint64_t message = newId();
  bool hasHistory = context && modes().grad;
  if (context)
    context->addPeer(to);
  Writer writer;
  writer.put(static_cast<uint8_t>(Verb::Call));
  writer.put(context ? context->id : 0).put(message).put(name);
  writer.put(static_cast<uint32_t>(wanted));
  if (Status status = writeValues(writer, inputs, hasHistory); !status)
    return status;
  if (hasHistory)
    if (auto node = context->send(inputs, message, to); !node)
      return std::move(node).status();
  Result<Bytes> answer =
      messenger->ask(to, writer.take(), options.limit, "'" + name + "'");
  if (!answer) {
    // Nobody has what was sent.
    if (context) {
      std::lock_guard lock(context->mutex);
      context->sends.erase(message);
    }
    return std::move(answer).status();
  }
  Reader reader(*answer);
  auto back = reader.get<uint64_t>();
  std::vector<bool> marked;
  Result<std::vector<Value>> outputs = readValues(reader, marked);
  if (!outputs)
    return outputs;
  if (Status status = reader.end("outputs"); !status)
    return status;
  if (outputs->size() != wanted)
    return Status::failed("'" + name + "': expected " + std::to_string(wanted) +
                          " outputs but got " +
                          std::to_string(outputs->size()));
  if (hasHistory)
    if (Status status = context->receive(*outputs, marked, back, to); !status)
      return status;
  return outputs;
}

Result<Bytes> Worker::runCall(uint32_t from, Reader &reader) {
  auto id = reader.get<uint64_t>();
  auto message = reader.get<uint64_t>();
  std::string name = reader.text();
  auto wanted = reader.get<uint32_t>();
  std::vector<bool> marked;
  Result<std::vector<Value>> inputs = readValues(reader, marked);
  if (!inputs)
    return std::move(inputs).status();
  if (Status status = reader.end("call"); !status)
    return status;
  Served function;
  {
    std::lock_guard lock(mutex);
    auto found = functions.find(name);
    if (found == functions.end())
      return Status::usage("'" + name + "' is not served here");
    function = found->second;
  }
  std::shared_ptr<Context> context;
  if (id) {
    Result<std::shared_ptr<Context>> found = findOrJoin(id, from);
    if (!found)
      return std::move(found).status();
    context = std::move(*found);
    if (Status status = context->receive(*inputs, marked, message, from);
        !status)
      return status;
  }
  constexpr uint32_t mostOutputs = 1 << 16;
  std::vector<Value> outputs(std::min(wanted, mostOutputs));
  {
    CurrentContext scope(context);
    if (Status status = function(*inputs, outputs); !status)
      return std::move(status).in("'" + name + "'");
  }
  if (outputs.size() != wanted)
    return Status::failed("'" + name + "': expected " + std::to_string(wanted) +
                          " outputs but got " + std::to_string(outputs.size()));
  uint64_t back = newId();
  Writer writer;
  writer.put(back);
  if (Status status = writeValues(writer, outputs, context != nullptr); !status)
    return status;
  if (context)
    if (auto node = context->send(outputs, back, from); !node)
      return std::move(node).status();
  return writer.take();
}

//===----------------------------------------------------------------------===//
// Backward

Status Worker::backward(uint64_t id, std::span<const Value> roots,
                        SessionOptions how) {
  Result<std::shared_ptr<Context>> found = find(id);
  if (!found)
    return std::move(found).status();
  Context &context = **found;
  if (roots.empty())
    return Status::usage("expected at least one root of the backward");
  std::vector<Root> from;
  for (size_t i = 0; i < roots.size(); ++i) {
    const Value &root = roots[i];
    std::string which = "root " + std::to_string(i);
    if (!root.defined() || !root.tensor.requiresGrad())
      return Status::usage(which + " does not require grad");
    if (root.tensor.elements() != 1)
      return Status::usage(which + ": expected a scalar but got " +
                           describe(root.tensor.dtype(), root.tensor.shape()));
    if (!root.edge || root.edge.node->isLeaf())
      return Status::usage(which + " is a leaf: nothing leads to it");
    from.push_back({root.edge, {}});
  }
  std::shared_ptr<Session> session;
  {
    std::lock_guard lock(context.mutex);
    if (context.session)
      return Status::usage("a backward of context " + describeId(id) +
                           " runs already");
    session = std::make_shared<Session>(*found, newId(), how, std::move(from));
    context.session = session;
  }
  return session->run();
}

void Worker::takeGradient(const Asker &from, Reader &reader) {
  auto id = reader.get<uint64_t>();
  auto backward = reader.get<uint64_t>();
  SessionOptions how;
  how.retainGraph = reader.get<uint8_t>() != 0;
  auto message = reader.get<uint64_t>();
  auto count = reader.get<uint32_t>();
  Gradients gradients;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    Result<Tensor> tensor = reader.tensor();
    if (!tensor)
      return messenger->answer(from, std::move(tensor).status());
    gradients.emplace_back(std::move(*tensor));
  }
  if (Status status = reader.end("gradient"); !status)
    return messenger->answer(from, std::move(status));
  Result<std::shared_ptr<Context>> found = find(id);
  if (!found)
    return messenger->answer(from, std::move(found).status());
  Context &context = **found;
  std::lock_guard lock(context.mutex);
  if (context.stopped.contains(backward))
    return messenger->answer(from, Status::failed("the backward was stopped"));
  if (context.session && context.session->id != backward)
    return messenger->answer(from,
                             Status::usage("a backward of context " +
                                           describeId(id) + " runs already"));
  if (!context.session) {
    auto session =
        std::make_shared<Session>(*found, backward, how, std::vector<Root>());
    if (!crew->run([session] { (void)session->run(); }))
      return messenger->answer(from, Status::failed("no thread is left"));
    context.session = session;
  }
  std::shared_ptr<Session>(context.session)
      ->give(from, message, std::move(gradients));
}

void Worker::takeResolve(const Asker &from, Reader &reader) {
  auto id = reader.get<uint64_t>();
  auto backward = reader.get<uint64_t>();
  if (Result<std::shared_ptr<Context>> context = find(id)) {
    std::lock_guard lock((*context)->mutex);
    if (std::shared_ptr<Session> session = (*context)->session;
        session && session->id == backward)
      return session->resolve(from);
  }
  messenger->answer(from, Bytes());
}

void Worker::takeStop(const Asker &from, Reader &reader) {
  auto id = reader.get<uint64_t>();
  auto backward = reader.get<uint64_t>();
  std::string text = reader.text();
  std::vector<uint64_t> peers;
  if (Result<std::shared_ptr<Context>> context = find(id)) {
    peers = (*context)->knownPeers();
    std::lock_guard lock((*context)->mutex);
    (*context)->stopped.insert(backward);
    if (std::shared_ptr<Session> session = (*context)->session;
        session && session->id == backward)
      return session->stop(from, Status::failed(std::move(text)));
  }
  messenger->answer(from,
                    Writer().put(std::span<const uint64_t>(peers)).take());
}

Marks mark(Context &context, uint64_t backward,
           std::span<const uint64_t> messages) {
  Marks marks;
  std::lock_guard lock(context.mutex);
  if (context.markedFor != backward) {
    context.marked.clear();
    context.markedFor = backward;
  }
  std::set<Node *> seen;
  std::vector<const ReceiveNode *> receives;
  for (uint64_t message : messages) {
    auto node = context.sends.find(message);
    if (node != context.sends.end() && context.marked.insert(message).second)
      findReceives(node->second, seen, receives);
  }
  for (const ReceiveNode *receive : receives)
    marks.reached.insert(marks.reached.end(),
                         {receive->peer, receive->message});
  marks.peers.assign(context.peers.begin(), context.peers.end());
  for (const auto &[message, node] : context.sends)
    if (!context.marked.contains(message))
      marks.unmarked.insert(marks.unmarked.end(), {message, node->peer});
  return marks;
}

Bytes write(const Marks &marks) {
  return Writer()
      .put(std::span<const uint64_t>(marks.reached))
      .put(std::span<const uint64_t>(marks.peers))
      .put(std::span<const uint64_t>(marks.unmarked))
      .take();
}

Result<Marks> readMarks(const Bytes &bytes) {
  Reader reader(bytes);
  Marks marks;
  marks.reached = reader.numbers();
  marks.peers = reader.numbers();
  marks.unmarked = reader.numbers();
  if (Status status = reader.end("marks"); !status)
    return status;
  return marks;
}

Result<Bytes> Worker::runMark(uint32_t, Reader &reader) {
  auto id = reader.get<uint64_t>();
  auto backward = reader.get<uint64_t>();
  std::vector<uint64_t> messages = reader.numbers();
  Result<std::shared_ptr<Context>> context = find(id);
  return write(context ? mark(**context, backward, messages) : Marks());
}

Result<Value> Worker::gradient(uint64_t id, const Node &leaf) {
  Result<std::shared_ptr<Context>> context = find(id);
  if (!context)
    return std::move(context).status();
  return (*context)->gradients.find(leaf);
}

Result<std::vector<std::pair<std::shared_ptr<Leaf>, Value>>>
Worker::gradients(uint64_t id) {
  Result<std::shared_ptr<Context>> context = find(id);
  if (!context)
    return std::move(context).status();
  return (*context)->gradients.all();
}

//===----------------------------------------------------------------------===//
// Optimizers

void Worker::optimize(std::vector<Value> params, Optimizer optimizer) {
  std::lock_guard lock(mutex);
  optimizers.push_back(std::make_shared<Optimized>(
      Optimized{std::move(params), std::move(optimizer)}));
}

Status Worker::stepHere(Context &context) {
  std::vector<std::shared_ptr<Optimized>> all;
  {
    std::lock_guard lock(mutex);
    all = optimizers;
  }
  std::lock_guard lock(stepMutex);
  GradModeScope grad(false);
  for (const std::shared_ptr<Optimized> &one : all) {
    std::vector<Value> gradients;
    for (const Value &param : one->params)
      gradients.push_back(context.gradients.find(*param.edge.node));
    if (std::ranges::none_of(gradients, &Value::defined))
      continue;
    if (Status status = one->optimizer(context.id, one->params, gradients);
        !status)
      return status;
  }
  return Status::success();
}

Result<Bytes> Worker::runStep(uint32_t, Reader &reader) {
  std::vector<uint64_t> peers;
  if (Result<std::shared_ptr<Context>> context = find(reader.get<uint64_t>())) {
    if (Status status = stepHere(**context); !status)
      return status;
    peers = (*context)->knownPeers();
  }
  return Writer().put(std::span<const uint64_t>(peers)).take();
}

Status Worker::step(uint64_t id) {
  Result<std::shared_ptr<Context>> context = find(id);
  if (!context)
    return std::move(context).status();
  if (Status status = stepHere(**context); !status)
    return status;
  Bytes request = Writer().put(static_cast<uint8_t>(Verb::Step)).put(id).take();
  return visit(**context,
               [&](uint32_t worker) -> Result<std::vector<uint64_t>> {
                 Result<Bytes> answer =
                     messenger->ask(worker, request, options.limit, "a step");
                 if (!answer)
                   return std::move(answer).status();
                 return Reader(*answer).numbers();
               });
}

Status Worker::visit(
    const Context &context,
    const std::function<Result<std::vector<uint64_t>>(uint32_t)> &peersOf) {
  std::set<uint64_t> seen{number()};
  std::vector<uint64_t> work = context.knownPeers();
  while (!work.empty()) {
    uint64_t worker = work.back();
    work.pop_back();
    if (!seen.insert(worker).second)
      continue;
    auto peers = peersOf(static_cast<uint32_t>(worker));
    if (!peers)
      return std::move(peers).status();
    work.insert(work.end(), peers->begin(), peers->end());
  }
  return Status::success();
}

//===----------------------------------------------------------------------===//
// What others ask for

void Worker::runOnCrew(const Asker &from, Bytes request,
                       Result<Bytes> (Worker::*run)(uint32_t, Reader &)) {
  auto work = [this, from, run, request = std::move(request)] {
    Reader reader(request);
    (void)reader.get<uint8_t>();
    Result<Bytes> answer = Bytes();
    try {
      answer = (this->*run)(from.worker, reader);
    } catch (const std::exception &error) {
      answer = Status::failed(error.what());
    } catch (...) {
      answer = Status::failed("an exception of an unknown type");
    }
    messenger->answer(from, std::move(answer));
  };
  if (!crew->run(std::move(work)))
    messenger->answer(from, Status::failed("no thread is left"));
}

void Worker::takeRelease(const Asker &from, Reader &reader) {
  auto id = reader.get<uint64_t>();
  std::vector<uint64_t> peers;
  if (Result<std::shared_ptr<Context>> context = find(id))
    peers = (*context)->knownPeers();
  releaseHere(id);
  Bytes request =
      Writer().put(static_cast<uint8_t>(Verb::Release)).put(id).take();
  // Answered when all that are told from here have answered, so that a worker
  // which has all its answers may leave.
  std::shared_ptr<void> last(
      nullptr, [this, from](void *) { messenger->answer(from, Bytes()); });
  for (uint64_t peer : peers)
    if (peer != number() && peer != from.worker)
      messenger->request(static_cast<uint32_t>(peer), request,
                         [last](Result<Bytes>) {});
}

void Worker::handle(const Asker &from, Bytes request) {
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return isReady; });
  }
  Reader reader(request);
  switch (static_cast<Verb>(reader.get<uint8_t>())) {
  case Verb::Call:
    return runOnCrew(from, std::move(request), &Worker::runCall);
  case Verb::Gradient:
    return takeGradient(from, reader);
  case Verb::Mark:
    return runOnCrew(from, std::move(request), &Worker::runMark);
  case Verb::Resolve:
    return takeResolve(from, reader);
  case Verb::Stop:
    return takeStop(from, reader);
  case Verb::Release:
    return takeRelease(from, reader);
  case Verb::Step:
    return runOnCrew(from, std::move(request), &Worker::runStep);
  case Verb::Meet:
    return takeMeet(from, reader);
  case Verb::Leave: {
    std::lock_guard lock(mutex);
    left.insert(from.worker);
    changed.notify_all();
    return messenger->answer(from, Bytes());
  }
  }
  messenger->answer(from, Status::unsupported("an unknown request"));
}

/// What the worker began ends here, too.
void Worker::gone(uint32_t worker) {
  std::vector<uint64_t> owned;
  std::vector<std::shared_ptr<Context>> others;
  {
    std::lock_guard lock(mutex);
    for (const auto &[id, context] : contexts)
      if (workerOf(id) == worker)
        owned.push_back(id);
      else
        others.push_back(context);
    changed.notify_all();
  }
  for (uint64_t id : owned)
    releaseHere(id);
  for (const std::shared_ptr<Context> &context : others) {
    std::shared_ptr<Session> session;
    {
      std::lock_guard lock(context->mutex);
      session = context->session;
    }
    if (session && workerOf(session->id) == worker)
      session->fail(Status::failed("worker " + std::to_string(worker) +
                                   ", which began the backward, is gone"));
  }
}

Status Worker::meet(const std::string &place) {
  return messenger
      ->ask(0, Writer().put(static_cast<uint8_t>(Verb::Meet)).put(place).take(),
            options.limit, "the meeting at '" + place + "'")
      .status();
}

/// Worker 0 answers all when the last one has come.
void Worker::takeMeet(const Asker &from, Reader &reader) {
  std::string place = reader.text();
  std::vector<Asker> all;
  {
    std::lock_guard lock(mutex);
    std::vector<Asker> &waiting = meetings[place];
    waiting.push_back(from);
    if (waiting.size() < count())
      return;
    all.swap(waiting);
    meetings.erase(place);
  }
  for (const Asker &asker : all)
    messenger->answer(asker, Bytes());
}

Status Worker::leave() {
  // Who says that it leaves asks for nothing more: what others wait for.
  while (messenger->pending() > 0)
    std::this_thread::sleep_for(Milliseconds(5));
  Bytes request = Writer().put(static_cast<uint8_t>(Verb::Leave)).take();
  for (uint32_t i = 0; i < count(); ++i) {
    if (i == number())
      continue;
    messenger->watch(i);
    messenger->request(i, request, [](Result<Bytes>) {});
  }
  std::string missing;
  {
    std::unique_lock lock(mutex);
    auto isThere = [&] {
      for (uint32_t i = 0; i < count(); ++i)
        if (i != number() && !left.contains(i) && !messenger->isGone(i))
          return false;
      return messenger->pending() == 0;
    };
    while (!isThere())
      changed.wait_for(lock, Milliseconds(10));
    for (uint32_t i = 0; i < count(); ++i)
      if (i != number() && !left.contains(i))
        missing += (missing.empty() ? "worker " : ", ") + std::to_string(i);
  }
  for (uint32_t i = 0; i < count(); ++i)
    if (i != number())
      messenger->forget(i);
  messenger->flush(Milliseconds(1000));
  if (missing.empty())
    return Status::success();
  return Status::failed(missing + " gave no sign of life and did not leave");
}

WorkerCounts Worker::counts() const {
  WorkerCounts counts;
  std::lock_guard lock(mutex);
  counts.contexts = contexts.size();
  for (const auto &[id, context] : contexts) {
    std::lock_guard inner(context->mutex);
    counts.backwards += context->session != nullptr;
  }
  counts.requests = messenger->pending();
  counts.threads = crew->size();
  return counts;
}

} // namespace tandem::graph::distributed
