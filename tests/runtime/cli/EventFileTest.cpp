//===- EventFileTest.cpp - a training for TensorBoard, and as a picture ---===//
//
// The golden records are those of TensorBoard's own RecordWriter (2.21) for the
// same events.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/AppendedFile.h"
#include "tools/commands/Curves.h"
#include "tools/commands/Log.h"

#include "tests/runtime/io/Bytes.h"

#include <cmath>
#include <filesystem>
#include <fstream>

using namespace tandem;
using namespace tandem::commands;

namespace {

std::string hexOf(const std::string &bytes) {
  std::string text;
  for (char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<uint8_t>(c));
    text += digits;
  }
  return text;
}

// RFC 3720, B.4.
TEST(EventFile, crc32cIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
}

TEST(EventFile, recordsAreTensorBoards) {
  EXPECT_EQ(hexOf(versionRecord(1.5)),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e"
            "743a322a28646c");
  EXPECT_EQ(hexOf(startRecord(1.5, 301)),
            "100000000000000095fbfe1809000000000000f83f10ad023a020801d17949d4");
  const Scalar scalars[] = {{"loss", 0.25}, {"eval/f1", NAN}};
  EXPECT_EQ(hexOf(scalarsRecord(1795804800.25, 300, scalars)),
            "2b00000000000000861bc34b09000010a073c2da4110ac022a1d0a0b0a046c6f73"
            "73150000803e0a0e0a076576616c2f6631150000c07f0fa6526a");
}

TEST(EventFile, eachTrainingAddsAFile) {
  io::test::Folder folder;
  std::string events = folder / "runs/one";
  const Scalar scalars[] = {{"loss", 1}};
  for (int64_t done : {0, 5}) {
    EventFile file;
    ASSERT_TRUE(
        file.open(events, done ? std::optional(done) : std::nullopt).ok());
    file.write(done + 1, scalars);
    EXPECT_TRUE(file.close().ok());
  }
  size_t files = 0, bytes = 0;
  for (const auto &entry : std::filesystem::directory_iterator(events)) {
    EXPECT_NE(entry.path().string().find("tfevents"), std::string::npos);
    bytes += entry.file_size();
    ++files;
  }
  EXPECT_EQ(files, 2u);
  EXPECT_EQ(bytes, 2 * versionRecord(1.5).size() + startRecord(1.5, 6).size() +
                       2 * scalarsRecord(1.5, 1, scalars).size());
}

TEST(EventFile, aFolderThatIsNoneIsAnError) {
  io::test::Folder folder;
  io::test::store(folder / "file", io::test::bytesOf("x"));
  EventFile file;
  EXPECT_NE(file.open(folder / "file", {}).message().find("--tensorboard"),
            std::string::npos);
}

size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; ++at)
    ++count;
  return count;
}

TEST(Curves, tablesAndLinesAreOnePicture) {
  std::string lines =
      "{\"epoch\": 1, \"step\": 1, \"loss\": 2.0, \"lr\": 0.1}\n"
      "{\"epoch\": 1, \"step\": 2, \"loss\": 1.0, \"lr\": 0.2}\n"
      "{\"epoch\": 1, \"step\": 2, \"eval\": {\"rows\": 5, \"outputs\": "
      "{\"ce\": 1.5}, \"accuracy\": 0.5}}\n";
  std::string table = "epoch,step,loss,lr,eval.rows,eval.ce,eval.accuracy\n"
                      "1,1,2.0,0.1,,,\n1,2,1.0,0.2,,,\n1,2,,,5,1.5,0.5\n";
  std::string svg = curvesOf(lines, false, "ce");
  EXPECT_EQ(svg, curvesOf(table, true, "ce"));
  for (const char *name : {">loss<", ">evaluation<", ">learning rate<",
                           ">eval.ce<", ">eval.accuracy<", ">lr<"})
    EXPECT_EQ(countOf(svg, name), name == std::string(">loss<") ? 2u : 1u)
        << name;
  EXPECT_EQ(countOf(svg, "<path"), 2u); // the others are one point each
  EXPECT_EQ(countOf(svg, "eval.rows"), 0u);
}

// Its name was cut at the comma, and the curves were those of other columns.
TEST(Curves, namesMayHaveCommasInQuotes) {
  std::string svg = curvesOf(
      "epoch,step,loss,\"eval.lo,ss\",\"eval.a\"\"b\"\n1,1,2,7,8\n1,2,2,7,9\n",
      true, "loss");
  EXPECT_EQ(countOf(svg, ">eval.lo,ss<"), 1u);
  EXPECT_EQ(countOf(svg, "eval.a"), 1u);
}

// The first file's error stayed, and nothing was written into the second.
TEST(AppendedFile, opensAnotherWhereANameIsTaken) {
  std::string folder = testing::TempDir() + "tandem-appended";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/a") << "taken";
  AppendedFile file;
  EXPECT_FALSE(file.open(folder + "/a", /*isNew=*/true));
  ASSERT_TRUE(file.open(folder + "/b", /*isNew=*/true));
  file.append("text");
  EXPECT_TRUE(file.close());
  EXPECT_EQ(std::filesystem::file_size(folder + "/b"), 4u);
  std::filesystem::remove_all(folder);
}

TEST(Curves, stepsThatAreDoneAgainCountOnce) {
  std::string table = "epoch,step,loss\n1,1,9\n1,2,8\n1,3,100\n1,2,7\n1,3,6\n";
  EXPECT_EQ(curvesOf(table, true, "loss"),
            curvesOf("epoch,step,loss\n1,1,9\n1,2,7\n1,3,6\n", true, "loss"));
}

TEST(Curves, whatIsNoNumberIsAGap) {
  std::string svg = curvesOf(
      "epoch,step,loss\n1,1,9\n1,2,8\n1,3,nan\n1,4,inf\n1,5,6\n1,6,5\n", true,
      "loss");
  EXPECT_EQ(countOf(svg, "nan") + countOf(svg, "inf"), 0u);
  size_t begin = svg.find("<path");
  EXPECT_EQ(countOf(svg.substr(begin, svg.find("/>", begin) - begin), "M"), 2u);
}

TEST(Curves, anyBytesAreAPicture) {
  for (const char *text : {"", "\n", "x", "{}", "{\"step\": 1}", "[1]",
                           "{\"step\": 1, \"loss\": null}", "{\"eval\": 3}"})
    for (bool isTable : {false, true})
      EXPECT_TRUE(curvesOf(text, isTable, "loss").ends_with("</svg>\n"));
  // Of many steps there are no more points than pixels.
  std::string table = "epoch,step,loss\n";
  for (int step = 1; step <= 5000; ++step)
    table += "1," + std::to_string(step) + ",1.5\n";
  EXPECT_LT(curvesOf(table, true, "loss").size(), 30000u);
}

} // namespace
