//===- SafetensorsTest.cpp - reading and writing safetensors files --------===//
#include "runtime/io/Safetensors.h"
#include "tests/runtime/io/Bytes.h"
#include "tests/runtime/io/Fixture.h"

namespace tandem::io::test {
namespace {

std::vector<std::byte> file(const std::string &header, std::string_view data) {
  std::vector<std::byte> bytes;
  appendInteger<uint64_t>(bytes, header.size());
  appendText(bytes, header);
  appendText(bytes, data);
  return bytes;
}

std::string problem(const std::vector<std::byte> &bytes) {
  auto parsed = Safetensors::parse(bytes);
  return parsed ? "" : parsed.status().message();
}

/// An entry of the header.
std::string entry(const char *name, const char *dtype, const char *shape,
                  int begin, int end) {
  return std::string("\"") + name + R"(":{"dtype":")" + dtype +
         R"(","shape":)" + shape + R"(,"data_offsets":[)" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

TEST(Safetensors, readsTensorsAndMetadata) {
  auto parsed = Safetensors::parse(
      file(R"({"__metadata__":{"step":"7"},)" + entry("b", "I16", "[2]", 4, 8) +
               "," + entry("a", "U8", "[2,2]", 0, 4) + "}  ",
           std::string_view("\1\2\3\4\5\0\6\0", 8)));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->metadata().at("step"), "7");
  EXPECT_EQ(parsed->entries().size(), 2u);
  auto a = parsed->find("a"), b = parsed->find("b");
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->dtype, DType::U8);
  EXPECT_EQ(elements<uint8_t>(*a), (std::vector<uint8_t>{1, 2, 3, 4}));
  EXPECT_EQ(elements<int16_t>(*b), (std::vector<int16_t>{5, 6}));
  EXPECT_FALSE(parsed->find("c"));
}

TEST(Safetensors, readsWhatThePackageWrites) {
  auto file = Safetensors::read(fixture("package.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->metadata().at("k"), "v");
  EXPECT_EQ(file->entries().size(), 3u);
  EXPECT_EQ(elements<int64_t>(*file->find("a")),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements<float>(*file->find("b")), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(elements<uint8_t>(*file->find("c")), std::vector<uint8_t>{1});
}

TEST(Safetensors, writesKnownBytes) {
  Folder folder;
  Array z = arrayOf<uint8_t>(DType::U8, {1}, {9});
  Array a = arrayOf<uint8_t>(DType::Bool, {}, {1});
  Array m = arrayOf<float>(DType::F32, {2}, {1, 2});
  ASSERT_TRUE(writeSafetensors(folder / "f.safetensors",
                               {{"z", z}, {"a", a}, {"m", m}}, {{"k", "v"}})
                  .ok());
  std::string header = R"({"__metadata__":{"k":"v"},)"
                       R"("a":{"data_offsets":[8,9],"dtype":"BOOL",)"
                       R"("shape":[]},)"
                       R"("m":{"data_offsets":[0,8],"dtype":"F32",)"
                       R"("shape":[2]},)"
                       R"("z":{"data_offsets":[9,10],"dtype":"U8",)"
                       R"("shape":[1]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(load(folder / "f.safetensors"),
            file(header, std::string_view("\0\0\x80\x3f\0\0\0\x40\1\x09", 10)));
}

TEST(Safetensors, keepsEveryTypeThroughAFile) {
  Folder folder;
  std::map<std::string, Array> arrays;
  std::map<std::string, ArrayView> views;
  for (int i = 0; i <= int(artifact::kLastDType); ++i) {
    auto dtype = static_cast<DType>(i);
    Array array{dtype, {3, 1}, {}};
    for (int64_t j = 0; j < 3 * byteSize(dtype); ++j)
      array.bytes.push_back(
          std::byte(dtype == DType::Bool ? j % 2 : j + 7 * i));
    arrays[std::string(spelling(dtype))] = array;
  }
  arrays["empty"] = Array{DType::F32, {0, 4}, {}};
  arrays["name with \"quotes\" and \n"] = Array{DType::U8, {0}, {}};
  for (const auto &[name, array] : arrays)
    views.emplace(name, array);
  std::map<std::string, std::string> metadata = {{"epoch", "3"}, {"", "x"}};
  ASSERT_TRUE(writeSafetensors(folder / "f.safetensors", views, metadata).ok());
  auto back = Safetensors::read(folder / "f.safetensors");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->metadata(), metadata);
  EXPECT_EQ(back->entries().size(), arrays.size());
  for (const auto &[name, array] : arrays) {
    auto view = back->find(name);
    ASSERT_TRUE(view) << name;
    EXPECT_EQ(view->dtype, array.dtype);
    EXPECT_TRUE(std::equal(view->shape.begin(), view->shape.end(),
                           array.shape.begin(), array.shape.end()));
    EXPECT_TRUE(std::equal(view->bytes.begin(), view->bytes.end(),
                           array.bytes.begin(), array.bytes.end()));
  }
}

TEST(Safetensors, refusesOverlapsAndHoles) {
  EXPECT_EQ(problem(file("{" + entry("a", "U8", "[4]", 0, 4) + "," +
                             entry("b", "U8", "[4]", 2, 6) + "}",
                         "012345")),
            "tensors 'a' and 'b' overlap");
  std::string one = "{" + entry("a", "U8", "[2]", 1, 3) + "}";
  std::string start = std::to_string(8 + one.size());
  EXPECT_EQ(problem(file(one, "0123")),
            "bytes " + start + " to " + std::to_string(9 + one.size()) +
                " belong to no tensor; bytes " +
                std::to_string(11 + one.size()) + " to " +
                std::to_string(12 + one.size()) + " belong to no tensor");
}

TEST(Safetensors, reportsAllProblemsAtOnce) {
  EXPECT_EQ(
      problem(file("{" + entry("a", "F32", "[2]", 0, 4) + "," +
                       entry("b", "U8", "[4]", 4, 99) + "," +
                       entry("c", "C64", "[]", 0, 8) + R"(,"d":3,)" +
                       entry("e", "F32", "[-1]", 0, 4) + "," +
                       entry("f", "F32", "[1.5]", 0, 4) + "," +
                       entry("g", "F32", "[4294967296,4294967296]", 0, 8) + "}",
                   "01234567")),
      "tensor 'a' expected 8 bytes for f32 [2] but got 4; "
      "tensor 'b' has offsets [4, 99] outside the data of 8 bytes; "
      "tensor 'c' has elements of type 'C64'; expected one of BOOL, I8, U8, "
      "I16, I32, I64, F16, BF16, F32, F64, U16, U32, U64, F8_E4M3, F8_E5M2; "
      "tensor 'd' expected an object with 'dtype', 'shape', 'data_offsets'; "
      "tensor 'e' expected 'shape' to be a list of non-negative integers; "
      "tensor 'f' expected 'shape' to be a list of non-negative integers; "
      "tensor 'g' expected more than 2^62 bytes for f32 "
      "[4294967296, 4294967296] but got 8");
}

TEST(Safetensors, tellsUnsupportedFromWrong) {
  auto parsed = Safetensors::parse(
      file("{" + entry("c", "C64", "[]", 0, 8) + "}", "01234567"));
  EXPECT_EQ(parsed.status().code(), Code::Unsupported);
}

TEST(Safetensors, refusesHeadersThatAreNone) {
  EXPECT_EQ(problem(bytesOf("1234567")),
            "not a safetensors file: expected at least 8 bytes but got 7");
  EXPECT_EQ(problem(bytesOf(std::string_view("\x09\0\0\0\0\0\0\0{}", 10))),
            "not a safetensors file, or cut short: expected a header of 9 "
            "bytes but got 2");
  EXPECT_EQ(problem(file("[]", "")),
            "not a safetensors file: expected '{' at byte 8");
  EXPECT_EQ(problem(file(R"({"a":})", "")),
            "header is not JSON: error at byte 14");
  EXPECT_EQ(problem(file(R"({"a":1e999})", "")),
            "header: number overflow parsing '1e999'");
  EXPECT_EQ(problem(file(R"({"__metadata__":{"a":1}})", "")),
            "expected metadata 'a' to be a string");
  EXPECT_EQ(problem(file("{" + entry("a", "U8", "[]", 0, 1) + "," +
                             entry("a", "U8", "[]", 0, 1) + "}",
                         "0")),
            "header: key 'a' is there twice");
  EXPECT_NE(problem(file(std::string(200000, '['), "")), "");
  EXPECT_EQ(problem(file("{\"a\":" + std::string(200000, '['), "")),
            "header: expected at most 8 levels of lists and objects");
}

TEST(Safetensors, refusesBoolsThatAreNone) {
  std::string header = "{" + entry("a", "BOOL", "[2]", 0, 2) + "}";
  EXPECT_EQ(problem(file(header, "\1\2")),
            "tensor 'a': byte " + std::to_string(9 + header.size()) +
                " is no bool: expected 0 or 1 but got 2");
}

TEST(Safetensors, refusesEveryTruncation) {
  std::vector<std::byte> whole =
      file("{" + entry("a", "F32", "[2]", 0, 8) + "}", "01234567");
  ASSERT_EQ(problem(whole), "");
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_NE(problem({whole.begin(), whole.begin() + long(bytes)}), "")
        << bytes;
}

} // namespace
} // namespace tandem::io::test
