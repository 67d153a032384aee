//===- OptionsTest.cpp - the table of options -----------------------------===//
#include "tools/commands/Options.h"

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
  EXPECT_EQ(Values().parse({""}).message(), "expected FILE but got ''");
}

// "expected an integer of at least 0 but got '18446744073709551615'", which it
// is: the upper bound was not mentioned.
TEST(Options, nameTheBoundOfTheType) {
  std::optional<int64_t> seed;
  OptionTable table("do [options]", "Does it.");
  table.integer("seed", "S", seed, 0, INT64_MAX, "a seed");
  std::vector<std::string_view> words = {"--seed=18446744073709551615"};
  EXPECT_EQ(table.parse(words).message(),
            "option '--seed' expected an integer from 0 to "
            "9223372036854775807 but got '18446744073709551615'");
  EXPECT_NE(table.help("tool").find("a seed\n"), std::string::npos)
      << "help leaves it out";
}

// Misspelt options were refused, but no message said what is near.
TEST(Options, saysWhatWasMeant) {
  EXPECT_EQ(Values().parse({"f", "--flga", "--Integer=1"}).message(),
            "unknown option '--flga' (did you mean '--flag'?); "
            "unknown option '--Integer' (did you mean '--integer'?)");
}

// An escape sequence in the name of an option reached the terminal.
TEST(Options, escapesWhatItRepeats) {
  EXPECT_EQ(Values().parse({"f", "--\x1b[31mred", "--number=\x07"}).message(),
            "unknown option '--\\x1b[31mred'; "
            "option '--number' expected a number but got '\\x07'");
}

TEST(Options, writesHelp) {
  Values asked;
  ASSERT_TRUE(asked.parse({"--bad", "--help"}).ok());
  EXPECT_TRUE(asked.table.helpAsked());
  EXPECT_EQ(asked.table.help("tool"),
            "usage: tool do FILE [options]\n\n"
            "Does it.\n\n"
            "  FILE         a file\n"
            "  --text=T     a text\n"
            "  --flag       a flag\n"
            "  --list=L     many texts\n"
            "  --integer=N  an integer (from 1 to 8)\n"
            "  --number=X   a number\n"
            "  --help       print this text\n");
}

/// Options that have to do with each other.
struct Rules {
  std::string file, text, other, kind;
  bool flag = false;
  std::vector<std::string> list;
  std::optional<double> part;
  OptionTable table{"do FILE", "Does it."};

  Rules() {
    table.positional("FILE", file, "a file");
    table.flag("flag", flag, "a flag").excludes("text=no").excludes("list");
    table.text("text", "yes|no", text, "a text")
        .oneOf({"yes", "no"})
        .needs("kind", "there are several");
    table.text("kind", "K", kind, "a kind").notFor(".tdm", "an artifact");
    table.list("list", "K=V", list, "a list").keyed();
    table.number("part", "P", part, "a part").above(0).below(1);
    table.text("other", "T", other, "another").onlyWith("kind", "a");
  }
  std::string parse(std::vector<std::string_view> words) {
    return table.parse(words).message();
  }
};

TEST(Options, haveRules) {
  EXPECT_EQ(Rules().parse({"f", "--flag", "--text=yes", "--kind=a"}), "");
  EXPECT_EQ(Rules().parse({"f", "--text=no", "--kind=a", "--flag"}),
            "--flag and --text=no exclude each other");
  EXPECT_EQ(Rules().parse({"f", "--text=yes"}),
            "--text needs --kind: there are several");
  EXPECT_EQ(Rules().parse({"f", "--text=yse", "--kind=a"}),
            "option '--text' expected yes or no but got 'yse' (did you mean "
            "'yes'?)");
  EXPECT_EQ(Rules().parse({"f.tdm", "--kind=a"}),
            "--kind has no effect on an artifact, but FILE is 'f.tdm'");
  EXPECT_EQ(Rules().parse({"f", "--list=a=1", "--list=b=1", "--list=a=2"}),
            "option '--list' gives 'a' twice");
  EXPECT_EQ(Rules().parse({"f", "--part=1"}),
            "option '--part' expected a number above 0 and below 1 but got "
            "'1'");
  EXPECT_EQ(Rules().parse({"f", "--other=1"}), "");
  EXPECT_EQ(Rules().parse({"f", "--other=1", "--kind=b"}),
            "--other has no effect with '--kind=b': it is for the kind 'a'");
  // What lacks its value has none to compare with.
  EXPECT_EQ(Rules().parse({"f", "--other=1", "--kind"}),
            "option '--kind' needs a value (K)");
}

} // namespace
} // namespace tandem::commands::test
