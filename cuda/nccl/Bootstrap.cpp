//===- Bootstrap.cpp - processes that torchrun started find each other ----===//
#include "cuda/nccl/Bootstrap.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace tandem::cuda::nccl {

namespace {

using Clock = std::chrono::steady_clock;

/// What a rank says first; numbers in the machine's order, which ranks of one
/// artifact have alike.
struct Greeting {
  char magic[8] = {'t', 'a', 'n', 'd', 'e', 'm', '1', 0};
  int32_t rank = 0, ranks = 0, version = 0;
};
/// What rank 0 answers: the id, or why not.
struct Answer {
  int32_t isRight = 0;
  ncclUniqueId id = {};
  char why[256] = {};
};

std::optional<int> number(const char *text) {
  int value = 0;
  const char *end = text + std::strlen(text);
  auto [at, error] = std::from_chars(text, end, value);
  if (error != std::errc() || at != end || value < 0)
    return std::nullopt;
  return value;
}

class Socket {
public:
  explicit Socket(int number = -1) : number(number) {}
  Socket(Socket &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Socket() {
    if (number >= 0)
      ::close(number);
  }
  int get() const { return number; }
  explicit operator bool() const { return number >= 0; }

  /// Waits until it can be read (or written); false at the end of the time.
  bool await(short events, Clock::time_point end) const {
    for (;;) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - Clock::now());
      if (left.count() <= 0)
        return false;
      pollfd one{number, events, 0};
      int ready = ::poll(
          &one, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000)));
      if (ready > 0)
        return true;
      if (ready < 0 && errno != EINTR)
        return false;
    }
  }

  bool sendAll(const void *data, size_t size, Clock::time_point end) const {
    for (size_t done = 0; done < size;) {
      if (!await(POLLOUT, end))
        return false;
      ssize_t sent = ::send(number, static_cast<const char *>(data) + done,
                            size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EINTR && errno != EAGAIN)
        return false;
      done += static_cast<size_t>(std::max<ssize_t>(sent, 0));
    }
    return true;
  }

  bool receiveAll(void *data, size_t size, Clock::time_point end) const {
    for (size_t done = 0; done < size;) {
      if (!await(POLLIN, end))
        return false;
      ssize_t got = ::recv(number, static_cast<char *>(data) + done,
                           size - done, MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
        return false;
      done += static_cast<size_t>(std::max<ssize_t>(got, 0));
    }
    return true;
  }

private:
  int number;
};

/// The addresses of a host's port; for a rank that listens, of its own ones.
Result<addrinfo *> addressesOf(const char *host, const std::string &port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = host ? 0 : AI_PASSIVE;
  if (int error = ::getaddrinfo(host, port.c_str(), &hints, &found))
    return Status::failed("cannot find '" + std::string(host ? host : "") +
                          "' (MASTER_ADDR): " + ::gai_strerror(error));
  return found;
}

Result<Socket> listenOn(const std::string &port) {
  auto found = addressesOf(nullptr, port);
  if (!found)
    return std::move(found).status();
  std::string why;
  for (addrinfo *one = *found; one; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, one->ai_socktype, 0));
    int yes = 1;
    if (socket)
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (socket && ::bind(socket.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        ::listen(socket.get(), 128) == 0) {
      ::freeaddrinfo(*found);
      return socket;
    }
    why = std::strerror(errno);
  }
  ::freeaddrinfo(*found);
  return Status::failed("rank 0 cannot listen on port " + port +
                        " (MASTER_PORT): " + why);
}

