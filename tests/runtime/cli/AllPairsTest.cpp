//===- AllPairsTest.cpp - every pair of options of tandem-run's commands --===//
//
// Options that contradict each other, or of which one had no effect, used to
// pass in silence: `bench --steps 5 --seconds 1`, `--kernels --profile=f`.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/cli/AllPairs.h"

namespace tandem::commands::test {
namespace {

TEST(AllPairs, AreTakenOrRefusedAsTheTableSays) {
  for (const Command &command : runtimeCommands()) {
    SCOPED_TRACE(command.name);
    int lines = checkAllPairs(command);
    if (command.name == "train") {
      EXPECT_GT(lines, 300);
    }
  }
}

Status parse(const Command &command, std::vector<std::string_view> words) {
  Status status;
  command.withTable([&](OptionTable &table) { status = table.parse(words); });
  return status;
}

// bench --steps 5 --seconds 1 took the seconds and forgot the steps, without a
// word; --seconds=-1 passed.
TEST(AllPairs, BenchTakesStepsOrSeconds) {
  EXPECT_EQ(
      parse(benchCommand(), {"x.tdm", "--steps=5", "--seconds=1"}).message(),
      "--steps and --seconds exclude each other");
  EXPECT_EQ(
      parse(benchCommand(), {"x.tdm", "--seconds=-1"}).message(),
      "option '--seconds' expected a number above 0 and at most 1e+06 but got "
      "'-1'");
}

// --data x=@a.npy --data x=@b.npy: the second was found out after the artifact
// had been loaded.
TEST(AllPairs, NamesAreGivenOnce) {
  EXPECT_EQ(parse(trainCommand(),
                  {"x.tdm", "--data=x=@a.npy", "--epochs=1", "--data=x=@b.npy"})
                .message(),
            "option '--data' gives 'x' twice");
}

// train --lr -1 raised the loss to 1.7e7, --lr 1e30 and --lr 1e-60 passed.
TEST(AllPairs, RatesHaveARange) {
  for (std::string_view rate : {"--lr=-1", "--lr=1e30", "--lr=1e-60"}) {
    Status status =
        parse(trainCommand(), {"x.tdm", "--data=x=@a.npy", "--epochs=1", rate});
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_NE(status.message().find("option '--lr' expected"),
              std::string::npos)
        << status.message();
  }
  EXPECT_TRUE(parse(trainCommand(),
                    {"x.tdm", "--data=x=@a.npy", "--epochs=1", "--lr=0"}));
}

} // namespace
} // namespace tandem::commands::test
