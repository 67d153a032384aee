//===- FileTest.cpp - files are replaced whole or not at all --------------===//
#include "runtime/artifact/AtomicFile.h"
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

// A dangling symbolic link as output was replaced by a file.
TEST(File, writesThroughADanglingLink) {
  Folder folder;
  std::filesystem::create_directory(folder / "there");
  std::filesystem::create_symlink("there/b", folder / "a");
  std::filesystem::create_symlink("a", folder / "again");
  ASSERT_TRUE(replaceWith(folder / "again", "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "a"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "again"));
  EXPECT_EQ(load(folder / "there/b"), bytesOf("new"));
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_EQ(replaceWith(folder / "loop", "x").message(),
            "cannot write '" + (folder / "loop") +
                "': Too many levels of symbolic links");
  std::filesystem::create_symlink("no/b", folder / "nowhere");
  EXPECT_EQ(replaceWith(folder / "nowhere", "x").message(),
            "cannot write '" + (folder / "nowhere") +
                "': No such file or directory");
}

// A process that was killed while it wrote left a temporary file for ever.
TEST(File, removesWhatAKilledWriterLeft) {
  Folder folder;
  pid_t child = ::fork();
  if (child == 0) {
    auto file = artifact::AtomicFile::create(folder / "a");
    if (!file || !file->write("half", 4))
      ::_exit(1);
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  Names left = folder.list();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_TRUE(left[0].starts_with("a.tandem-tmp-")) << left[0];
  // Another file's writer leaves it alone, and so do users' names.
  store(folder / "a.tandem-tmp-of-mine", bytesOf("mine"));
  ASSERT_TRUE(replaceWith(folder / "b", "new").ok());
  EXPECT_TRUE(std::filesystem::exists(folder / left[0]));
  ASSERT_TRUE(replaceWith(folder / "a", "new").ok());
  EXPECT_EQ(folder.list(), (Names{"a", "a.tandem-tmp-of-mine", "b"}));
}

TEST(File, leavesTheTemporaryFileOfALivingWriter) {
  Folder folder;
  auto first = artifact::AtomicFile::create(folder / "a");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(first->write("first", 5).ok());
  ASSERT_TRUE(replaceWith(folder / "a", "second").ok());
  EXPECT_EQ(folder.list().size(), 2u);
  ASSERT_TRUE(first->commit().ok());
  EXPECT_EQ(load(folder / "a"), bytesOf("first"));
  EXPECT_EQ(folder.list(), Names{"a"});
}

TEST(File, takesTheLongestNames) {
  Folder folder;
  std::string name(255, 'n');
  ASSERT_TRUE(replaceWith(folder / name, "new").ok());
  EXPECT_EQ(folder.list(), Names{name});
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
            "'.safetensors[:TENSOR]' or '.csv[:COLUMNS]', of tables "
            "'.parquet[:COLUMNS]', '.arrow[:COLUMNS]' or "
            "'.feather[:COLUMNS]', of tokens '.bin:u16' or '.bin:u32', a "
            "folder of images, 'FOLDER/', or "
            "tars, '{000..003}.tar:ENDING' but "
            "got 'f.tsv'");
  for (const char *text : {"x=@f.parquet", "x=@f.arrow", "x=@f.feather"})
    EXPECT_EQ(parse(text).kind, Argument::Kind::Table) << text;
  Argument table = parse("x=@d/f-{0..2}.parquet:a.npy,b..c");
  EXPECT_EQ(table.kind, Argument::Kind::Table);
  EXPECT_EQ(table.member, "a.npy,b..c");
  EXPECT_EQ(table.paths(),
            (std::vector<std::string>{"d/f-0.parquet", "d/f-1.parquet",
                                      "d/f-2.parquet"}));
  EXPECT_FALSE(checkPlace(table).ok());
  EXPECT_EQ(parse("x=@f.bin:u16,shift=1").member, "u16,shift=1");
}

// An input 'a=b' was 'a' with the value 'b=@f.npy'.
TEST(Argument, aNameMayHaveAnEqualsSign) {
  auto argument = parseArgument("a=b=@d=1/f.npy");
  ASSERT_TRUE(argument.ok()) << argument.status().message();
  EXPECT_EQ(argument->name, "a=b");
  EXPECT_EQ(argument->text, "d=1/f.npy");
  argument = parseArgument("x=@d=@1/f.npy");
  ASSERT_TRUE(argument.ok()) << argument.status().message();
  EXPECT_EQ(argument->name, "x");
  EXPECT_EQ(argument->text, "d=@1/f.npy");
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

// An output that named a member replaced the whole archive.
TEST(Argument, addsAMemberToAnArchive) {
  Folder folder;
  Array a = arrayOf<float>(DType::F32, {2}, {1, 2});
  Array b = arrayOf<int32_t>(DType::I32, {}, {7});
  for (const char *extension : {".npz", ".safetensors"}) {
    std::string path = folder / ("f" + std::string(extension));
    auto write = [&](const std::string &text, const Array &array) {
      const OutputFile output[] = {{*parseArgument(text), array}};
      return writeArguments(output);
    };
    auto read = [&](const std::string &member) {
      auto array =
          readArgument(*parseArgument("q=@" + path + ":" + member), DType::F32);
      return array ? array->bytes : std::vector<std::byte>();
    };
    ASSERT_TRUE(write("a=@" + path + ":a", a).ok());
    ASSERT_TRUE(write("b=@" + path + ":more", b).ok());
    EXPECT_EQ(read("a"), a.bytes);
    EXPECT_EQ(read("more"), b.bytes);
    ASSERT_TRUE(write("b=@" + path + ":a", b).ok());
    EXPECT_EQ(read("a"), b.bytes) << "the new one counts";
    // Without a member it is the whole file.
    ASSERT_TRUE(write("b=@" + path, b).ok());
    EXPECT_EQ(read("b"), b.bytes);
    EXPECT_EQ(read("more"), std::vector<std::byte>());
  }
  // What else a safetensors file says stays.
  std::string path = folder / "w.safetensors";
  ASSERT_TRUE(writeSafetensors(path, {{"w", a}}, {{"key", "value"}}).ok());
  const OutputFile output[] = {{*parseArgument("b=@" + path + ":b"), b}};
  ASSERT_TRUE(writeArguments(output).ok());
  EXPECT_EQ(Safetensors::read(path)->metadata().at("key"), "value");
}

} // namespace
} // namespace tandem::io::test
