//===- tandem-workload.cpp - writes and checks the benchmark models -------===//
//
//   tandem-workload list
//   tandem-workload write NAME [--type=f64] -o X.mlir
//   tandem-workload optimizer NAME
//   tandem-workload check NAME X.tdm --expected=DIR
//
//===----------------------------------------------------------------------===//
#include "runtime/cli/Commands.h"
#include "tools/bench/workloads/Check.h"
#include "tools/bench/workloads/Workloads.h"

#include <cstdio>

using namespace tandem;
using namespace tandem::commands;

/// The workload `name`, or the list of those there are.
static Result<const workloads::Workload *> named(const std::string &name) {
  if (const workloads::Workload *workload = workloads::find(name))
    return workload;
  std::string known;
  for (const workloads::Workload &workload : workloads::all())
    known += (known.empty() ? "" : ", ") + workload.name;
  return Status::usage("expected a workload (" + known + "), but got '" + name +
                       "'");
}

static Status list(std::string_view, Words) {
  for (const workloads::Workload &workload : workloads::all())
    std::printf("%-12s %s\n", workload.name.c_str(), workload.text.c_str());
  return Status::success();
}

static Status optimizer(std::string_view, Words words) {
  OptionTable table("optimizer NAME", "Prints the workload's optimizer.");
  std::string name;
  table.positional("NAME", name, "the workload");
  if (Status s = table.parse(words); !s)
    return s;
  auto workload = named(name);
  if (workload)
    std::printf("%s\n", (*workload)->optimizer.c_str());
  return std::move(workload).status();
}

static Status write(std::string_view tool, Words words) {
  OptionTable table("write NAME -o X.mlir", "Writes a workload's model.");
  std::string name, output, type = "f32";
  table.positional("NAME", name, "the workload");
  table.text("type", "f32|f64", type, "of the numbers (default: f32)");
  table.text("o", "X.mlir", output, "where to write it");
  if (Status s = table.parse(words); !s)
    return s;
  if (table.helpAsked()) {
    std::fputs(table.help(tool).c_str(), stdout);
    return Status::success();
  }
  auto workload = named(name);
  if (!workload)
    return workload.status();
  if (output.empty())
    return Status::usage("expected -o X.mlir");
  if (type != "f32" && type != "f64")
    return Status::usage("expected --type to be f32 or f64, but got '" + type +
                         "'");
  Trace trace(name);
  (*workload)->trace(trace, *artifact::parseDType(type));
  return trace.save(output);
}

static Status check(std::string_view tool, Words words) {
  OptionTable table("check NAME X.tdm --expected=DIR",
                    "Trains three steps and compares the losses, and the "
                    "gradient norms of the first, with the expected ones.");
  std::string name, path, expected;
  std::optional<int64_t> threads;
  std::optional<double> tolerance;
  table.positional("NAME", name, "the workload");
  table.positional("X.tdm", path, "its artifact");
  table.text("expected", "DIR", expected, "the folder of expected numbers");
  table.number("tolerance", "X", tolerance,
               "largest relative difference (default: 1e-4 for f32 models,\n"
               "1e-6 for f64 ones, which are compared with the f64 numbers)");
  table.integer("threads", "N", threads, 1, 1024, "threads");
  if (Status s = table.parse(words); !s)
    return s;
  if (table.helpAsked()) {
    std::fputs(table.help(tool).c_str(), stdout);
    return Status::success();
  }
  auto workload = named(name);
  if (!workload)
    return workload.status();
  return workloads::check(**workload, path, expected, tolerance,
                          static_cast<int>(threads.value_or(0)));
}

int main(int argc, char **argv) {
  const Command commands[] = {
      {"list", "list the workloads", list},
      {"optimizer", "print a workload's optimizer", optimizer},
      {"write", "write a workload's model", write},
      {"check", "compare an artifact with expected numbers", check}};
  return runTool("tandem-workload", commands, argc, argv);
}
