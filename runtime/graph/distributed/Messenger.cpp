//===- Messenger.cpp - requests that are answered or fail -----------------===//
#include "runtime/graph/distributed/Messenger.h"
#include "runtime/graph/distributed/Wire.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

namespace tandem::graph::distributed {

/// How long the receiver waits before it looks at its clock again.
static constexpr Milliseconds tickLength{10};
/// After what time a message is repeated first; then after twice that, ...
static constexpr Milliseconds firstRepeat{20};

Messenger::Messenger(std::unique_ptr<Transport> given, Milliseconds silence,
                     Calls calls)
    : transport(std::move(given)), silence(silence), calls(std::move(calls)),
      peers(transport->workers()) {
  thread = std::thread([this] { serve(); });
}

Messenger::~Messenger() { close(); }

void Messenger::close() {
  if (isEnding.exchange(true))
    return;
  thread.join();
  Status ended = Status::failed("the worker ended");
  {
    std::lock_guard lock(mutex);
    broken = ended;
  }
  failAll(ended);
}

Status Messenger::errorOf(uint32_t number, Status status) {
  if (status.message().starts_with("worker "))
    return status;
  return std::move(status).in("worker " + std::to_string(number));
}

void Messenger::serve() {
  Time last = Clock::now();
  while (!isEnding) {
    Result<std::optional<Envelope>> came = transport->receive(tickLength);
    if (!came) {
      {
        std::lock_guard lock(mutex);
        broken = came.status();
      }
      return failAll(came.status());
    }
    if (*came && (*came)->from < peers.size())
      take(std::move(**came));
    if (Time now = Clock::now(); now - last >= tickLength) {
      tick(now - last > silence / 2);
      last = now;
    }
  }
}

/// Every message is its kind, its number among those that are repeated (from 1;
/// 0: it is not), the number of a request, and the content.
void Messenger::send(uint32_t to, Kind kind, uint64_t number,
                     const Bytes &content) {
  bool isRepeated = transport->losesMessages() && kind < Kind::Arrived;
  Writer writer;
  writer.put(static_cast<uint8_t>(kind));
  std::unique_lock lock(mutex);
  Peer &peer = peers[to];
  uint64_t place = isRepeated ? ++peer.sentCount : 0;
  Bytes bytes = writer.put(place).put(number).append(content).take();
  if (isRepeated) {
    addWatch(peer); // until it arrives
    peer.sent[place] = {bytes, Clock::now() + firstRepeat, firstRepeat};
  }
  lock.unlock();
  if (Status status = transport->send(to, std::move(bytes)); !status) {
    lock.lock();
    broken = status;
  }
}

void Messenger::addWatch(Peer &peer) {
  if (peer.watches++ == 0 && !peer.isGone)
    peer.heard = peer.asked = Clock::now();
}

bool Messenger::isNew(Peer &peer, uint64_t number) {
  if (number <= peer.takenBelow || !peer.taken.insert(number).second)
    return false;
  while (peer.taken.erase(peer.takenBelow + 1))
    ++peer.takenBelow;
  return true;
}

void Messenger::take(Envelope envelope) {
  Reader reader(envelope.bytes);
  auto kind = static_cast<Kind>(reader.get<uint8_t>());
  auto place = reader.get<uint64_t>();
  auto number = reader.get<uint64_t>();
  if (!reader.ok())
    return;
  uint32_t from = envelope.from;
  Answered answered;
  {
    std::lock_guard lock(mutex);
    Peer &peer = peers[from];
    peer.heard = Clock::now();
    peer.isGone = false;
    if (kind == Kind::Arrived) {
      if (peer.sent.erase(place))
        --peer.watches;
      return;
    }
    if (place && !isNew(peer, place))
      kind = Kind::Here; // taken before; its confirmation was lost
    if (kind == Kind::Answer)
      if (auto found = requests.find(number);
          found != requests.end() && found->second.to == from) {
        answered = std::move(found->second.answered);
        requests.erase(found);
        --peer.watches;
      }
  }
  if (place) {
    Writer writer;
    writer.put(static_cast<uint8_t>(Kind::Arrived)).put(place).put(number);
    (void)transport->send(from, writer.take());
  }
  Bytes content(envelope.bytes.begin() + 1 + 2 * sizeof(uint64_t),
                envelope.bytes.end());
  if (kind == Kind::AreYouThere)
    return send(from, Kind::Here, 0, {});
  if (kind == Kind::Request)
    return calls.handle({from, number}, std::move(content));
  if (!answered)
    return;
  Reader answer(content);
  auto code = static_cast<Code>(answer.get<uint8_t>());
  if (!answer.ok())
    return answered(errorOf(from, Status::failed("an answer without a code")));
  if (code == Code::Ok)
    return answered(Bytes(content.begin() + 1, content.end()));
  std::string text = answer.text();
  answered(errorOf(from, Status(std::clamp(code, Code::Failed, Code::NoDevice),
                                std::move(text))));
}

uint64_t Messenger::request(uint32_t to, Bytes request, Answered answered) {
  uint64_t number = 0;
  Status status = checkSize(request);
  if (status) {
    std::lock_guard lock(mutex);
    if (to >= peers.size())
      status = Status::usage("expected a worker below " +
                             std::to_string(peers.size()) + " but got " +
                             std::to_string(to));
    else if (!broken)
      status = broken;
    else if (peers[to].isGone)
      status = goneError(to);
    else {
      number = ++requestCount;
      requests[number] = {to, std::move(answered)};
      addWatch(peers[to]);
    }
  }
  if (!status) {
    answered(std::move(status));
    return 0;
  }
  send(to, Kind::Request, number, request);
  return number;
}

/// Nobody waits for the answer any more.
void Messenger::abandon(uint64_t request) {
  Answered dropped; // ends without the lock
  std::lock_guard lock(mutex);
  auto found = requests.find(request);
  if (found == requests.end())
    return;
  --peers[found->second.to].watches;
  dropped = std::move(found->second.answered);
  requests.erase(found);
}

Result<Bytes> Messenger::ask(uint32_t to, Bytes content, Milliseconds limit,
                             const std::string &what) {
  struct Waiting {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<Bytes>> answer;
  };
  auto waiting = std::make_shared<Waiting>();
  uint64_t number =
      request(to, std::move(content), [waiting](Result<Bytes> answer) {
        std::lock_guard lock(waiting->mutex);
        waiting->answer = std::move(answer);
        waiting->changed.notify_all();
      });
  std::unique_lock lock(waiting->mutex);
  auto isThere = [&] { return waiting->answer.has_value(); };
  if (limit.count() == 0)
    waiting->changed.wait(lock, isThere);
  else if (!waiting->changed.wait_for(lock, limit, isThere)) {
    lock.unlock();
    abandon(number);
    return Status::failed("worker " + std::to_string(to) + ": " + what +
                          " took longer than " + std::to_string(limit.count()) +
                          " ms");
  }
  return std::move(*waiting->answer);
}

/// What stands before the content of a message takes less than `head`.
Status Messenger::checkSize(const Bytes &content) const {
  constexpr size_t head = 64;
  size_t most = transport->mostBytes();
  if (most > head && content.size() < most - head)
    return Status::success();
  return Status::unsupported(
      "a message of " + std::to_string(content.size()) +
      " bytes is more than the transport can carry at once, " +
      std::to_string(most));
}

void Messenger::answer(const Asker &to, Result<Bytes> answer) {
  if (answer)
    if (Status status = checkSize(*answer); !status)
      answer = std::move(status);
  Writer writer;
  writer.put(static_cast<uint8_t>(answer.status().code()));
  if (!answer) {
    writer.put(errorOf(worker(), answer.status()).message());
    return send(to.worker, Kind::Answer, to.request, writer.take());
  }
  send(to.worker, Kind::Answer, to.request, writer.append(*answer).take());
}

void Messenger::watch(uint32_t worker) {
  std::lock_guard lock(mutex);
  addWatch(peers[worker]);
}

void Messenger::forget(uint32_t worker) {
  std::lock_guard lock(mutex);
  --peers[worker].watches;
}

bool Messenger::isGone(uint32_t worker) const {
  std::lock_guard lock(mutex);
  return peers[worker].isGone;
}

size_t Messenger::pending() const {
  std::lock_guard lock(mutex);
  return requests.size();
}

Status Messenger::goneError(uint32_t worker) const {
  return Status::failed("worker " + std::to_string(worker) +
                        " gave no sign of life for " +
                        std::to_string(silence.count()) + " ms");
}

/// `hasSlept`: this process did not run for long; what others sent meanwhile
/// was not read yet.
void Messenger::tick(bool hasSlept) {
  std::vector<std::pair<uint32_t, Bytes>> repeats;
  std::vector<uint32_t> asked, gone;
  std::vector<std::pair<uint32_t, Answered>> failed;
  Time now = Clock::now();
  {
    std::lock_guard lock(mutex);
    for (uint32_t i = 0; i < peers.size(); ++i) {
      Peer &peer = peers[i];
      if (peer.watches == 0 || i == worker())
        continue;
      if (hasSlept)
        peer.heard = now;
      if (!peer.isGone && now - peer.heard > silence) {
        peer.isGone = true;
        gone.push_back(i);
        peer.watches -= static_cast<int>(peer.sent.size());
        peer.sent.clear();
        for (auto request = requests.begin(); request != requests.end();) {
          if (request->second.to != i) {
            ++request;
            continue;
          }
          failed.emplace_back(i, std::move(request->second.answered));
          request = requests.erase(request);
          --peer.watches;
        }
      }
      Milliseconds pause = std::min(silence / 4, Milliseconds(1000));
      if (now - std::max(peer.heard, peer.asked) > pause) {
        peer.asked = now;
        asked.push_back(i);
      }
      for (auto &[place, sent] : peer.sent) {
        if (now < sent.next)
          continue;
        repeats.emplace_back(i, sent.bytes);
        sent.interval = std::min(2 * sent.interval, silence / 4);
        sent.next = now + sent.interval;
      }
    }
  }
  for (auto &[to, bytes] : repeats)
    (void)transport->send(to, std::move(bytes));
  for (uint32_t to : asked)
    send(to, Kind::AreYouThere, 0, {});
  for (auto &[to, answered] : failed)
    answered(goneError(to));
  for (uint32_t worker : gone)
    calls.gone(worker);
}

void Messenger::flush(Milliseconds limit) {
  Time end = Clock::now() + limit;
  while (Clock::now() < end) {
    {
      std::lock_guard lock(mutex);
      if (!broken || std::ranges::all_of(peers, [](const Peer &peer) {
            return peer.sent.empty();
          }))
        return;
    }
    std::this_thread::sleep_for(tickLength);
  }
}

void Messenger::failAll(const Status &status) {
  std::map<uint64_t, Pending> all;
  {
    std::lock_guard lock(mutex);
    all.swap(requests);
    for (auto &[number, request] : all)
      --peers[request.to].watches;
  }
  for (auto &[number, request] : all)
    request.answered(status);
}

} // namespace tandem::graph::distributed
