//===- TensorFilesTest.cpp - tensors in several files and an index --------===//
//
// X05, X18: a tensor in pieces is read in any other blocks; what an index or a
// file says that is not so is an error that names it.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/TensorFiles.h"
#include "tests/runtime/io/Bytes.h"
#include "tests/runtime/io/Fixture.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <zlib.h>

namespace tandem::io::test {
namespace {

using Json = nlohmann::json;

class TensorFilesTest : public ::testing::Test {
protected:
  /// Writes w, 6 x 4 of 0, 1, ..., in four pieces of which none is like
  /// another, and b whole.
  void SetUp() override {
    put("one.safetensors",
        {{"w@0,0", block(0, 0, 2, 3)}, {"w@2,0", block(2, 0, 4, 1)}});
    put("two.safetensors", {{"w@0,3", block(0, 3, 2, 1)},
                            {"w@2,1", block(2, 1, 4, 3)},
                            {"b", arrayOf<int64_t>(DType::I64, {2}, {7, 8})}});
    index["metadata"] = {{"total_size", 112}, {"k", "v"}};
    index["weight_map"] = {{"b", "two.safetensors"}};
    auto &pieces = index["tandem"]["tensors"]["w"];
    pieces["shape"] = {6, 4};
    auto piece = [&](const char *file, std::vector<int64_t> begin,
                     std::vector<int64_t> shape) {
      pieces["pieces"].push_back({{"file", file},
                                  {"name", "w@" + std::to_string(begin[0]) +
                                               "," + std::to_string(begin[1])},
                                  {"begin", begin},
                                  {"shape", shape}});
    };
    piece("one.safetensors", {0, 0}, {2, 3});
    piece("one.safetensors", {2, 0}, {4, 1});
    piece("two.safetensors", {0, 3}, {2, 1});
    piece("two.safetensors", {2, 1}, {4, 3});
  }

  static Array block(int64_t row, int64_t column, int64_t rows,
                     int64_t columns) {
    std::vector<float> values;
    for (int64_t r = row; r < row + rows; ++r)
      for (int64_t c = column; c < column + columns; ++c)
        values.push_back(float(r * 4 + c));
    return arrayOf<float>(DType::F32, {rows, columns}, values);
  }

  /// Writes a file and says in the index what it has.
  void put(const std::string &name,
           const std::map<std::string, Array> &arrays) {
    std::map<std::string, ArrayView> views(arrays.begin(), arrays.end());
    ASSERT_TRUE(writeSafetensors(folder / name, views, {}).ok());
    Json &file = index["tandem"]["files"][name];
    file["bytes"] = load(folder / name).size();
    for (const auto &[tensor, array] : arrays)
      file["checksums"][tensor] =
          crc32_z(0, reinterpret_cast<const Bytef *>(array.bytes.data()),
                  array.bytes.size());
  }

  std::string path(const std::string &text) const {
    std::string file = folder / "w.safetensors.index.json";
    EXPECT_TRUE(replaceFile(file, {{std::as_bytes(std::span(text))}}).ok());
    return file;
  }
  Result<TensorFiles> open() const {
    return TensorFiles::open(path(index.dump()));
  }

  /// What opening, and then reading all, says after `change`.
  std::string problem(const std::function<void(Json &)> &change) const {
    Json other = index;
    change(other);
    return problemOf(other.dump());
  }
  std::string problemOf(const std::string &text) const {
    auto files = TensorFiles::open(path(text));
    if (!files)
      return files.status().message();
    for (const auto &[name, entry] : files->entries())
      if (auto read = files->read(name); !read)
        return read.status().message();
    return "";
  }
  static Json &piece(Json &json, size_t i) {
    return json["tandem"]["tensors"]["w"]["pieces"][i];
  }

