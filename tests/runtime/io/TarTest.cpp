//===- TarTest.cpp - tar archives, and the paths that braces name ---------===//
#include "runtime/io/Tar.h"
#include "runtime/io/Argument.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace tandem::io {
namespace {

/// A header of ustar, with its sum.
std::string header(const std::string &name, int64_t size, char type = '0',
                   const std::string &prefix = "") {
  std::string bytes(512, '\0');
  char digits[12];
  std::snprintf(digits, sizeof digits, "%011llo",
                static_cast<unsigned long long>(size));
  bytes.replace(0, name.size(), name);
  bytes.replace(124, 11, digits);
  bytes[156] = type;
  bytes.replace(257, 6, std::string("ustar\0", 6));
  bytes.replace(345, prefix.size(), prefix);
  unsigned sum = 8 * 32;
  for (char c : bytes)
    sum += static_cast<unsigned char>(c);
  std::snprintf(digits, sizeof digits, "%06o", sum);
  bytes.replace(148, 7, std::string(digits, 7));
  bytes[155] = ' ';
  return bytes;
}

std::string padded(std::string text) {
  text.resize((text.size() + 511) / 512 * 512);
  return text;
}

const std::string end(1024, '\0');

/// "NAME:BYTES" of each file, or the message behind them.
std::vector<std::string> read(const std::string &archive) {
  TarReader reader(
      [&](int64_t offset, std::span<std::byte> to) {
        std::ranges::copy(std::as_bytes(std::span(archive))
                              .subspan(size_t(offset), to.size()),
                          to.begin());
        return Status::success();
      },
      int64_t(archive.size()));
  std::vector<std::string> all;
  while (true) {
    auto member = reader.next();
    if (!member) {
      all.push_back(member.status().message());
      return all;
    }
    if (!*member)
      return all;
    all.push_back(
        (*member)->name + ":" +
        archive.substr(size_t((*member)->offset), size_t((*member)->size)) +
        ((*member)->isLink ? " link" : ""));
  }
}

using Texts = std::vector<std::string>;

TEST(Tar, filesAndTheirBytes) {
  EXPECT_EQ(read(header("d", 0, '5') + header("a", 3, '0', "d/e") +
                 padded("abc") + header("b", 0) + header("c", 0, '2') + end),
            (Texts{"d/e/a:abc", "b:", "c: link"}));
  EXPECT_EQ(read(end), Texts());
}

TEST(Tar, longNamesAndSizesOfPaxAndGnu) {
  std::string name(200, 'n'), record = "210 path=" + name + "\n";
  ASSERT_EQ(record.size(), 210u);
  EXPECT_EQ(read(header("p", 219, 'x') + padded(record + "9 size=2\n") +
                 header("short", 0) + padded("ab") + header("next", 0) + end),
            (Texts{name + ":ab", "next:"}));
  EXPECT_EQ(read(header("l", 201, 'L') + padded(name + '\0') +
                 header("short", 2) + padded("ab") + end),
            (Texts{name + ":ab"}));
}

TEST(Tar, whatIsDamagedIsSaid) {
  EXPECT_EQ(
      read(header("a", 0)),
      (Texts{"a:", "at byte 512: the archive is cut off: it has no end"}));
  EXPECT_EQ(read(header("a", 600) + padded("abc")).back(),
            "at byte 512: 'a' has 600 bytes, but the archive is cut off after "
            "512");
  EXPECT_EQ(read(end + header("a", 0)).back(),
            "at byte 0: something follows the end of the archive");
  std::string changed = header("a", 0);
  changed[3] = 'x';
  EXPECT_EQ(read(changed + end).back(),
            "at byte 0: expected a header of tar, but its sum is another one");
  EXPECT_EQ(read(header("a", 0, 'S') + end).back(),
            "at byte 512: 'a': a file with holes in it (sparse)");
  EXPECT_EQ(read(header("p", 9, 'x') + padded("9 size=2\n") + end).back(),
            "at byte 1024: expected a file behind its long header");
  for (const char *record :
       {"8 path=", "99 path=a\n", "x", "7 path\n", "8 path=\n", "11 size=-1\n"})
    EXPECT_EQ(read(header("p", int64_t(std::string(record).size()), 'x') +
                   padded(record) + header("a", 0) + end)
                  .size(),
              1u)
        << record;
}

TEST(Tar, bracesNamePaths) {
  auto paths = [](const std::string &text) {
    auto argument = parseArgument("x=@" + text);
    return argument ? argument->paths() : Texts{argument.status().message()};
  };
  EXPECT_EQ(paths("a.tar:jpg"), Texts{"a.tar"});
  EXPECT_EQ(paths("a-{08..11}.tar:cls"),
            (Texts{"a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"}));
  EXPECT_EQ(paths("{b,a}/{1..2}.tar:x.npy"),
            (Texts{"b/1.tar", "b/2.tar", "a/1.tar", "a/2.tar"}));
  for (const char *wrong :
       {"{.tar:x", "}.tar:x", "{a}.tar:x", "{2..1}.tar:x", "{1..b}.tar:x",
        "{0..999999999}.tar:x", "{0..9999}{0..9999}.tar:x"})
    EXPECT_NE(paths(wrong).front().find("expected braces"), std::string::npos)
        << wrong;
}

} // namespace
} // namespace tandem::io
