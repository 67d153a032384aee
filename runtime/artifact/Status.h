//===- Status.h - the outcome of a call -----------------------------------===//
//
// Every call of the runtime that can fail returns a Status, or a Result with
// one inside. No exception crosses a public function; nothing calls exit or
// abort, and nothing prints. Codes are those of the C API and, through
// `exitCode`, of the command line tools.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_STATUS_H
#define TANDEM_RUNTIME_ARTIFACT_STATUS_H

#include <optional>
#include <string>
#include <utility>

namespace tandem {

enum class Code {
  Ok = 0,
  Failed = 1,      ///< I/O, memory, a file that is not what it should be
  Usage = 2,       ///< wrong name, shape, type, missing argument
  Unsupported = 3, ///< right, but this build or artifact cannot do it
  Differs = 4,     ///< numbers differ
  NoDevice = 5,    ///< device, driver or CPU feature not available
};

/// The outcome of a call: a code and, unless Ok, one complete message (lower
/// case, no full stop, names in single quotes).
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message)
      : code_(code), message_(std::move(message)) {}

  static Status success() { return {}; }
  static Status failed(std::string m) { return {Code::Failed, std::move(m)}; }
  static Status usage(std::string m) { return {Code::Usage, std::move(m)}; }
  static Status unsupported(std::string m) {
    return {Code::Unsupported, std::move(m)};
  }
  static Status noDevice(std::string m) {
    return {Code::NoDevice, std::move(m)};
  }

  bool ok() const { return code_ == Code::Ok; }
  explicit operator bool() const { return ok(); }
  Code code() const { return code_; }
  const std::string &message() const { return message_; }
  int exitCode() const { return static_cast<int>(code_); }

  /// Returns the same status with `where` put before the message.
  Status in(const std::string &where) && {
    if (!ok())
      message_ = where + ": " + message_;
    return std::move(*this);
  }

private:
  Code code_ = Code::Ok;
  std::string message_;
};

/// A value or the Status that says why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status &status() const & { return status_; }
  Status status() && { return std::move(status_); }
  T &operator*() & { return *value_; }
  const T &operator*() const & { return *value_; }
  T &&operator*() && { return std::move(*value_); }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }

private:
  std::optional<T> value_;
  Status status_;
};

} // namespace tandem

#endif
