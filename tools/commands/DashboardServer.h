//===- DashboardServer.h - the server behind a dashboard ------------------===//
//
// HTTP/1.1 as far as a page and its events need it: GET of four paths, one
// request for a connection. All of it runs on the thread that calls `poll`;
// nothing waits for a client. Limits, beyond which a connection is closed: 16
// connections, 8 KiB of request, 5 s for it, 1 MiB that a client did not take.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_DASHBOARDSERVER_H
#define TANDEM_TOOLS_COMMANDS_DASHBOARDSERVER_H

#include "runtime/artifact/Status.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::commands {

class DashboardServer {
public:
  /// On 127.0.0.1; port 0 is one that is free.
  static Result<std::unique_ptr<DashboardServer>>
  listen(int port, const std::string &title);
  ~DashboardServer();
  DashboardServer(const DashboardServer &) = delete;
  DashboardServer &operator=(const DashboardServer &) = delete;

  /// Where the page is, with the token.
  std::string url() const;

  /// What a client that begins to listen gets first.
  std::function<std::string()> greeting;

  /// Does what there is to do, or waits for it, so many milliseconds at most.
  void poll(int milliseconds);
  /// Sends events to all that listen.
  void send(const std::string &events);
  /// True if a client that listens has not taken all.
  bool hasUnsent() const;

private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    int socket = -1;
    Clock::time_point since;
    std::string request, unsent;
    bool listens = false, isAnswered = false;
  };
  DashboardServer() = default;
  void accept();
  /// Each returns false where the connection is over.
  bool read(Client &client);
  bool write(Client &client);
  void answer(Client &client);
  std::string answerTo(Client &client) const;
  bool isForThis(std::string_view path, std::string_view &rest) const;

  int socket_ = -1, port_ = 0;
  std::string token_, title_;
  std::vector<Client> clients_;
};

} // namespace tandem::commands

#endif
