//===- CoreArtifactTest.cpp - files, whole and damaged --------------------===//
//
// Round trips of the artifact and its manifest, and what happens to a file of
// which any byte was changed, or any tail cut off.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ArtifactFormat.h"
#include "tests/runtime/TestModel.h"
#include "tests/support/Folder.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

using namespace tandem;
using namespace tandem::artifact;
using namespace tandem::test;
namespace fs = std::filesystem;

namespace {

Result<ArtifactReader> readBytes(const std::string &bytes) {
  return ArtifactReader::fromMemory(std::as_bytes(std::span(bytes)));
}

std::string fileOf(const Manifest &manifest) {
  return *writerFor(manifest).bytes();
}

class Folder : public ::testing::Test {
protected:
  tandem::test::Folder made;
  const fs::path folder = made.path();
};

TEST(Artifact, RoundTripAndSameBytes) {
  std::string bytes = fileOf(regression());
  EXPECT_EQ(bytes, fileOf(regression()));
  Result<ArtifactReader> reader = readBytes(bytes);
  ASSERT_TRUE(reader) << reader.status().message();
  EXPECT_EQ(reader->manifest(), regression());
  EXPECT_EQ(reader->section("object.cpu").size(), kernelObject().size());
  EXPECT_EQ(reader->section("constants").size(), 128u);
  EXPECT_TRUE(reader->section("nothing").empty());
  for (const auto &section : reader->sections())
    EXPECT_EQ(reinterpret_cast<uintptr_t>(section.bytes.data()) % 64, 0u);
}

TEST(Artifact, EveryChangedByteIsNoticed) {
  std::string bytes = fileOf(regression());
  // Every byte up to the end of the manifest; then one in a prime distance.
  size_t dense = sectionAlignment + 20000;
  for (size_t i = 0; i < bytes.size(); i += i < dense ? 1 : 97) {
    std::string altered = bytes;
    altered[i] = static_cast<char>(altered[i] ^ (1 << i % 8));
    Result<ArtifactReader> reader = readBytes(altered);
    ASSERT_FALSE(reader) << "byte " << i;
    ASSERT_FALSE(reader.status().message().empty());
  }
}

TEST(Artifact, EveryTruncationIsNoticed) {
  std::string bytes = fileOf(regression());
  std::vector<size_t> ends = {0, 1, 7, 8, 31, 32, 33, 71, 72, 151, 152, 153};
  for (size_t end = sectionAlignment; end < bytes.size();
       end += sectionAlignment)
    for (size_t near : {end - 1, end, end + 1})
      ends.push_back(near);
  ends.push_back(bytes.size() - 1);
  for (size_t end : ends)
    ASSERT_FALSE(readBytes(bytes.substr(0, end))) << "cut at " << end;
  ASSERT_FALSE(readBytes(bytes + '\0'));
}

/// Rewrites the section table with right checksums after `change`.
std::string withTable(
    const std::function<void(ArtifactHeader &, std::vector<SectionEntry> &)>
        &change) {
  std::string bytes = fileOf(regression());
  ArtifactHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::vector<SectionEntry> table(header.sectionCount);
  std::memcpy(table.data(), bytes.data() + sizeof(header),
              table.size() * sizeof(SectionEntry));
  change(header, table);
  header.tableCrc = checksum(table.data(), table.size() * sizeof(SectionEntry));
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), table.data(),
              table.size() * sizeof(SectionEntry));
  return bytes;
}