  Folder folder;
  Json index;
};

/// The message has this text.
void expectSays(const std::string &message, const std::string &text) {
  EXPECT_NE(message.find(text), std::string::npos)
      << "expected " << text << " in: " << message;
}

TEST_F(TensorFilesTest, X18_readsAnyBlockOfPieces) {
  auto files = open();
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_TRUE(files->isIndex());
  EXPECT_EQ(files->metadata(),
            (std::map<std::string, std::string>{{"k", "v"}}));
  EXPECT_EQ(files->read("b")->bytes,
            arrayOf<int64_t>(DType::I64, {2}, {7, 8}).bytes);
  for (int64_t row = 0; row <= 6; ++row)
    for (int64_t column = 0; column <= 4; ++column)
      for (int64_t rows = 0; row + rows <= 6; ++rows)
        for (int64_t columns = 0; column + columns <= 4; ++columns) {
          std::vector<int64_t> begin = {row, column}, sizes = {rows, columns};
          auto read = files->read("w", begin, sizes);
          ASSERT_TRUE(read.ok());
          EXPECT_EQ(read->shape, sizes);
          ASSERT_EQ(read->bytes, block(row, column, rows, columns).bytes);
        }
}

TEST_F(TensorFilesTest, X18_aFileAFolderAndAnIndexOfOthersAreReadAlike) {
  path(index.dump());
  auto inFolder = TensorFiles::open(folder.path());
  ASSERT_TRUE(inFolder.ok()) << inFolder.status().message();
  EXPECT_EQ(inFolder->read("w")->bytes, block(0, 0, 6, 4).bytes);
  // As Hugging Face's tools write it.
  Json other = {{"metadata", {{"total_size", 16}, {"format", "pt"}}},
                {"weight_map", {{"b", "two.safetensors"}}}};
  auto files = TensorFiles::open(path(other.dump()));
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ(files->entries().size(), 1u);
  EXPECT_EQ(files->read("b")->bytes.size(), 16u);
  auto single = TensorFiles::open(folder / "two.safetensors");
  ASSERT_TRUE(single.ok()) << single.status().message();
  EXPECT_FALSE(single->isIndex());
  EXPECT_EQ(single->entries().size(), 3u);

  ASSERT_TRUE(replaceFile(folder / "v.safetensors.index.json", {}).ok());
  expectSays(TensorFiles::open(folder.path()).status().message(),
             "has several indices");
  Folder empty;
  expectSays(TensorFiles::open(empty.path()).status().message(),
             "has no file that ends in .safetensors.index.json");
}

TEST_F(TensorFilesTest, X18_whatIsWrongWithPiecesNamesThem) {
  EXPECT_EQ(problem([](Json &) {}), "");
  expectSays(problem([](Json &json) {
               piece(json, 3)["begin"] = {1, 1};
             }),
             "tensor 'w': the pieces 'w@0,0' of 'one.safetensors' and 'w@2,1' "
             "of 'two.safetensors' overlap");
  expectSays(problem([](Json &json) {
               json["tandem"]["tensors"]["w"]["pieces"].erase(2);
             }),
             "tensor 'w': its pieces lack 2 of its elements");
  expectSays(problem([](Json &json) {
               json["tandem"]["tensors"]["w"]["pieces"] = Json::array();
             }),
             "tensor 'w': it has no pieces");
  expectSays(problem([](Json &json) {
               piece(json, 3)["begin"] = {2, 2};
             }),
             "tensor 'w': the piece at [2, 2] of [4, 3] is not inside of [6, "
             "4]");
  expectSays(problem([](Json &json) {
               piece(json, 3)["begin"] = {-1, 1};
             }),
             "expected a piece to have");
  expectSays(problem([](Json &json) {
               piece(json, 3)["begin"] = {INT64_MAX, 1};
             }),
             "is not inside of");
  expectSays(problem([](Json &json) {
               piece(json, 3)["shape"] = {INT64_MAX, 3};
             }),
             "is not inside of");
  expectSays(problem([](Json &json) { piece(json, 3)["begin"] = {2}; }),
             "is not inside of");
  expectSays(problem([](Json &json) {
               json["tandem"]["tensors"]["w"]["shape"] = {int64_t(1) << 40,
                                                          int64_t(1) << 40};
             }),
             "tensor 'w': expected 'shape'");
  expectSays(problem([](Json &json) {
               piece(json, 0)["shape"] = {3, 2};
               piece(json, 1)["begin"] = {3, 0};
             }),
             "is not inside of");
  // Blocks that fit, but not what the file has.
  expectSays(problem([](Json &json) {
               piece(json, 0)["shape"] = {2, 1};
               piece(json, 2) = piece(json, 0);
               piece(json, 2)["begin"] = {0, 1};
               piece(json, 2)["shape"] = {2, 3};
             }),
             "tensor 'w': file 'one.safetensors' has 'w@0,0' of [2, 3], "
             "expected [2, 1]");
  expectSays(problem([](Json &json) { piece(json, 0)["name"] = "v"; }),
             "tensor 'w': file 'one.safetensors' has no tensor 'v'");
  expectSays(
      problem([](Json &json) { json["weight_map"]["w"] = "one.safetensors"; }),
      "tensor 'w': is in 'weight_map' as well");
}

TEST_F(TensorFilesTest, X18_whatIsWrongWithFilesNamesThem) {
  expectSays(problem([](Json &json) { piece(json, 0)["file"] = "no"; }),
             "does not say how large file 'no' is");
  for (const char *name : {"../one.safetensors", "/dev/zero", "..", ""})
    expectSays(problem([&](Json &json) { piece(json, 0)["file"] = name; }),
               "expected a piece to have 'file', of the same folder");
  expectSays(problem([](Json &json) { json["weight_map"]["b"] = "a/b"; }),
             "tensor 'b': expected the name of a file of the same folder");
  expectSays(problem([](Json &json) {
               json["tandem"]["files"]["two.safetensors"]["checksums"].erase(
                   "b");
             }),
             "tensor 'b': file 'two.safetensors' has no checksum of 'b'");
  expectSays(problem([](Json &json) {
               json["tandem"]["files"]["two.safetensors"]["checksums"]["b"] =
                   uint64_t(1) << 32;
             }),
             "is no number of 32 bits");
  // One that another save wrote: as large, and with the same names.
  std::vector<std::byte> before = load(folder / "two.safetensors");
  std::vector<std::byte> after = before;
  after.back() ^= std::byte(1);
  auto write = [&](std::vector<std::byte> bytes) {
    Bytes all = bytes;
    ASSERT_TRUE(replaceFile(folder / "two.safetensors", {{all}}).ok());
  };
  write(after);
  expectSays(problem([](Json &) {}),
             "in file 'two.safetensors' are not those that the index was "
             "written for");
  // What is not asked for is not looked at.
  auto files = open();
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_TRUE(
      files->read("w", std::vector<int64_t>{0, 0}, std::vector<int64_t>{2, 3})
          .ok());
  after = before;
  after.resize(after.size() - 4);
  write(after);
  expectSays(problem([](Json &) {}), "'" + (folder / "two.safetensors") + "'");
  after = before;
  Array more = arrayOf<int64_t>(DType::I64, {3}, {7, 8, 9});
  ASSERT_TRUE(
      writeSafetensors(folder / "two.safetensors", {{"b", more}}, {}).ok());
  expectSays(problem([](Json &) {}), "file 'two.safetensors': expected");
  std::filesystem::remove(folder / "two.safetensors");
  expectSays(problem([](Json &) {}), "two.safetensors': No such file");
}

TEST_F(TensorFilesTest, X18_anyTextIsNoIndexWithoutAReason) {
  expectSays(problemOf("{"), "not an index of tensors");
  expectSays(problemOf("{}"), "expected an object 'weight_map'");
  expectSays(problemOf(R"({"weight_map":{"a":"x","a":"y"}})"),
             "key 'a' is there twice");
  expectSays(problemOf(R"({"weight_map":{"a":3}})"), "tensor 'a'");
  expectSays(problemOf(R"({"weight_map":{},"tandem":{"files":[]}})"),
             "expected 'files' to be an object");
  expectSays(problemOf(R"({"weight_map":{},"tandem":{"tensors":3}})"),
             "expected 'tensors' to be an object");
  expectSays(problemOf(""), "safetensors");
}

TEST_F(TensorFilesTest, X18_anIndexIsWrittenAsItIsRead) {
  auto read = TensorIndex::parse(index.dump());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(Json::parse(read->text()), index);
}

} // namespace
} // namespace tandem::io::test
