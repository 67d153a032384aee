//===- NpzTest.cpp - .npz files against NumPy's own bytes -----------------===//
#include "runtime/io/Npz.h"
#include "tests/runtime/io/Bytes.h"
#include "tests/runtime/io/Fixture.h"

namespace tandem::io::test {
namespace {

Array readMember(const std::string &name, const std::string &member) {
  auto array = readNpz(fixture(name), member, "");
  EXPECT_TRUE(array.ok()) << array.status().message();
  return array ? *array : Array();
}

std::string problem(Bytes bytes) {
  auto archive = NpzArchive::open(bytes);
  if (!archive)
    return archive.status().message();
  for (const std::string &name : archive->names()) {
    auto array = archive->read(name);
    if (!array)
      return array.status().message();
  }
  return "";
}

/// Returns the offset of the first `needle` in `bytes`.
size_t find(Bytes bytes, std::string_view needle) {
  size_t at = asText(bytes).find(needle);
  EXPECT_NE(at, std::string_view::npos);
  return at;
}

constexpr std::string_view centralMagic = "PK\x01\x02";
constexpr std::string_view endMagic = "PK\x05\x06";

TEST(Npz, readsStoredMembers) {
  Array x = readMember("stored.npz", "x");
  EXPECT_EQ(x.dtype, DType::F32);
  EXPECT_EQ(x.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(elements<float>(x), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements<int64_t>(readMember("stored.npz", "labels")),
            (std::vector<int64_t>{0, 2}));
}

TEST(Npz, readsDeflatedMembers) {
  EXPECT_EQ(elements<float>(readMember("deflated.npz", "x")),
            std::vector<float>(64, 0.0f));
  EXPECT_EQ(elements<int64_t>(readMember("deflated.npz", "y")),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Npz, findsTheOnlyArrayByItself) {
  EXPECT_EQ(elements<double>(readMember("single.npz", "")),
            (std::vector<double>{1, 2}));
  auto array = readNpz(fixture("stored.npz"), "", "labels");
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(array->dtype, DType::I64);
  EXPECT_EQ(readNpz(fixture("stored.npz"), "y", "").status().message(),
            "'" + fixture("stored.npz") +
                "': has no array 'y'; it has 'labels', 'x'");
}

TEST(Npz, writesWhatItReads) {
  Folder folder;
  Array x = arrayOf<float>(DType::F32, {2, 2}, {1, 2, 3, 4});
  Array b = arrayOf<uint16_t>(DType::BF16, {1}, {0x3f80});
  Array empty = arrayOf<double>(DType::F64, {0, 2}, {});
  ASSERT_TRUE(
      writeNpz(folder / "a.npz", {{"x", x}, {"b", b}, {"empty", empty}}).ok());
  auto back = readNpz(folder / "a.npz", "x", "");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->bytes, x.bytes);
  EXPECT_EQ(back->shape, x.shape);
  EXPECT_EQ(elements<float>(*readNpz(folder / "a.npz", "b", "")),
            std::vector<float>{1});
  EXPECT_EQ(readNpz(folder / "a.npz", "empty", "")->shape, empty.shape);

  // The same arrays give the same bytes.
  ASSERT_TRUE(
      writeNpz(folder / "b.npz", {{"empty", empty}, {"b", b}, {"x", x}}).ok());
  EXPECT_EQ(load(folder / "a.npz"), load(folder / "b.npz"));
}

TEST(Npz, noticesDamage) {
  std::vector<std::byte> bytes = load(fixture("stored.npz"));
  bytes[find(bytes, "NUMPY") + 130] ^= std::byte{1};
  EXPECT_EQ(problem(bytes), "array 'x' is damaged: its checksum differs");

  bytes = load(fixture("deflated.npz"));
  size_t central = find(bytes, centralMagic);
  // The unpacked size of the first member, one too small and one too large.
  bytes[central + 24] = std::byte(uint8_t(bytes[central + 24]) - 1);
  EXPECT_EQ(problem(bytes), "array 'x' cannot be read: npy data at byte 128: "
                            "expected 256 bytes for f32 [8, 8] but got 255");
  bytes[central + 24] = std::byte(uint8_t(bytes[central + 24]) + 2);
  EXPECT_EQ(problem(bytes), "array 'x' cannot be read: npy data at byte 128: "
                            "expected 256 bytes for f32 [8, 8] but got 257");
  bytes[central + 27] = std::byte{0x7f};
  EXPECT_NE(problem(bytes).find("that its data cannot unpack to"),
            std::string::npos);
}

TEST(Npz, refusesWhatItCannotUnpack) {
  std::vector<std::byte> bytes = load(fixture("stored.npz"));
  size_t central = find(bytes, centralMagic);
  bytes[central + 10] = std::byte{12};
  EXPECT_EQ(problem(bytes), "array 'x' is packed by zip method 12; expected 0 "
                            "(stored) or 8 (deflated)");
  bytes[central + 8] = std::byte{1};
  EXPECT_EQ(problem(bytes), "array 'x' is encrypted; expected a plain npz");
}

// Attack 8: an archive of 2 GB of zeros took 7.4 s before it was refused. What
// is at its begin is looked at first.
TEST(Npz, looksBeforeItUnpacks) {
  std::vector<std::byte> bytes = load(fixture("deflated.npz"));
  auto archive = NpzArchive::open(bytes);
  ASSERT_TRUE(archive);
  std::string seen;
  auto refused = archive->read("x", [&](DType dtype, auto shape) {
    seen = std::string(spelling(dtype)) + " " + shapeText(shape);
    return Status::usage("expected something else");
  });
  EXPECT_EQ(seen, "f32 [8, 8]");
  EXPECT_EQ(refused.status().message(),
            "array 'x' was not unpacked: expected something else");
  EXPECT_EQ(refused.status().code(), Code::Usage);
  EXPECT_TRUE(
      archive->read("x", [](DType, auto) { return Status::success(); }));
}

TEST(Npz, refusesRepeatedNames) {
  std::vector<std::byte> bytes = load(fixture("deflated.npz"));
  size_t second = asText(bytes).rfind("y.npy");
  bytes[second] = std::byte{'x'};
  size_t entry = asText(bytes).rfind(centralMagic);
  EXPECT_EQ(problem(bytes), "malformed npz at byte " + std::to_string(entry) +
                                ": array 'x' occurs twice");
}

TEST(Npz, refusesDirectoriesThatLead) {
  std::vector<std::byte> bytes = load(fixture("stored.npz"));
  size_t end = find(bytes, endMagic);
  bytes[end + 19] = std::byte{1}; // the directory's offset
  EXPECT_EQ(problem(bytes), "malformed npz at byte " + std::to_string(end) +
                                ": its directory lies outside the file");
  bytes = load(fixture("stored.npz"));
  bytes[end + 10] = std::byte{3}; // one member more than there are
  EXPECT_NE(problem(bytes).find("expected entry 3 of 3 of the directory"),
            std::string::npos);
  bytes = load(fixture("stored.npz"));
  size_t central = find(bytes, centralMagic);
  bytes[central + 44] = std::byte{0x10}; // a member's header
  EXPECT_NE(problem(bytes).find("expected its header at byte"),
            std::string::npos);
}

TEST(Npz, refusesEveryTruncation) {
  std::vector<std::byte> whole = load(fixture("single.npz"));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_NE(problem(Bytes(whole).first(bytes)), "") << bytes;
  EXPECT_EQ(problem({}), "not an npz file: expected it to begin with 'PK'");
}

} // namespace
} // namespace tandem::io::test
