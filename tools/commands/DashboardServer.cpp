//===- DashboardServer.cpp - the server behind a dashboard ----------------===//
#include "tools/commands/DashboardServer.h"

#include "runtime/artifact/Text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace tandem;
using namespace tandem::commands;

static constexpr std::string_view page =
#include "tools/commands/dashboard/page.html.inc"
    ;
static constexpr std::string_view style =
#include "tools/commands/dashboard/page.css.inc"
    ;
static constexpr std::string_view script =
#include "tools/commands/dashboard/page.js.inc"
    ;

static constexpr size_t kMostClients = 16, kMostRequest = 8 << 10,
                        kMostUnsent = 1 << 20;
static constexpr std::chrono::seconds kMostTime{5};
static constexpr std::chrono::milliseconds kPause{200};

static Result<std::string> newToken() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != ssize_t(sizeof bytes))
    return Status::failed(std::string("no random numbers: ") +
                          std::strerror(errno));
  std::string token;
  for (unsigned char byte : bytes) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  return token;
}

/// In a time that does not depend on where they differ.
static bool areEqual(std::string_view one, std::string_view other) {
  if (one.size() != other.size())
    return false;
  volatile unsigned char differ = 0;
  for (size_t i = 0; i < one.size(); ++i)
    differ = differ | static_cast<unsigned char>(one[i] ^ other[i]);
  return differ == 0;
}

Result<std::unique_ptr<DashboardServer>>
DashboardServer::listen(int port, const std::string &title) {
  std::unique_ptr<DashboardServer> made(new DashboardServer);
  auto token = newToken();
  if (!token)
    return std::move(token).status();
  made->token_ = *std::move(token);
  made->title_ = title;
  auto fail = [&](const char *what) {
    return Status::failed(std::string(what) + " 127.0.0.1:" +
                          std::to_string(port) + ": " + std::strerror(errno));
  };
  made->socket_ =
      ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (made->socket_ < 0)
    return fail("cannot make a socket for");
  int yes = 1; // connections of a server that has ended take no port
  ::setsockopt(made->socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto *where = reinterpret_cast<sockaddr *>(&address);
  if (::bind(made->socket_, where, size) || ::listen(made->socket_, 16))
    return fail("cannot listen on");
  ::getsockname(made->socket_, where, &size);
  made->port_ = ntohs(address.sin_port);
  made->clients_.reserve(kMostClients);
  return made;
}

DashboardServer::~DashboardServer() {
  for (const Client &client : clients_)
    ::close(client.socket);
  if (socket_ >= 0)
    ::close(socket_);
}

std::string DashboardServer::url() const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/" + token_ + "/";
}

void DashboardServer::accept() {
  for (;;) {
    int socket =
        ::accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      // Who waits stays in the queue: poll would return at once, again and
      // again.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
        std::this_thread::sleep_for(kPause);
      return;
    }
    if (clients_.size() >= kMostClients) {
      ::close(socket);
      continue;
    }
    clients_.push_back({socket, Clock::now(), {}, {}});
  }
}

void DashboardServer::poll(int milliseconds) {
  std::vector<pollfd> wanted = {{socket_, POLLIN, 0}};
  for (const Client &client : clients_)
    wanted.push_back({client.socket,
                      short(POLLIN | (client.unsent.empty() ? 0 : POLLOUT)),
                      0});
  if (::poll(wanted.data(), wanted.size(), milliseconds) < 0)
    return;
  for (size_t i = 0; i < clients_.size(); ++i) {
    Client &client = clients_[i];
    short seen = wanted[i + 1].revents;
    bool goesOn = !(seen & (POLLERR | POLLNVAL));
    if (goesOn && (seen & (POLLIN | POLLHUP)))
      goesOn = read(client);
    if (goesOn && !client.unsent.empty())
      goesOn = write(client);
    bool isLate = !client.listens && Clock::now() - client.since > kMostTime;
    if (goesOn && !isLate)
      continue;
    ::close(client.socket);
    client.socket = -1;
  }
  std::erase_if(clients_,
                [](const Client &client) { return client.socket < 0; });
  if (wanted[0].revents)
    accept();
}

bool DashboardServer::read(Client &client) {
  char bytes[2048];
  ssize_t count = ::recv(client.socket, bytes, sizeof bytes, 0);
  if (count == 0)
    return false;
  if (count < 0)
    return errno == EAGAIN || errno == EINTR;
  if (client.isAnswered) // what comes after the request is nothing to us
    return true;
  client.request.append(bytes, size_t(count));
  answer(client);
  return true;
}