TEST(Artifact, HostileTablesAreRefused) {
  using Table = std::vector<SectionEntry>;
  auto message = [](auto change) {
    Result<ArtifactReader> reader = readBytes(withTable(change));
    return reader ? std::string("accepted") : reader.status().message();
  };
  auto has = [](const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(readBytes(withTable([](ArtifactHeader &, Table &) {})));
  EXPECT_PRED2(has, message([](ArtifactHeader &, Table &t) {
                 t[1].offset = t[0].offset;
               }),
               "overlaps");
  EXPECT_PRED2(has,
               message([](ArtifactHeader &, Table &t) { t[1].offset += 64; }),
               "multiple of 4096");
  EXPECT_PRED2(has, message([](ArtifactHeader &, Table &t) {
                 t[2].bytes = UINT64_MAX - 4095;
               }),
               "outside the file");
  EXPECT_PRED2(has, message([](ArtifactHeader &, Table &t) {
                 t[2].offset = UINT64_MAX - 4095;
               }),
               "outside the file");
  EXPECT_PRED2(has, message([](ArtifactHeader &, Table &t) {
                 std::strncpy(t[1].name, "manifest", sizeof(t[1].name));
               }),
               "repeated");
  EXPECT_PRED2(has, message([](ArtifactHeader &, Table &t) {
                 std::memset(t[1].name, 'x', sizeof(t[1].name));
               }),
               "not text");
  EXPECT_PRED2(has, message([](ArtifactHeader &, Table &t) {
                 std::strncpy(t[0].name, "elsewhere", sizeof(t[0].name));
               }),
               "no section 'manifest'");
  EXPECT_PRED2(has, message([](ArtifactHeader &h, Table &) { h.format = 3; }),
               "artifact has format 3, but this runtime (");
  EXPECT_PRED2(has, message([](ArtifactHeader &h, Table &) { h.format = 1; }),
               ") reads 2 to 2");
  EXPECT_PRED2(has, message([](ArtifactHeader &h, Table &) {
                 h.sectionCount = UINT32_MAX;
               }),
               "sections");
}

TEST(Artifact, OtherFilesAreRefused) {
  EXPECT_FALSE(readBytes("not an artifact at all, but long enough for one"));
  EXPECT_FALSE(ArtifactReader::open("/"));
  EXPECT_FALSE(ArtifactReader::open("/dev/null"));
  Status status = ArtifactReader::open("/nowhere/x.tdm").status();
  EXPECT_EQ(status.message(),
            "cannot open '/nowhere/x.tdm': No such file or directory");
}

TEST_F(Folder, WritesWholeFilesOnly) {
  fs::path path = folder / "x.tdm";
  ASSERT_TRUE(writerFor(regression()).write(path).ok());
  Result<ArtifactReader> reader = ArtifactReader::open(path);
  ASSERT_TRUE(reader) << reader.status().message();
  EXPECT_EQ(reader->fileBytes(), fs::file_size(path));
  // A manifest that would be refused leaves the earlier file alone.
  Manifest broken = regression();
  broken.programs[0].launches[0].kernel = 99;
  EXPECT_FALSE(writerFor(broken).write(path).ok());
  EXPECT_TRUE(ArtifactReader::open(path));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(Folder, AFullDiskLeavesNothing) {
  Status status = writerFor(regression()).write("/dev/full");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message(),
            "cannot write '/dev/full': No space left on device");
  EXPECT_FALSE(writerFor(regression()).write(folder).ok());
  EXPECT_FALSE(writerFor(regression()).write(folder / "no" / "x.tdm").ok());
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(Folder, AnOpenReaderSurvivesReplacement) {
  fs::path path = folder / "x.tdm";
  ASSERT_TRUE(writerFor(regression()).write(path).ok());
  Result<ArtifactReader> reader = ArtifactReader::open(path);
  ASSERT_TRUE(reader);
  std::vector<std::byte> before(reader->section("constants").begin(),
                                reader->section("constants").end());
  ASSERT_TRUE(writerFor(wide(16, 1)).write(path).ok());
  EXPECT_TRUE(std::equal(before.begin(), before.end(),
                         reader->section("constants").begin()));
  EXPECT_EQ(ArtifactReader::open(path)->manifest().model, "wide");
}

TEST_F(Folder, LinksAreFollowedAndModesKept) {
  fs::path path = folder / "x.tdm", link = folder / "link.tdm";
  ASSERT_TRUE(writerFor(regression()).write(path).ok());
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  fs::create_symlink(path, link);
  ASSERT_TRUE(writerFor(wide(16, 1)).write(link).ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(ArtifactReader::open(path)->manifest().model, "wide");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
}

TEST(Manifest, JsonIsTheDocumentedOne) {
  Manifest m;
  m.model = "m";
  m.producer = "p";
  m.target.arch = "znver4";
  m.target.features = {"avx2"};
  Value w;
  w.role = Role::Param;
  w.name = "w";
  w.shape = {2};
  w.requiresGrad = true;
  w.init = Init::uniform(-0.1, 0.1);
  m.values = {w};
  EXPECT_EQ(*toJson(m),
            R"({"format":2,"model":"m","producer":"p","target":{"kind":"cpu",)"
            R"("arch":"znver4","features":["avx2"]},"values":[{"role":"param",)"
            R"("name":"w","dtype":"f32","shape":[2],"requires_grad":true,)"
            R"("init":{"kind":"uniform","low":-0.1,"high":0.1}}],"kernels":[],)"
            R"("programs":[],"mutated_in_backward":[]})"
            "\n");
  EXPECT_EQ(*fromJson(*toJson(m)), m);
  EXPECT_EQ(*fromJson(*toJson(regression())), regression());
}

} // namespace
