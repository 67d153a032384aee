//===- PluginPeers.cpp - ranks that a library connects --------------------===//
#include "runtime/comm/PluginPeers.h"

#include "runtime/comm.h"
#include "runtime/comm/Plugin.h"

#include <array>
#include <vector>

namespace tandem::comm {

namespace {

constexpr int mostTag = 32'000;

class PluginPeers : public Peers {
public:
  explicit PluginPeers(const tdm_comm_peers &calls) : calls(calls) {}
  ~PluginPeers() override { calls.close(calls.user); }

  int rank() const override { return static_cast<int>(calls.rank); }
  int ranks() const override { return static_cast<int>(calls.ranks); }
  bool servesAnyThread() const override { return calls.serves_any_thread; }

  Status exchange(int tag, std::span<const Outgoing> outgoing,
                  std::span<const Incoming> incoming,
                  Milliseconds limit) override {
    if (!broken.ok())
      return broken;
    if (tag > mostTag)
      return Status::unsupported("expected at most " + std::to_string(mostTag) +
                                 " communicators of one connection");
    sent.clear();
    received.clear();
    for (const Outgoing &message : outgoing)
      sent.push_back({const_cast<void *>(message.data), size_t(message.bytes),
                      size_t(message.peer)});
    for (const Incoming &message : incoming)
      received.push_back(
          {message.data, size_t(message.bytes), size_t(message.peer)});
    tdm_status status =
        calls.exchange(calls.user, uint32_t(tag), sent.data(), sent.size(),
                       received.data(), received.size(), limit.count());
    if (status != TDM_OK)
      broken = Status(static_cast<Code>(status), calls.error(calls.user));
    return broken;
  }

  void fail(const std::string &reason) override {
    calls.fail(calls.user, reason.c_str());
    if (broken.ok())
      broken = Status::failed("this rank has failed: " + reason);
  }

private:
  tdm_comm_peers calls;
  Status broken;
  std::vector<tdm_comm_message> sent, received;
};

} // namespace

Result<std::shared_ptr<Peers>> openPeers(const std::string &name,
                                         void *argument, Milliseconds limit) {
  Result<void *> opener = openPlugin("communicator", name, TDM_COMM_OPENER);
  if (!opener)
    return std::move(opener).status();
  tdm_comm_peers calls = TDM_COMM_PEERS_INIT;
  std::array<char, 512> message{};
  tdm_status status = reinterpret_cast<tdm_comm_opener>(*opener)(
      argument, limit.count(), &calls, message.data(), message.size());
  if (status != TDM_OK)
    return Status(static_cast<Code>(status),
                  "the communicator '" + name + "': " + message.data());
  if (!calls.exchange || !calls.fail || !calls.error || !calls.close ||
      calls.rank >= calls.ranks)
    return Status::unsupported("the communicator '" + name +
                               "' lacks a function, or its rank is none");
  return std::shared_ptr<Peers>(std::make_shared<PluginPeers>(calls));
}

} // namespace tandem::comm