/// Tries again until rank 0 listens.
Result<Socket> connectTo(const Launched &own, Clock::time_point end) {
  std::string why;
  do {
    auto found = addressesOf(own.host.c_str(), own.port);
    if (!found)
      return std::move(found).status();
    for (addrinfo *one = *found; one; one = one->ai_next) {
      Socket socket(::socket(one->ai_family, one->ai_socktype, 0));
      if (socket &&
          ::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) {
        ::freeaddrinfo(*found);
        return socket;
      }
      why = std::strerror(errno);
    }
    ::freeaddrinfo(*found);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (Clock::now() < end);
  return Status::failed("rank " + std::to_string(own.rank) +
                        " cannot reach rank 0 at " + own.host + ", port " +
                        own.port + ": " + why);
}

/// What is wrong with a rank that came, or nothing.
std::string problemOf(const Greeting &greeting, const Launched &own,
                      int version, const std::vector<bool> &came) {
  if (std::memcmp(greeting.magic, Greeting().magic, sizeof(greeting.magic)))
    return "expected a rank of this version of Tandem";
  std::string who = "rank " + std::to_string(greeting.rank);
  if (greeting.ranks != own.ranks)
    return who + " has WORLD_SIZE " + std::to_string(greeting.ranks) +
           ", and rank 0 has " + std::to_string(own.ranks);
  if (greeting.version != version)
    return who + " has NCCL " + std::to_string(greeting.version) +
           ", and rank 0 has " + std::to_string(version);
  if (greeting.rank < 1 || greeting.rank >= own.ranks ||
      came[static_cast<size_t>(greeting.rank)])
    return "two processes have RANK " + std::to_string(greeting.rank);
  return {};
}

Status giveId(const Launched &own, int version, Clock::time_point end,
              const ncclUniqueId &id) {
  auto listener = listenOn(own.port);
  if (!listener)
    return std::move(listener).status();
  std::vector<bool> came(static_cast<size_t>(own.ranks));
  for (int missing = own.ranks - 1; missing > 0;) {
    if (!listener->await(POLLIN, end)) {
      std::string who;
      for (int rank = 1; rank < own.ranks; ++rank)
        if (!came[static_cast<size_t>(rank)])
          who += (who.empty() ? "" : ", ") + std::to_string(rank);
      return Status::failed("these ranks did not come within the limit: " +
                            who);
    }
    Socket peer(::accept(listener->get(), nullptr, nullptr));
    // Who says nothing, or something else, is no rank.
    auto soon = std::min(end, Clock::now() + std::chrono::seconds(5));
    Greeting greeting;
    if (!peer || !peer.receiveAll(&greeting, sizeof(greeting), soon))
      continue;
    Answer answer;
    std::string problem = problemOf(greeting, own, version, came);
    answer.isRight = problem.empty();
    answer.id = id;
    problem.copy(answer.why, sizeof(answer.why) - 1);
    if (!peer.sendAll(&answer, sizeof(answer), soon))
      continue;
    if (!problem.empty())
      return Status::usage(problem);
    came[static_cast<size_t>(greeting.rank)] = true;
    --missing;
  }
  return Status::success();
}

Status takeId(const Launched &own, int version, Clock::time_point end,
              ncclUniqueId &id) {
  auto socket = connectTo(own, end);
  if (!socket)
    return std::move(socket).status();
  Greeting greeting;
  greeting.rank = own.rank;
  greeting.ranks = own.ranks;
  greeting.version = version;
  Answer answer;
  if (!socket->sendAll(&greeting, sizeof(greeting), end) ||
      !socket->receiveAll(&answer, sizeof(answer), end))
    return Status::failed("rank 0 at " + own.host + ", port " + own.port +
                          " does not answer rank " + std::to_string(own.rank));
  // Whoever it was that answered.
  answer.why[sizeof(answer.why) - 1] = 0;
  if (!answer.isRight)
    return Status::usage(answer.why);
  id = answer.id;
  return Status::success();
}

} // namespace

Result<Launched> Launched::fromEnvironment() {
  Launched own;
  std::string problems;
  auto text = [&](const char *name) {
    const char *found = std::getenv(name);
    if (!found || !*found)
      problems += (problems.empty() ? "" : ", ") + std::string(name);
    return std::string(found ? found : "");
  };
  auto take = [&](const char *name, int &value) {
    std::string found = text(name);
    if (found.empty())
      return;
    if (auto read = number(found.c_str()))
      value = *read;
    else
      problems += (problems.empty() ? "" : ", ") + std::string(name) +
                  " as a number instead of '" + found + "'";
  };
  int port = 0;
  take("RANK", own.rank);
  take("WORLD_SIZE", own.ranks);
  own.host = text("MASTER_ADDR");
  take("MASTER_PORT", port);
  if (const char *local = std::getenv("LOCAL_RANK"); local && *local)
    take("LOCAL_RANK", own.local);
  if (!problems.empty())
    return Status::unsupported(
        "the environment lacks what a launcher as torchrun sets: " + problems);
  if (own.rank >= own.ranks)
    return Status::usage("expected RANK below WORLD_SIZE (" +
                         std::to_string(own.ranks) + ") but got " +
                         std::to_string(own.rank));
  const char *agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  own.port = std::to_string(port + (agent && !std::strcmp(agent, "True")));
  return own;
}

Status shareId(const Launched &own, int version,
               std::chrono::milliseconds limit, ncclUniqueId &id) {
  auto end = Clock::now() + limit;
  return own.rank == 0 ? giveId(own, version, end, id)
                       : takeId(own, version, end, id);
}

} // namespace tandem::cuda::nccl
