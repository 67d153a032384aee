//===- FileKindTest.cpp - files are told apart by what is in them ---------===//
#include "runtime/io/FileKind.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Npz.h"
#include "runtime/io/Safetensors.h"
#include "tests/runtime/io/Bytes.h"

namespace tandem::io::test {
namespace {

FileKind kindOfText(std::string_view text) {
  Folder folder;
  store(folder / "f", bytesOf(text));
  return fileKind(folder / "f");
}

TEST(FileKind, knowsArraysAndTensors) {
  Folder folder;
  Array a = arrayOf<float>(DType::F32, {2}, {1, 2});
  ASSERT_TRUE(writeNpy(folder / "a", a).ok());
  EXPECT_EQ(fileKind(folder / "a"), FileKind::Npy);
  ASSERT_TRUE(writeNpz(folder / "a", {{"x", a}, {"y", a}}).ok());
  EXPECT_EQ(fileKind(folder / "a"), FileKind::Npz);
  EXPECT_EQ(arraysIn(folder / "a"), (std::vector<std::string>{"x", "y"}));
  ASSERT_TRUE(writeSafetensors(folder / "a", {{"w", a}}, {}).ok());
  EXPECT_EQ(fileKind(folder / "a"), FileKind::Safetensors);
  EXPECT_EQ(arraysIn(folder / "a"), std::vector<std::string>{"w"});
  ASSERT_TRUE(
      writeSafetensors(folder / "a", {{"w", a}}, {{checkpointKey, "3"}}).ok());
  EXPECT_EQ(fileKind(folder / "a"), FileKind::Checkpoint);
  ASSERT_TRUE(
      writeSafetensors(folder / "a", {{"w", a}}, {{initialValuesKey, "m"}})
          .ok());
  EXPECT_EQ(fileKind(folder / "a"), FileKind::InitialValues);
}

TEST(FileKind, knowsTextsByWhatTheyBeginWith) {
  EXPECT_EQ(kindOfText("module @m attributes {tandem.phase = \"joint\"} {}"),
            FileKind::Module);
  EXPECT_EQ(kindOfText("module @m attributes {tandem.graph = \"5f\", "
                       "tandem.phase = \"capture\"} {}"),
            FileKind::Module);
  // Models that are written by hand, or traced, are at the first phase.
  EXPECT_EQ(kindOfText("module @m attributes {tandem.phase = \"capture\"} {}"),
            FileKind::Mlir);
  EXPECT_EQ(kindOfText("// by hand\n\nmodule @m {\n  func.func @graph() {}\n}"),
            FileKind::Mlir);
  EXPECT_EQ(kindOfText("func.func @graph() { return }"), FileKind::Mlir);
  EXPECT_EQ(kindOfText("{\"format\": \"tandem-graph\", \"version\": 1}"),
            FileKind::Graph);
  EXPECT_EQ(kindOfText("{\"epoch\": 1, \"step\": 1, \"loss\": 0.5}\n{\"ep"),
            FileKind::Log);
  EXPECT_EQ(kindOfText("{\"traceEvents\": []}"), FileKind::Profile);
  EXPECT_EQ(kindOfText("{\n \"format\": \"tandem schedules\"}"),
            FileKind::Schedules);
  EXPECT_EQ(kindOfText("{\"model\": \"m\", \"points\": [{\"budget\": 0}]}"),
            FileKind::BudgetCurve);
  EXPECT_EQ(kindOfText("<svg xmlns=\"x\">"), FileKind::Svg);
  EXPECT_EQ(kindOfText(std::string(reportBegin) + "1.0 -->"), FileKind::Report);
  EXPECT_EQ(kindOfText("<!doctype html>\n<p>"), FileKind::Other);
  EXPECT_EQ(kindOfText("row,class\n0,3\n1,-4e-3\n"), FileKind::Csv);
  EXPECT_EQ(kindOfText("class\n3\n4\n"), FileKind::Csv);
  EXPECT_EQ(kindOfText("{\"name\": \"a package\"}"), FileKind::Other);
  EXPECT_EQ(kindOfText("module of a poem"), FileKind::Other);
  EXPECT_EQ(kindOfText("one, two\nthree"), FileKind::Other);
}

TEST(FileKind, knowsWhatIsNoSuchFile) {
  Folder folder;
  EXPECT_EQ(fileKind(folder / "none"), FileKind::Missing);
  EXPECT_EQ(fileKind(folder.path()), FileKind::Special);
  EXPECT_EQ(fileKind("/dev/null"), FileKind::Special);
  EXPECT_EQ(kindOfText("{\"epo"), FileKind::Log);
  EXPECT_EQ(kindOfText("{\"epoch\": 1, \"st"), FileKind::Log);
  EXPECT_EQ(kindOfText(std::string("{\"epoch\": 1, \"st") + '\0'),
            FileKind::Log);
  EXPECT_EQ(kindOfText(""), FileKind::Empty);
  EXPECT_EQ(kindOfText(std::string(5000, '\0')), FileKind::Empty);
  EXPECT_EQ(kindOfText(std::string(5000, '\0') + "1"), FileKind::Other);
  EXPECT_EQ(kindOfText("TANDEM\r\n and so on"), FileKind::Artifact);
  using namespace std::string_view_literals;
  EXPECT_EQ(kindOfText("\x08\x07\x12\x07pytorch"sv), FileKind::Onnx);
  EXPECT_EQ(kindOfText("\x7f"
                       "ELF\0\0\0\0"sv),
            FileKind::Other);
  EXPECT_EQ(kindOfText("garbage!!"), FileKind::Other);
  // A header that lies about its length, and one that is no JSON.
  EXPECT_EQ(kindOfText("\xff\xff\xff\xff\xff\xff\xff\xff{\"a\": 1}"sv),
            FileKind::Other);
  EXPECT_EQ(kindOfText("\x04\0\0\0\0\0\0\0{ \"a and more"sv), FileKind::Other);
}

} // namespace
} // namespace tandem::io::test
