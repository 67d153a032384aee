//===- KeptRows.cpp - rows that were decoded, in a file without a name ----===//
#include "tools/commands/KeptRows.h"

#include "tools/commands/Print.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/statvfs.h>
#include <unistd.h>

namespace tandem::commands {

std::string keptFolder() {
  const char *named = std::getenv("TMPDIR");
  return named && *named ? named : "/tmp";
}

KeptRows::KeptRows(const std::string &what, int64_t rows, int64_t each)
    : each_(each), has_(size_t(rows)) {
  std::string folder = keptFolder();
  struct statvfs room = {};
  if (::statvfs(folder.c_str(), &room) != 0 ||
      double(room.f_bavail) * double(room.f_frsize) <
          1.1 * double(rows) * double(each)) {
    note("'" + folder + "' has no room for " + bytesText(rows * each) +
         " of decoded " + what +
         " (TMPDIR names another folder): they are decoded in each pass");
    return;
  }
  std::string path = folder + "/tandem-rows-XXXXXX";
  file_ = ::mkstemp(path.data());
  if (file_ >= 0) {
    ::unlink(path.c_str());
    return;
  }
  std::string reason = std::strerror(errno);
  note("decoded " + what + " cannot be kept in '" + folder + "': " + reason +
       " (TMPDIR names another folder): they are decoded in each pass");
}

KeptRows::~KeptRows() {
  if (file_ >= 0)
    ::close(file_);
}

bool KeptRows::read(int64_t row, std::span<std::byte> to) const {
  return has_[size_t(row)].load(std::memory_order_acquire) &&
         ::pread(file_, to.data(), to.size(), off_t(row * each_)) ==
             ssize_t(to.size());
}

void KeptRows::write(int64_t row, int64_t count,
                     std::span<const std::byte> from) {
  if (file_ < 0)
    return;
  int64_t at = row * each_;
  while (!from.empty()) { // a call writes at most 2 GiB
    ssize_t done = ::pwrite(file_, from.data(), from.size(), off_t(at));
    if (done <= 0)
      return;
    at += done;
    from = from.subspan(size_t(done));
  }
  for (int64_t i = row; i < row + count; ++i)
    has_[size_t(i)].store(1, std::memory_order_release);
}

} // namespace tandem::commands
