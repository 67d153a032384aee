#!/usr/bin/env bash
# tests/additions/flag.sh BUILD: follows docs/ADDING_A_FLAG.md for an option `--foo`
# of `tandem compile`: two files are touched, and then the option is parsed into
# its variable, refused where it says so, and in the help.
set -euo pipefail
# shellcheck source=tests/additions/scratch.sh
source "$(dirname "$0")/scratch.sh"
copy_tree "$1"

# --- what the guide says -----------------------------------------------------
add_after compiler/Compile.h 'bool fastMath = false;' <<'CPP'
  bool foo = false; ///< for cpu: what the test asks for
CPP
add_after tools/tandem/CompileFlags.cpp 'table.group("for the target cpu");' <<'CPP'
  table.flag("foo", options.foo, "what the test asks for")
      .onlyWith("target", "cpu");
CPP

# --- it works ----------------------------------------------------------------
# A tool with one command, which has the options of `compile`. Nothing else that
# knows the struct is called: the build's objects have the one without the field.
cat >"$folder/foo.cpp" <<'CPP'
#include "tests/runtime/cli/AllPairs.h"
#include "tools/commands/Help.h"
#include "tools/tandem/CompileFlags.h"

using namespace tandem;
using namespace tandem::commands;

static bool foo = false;

struct FooOptions {
  static constexpr std::string_view usage = "compile MODEL [options]";
  static constexpr std::string_view description = "Compiles.";
  void declare(OptionTable &table) {
    table.positional("MODEL", model, "the model");
    flags.declare(table);
  }
  std::string model;
  CompileFlags flags;
};

static Status run(const FooOptions &options) {
  foo = options.flags.options.foo;
  return Status::success();
}

static const Command command = commandOf<run>("compile", "compiles");
static const Tool tool{"tandem", {&command, 1}};

TEST(Foo, SetsItsVariable) {
  std::string_view words[] = {"m.mlir", "--foo"};
  EXPECT_TRUE(command.run(tool, Words(words).first(1)));
  EXPECT_FALSE(foo);
  EXPECT_TRUE(command.run(tool, words));
  EXPECT_TRUE(foo);
}

TEST(Foo, IsRefusedForOtherTargets) {
  std::string_view words[] = {"m.mlir", "--foo", "--target=cuda"};
  EXPECT_EQ(command.run(tool, words).message(),
            "--foo has no effect with '--target=cuda': it is for the target "
            "'cpu'");
}

TEST(Foo, AllPairsAreAsTheTableSays) {
  EXPECT_GT(commands::test::checkAllPairs(command), 1000);
}

TEST(Foo, IsInTheHelp) {
  for (const std::string &text : {optionsPage(tool), manPage(tool, command),
                                  completionsFor(tool, "bash")})
    EXPECT_NE(text.find("foo"), std::string::npos) << text;
}
CPP
compile foo.cpp tests/compiler/OptionPairsTest.cpp &
compile tools/tandem/CompileFlags.cpp
wait $! || exit 1
link OptionPairsTest "$folder/foo" --only foo.o CompileFlags.o
"$folder/foo" >"$folder/said" || fail "$(cat "$folder/said")"
grep -q 'PASSED.*4 tests' "$folder/said" || fail "$(cat "$folder/said")"

expect_touches 2 docs/ADDING_A_FLAG.md
