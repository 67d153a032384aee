//===- FileLockTest.cpp - one process writes a file -----------------------===//
#include "runtime/io/FileLock.h"
#include "runtime/io/Argument.h"
#include "tests/runtime/io/Bytes.h"

#include <csignal>
#include <sys/wait.h>

namespace tandem::io::test {
namespace {

using Names = std::vector<std::string>;

/// A process that holds the lock of a file until it is killed.
class Holder {
public:
  explicit Holder(const std::string &path) {
    int ready[2];
    if (::pipe(ready) != 0)
      return;
    pid_ = ::fork();
    if (pid_ == 0) {
      auto lock = FileLock::take(path);
      char answer = lock ? 'y' : 'n';
      if (::write(ready[1], &answer, 1) == 1)
        ::pause();
      ::_exit(1);
    }
    char answer = 0;
    EXPECT_EQ(::read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Holder() { kill(); }

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

private:
  pid_t pid_ = -1;
};

// Of two trainings that saved into one file the last writer won in silence.
TEST(FileLock, belongsToOneProcess) {
  Folder folder;
  std::string path = folder / "w.st";
  Holder holder(path);
  EXPECT_EQ(FileLock::take(path).status().message(),
            "cannot write '" + path + "': process " +
                std::to_string(holder.pid()) + " is writing it");
  // By another name it is the same file, before it exists and afterwards.
  std::filesystem::create_symlink("w.st", folder / "link");
  EXPECT_FALSE(FileLock::take(folder / "link").ok());
  store(path, bytesOf("replaced"));
  EXPECT_FALSE(FileLock::take(path).ok());
  EXPECT_TRUE(FileLock::take(folder / "other").ok());

  // What a killed process left is taken over, and removed at the end.
  holder.kill();
  EXPECT_EQ(folder.list(), (Names{"link", "w.st", "w.st.tandem-lock"}));
  EXPECT_TRUE(FileLock::take(path).ok());
  EXPECT_EQ(folder.list(), (Names{"link", "w.st"}));
}

// A file of somebody's with the name of a lock was taken for one, and removed.
TEST(FileLock, leavesFilesWithContentAlone) {
  Folder folder;
  std::string path = folder / "w.st";
  store(path + ".tandem-lock", bytesOf("mine"));
  EXPECT_EQ(FileLock::take(path).status().message(),
            "cannot write '" + path + "': '" + path +
                ".tandem-lock' is there and is no lock");
  EXPECT_EQ(folder.list(), (Names{"w.st.tandem-lock"}));
}

// Of two processes that added arrays to one archive, one lost those of the
// other.
TEST(FileLock, isHeldWhileArraysAreAdded) {
  Folder folder;
  Array a{artifact::DType::F32, {1}, std::vector<std::byte>(4)};
  for (const char *name : {"f.npz", "f.safetensors"}) {
    std::string path = folder / name;
    const OutputFile output[] = {{*parseArgument("a=@" + path + ":a"), a}};
    {
      Holder holder(path);
      EXPECT_EQ(writeArguments(output).message(),
                "cannot write '" + path + "': process " +
                    std::to_string(holder.pid()) + " is writing it");
      EXPECT_FALSE(std::filesystem::exists(path));
    }
    EXPECT_TRUE(writeArguments(output).ok());
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_FALSE(std::filesystem::exists(path + ".tandem-lock"));
  }
}

TEST(FileLock, isNotForDevicesAndNamesTheReason) {
  EXPECT_TRUE(FileLock::take("/dev/null").ok());
  EXPECT_FALSE(std::filesystem::exists("/dev/null.tandem-lock"));
  Folder folder;
  EXPECT_EQ(FileLock::take(folder / "no/w").status().message(),
            "cannot write '" + (folder / "no/w") +
                "': its lock: No such file or directory");
}

} // namespace
} // namespace tandem::io::test
