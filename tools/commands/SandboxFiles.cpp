//===- SandboxFiles.cpp - the files that a command names (Landlock) -------===//
//
// The kernel's structures are written down here: headers of systems on which
// tandem-run is built may be older than Landlock, which is of Linux 5.13.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/AtomicFile.h"
#include "runtime/io/Argument.h"
#include "runtime/io/TensorIndex.h"
#include "tools/commands/KeptRows.h"
#include "tools/commands/Sandbox.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace tandem::commands {
namespace {

// The same on all processors (linux/landlock.h).
constexpr long createRuleset = 444, addRule = 445, restrictSelf = 446;
constexpr uint32_t askVersion = 1;
constexpr int pathBeneath = 1;

enum Access : uint64_t {
  Execute = 1,
  WriteFile = 2,
  ReadFile = 4,
  ReadDir = 8,
  RemoveFile = 1 << 5,
  MakeRegular = 1 << 8,
  Truncate = 1 << 14,
  IoctlDevice = 1 << 15,
};
constexpr uint64_t ofFiles =
    Execute | WriteFile | ReadFile | Truncate | IoctlDevice;

struct Ruleset {
  uint64_t files, network, scoped;
};

struct __attribute__((packed)) Beneath {
  uint64_t access;
  int32_t folder;
};

/// What each version of Landlock can deny, and how long its structure is.
Ruleset allOf(long version, size_t &bytes) {
  Ruleset all = {(1u << 13) - 1, 0, 0};
  bytes = 8;
  if (version >= 2)
    all.files |= 1u << 13; // links and renames from one folder to another
  if (version >= 3)
    all.files |= Truncate;
  if (version >= 4) {
    all.network = 3; // to bind and to connect
    bytes = 16;
  }
  if (version >= 5)
    all.files |= IoctlDevice;
  if (version >= 6) {
    all.scoped = 3; // sockets without a file, and signals
    bytes = 24;
  }
  return all;
}

/// A set of rules that is built up.
class Rules {
public:
  Rules(int fd, uint64_t handled) : fd_(fd), handled_(handled) {}
  Rules(const Rules &) = delete;
  ~Rules() { ::close(fd_); }

  /// Leaves `access` to the file or all below the folder `path`. One that is
  /// not there is left to the command, which says so where it opens it.
  Status allow(const std::string &path, uint64_t access) {
    int file = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (file < 0)
      return Status::success();
    struct stat facts;
    if (::fstat(file, &facts) == 0 && !S_ISDIR(facts.st_mode))
      access &= ofFiles;
    Beneath rule = {access & handled_, file};
    long done = ::syscall(addRule, fd_, pathBeneath, &rule, 0);
    int reason = errno;
    ::close(file);
    // A pipe has no folder, and is not restricted.
    if (done != 0 && reason != EBADFD)
      return Status::failed("--sandbox: cannot allow " + io::inQuotes(path) +
                            ": " + std::strerror(reason));
    return Status::success();
  }

