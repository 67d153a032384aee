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

Result<std::shared_ptr<Context>> Worker::find(uint64_t id) const {
  std::lock_guard lock(mutex);
  auto found = contexts.find(id);
  if (found == contexts.end())
    return unknownContext(id);
  return found->second;
}

void Worker::releaseHere(uint64_t id) {
  constexpr size_t mostReleased = 4096;
  std::shared_ptr<Context> context;
  {
    std::lock_guard lock(mutex);
    if (released.insert(id).second)
      releasedInOrder.push_back(id);
    if (releasedInOrder.size() > mostReleased) {
      released.erase(releasedInOrder.front());
      releasedInOrder.pop_front();
    }
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
// Beginning and end

Status Worker::meet(const std::string &place) {
  return messenger
      ->ask(0, Writer().put(static_cast<uint8_t>(Verb::Meet)).put(place).take(),
            options.limit, "the meeting at '" + place + "'")
      .status();
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
