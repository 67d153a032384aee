//===- PredictCommandTest.cpp - `tandem-run predict` as a user runs it ----===//
#include "tests/runtime/cli/CommandTest.h"

#include "runtime/io/Safetensors.h"

#include <cmath>
#include <fstream>

namespace tandem::commands::test {
namespace {

class PredictCommand : public CommandTest {
protected:
  void SetUp() override {
    CommandTest::SetUp();
    ASSERT_EQ(train({"--epochs=2", "--save=w.safetensors"}).code, 0);
  }

  Ended predict(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"predict", "classifier.tdm",
                                          "--params=w.safetensors"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  /// The scores of the first `rows` rows, predicted.
  std::vector<float> scores(int64_t rows) const {
    EXPECT_TRUE(io::writeNpy(path("some.npy"), features(rows)).ok());
    Ended ended =
        predict({"--data", "x=@some.npy", "--output", "logits=@p.npy"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    auto array = io::readNpy(path("p.npy"));
    EXPECT_EQ(array->shape, (std::vector<int64_t>{rows, 2}));
    return io::test::elements<float>(*array);
  }
};

// There was no way to get the scores of any number of rows: `run` takes one
// batch, and wanted labels for outputs that do not follow from them.
TEST_F(PredictCommand, givesExactlyTheRows) {
  std::vector<float> all = scores(22);
  for (int64_t rows : {0, 1, 3, 4, 5, 21}) {
    std::vector<float> some = scores(rows);
    EXPECT_EQ(some, std::vector<float>(all.begin(), all.begin() + rows * 2))
        << rows;
  }
  // The bits are those of a whole batch.
  ASSERT_TRUE(io::writeNpy(path("x4.npy"), features(4)).ok());
  ASSERT_TRUE(io::writeNpy(path("l4.npy"), labels(4)).ok());
  Ended ended = run({"run", "classifier.tdm", "--params=w.safetensors",
                     "--input", "x=@x4.npy", "--input", "labels=@l4.npy",
                     "--output", "logits=@r.npy"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  auto batch = io::test::elements<float>(*io::readNpy(path("r.npy")));
  EXPECT_EQ(batch, std::vector<float>(all.begin(), all.begin() + 8));
}

// Integers, bools and floats of 8 bits were weights where their numbers
// happened to be exact in f32; `tdm_load` refused them.
TEST_F(PredictCommand, typesDecideWhatAWeightMayBe) {
  ASSERT_TRUE(io::writeNpy(path("x4.npy"), features(4)).ok());
  ASSERT_TRUE(io::writeNpy(path("l4.npy"), labels(4)).ok());
  for (DType dtype : {DType::I8, DType::U8, DType::Bool, DType::I64,
                      DType::F8E4M3FN, DType::F64, DType::BF16, DType::F16}) {
    bool isTaken = dtype == DType::BF16 || dtype == DType::F16;
    Array w = {dtype, {2, 3}, {}};
    w.bytes.resize(size_t(6 * artifact::byteSize(dtype))); // zeros
    ASSERT_TRUE(
        io::writeSafetensors(path("other.safetensors"), {{"w", w}}, {}).ok());
    const std::string type(spelling(dtype));
    Ended ended =
        run({"predict", "classifier.tdm", "--params=other.safetensors",
             "--data", "x=@x4.npy", "--csv"});
    EXPECT_EQ(ended.code, isTaken ? 0 : 2) << type << ended.err;
    Ended begun =
        run({"train", "classifier.tdm", "--data", "x=@x4.npy", "--data",
             "labels=@l4.npy", "--steps=1", "--init-from=other.safetensors"});
    EXPECT_EQ(begun.code, isTaken ? 0 : 2) << type << begun.err;
    for (const std::string &text : {ended.err, begun.err})
      EXPECT_NE(text.find(isTaken ? "'w' (" + type + " to f32)"
                                  : "expected f32 [2, 3] but got " + type +
                                        " [2, 3]"),
                std::string::npos)
          << text;
  }
}

// 16777217 was 16777216, without a word; an .npy of it is refused.
TEST_F(PredictCommand, roundsNoIntegersOfTables) {
  std::ofstream(path("large.csv")) << "a,b,c\n16777217,1,2\n";
  Ended ended = predict({"--data", "x=@large.csv", "--csv"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("line 2, column 1 ('a'): '16777217' is an integer "
                           "that f32 cannot hold exactly"),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(predict({"--data", "x=@large.csv", "--csv", "--cast=round"}).code,
            0);
}

TEST_F(PredictCommand, writesIndicesAndTables) {
  ASSERT_TRUE(io::writeNpy(path("x3.npy"), features(3)).ok());
  Ended ended = predict({"--data", "x=@x3.npy", "--argmax", "--csv"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "logits\n0\n1\n0\n");
  ended =
      predict({"--data", "x=@x3.npy", "--output", "logits=@t.csv", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(text("t.csv").find("logits.0,logits.1\n"), 0u);
  Json json = Json::parse(ended.out);
  EXPECT_EQ(json["rows"], 3);
  EXPECT_EQ(json["batch"], 4);
  EXPECT_EQ(json["outputs"]["logits"]["shape"], (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(json["outputs"]["logits"]["files"], Json::array({"t.csv"}));
  // The table reads back as what was predicted.
  ended = predict({"--data", "x=@x3.npy", "--output", "logits=@p.npy"});
  auto table = io::test::elements<float>(*io::readNpy(path("p.npy")));
  std::string rows = text("t.csv");
  char first[100];
  std::snprintf(first, sizeof first, "\n%.9g,", double(table[0]));
  float read = 0;
  ASSERT_EQ(std::sscanf(rows.c_str() + rows.find('\n'), "\n%f,", &read), 1);
  EXPECT_EQ(read, table[0]);
}

TEST_F(PredictCommand, saysWhatItCannotPredict) {
  Ended ended = predict({"--data", "x=@x.npy", "--output", "loss=@l.npy"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "tandem-run: error: output 'loss' has no row for each "
                       "of the inputs: its type is f32 []; those with rows are "
                       "'logits'\n");
  ended = predict({"--data", "labels=@labels.npy"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err, "tandem-run: error: missing --data 'x' (f32 [N, 3])\n");
  ended = predict({});
  EXPECT_EQ(ended.err, "tandem-run: error: expected --data\n");
  ended = predict({"--data", "x=@x.npy", "--csv", "--json"});
  EXPECT_EQ(ended.err,
            "tandem-run: error: --csv and --json exclude each other\n");
  ended = predict({"--data", "x=@x.npy", "--data", "labels=@labels.npy"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "note: --data 'labels' is not read: no wanted output "
                       "follows from it\n");
}

// CSV had to be converted in Python first.
TEST_F(PredictCommand, takesTables) {
  std::string table = "a,b,c,label\n";
  auto x = io::test::elements<float>(features(5));
  for (int row = 0; row < 5; ++row) {
    for (int f = 0; f < 3; ++f)
      table += std::to_string(x[size_t(row * 3 + f)]) + ",";
    table += std::to_string(row % 2) + "\n";
  }
  auto write = [&](const std::string &text) {
    io::Bytes bytes = std::as_bytes(std::span(text));
    ASSERT_TRUE(io::replaceFile(path("d.csv"), std::span(&bytes, 1)).ok());
  };
  write(table);
  for (const char *columns : {"a..c", "-label", "a,b,c", "1..3"}) {
    Ended ended = predict(
        {"--data", std::string("x=@d.csv:") + columns, "--argmax", "--csv"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(ended.out, "logits\n0\n1\n0\n1\n0\n") << columns;
  }
  Ended ended = run({"train", "classifier.tdm", "--epochs=1", "--data",
                     "x=@d.csv:a..c", "--data", "labels=@d.csv:label"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  write(table + "1,x,3,0\n");
  ended = predict({"--data", "x=@d.csv:a..c"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.err,
            "tandem-run: error: --data 'x': 'd.csv': line 7, column 2 ('b'): "
            "expected a number but got 'x'\n");
}

// Without a rule nothing but f64 is rounded.
TEST_F(PredictCommand, castsAsItIsTold) {
  std::vector<uint8_t> pixels = {255, 0, 10, 0, 255, 10};
  ASSERT_TRUE(
      io::writeNpy(path("u.npy"), arrayOf<uint8_t>(DType::U8, {2, 3}, pixels))
          .ok());
  std::vector<float> scaled;
  for (uint8_t pixel : pixels)
    scaled.push_back(float(pixel / 255.0));
  ASSERT_TRUE(
      io::writeNpy(path("f.npy"), arrayOf<float>(DType::F32, {2, 3}, scaled))
          .ok());
  Ended one = predict({"--data", "x=@u.npy", "--cast=x=/255", "--csv"});
  Ended other = predict({"--data", "x=@f.npy", "--csv"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, other.out);
  EXPECT_EQ(predict({"--data", "x=@u.npy", "--cast=y=/255"}).err,
            "tandem-run: error: --cast: there is no array 'y'\n");
  EXPECT_EQ(predict({"--data", "x=@u.npy", "--cast=x=/0"}).err,
            "tandem-run: error: --cast: expected 'round', '*NUMBER' or "
            "'/NUMBER' but got '/0'\n");
}

TEST_F(PredictCommand, saysWhatToDoWithFilesOfOtherPrograms) {
  Ended ended = predict({"--data", "x=@x.pt"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("a PyTorch file holds pickled objects"),
            std::string::npos)
      << ended.err;
}

} // namespace
} // namespace tandem::commands::test