  int fd() const { return fd_; }

private:
  int fd_;
  uint64_t handled_;
};

/// The user's home as the environment and as the system have it.
std::vector<std::string> homes() {
  std::vector<std::string> named;
  if (const char *home = std::getenv("HOME"))
    named.push_back(home);
  if (const struct passwd *user = ::getpwuid(::getuid()); user && user->pw_dir)
    named.push_back(user->pw_dir);
  std::vector<std::string> found;
  for (const std::string &home : named) {
    std::error_code error;
    auto own = std::filesystem::canonical(home, error);
    if (!error)
      found.push_back(own.string());
  }
  return found;
}

/// Fails if the folder holds the user's home: all that is started at the next
/// login would be the artifact's to write.
Status checkFolder(const std::string &output, const std::string &folder) {
  std::string at = folder.ends_with('/') ? folder : folder + '/';
  for (const std::string &home : homes())
    if ((home + "/").starts_with(at))
      return Status::usage("--sandbox: " + io::inQuotes(output) +
                           " would let the artifact write all of " +
                           io::inQuotes(folder) +
                           ": expected outputs in a folder of their own");
  if (at == "/")
    return Status::usage("--sandbox: " + io::inQuotes(output) +
                         " would let the artifact write every file");
  return Status::success();
}

constexpr uint64_t toReplace =
    ReadFile | WriteFile | ReadDir | RemoveFile | MakeRegular | Truncate;

Status allowOutput(Rules &rules, const std::string &path) {
  std::string target = artifact::followLinks(path);
  struct stat facts;
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    return rules.allow(path, WriteFile | ReadFile | Truncate);
  std::string folder = target.substr(0, target.rfind('/'));
  if (folder.empty())
    folder = "/";
  if (Status status = checkFolder(path, folder); !status)
    return status;
  return rules.allow(folder, toReplace);
}

Status allowFolder(Rules &rules, const std::string &folder) {
  std::error_code error; // of which the command speaks
  std::filesystem::create_directories(folder, error);
  auto whole = std::filesystem::canonical(folder, error);
  if (error)
    return Status::success();
  if (Status status = checkFolder(folder, whole.string()); !status)
    return status;
  return rules.allow(whole.string(), toReplace);
}

/// The system's libraries, the plugins beside this program, and what is asked
/// of the machine.
Status allowSystem(Rules &rules) {
  std::vector<std::string> read = {"/lib",           "/lib64",
                                   "/usr/lib",       "/usr/lib64",
                                   "/usr/local/lib", "/etc/ld.so.cache",
                                   "/etc/localtime", "/usr/share/zoneinfo",
                                   "/proc/self",     "/proc/cpuinfo",
                                   "/proc/meminfo",  "/sys/devices/system",
                                   "/sys/fs/cgroup", "/dev/urandom"};
  std::error_code error;
  auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error)
    for (const char *plugin : {"libtandem-images.so", "libtandem-arrow.so",
                               "libtandem-signatures.so"})
      for (const char *folder : {"", "../lib"})
        read.push_back((program.parent_path() / folder / plugin).string());
  for (const std::string &path : read)
    if (Status status = rules.allow(path, ReadFile | ReadDir); !status)
      return status;
  return rules.allow("/dev/null", ReadFile | WriteFile | Truncate);
}

} // namespace

Status restrictFiles(const SandboxPaths &paths) {
  long version = ::syscall(createRuleset, nullptr, 0, askVersion);
  if (version < 1)
    return Status::unsupported(
        std::string("--sandbox needs Landlock, which this system does not ") +
        (errno == EOPNOTSUPP ? "have switched on" : "have (Linux 5.13)"));
  size_t bytes = 0;
  Ruleset all = allOf(version, bytes);
  int fd = int(::syscall(createRuleset, &all, bytes, 0));
  if (fd < 0)
    return Status::failed(std::string("--sandbox: cannot begin: ") +
                          std::strerror(errno));
  Rules rules(fd, all.files);
  if (Status status = allowSystem(rules); !status)
    return status;
  bool hasRows = false;
  for (const std::string &path : paths.inputs) {
    struct stat facts;
    hasRows |= path.ends_with(".tar") || io::isTableName(path) ||
               (::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode));
    if (Status status = rules.allow(path, ReadFile | ReadDir); !status)
      return status;
    // The files of an index lie beside it.
    if (io::isIndexName(path))
      if (Status status = rules.allow(
              std::filesystem::path(artifact::followLinks(path)).parent_path(),
              ReadFile | ReadDir);
          !status)
        return status;
  }
  for (const std::string &path : paths.outputs)
    if (Status status = allowOutput(rules, path); !status)
      return status;
  std::vector<std::string> folders = paths.outputFolders;
  // Images and tables that do not fit in memory are unpacked there.
  const char *named = std::getenv("TMPDIR");
  bool hasFolder = named && *named;
  if (hasRows && hasFolder)
    folders.push_back(named);
  for (const std::string &folder : folders)
    if (Status status = allowFolder(rules, folder); !status)
      return status;
  // Nobody asked for /tmp: where it cannot be allowed, since the home is in it,
  // a note says later that nothing is kept.
  if (hasRows && !hasFolder)
    static_cast<void>(allowFolder(rules, keptFolder()));
  if (::syscall(restrictSelf, rules.fd(), 0) != 0)
    return Status::failed(std::string("--sandbox: cannot restrict files: ") +
                          std::strerror(errno));
  return Status::success();
}

} // namespace tandem::commands
