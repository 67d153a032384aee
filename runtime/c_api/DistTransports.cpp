//===- DistTransports.cpp - the C API: messages between workers -----------===//
//
// Transports of a C program, those of the loopback, and those of libraries that
// are opened at run time (libtandem-mpi.so).
//
//===----------------------------------------------------------------------===//
#include "runtime/c_api/DistCApi.h"
#include "runtime/comm/Plugin.h"
#include "runtime/graph/distributed/Loopback.h"

#include <array>
#include <cstddef>

using namespace tandem;
using namespace tandem::capi;
using namespace tandem::graph::distributed;

static_assert(sizeof(tdm_dist_transport) ==
              offsetof(tdm_dist_transport, close) + sizeof(void *));
static_assert(sizeof(tdm_dist_loopback_options) ==
              offsetof(tdm_dist_loopback_options, reorder) + sizeof(double));

namespace {

/// A transport of C functions.
class CTransport : public Transport {
public:
  explicit CTransport(const tdm_dist_transport &calls) : calls(calls) {}
  ~CTransport() override {
    if (calls.close)
      calls.close(calls.user);
  }

  uint32_t worker() const override { return calls.worker; }
  uint32_t workers() const override { return calls.workers; }
  bool losesMessages() const override { return calls.loses_messages != 0; }
  size_t mostBytes() const override {
    return calls.most_bytes ? calls.most_bytes : SIZE_MAX;
  }

  Status send(uint32_t to, Bytes message) override {
    return statusOf(calls.send(calls.user, to, message.data(), message.size()),
                    "send");
  }

  Result<std::optional<Envelope>> receive(Milliseconds wait) override {
    Envelope envelope;
    const void *bytes = nullptr;
    size_t size = 0;
    if (Status status = statusOf(calls.receive(calls.user, wait.count(),
                                               &envelope.from, &bytes, &size),
                                 "receive");
        !status)
      return status;
    if (!bytes)
      return std::optional<Envelope>();
    const auto *from = static_cast<const unsigned char *>(bytes);
    envelope.bytes.assign(from, from + size);
    return std::optional<Envelope>(std::move(envelope));
  }

private:
  Status statusOf(tdm_status status, const char *what) const {
    if (status == TDM_OK)
      return Status::success();
    const char *text = calls.error ? calls.error(calls.user) : nullptr;
    return Status::failed(std::string("the transport's '") + what + "' failed" +
                          (text ? std::string(": ") + text : ""));
  }

  tdm_dist_transport calls;
};

/// A transport of C++ behind C functions.
struct Wrapped {
  std::unique_ptr<Transport> transport;
  Bytes last; ///< what `receive` gave
};

tdm_dist_transport wrap(std::unique_ptr<Transport> transport) {
  tdm_dist_transport calls = TDM_DIST_TRANSPORT_INIT;
  calls.worker = transport->worker();
  calls.workers = transport->workers();
  calls.loses_messages = transport->losesMessages();
  calls.user = new Wrapped{std::move(transport), {}};
  calls.send = [](void *user, uint32_t to, const void *bytes, size_t size) {
    const auto *from = static_cast<const unsigned char *>(bytes);
    Status status = static_cast<Wrapped *>(user)->transport->send(
        to, Bytes(from, from + size));
    return static_cast<tdm_status>(status.code());
  };
  calls.receive = [](void *user, int64_t wait, uint32_t *from,
                     const void **bytes, size_t *size) {
    auto *wrapped = static_cast<Wrapped *>(user);
    auto came = wrapped->transport->receive(Milliseconds(wait));
    *bytes = nullptr;
    if (!came)
      return static_cast<tdm_status>(came.status().code());
    if (!*came)
      return TDM_OK;
    *from = (*came)->from;
    wrapped->last = std::move((*came)->bytes);
    *bytes = wrapped->last.data();
    *size = wrapped->last.size();
    return TDM_OK;
  };
  calls.close = [](void *user) { delete static_cast<Wrapped *>(user); };
  return calls;
}

} // namespace

namespace tandem::capi {

Result<std::unique_ptr<Transport>>
transportOf(const tdm_dist_transport *transport) {
  if (!transport)
    return null("transport");
  tdm_dist_transport known = TDM_DIST_TRANSPORT_INIT;
  if (Status status = takeStruct("tdm_dist_transport", *transport, known);
      !status)
    return status;
  auto made = std::make_unique<CTransport>(known);
  if (!known.send || !known.receive)
    return null(known.send ? "function 'receive'" : "function 'send'");
  if (known.worker >= known.workers || known.workers > mostWorkers)
    return Status::usage("expected a worker below the number of workers, at "
                         "most " +
                         std::to_string(mostWorkers) + ", but got worker " +
                         std::to_string(known.worker) + " of " +
                         std::to_string(known.workers));
  return std::unique_ptr<Transport>(std::move(made));
}

} // namespace tandem::capi

tdm_status tdm_dist_loopback(uint32_t workers,
                             const tdm_dist_loopback_options *options,
                             tdm_dist_transport *transports) {
  return call([&]() -> Status {
    if (!transports)
      return null("place for the transports");
    if (workers == 0 || workers > mostWorkers)
      return Status::usage("expected 1 to " + std::to_string(mostWorkers) +
                           " workers but got " + std::to_string(workers));
    LoopbackOptions network;
    if (options) {
      tdm_dist_loopback_options known = TDM_DIST_LOOPBACK_OPTIONS_INIT;
      if (Status status =
              takeStruct("tdm_dist_loopback_options", *options, known);
          !status)
        return status;
      for (double part : {known.loss, known.repeat, known.reorder})
        if (!(part >= 0 && part < 1))
          return Status::usage("expected parts of 0 to below 1 but got " +
                               std::to_string(part));
      network = {known.seed, known.loss, known.repeat, known.reorder};
    }
    std::vector<std::unique_ptr<Transport>> made =
        makeLoopback(workers, network);
    for (uint32_t i = 0; i < workers; ++i)
      transports[i] = wrap(std::move(made[i]));
    return Status::success();
  });
}

tdm_status tdm_dist_open(const char *name, void *argument,
                         tdm_dist_transport *transport) {
  return call([&]() -> Status {
    if (!name || !transport)
      return null(name ? "place for the transport" : "name");
    Result<void *> opener =
        comm::openPlugin("transport", name, TDM_DIST_OPENER);
    if (!opener)
      return std::move(opener).status();
    tdm_dist_transport made = TDM_DIST_TRANSPORT_INIT;
    std::array<char, 512> message{};
    tdm_status status = reinterpret_cast<tdm_dist_opener>(*opener)(
        argument, &made, message.data(), message.size());
    if (status != TDM_OK)
      return Status(static_cast<Code>(status), "the transport '" +
                                                   std::string(name) +
                                                   "': " + message.data());
    *transport = made;
    return Status::success();
  });
}