bool DashboardServer::write(Client &client) {
  ssize_t count = ::send(client.socket, client.unsent.data(),
                         client.unsent.size(), MSG_NOSIGNAL);
  if (count < 0 && errno != EAGAIN && errno != EINTR)
    return false;
  client.unsent.erase(0, size_t(std::max<ssize_t>(count, 0)));
  if (!client.unsent.empty() || client.listens)
    return client.unsent.size() <= kMostUnsent;
  // All was sent: a reset would take it back from who still speaks.
  ::shutdown(client.socket, SHUT_WR);
  return true;
}

void DashboardServer::send(const std::string &events) {
  for (Client &client : clients_)
    if (client.listens && client.unsent.size() <= kMostUnsent)
      client.unsent += events;
}

bool DashboardServer::hasUnsent() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const Client &one) {
    return one.listens && !one.unsent.empty();
  });
}

static std::string headed(std::string_view status, std::string_view type,
                          std::string_view body, std::string_view more = "") {
  std::string text = "HTTP/1.1 ";
  text.append(status).append(
      "\r\nConnection: close\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n"
      "Content-Security-Policy: default-src 'none'; script-src 'self'; "
      "style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'\r\nContent-Type: ");
  text.append(type).append(more);
  if (type != "text/event-stream")
    text += "\r\nContent-Length: " + std::to_string(body.size());
  return text.append("\r\n\r\n").append(body);
}

static std::string refused(std::string_view status,
                           std::string_view more = "") {
  return headed(status, "text/plain", std::string(status) + "\n", more);
}

static bool areAlike(std::string_view one, std::string_view other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return (a | 32) == (b | 32); });
}

/// The value of the only header of that name; empty if there is none, or more.
static std::string_view headerOf(std::string_view head, std::string_view name) {
  std::string_view found;
  int count = 0;
  for (size_t at = head.find("\r\n"); at != head.npos;) {
    at += 2;
    size_t end = std::min(head.find("\r\n", at), head.size());
    std::string_view line = head.substr(at, end - at);
    size_t colon = line.find(':');
    if (colon != line.npos && areAlike(line.substr(0, colon), name)) {
      found = line.substr(colon + 1);
      while (found.starts_with(' '))
        found.remove_prefix(1);
      while (found.ends_with(' '))
        found.remove_suffix(1);
      ++count;
    }
    at = head.find("\r\n", end);
  }
  return count == 1 ? found : std::string_view();
}

/// True if the path begins with the token; `rest` is what follows it.
bool DashboardServer::isForThis(std::string_view path,
                                std::string_view &rest) const {
  size_t end = path.find('/', 1);
  if (!path.starts_with('/') || end == path.npos)
    return false;
  rest = path.substr(end + 1);
  return areEqual(path.substr(1, end - 1), token_);
}

static std::string escaped(std::string_view text) {
  std::string safe;
  for (char c : text)
    safe += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return safe;
}

/// Whose request is no longer read.
void DashboardServer::answer(Client &client) {
  bool isWhole = client.request.find("\r\n\r\n") != client.request.npos;
  if (!isWhole && client.request.size() <= kMostRequest)
    return;
  client.isAnswered = true;
  client.unsent = client.request.size() > kMostRequest
                      ? refused("431 Request Header Fields Too Large")
                      : answerTo(client);
  client.request.clear();
}

std::string DashboardServer::answerTo(Client &client) const {
  std::string_view head(client.request);
  head = head.substr(0, head.find("\r\n\r\n"));
  std::string_view line = head.substr(0, head.find("\r\n"));
  size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last ||
      !line.substr(last + 1).starts_with("HTTP/1."))
    return refused("400 Bad Request");
  std::string_view method = line.substr(0, first),
                   path = line.substr(first + 1, last - first - 1), rest;
  std::string port = ":" + std::to_string(port_);
  std::string_view host = headerOf(head, "Host");
  // A name that its owner lets point here is not ours.
  if (host != "127.0.0.1" + port && host != "localhost" + port)
    return refused("403 Forbidden");
  if (!isForThis(path, rest))
    return refused("403 Forbidden");
  if (method != "GET")
    return refused("405 Method Not Allowed", "\r\nAllow: GET");
  if (rest == "page.js")
    return headed("200 OK", "text/javascript; charset=utf-8", script);
  if (rest == "page.css")
    return headed("200 OK", "text/css; charset=utf-8", style);
  if (rest == "events") {
    client.listens = true;
    return headed("200 OK", "text/event-stream", greeting ? greeting() : "");
  }
  if (!rest.empty())
    return refused("404 Not Found");
  std::string text(page);
  size_t at;
  for (size_t from = 0; (at = text.find("{{title}}", from)) != text.npos;) {
    std::string title = escaped(title_);
    text.replace(at, 9, title);
    from = at + title.size();
  }
  return headed("200 OK", "text/html; charset=utf-8", text);
}
