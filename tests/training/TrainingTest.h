//===- TrainingTest.h - a traced model, compiled and trained by commands --===//
//
// What rows of group T say of `train` is tested as a user would do it: a model
// of the tracer is compiled by `tandem`, and trained by `tandem-run`, in a
// folder of the test's own.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_TRAINING_TRAININGTEST_H
#define TANDEM_TESTS_TRAINING_TRAININGTEST_H

#include "compiler/trace/Functions.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"
#include "tests/runtime/cli/Process.h"
#include "tests/runtime/io/Bytes.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

namespace tandem::test {

using commands::test::Ended;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

/// Scores of two classes from 3 features in two layers, with dropout, and the
/// mean loss of those rows whose label is not -100.
inline void classify(Trace &t, int64_t batch) {
  Tensor x = t.input("x", {batch, 3});
  Tensor labels = t.input("labels", {batch}, DType::I64);
  Tensor v = t.parameter("v", {5, 3}, Init::uniform(-0.5, 0.5));
  Tensor w = t.parameter("w", {2, 5}, Init::uniform(-0.5, 0.5));
  Tensor h = dropout(relu(linear(x, v)), 0.125);
  Tensor logits = linear(h, w);
  t.output("logits", logits);
  t.output("loss", crossEntropy(logits, labels, -100));
}

class TrainingTest : public testing::Test {
protected:
  static constexpr int64_t kRows = 22;

  void SetUp() override { writeData(kRows); }

  std::string path(const std::string &name) const { return folder_ / name; }
  std::vector<std::byte> bytes(const std::string &name) const {
    return io::test::load(path(name));
  }
  std::string text(const std::string &name) const {
    return std::string(io::asText(bytes(name)));
  }
  bool exists(const std::string &name) const {
    return std::filesystem::exists(path(name));
  }

  /// Writes x.npy and labels.npy, whose rows are told apart by one feature.
  void writeData(int64_t rows) const {
    std::vector<float> x;
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < rows; ++i) {
      for (int f = 0; f < 3; ++f) {
        float noise = float((i * 37 + f * 11) % 17) / 16 - 0.5f;
        x.push_back(f == 0 ? (i % 2 ? 1.0f : -1.0f) + noise / 4 : noise);
      }
      labels.push_back(i % 2);
    }
    write("x.npy", io::test::arrayOf<float>(DType::F32, {rows, 3}, x));
    write("labels.npy", io::test::arrayOf<int64_t>(DType::I64, {rows}, labels));
  }
  void write(const std::string &name, const io::Array &array) const {
    ASSERT_TRUE(io::writeNpy(path(name), array).ok());
  }

  /// Writes a traced model to NAME.mlir.
  void trace(const std::string &name,
             const std::function<void(Trace &)> &model) const {
    Trace recorded("model");
    model(recorded);
    auto text = recorded.finish();
    ASSERT_TRUE(text) << text.status().message();
    io::test::store(path(name + ".mlir"), io::test::bytesOf(*text));
  }

  /// Compiles NAME.mlir into `artifact`.
  Ended compile(const std::string &name, const std::string &artifact,
                const Words &more) const {
    return run(TANDEM, plus({"compile", name + ".mlir", "-o", artifact}, more));
  }

  Ended train(const std::string &artifact, const Words &more) const {
    return run(TANDEM_RUN, plus({"train", artifact, "--data", "x=@x.npy",
                                 "--data", "labels=@labels.npy"},
                                more));
  }

  /// Runs a program in the folder.
  Ended run(const std::string &program, const Words &words) const {
    commands::test::Start start;
    start.prepare = [this] {
      if (::chdir(folder_.path().c_str()) != 0)
        ::_exit(126);
    };
    return commands::test::runProgram(program, words, start);
  }

  static Words plus(Words a, const Words &b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  static Words evaluation() {
    return {"--eval", "x=@x.npy", "--eval", "labels=@labels.npy",
            "--accuracy=logits,labels"};
  }
  /// A log without the seconds of its lines.
  std::string untimed(const std::string &name) const {
    return std::regex_replace(text(name), std::regex(", \"seconds\": [^,}]*"),
                              "");
  }
  std::vector<float> tensor(const std::string &file,
                            const std::string &name) const {
    auto read = io::Safetensors::read(path(file));
    if (!read || !read->find(name)) {
      ADD_FAILURE() << file << " has no tensor " << name;
      return {};
    }
    return io::test::elements<float>(*read->find(name));
  }
  static int count(const std::string &text, const std::string &part) {
    int found = 0;
    for (size_t at = text.find(part); at != std::string::npos;
         at = text.find(part, at + 1))
      ++found;
    return found;
  }

private:
  io::test::Folder folder_;
};

} // namespace tandem::test

#define EXPECT_RAN(ended)                                                      \
  do {                                                                         \
    const auto &done = (ended);                                                \
    ASSERT_EQ(done.code, 0) << done.err;                                       \
  } while (false)

#endif
