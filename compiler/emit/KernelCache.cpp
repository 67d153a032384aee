//===- KernelCache.cpp - machine code that is kept ------------------------===//
//
// An entry: a line that says what it is, its key, seven numbers (items, bytes
// of scratch, grain, whether it uses tiles, bytes of the three texts), the
// code, how it is launched, the bitcode, and the BLAKE3 of all before.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/KernelCache.h"
#include "compiler/CacheFolder.h"
#include "passes/partition/BudgetSpec.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace tandem;
namespace fs = llvm::sys::fs;
namespace endian = llvm::support::endian;

static constexpr llvm::StringLiteral kMagic = "tandem kernel 2\n";
static constexpr llvm::StringLiteral kSuffix = ".kernel";
static constexpr size_t kKey = 64, kNumbers = 7, kHash = 32;
static constexpr size_t kHeader = kMagic.size() + kKey + 8 * kNumbers;
/// No kernel has as much code.
static constexpr uint64_t kMost = 256u << 20;

static std::string messageOf(int error) {
  return std::error_code(error, std::generic_category()).message();
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

static std::string hashOf(llvm::StringRef bytes) {
  auto hash = llvm::BLAKE3::hash<kHash>(llvm::arrayRefFromStringRef(bytes));
  return std::string(hash.begin(), hash.end());
}

static std::string entryOf(llvm::StringRef key, const CompiledKernel &kernel) {
  std::string bytes = (kMagic + key).str();
  bytes.reserve(kHeader + kernel.object.size() + kernel.launch.size() +
                kernel.bitcode.size() + kHash);
  const CompiledFacts &facts = kernel.facts;
  for (uint64_t number :
       {uint64_t(facts.items), uint64_t(facts.scratchBytes),
        uint64_t(facts.grain), uint64_t(kernel.usesTiles),
        uint64_t(kernel.object.size()), uint64_t(kernel.launch.size()),
        uint64_t(kernel.bitcode.size())}) {
    char text[8];
    endian::write64le(text, number);
    bytes.append(text, sizeof text);
  }
  bytes += kernel.object + kernel.launch + kernel.bitcode;
  return bytes + hashOf(bytes);
}

/// Null unless `bytes` are the whole entry of the key.
static std::unique_ptr<CompiledKernel> parseEntry(llvm::StringRef key,
                                                  llvm::StringRef bytes) {
  if (bytes.size() < kHeader + kHash || !bytes.starts_with(kMagic) ||
      bytes.substr(kMagic.size(), kKey) != key)
    return nullptr;
  llvm::StringRef hash = bytes.take_back(kHash);
  bytes = bytes.drop_back(kHash);
  auto number = [&](size_t i) {
    return endian::read64le(bytes.data() + kMagic.size() + kKey + 8 * i);
  };
  // It is of this key, so that numbers are those that were written.
  if (hashOf(bytes) != hash ||
      number(4) + number(5) + number(6) != bytes.size() - kHeader)
    return nullptr;
  auto kernel = std::make_unique<CompiledKernel>();
  kernel->facts = {int64_t(number(0)), int64_t(number(1)), int64_t(number(2))};
  kernel->usesTiles = number(3) != 0;
  llvm::StringRef texts = bytes.drop_front(kHeader);
  kernel->object = texts.take_front(number(4)).str();
  kernel->launch = texts.drop_front(number(4)).take_front(number(5)).str();
  kernel->bitcode = texts.take_back(number(6)).str();
  return kernel;
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

/// Says why a folder must not be used: another could have written what is run
/// later. Empty if it may be.
static std::string problemOf(const std::string &folder) {
  struct stat status;
  if (::lstat(folder.c_str(), &status))
    return messageOf(errno);
  if (!S_ISDIR(status.st_mode))
    return "it is no folder";
  if (status.st_uid != ::geteuid())
    return "it belongs to another user";
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return "others may write in it (chmod go-w makes it yours alone)";
  return "";
}

KernelCache::KernelCache(std::string path, uint64_t limit)
    : folder(std::move(path)), limit(limit) {
  std::error_code error = fs::create_directories(
      folder, /*IgnoreExisting=*/true, fs::perms::owner_all);
  std::string problem = error ? error.message() : problemOf(folder);
  if (!problem.empty())
    fail("'" + folder + "': " + problem);
  isReadable = isWritable = problem.empty();
}

void KernelCache::fail(const std::string &problem) {
  if (why.empty())
    why = problem;
}

void KernelCache::close(const std::string &problem) {
  std::lock_guard lock(mutex);
  isReadable = isWritable = false;
  fail(problem);
}

std::string KernelCache::pathOf(llvm::StringRef key) const {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, key + kSuffix);
  return path.str().str();
}

/// The bytes of a file of the user's; nothing where there is none.
static std::optional<std::string> readFile(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0)
    return std::nullopt;
  llvm::scope_exit end([&] { ::close(fd); });
  struct stat status;
  if (::fstat(fd, &status))
    return std::nullopt;
  bool isOurs = S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
                uint64_t(status.st_size) <= kMost;
  // What is no entry is as one that is damaged.
  std::string bytes(isOurs ? size_t(status.st_size) : 0, '\0');
  for (size_t done = 0; done < bytes.size();) {
    ssize_t count = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return std::string();
    done += size_t(count);
  }
  // By which `trim` knows that it was used; many systems do not keep that.
  timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  (void)::futimens(fd, times);
  return bytes;
}

