//===- OptionsTest.cpp - the table of options -----------------------------===//
#include "runtime/cli/Options.h"

#include <gtest/gtest.h>

namespace tandem::commands::test {
namespace {

struct Values {
  std::string file, text;
  bool flag = false;
  std::vector<std::string> list;
  std::optional<int64_t> integer;
  std::optional<double> number;
  OptionTable table{"do FILE [options]", "Does it."};

  Values() {
    table.positional("FILE", file, "a file");
    table.text("text", "T", text, "a text");
    table.flag("flag", flag, "a flag");
    table.list("list", "L", list, "many\ntexts");
    table.integer("integer", "N", integer, 1, 8, "an integer");
    table.number("number", "X", number, "a number");
  }
  Status parse(std::vector<std::string_view> words) {
    return table.parse(words);
  }
};

TEST(Options, takesBothSpellings) {
  Values v;
  ASSERT_TRUE(v.parse({"--text=a=b", "f", "--flag", "--list", "1", "--list=2",
                       "--integer", "8", "--number=-1e-3"})
                  .ok());
  EXPECT_EQ(v.file, "f");
  EXPECT_EQ(v.text, "a=b");
  EXPECT_TRUE(v.flag);
  EXPECT_EQ(v.list, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(v.integer, 8);
  EXPECT_EQ(v.number, -1e-3);
}

TEST(Options, endsAtTwoDashes) {
  Values v;
  ASSERT_TRUE(v.parse({"--", "--flag"}).ok());
  EXPECT_EQ(v.file, "--flag");
  EXPECT_FALSE(v.flag);
}

TEST(Options, reportsEveryProblemAtOnce) {
  Values v;
  Status status = v.parse({"--bad", "--integer=9", "--number", "x", "--flag=1",
                           "--text=", "--text=t", "--list"});
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_EQ(status.message(),
            "unknown option '--bad'; "
            "option '--integer' expected an integer from 1 to 8 but got '9'; "
            "option '--number' expected a number but got 'x'; "
            "option '--flag' takes no value; "
            "option '--text' expected a value but got ''; "
            "option '--text' is given twice; "
            "option '--list' needs a value (L); "
            "missing argument FILE");
  EXPECT_EQ(Values().parse({"a", "b"}).message(), "unexpected argument 'b'");
}

TEST(Options, writesHelp) {
  Values asked;
  ASSERT_TRUE(asked.parse({"--bad", "--help"}).ok());
  EXPECT_TRUE(asked.table.helpAsked());
  EXPECT_EQ(asked.table.help("tool"), "usage: tool do FILE [options]\n\n"
                                      "Does it.\n\n"
                                      "  FILE         a file\n"
                                      "  --text=T     a text\n"
                                      "  --flag       a flag\n"
                                      "  --list=L     many\n"
                                      "               texts\n"
                                      "  --integer=N  an integer\n"
                                      "  --number=X   a number\n"
                                      "  --help       print this text\n");
}

} // namespace
} // namespace tandem::commands::test
