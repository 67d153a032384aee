//===- CommandTest.h - a folder with an artifact, data and the tool -------===//
#ifndef TANDEM_TESTS_RUNTIME_CLI_COMMANDTEST_H
#define TANDEM_TESTS_RUNTIME_CLI_COMMANDTEST_H

#include "tests/runtime/cli/Classifier.h"
#include "tests/runtime/cli/Process.h"

#include <nlohmann/json.hpp>

namespace tandem::commands::test {

using Json = nlohmann::json;

/// A folder with classifier.tdm, x.npy and labels.npy (22 rows: five batches
/// and two rows more), in which the built tandem-run works.
class CommandTest : public ::testing::Test {
protected:
  void SetUp() override {
    writeClassifier(path("classifier.tdm"));
    ASSERT_TRUE(io::writeNpy(path("x.npy"), features(22)).ok());
    ASSERT_TRUE(io::writeNpy(path("labels.npy"), labels(22)).ok());
  }

  std::string path(const std::string &name) const { return folder_ / name; }
  const io::test::Folder &folder() const { return folder_; }

  /// Runs tandem-run in the folder.
  Ended run(const std::vector<std::string> &arguments, Start start = {}) const {
    start.prepare = [this, also = start.prepare] {
      if (::chdir(folder_.path().c_str()) != 0)
        ::_exit(126);
      if (also)
        also();
    };
    return runProgram(TANDEM_RUN, arguments, start);
  }

  /// A start as somebody who may not write everywhere, as root may.
  static Start asUser() {
    Start start;
    start.prepare = [] {
      if (::geteuid() == 0 && ::setuid(65534) != 0)
        ::_exit(125);
    };
    return start;
  }

  /// Runs `train` on the artifact and the data with more options.
  Ended train(std::vector<std::string> more, const Start &start = {}) const {
    std::vector<std::string> arguments = {"train",  "classifier.tdm",
                                          "--data", "x=@x.npy",
                                          "--data", "labels=@labels.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments, start);
  }

  std::vector<std::byte> bytes(const std::string &name) const {
    return io::test::load(path(name));
  }
  std::string text(const std::string &name) const {
    return std::string(io::asText(bytes(name)));
  }

private:
  io::test::Folder folder_;
};

} // namespace tandem::commands::test

#endif