std::unique_ptr<CompiledKernel> KernelCache::read(llvm::StringRef key) {
  if (!isReadable)
    return nullptr;
  std::string path = pathOf(key);
  std::optional<std::string> bytes = readFile(path);
  if (!bytes)
    return nullptr;
  auto kernel = parseEntry(key, *bytes);
  if (!kernel) {
    ++damaged;
    ::unlink(path.c_str());
  }
  return kernel;
}

const CompiledKernel *KernelCache::find(llvm::StringRef key) {
  std::lock_guard lock(mutex);
  auto [entry, isNew] = asked.try_emplace(key);
  if (isNew) {
    entry->second = read(key);
    found += entry->second != nullptr;
  }
  return entry->second.get();
}

/// Writes a new file; returns an error number, or 0.
static int writeFile(const std::string &path, llvm::StringRef bytes) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return errno;
  int error = 0;
  while (!bytes.empty() && !error) {
    ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count >= 0)
      bytes = bytes.drop_front(size_t(count));
    else if (errno != EINTR)
      error = errno;
  }
  return ::close(fd) && !error ? errno : error;
}

void KernelCache::store(llvm::StringRef key, const CompiledKernel &kernel) {
  {
    std::lock_guard lock(mutex);
    if (!isWritable)
      return;
  }
  static std::atomic<unsigned> counter = 0;
  std::string path = pathOf(key);
  std::string temporary = path + ".tmp-" + std::to_string(::getpid()) + "-" +
                          std::to_string(counter++);
  // Not synced: what a crash of the machine leaves of it has another hash.
  int error = writeFile(temporary, entryOf(key, kernel));
  if (!error && ::rename(temporary.c_str(), path.c_str()))
    error = errno;
  std::lock_guard lock(mutex);
  stored += !error;
  if (!error)
    return;
  ::unlink(temporary.c_str());
  isWritable = false;
  fail("cannot write in '" + folder + "': " + messageOf(error));
}

void KernelCache::trim() {
  std::lock_guard lock(mutex);
  // Who only reads makes nothing larger.
  if (!isWritable || !stored)
    return;
  struct File {
    std::string path;
    llvm::sys::TimePoint<> used;
    uint64_t bytes;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error, /*follow_symlinks=*/false), end;
       !error && at != end; at.increment(error)) {
    llvm::StringRef name = llvm::sys::path::filename(at->path());
    fs::file_status status;
    // Those of writers that were killed are called KEY.kernel.tmp-....
    if (!name.contains(kSuffix) ||
        fs::status(at->path(), status, /*follow=*/false) ||
        status.type() != fs::file_type::regular_file)
      continue;
    files.push_back(
        {at->path(), status.getLastAccessedTime(), status.getSize()});
    total += status.getSize();
  }
  llvm::sort(files, [](const File &a, const File &b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  for (const File &file : files) {
    if (total <= limit)
      break;
    ::unlink(file.path.c_str());
    total -= file.bytes;
  }
}

//===----------------------------------------------------------------------===//
// What is said of it
//===----------------------------------------------------------------------===//

std::string KernelCache::problem() const {
  std::lock_guard lock(mutex);
  return why;
}

std::string KernelCache::summary() const {
  std::lock_guard lock(mutex);
  std::string text = std::to_string(found) + " of " +
                     std::to_string(asked.size()) + " kernels were in '" +
                     folder + "', " + std::to_string(stored) + " are new";
  if (damaged)
    text += ", " + std::to_string(damaged) + " were damaged";
  return text;
}

std::optional<uint64_t> tandem::cacheBytes(llvm::StringRef text) {
  std::string error;
  std::optional<BudgetSpec> spec = parseBudgetSpec(text, error);
  // Numbers to 1 are parts of something else.
  if (!spec || spec->part || spec->bytes < 0)
    return std::nullopt;
  return uint64_t(spec->bytes);
}

std::string tandem::defaultKernelCache() {
  if (const char *named = std::getenv("TANDEM_KERNEL_CACHE"); named && *named)
    return named;
  std::string path = inCacheFolder("kernels");
  return path.empty() ? "off" : path;
}
