//===- Requests.cpp - what other workers ask for --------------------------===//
//
// Called on the messenger's thread, which waits for nothing: what runs
// functions or looks through graphs is handed to a thread of the crew.
//
//===----------------------------------------------------------------------===//
#include "runtime/graph/distributed/Worker.h"

#include <algorithm>

namespace tandem::graph::distributed {

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
        return unknownContext(id);
      context = std::make_shared<Context>(id, *this);
      contexts[id] = context;
      messenger->watch(owner);
    }
  }
  context->addPeer(peer);
  return context;
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

Result<Bytes> Worker::runMark(uint32_t, Reader &reader) {
  auto id = reader.get<uint64_t>();
  auto backward = reader.get<uint64_t>();
  std::vector<uint64_t> messages = reader.numbers();
  Result<std::shared_ptr<Context>> context = find(id);
  if (!context)
    return write(Marks());
  Result<Marks> marks = mark(**context, backward, messages);
  if (!marks)
    return std::move(marks).status();
  return write(*marks);
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

/// Worker 0 answers all when the last one has come.
void Worker::takeMeet(const Asker &from, Reader &reader) {
  std::string place = reader.text();
  std::vector<Asker> all;
  {
    std::lock_guard lock(mutex);
    std::vector<Asker> &waiting = meetings[place];
    // It asked before, and waited in vain.
    std::erase_if(waiting, [&](const Asker &asker) {
      return asker.worker == from.worker;
    });
    waiting.push_back(from);
    if (waiting.size() < count())
      return;
    all.swap(waiting);
    meetings.erase(place);
  }
  for (const Asker &asker : all)
    messenger->answer(asker, Bytes());
}

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

} // namespace tandem::graph::distributed
