//===- HelpTest.cpp - what is made from tables of options -----------------===//
#include "tools/commands/Help.h"

#include <gtest/gtest.h>

namespace tandem::commands::test {
namespace {

const Tool tool = {"tandem-run", runtimeCommands(), runtimeTopics()};

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(Help, wrapsAtWords) {
  EXPECT_EQ(wrapped("aa bb\ncc  dd", 2, 7), "aa bb\n  cc dd");
  EXPECT_EQ(wrapped("aaaaaaaaaa b", 2, 7), "aaaaaaaaaa\n  b");
  EXPECT_EQ(wrapped("", 2, 7), "");
}

// `help train` ignored `train`.
TEST(Help, knowsEveryCommandAndTopic) {
  std::string overview = overviewText(tool);
  for (const Command &command : tool.commands)
    EXPECT_TRUE(has(overview, std::string(command.name) + " ")) << command.name;
  for (const Topic &topic : tool.topics) {
    EXPECT_TRUE(has(overview, std::string(topic.name) + " ")) << topic.name;
    EXPECT_FALSE(topic.text().empty()) << topic.name;
  }
}

/// Everything that is made has every option of every command.
TEST(Help, hasEveryOptionEverywhere) {
  std::string page = optionsPage(tool);
  std::string bash = completionsFor(tool, "bash"),
              zsh = completionsFor(tool, "zsh"),
              fish = completionsFor(tool, "fish");
  for (const Command &command : tool.commands) {
    std::string man = manPage(tool, command);
    EXPECT_EQ(man.find(".TH TANDEM\\-RUN\\-"), 0u);
    command.withTable([&](OptionTable &table) {
      std::string help = table.help(tool.name);
      for (const Option &option : table.options()) {
        std::string written = option.written(), roff;
        for (char c : written)
          roff += c == '-' ? "\\-" : std::string(1, c);
        EXPECT_TRUE(has(help, "  " + written)) << command.name << written;
        EXPECT_TRUE(has(man, ".B " + roff)) << command.name << written;
        EXPECT_TRUE(has(page, "| `" + written)) << command.name << written;
        EXPECT_TRUE(has(bash, " " + written)) << command.name << written;
        EXPECT_TRUE(has(zsh, written)) << command.name << written;
        EXPECT_TRUE(has(fish, "-l " + std::string(option.name)))
            << command.name << written;
      }
    });
  }
  EXPECT_EQ(completionsFor(tool, "csh"), "");
}

// Values of --device were completed as files.
TEST(Help, completesValues) {
  EXPECT_TRUE(has(completionsFor(tool, "bash"),
                  "run--device) values='cpu cuda cuda-emu'"));
  EXPECT_TRUE(has(completionsFor(tool, "zsh"), ":DEVICE:(cpu cuda cuda-emu)"));
  EXPECT_TRUE(
      has(completionsFor(tool, "fish"), "-l device -x -a 'cpu cuda cuda-emu'"));
}

/// No line of a help text is wider than a terminal.
TEST(Help, fitsATerminal) {
  for (const Command &command : tool.commands)
    command.withTable([&](OptionTable &table) {
      std::string help = table.help(tool.name);
      for (size_t i = 0; i < help.size(); i = help.find('\n', i) + 1)
        EXPECT_LE(help.find('\n', i) - i, 80u) << help.substr(i, 100);
    });
}

/// A line of roff that begins with a dot or an apostrophe would be a request.
TEST(Help, manPagesEscapeText) {
  const Command odd[] = {{"odd", "'quoted'\n.dot \\ slash",
                          [](const std::function<void(OptionTable &)> &use) {
                            OptionTable table("odd", ".TH 'x'");
                            use(table);
                          },
                          nullptr}};
  std::string page = manPage({"t", odd, {}}, odd[0]);
  EXPECT_TRUE(has(page, "\\&'quoted'\n\\&.dot \\e slash")) << page;
  EXPECT_TRUE(has(page, ".SH DESCRIPTION\n\\&.TH 'x'\n")) << page;
}

} // namespace
} // namespace tandem::commands::test
