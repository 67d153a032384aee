//===- AppendedFile.h - a file that grows while a training runs -----------===//
#ifndef TANDEM_TOOLS_COMMANDS_APPENDEDFILE_H
#define TANDEM_TOOLS_COMMANDS_APPENDEDFILE_H

#include "runtime/artifact/Status.h"

#include <string>
#include <string_view>

namespace tandem::commands {

/// Keeps what was written last in memory. What comes after the first error goes
/// to nothing.
class AppendedFile {
public:
  AppendedFile() = default;
  AppendedFile(const AppendedFile &) = delete;
  AppendedFile &operator=(const AppendedFile &) = delete;
  /// Hands over what is left.
  ~AppendedFile();

  /// Opens or makes it; with `isNew` fails with EEXIST where it exists.
  Status open(const std::string &path, bool isNew = false);
  bool isOpen() const { return fd_ >= 0; }

  /// With nothing in it nor in memory; a pipe always.
  bool isEmpty() const;
  /// Empties it, but for a pipe, which has no length.
  void empty();
  void append(std::string_view text);
  /// Sets an error that the owner has met.
  void fail(int error);

  /// All that was written, and the file's name, outlive a loss of power; what a
  /// pipe is given is with the system. Where that fails the file is closed; the
  /// next call returns success.
  Status sync();
  /// Returns the first error of all.
  Status close();

private:
  Status status() const;
  void flush();

  std::string path_, buffer_;
  int fd_ = -1;
  bool isNamed_ = false; ///< its folder was synced
  int error_ = 0;        ///< errno
};

} // namespace tandem::commands

#endif
