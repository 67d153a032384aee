//===- FileTest.cpp - files are replaced whole or not at all --------------===//
#include "runtime/io/Argument.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"
#include "tests/runtime/io/Bytes.h"

#include <csignal>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace tandem::io::test {
namespace {

Status replaceWith(const std::string &path, std::string_view text) {
  std::vector<std::byte> bytes = bytesOf(text);
  Bytes piece = bytes;
  return replaceFile(path, std::span(&piece, 1));
}

using Names = std::vector<std::string>;

TEST(File, replacesAndLeavesNothingElse) {
  Folder folder;
  ASSERT_TRUE(replaceWith(folder / "a", "old").ok());
  ::chmod((folder / "a").c_str(), 0640);
  ASSERT_TRUE(replaceWith(folder / "a", "new content").ok());
  EXPECT_EQ(load(folder / "a"), bytesOf("new content"));
  EXPECT_EQ(folder.list(), Names{"a"});
  struct stat facts = {};
  ::stat((folder / "a").c_str(), &facts);
  EXPECT_EQ(facts.st_mode & 0777, 0640u);
}

TEST(File, followsLinksAndWritesToDevices) {
  Folder folder;
  ASSERT_TRUE(replaceWith(folder / "a", "old").ok());
  std::filesystem::create_symlink("a", folder / "link");
  ASSERT_TRUE(replaceWith(folder / "link", "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(load(folder / "a"), bytesOf("new"));
  EXPECT_TRUE(replaceWith("/dev/null", "nothing").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_EQ(replaceWith("/dev/full", "x").message(),
            "cannot write '/dev/full': No space left on device");
}

TEST(File, namesPathAndReason) {
  Folder folder;
  EXPECT_EQ(replaceWith(folder / "no/a", "x").message(),
            "cannot write '" + (folder / "no/a") +
                "': No such file or directory");
  EXPECT_EQ(replaceWith(folder.path(), "x").message(),
            "cannot write '" + folder.path() + "': Is a directory");
}

/// Runs `body` in a child process, as another user if this one is root (who
/// may write anywhere); returns whether it returned true.
bool inChild(bool (*body)(const std::string &), const std::string &argument) {
  pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0)
      ::_exit(2);
    ::_exit(body(argument) ? 0 : 1);
  }
  int result = 0;
  ::waitpid(child, &result, 0);
  return WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

TEST(File, keepsTheOldFileWhenTheFolderIsReadOnly) {
  Folder folder;
  ASSERT_TRUE(replaceWith(folder / "a", "old").ok());
  ::chmod(folder.path().c_str(), 0555);
  EXPECT_TRUE(inChild(
      [](const std::string &path) {
        return replaceWith(path, "new").message() ==
               "cannot write '" + path + "': Permission denied";
      },
      folder / "a"));
  ::chmod(folder.path().c_str(), 0755);
  EXPECT_EQ(load(folder / "a"), bytesOf("old"));
  EXPECT_EQ(folder.list(), Names{"a"});
}

TEST(File, keepsTheOldFileWhenThereIsNoRoom) {
  Folder folder;
  ASSERT_TRUE(replaceWith(folder / "a", "old").ok());
  ::chmod(folder.path().c_str(), 0777);
  ::chmod((folder / "a").c_str(), 0666);
  EXPECT_TRUE(inChild(
      [](const std::string &path) {
        struct rlimit limit = {4096, 4096};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        ::signal(SIGXFSZ, SIG_IGN);
        return replaceWith(path, std::string(10000, 'x')).message() ==
               "cannot write '" + path + "': File too large";
      },
      folder / "a"));
  EXPECT_EQ(load(folder / "a"), bytesOf("old"));
  EXPECT_EQ(folder.list(), Names{"a"});
}

TEST(Argument, takesApartWhatUsersWrite) {
  auto parse = [](const char *text) {
    auto argument = parseArgument(text);
    EXPECT_TRUE(argument.ok()) << argument.status().message();
    return argument ? *argument : Argument();
  };
  EXPECT_EQ(parse("x=@a:b.npy").text, "a:b.npy");
  EXPECT_EQ(parse("x=@a:b.npy").kind, Argument::Kind::Npy);
  Argument member = parse("bn.mean=@d/f.npz:x:y");
  EXPECT_EQ(member.name, "bn.mean");
  EXPECT_EQ(member.text, "d/f.npz");
  EXPECT_EQ(member.member, "x:y");
  EXPECT_EQ(parse("x=@f.npz").member, "");
  EXPECT_EQ(parse("x=@f.safetensors:w").kind, Argument::Kind::Safetensors);
  EXPECT_EQ(parse("x=-1e3").kind, Argument::Kind::Scalar);
  for (const char *text : {"x", "=3", "x=", "@f.npy"})
    EXPECT_EQ(parseArgument(text).status().message(),
              std::string("expected NAME=@FILE or NAME=NUMBER but got '") +
                  text + "'");
  EXPECT_EQ(parseArgument("x=@f.tsv").status().message(),
            "'x': expected a file named '.npy', '.npz[:MEMBER]', "
            "'.safetensors[:TENSOR]' or '.csv[:COLUMNS]' but got 'f.tsv'");
}

TEST(Argument, writesGroupsOfOutputs) {
  Folder folder;
  Array a = arrayOf<float>(DType::F32, {2}, {1, 2});
  Array b = arrayOf<int32_t>(DType::I32, {}, {7});
  auto output = [&](const std::string &text, const Array &array) {
    return OutputFile{*parseArgument(text), array};
  };
  const OutputFile outputs[] = {output("a=@" + (folder / "a.npy"), a),
                                output("a=@" + (folder / "f.npz"), a),
                                output("b=@" + (folder / "f.npz:other"), b),
                                output("b=@" + (folder / "f.safetensors"), b)};
  ASSERT_TRUE(writeArguments(outputs).ok());
  for (auto [text, bytes] :
       {std::pair("q=@" + (folder / "a.npy"), a.bytes),
        std::pair("q=@" + (folder / "f.npz:a"), a.bytes),
        std::pair("q=@" + (folder / "f.npz:other"), b.bytes),
        std::pair("q=@" + (folder / "f.safetensors"), b.bytes)}) {
    auto array = readArgument(*parseArgument(text), DType::F32);
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_EQ(array->bytes, bytes);
  }
  const OutputFile twice[] = {output("a=@" + (folder / "c.npy"), a),
                              output("b=@" + (folder / "c.npy"), b),
                              output("b=3", b)};
  EXPECT_EQ(writeArguments(twice).message(),
            "two outputs go to '" + (folder / "c.npy") +
                "'; 'b': expected '@FILE' with a file named '.npy', "
                "'.npz[:MEMBER]', '.safetensors[:TENSOR]' or "
                "'.csv[:COLUMNS]' but got '3'");
  EXPECT_FALSE(std::filesystem::exists(folder / "c.npy"));
}

} // namespace
} // namespace tandem::io::test
