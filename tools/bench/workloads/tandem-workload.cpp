//===- tandem-workload.cpp - writes and checks the benchmark models -------===//
//
//   tandem-workload list
//   tandem-workload write NAME [--type=f64] [--inference] -o X.mlir
//   tandem-workload optimizer NAME
//   tandem-workload check NAME X.tdm --expected=DIR
//
//===----------------------------------------------------------------------===//
#include "runtime/cli/Commands.h"
#include "tools/bench/workloads/Check.h"
#include "tools/bench/workloads/Models.h"

#include <cstdio>

using namespace tandem;
using namespace tandem::commands;

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
  auto workload = workloads::named(name);
  if (workload)
    std::printf("%s\n", (*workload)->optimizer.c_str());
  return std::move(workload).status();
}

static Status write(std::string_view tool, Words words) {
  OptionTable table("write NAME -o X.mlir", "Writes a workload's model.");
  std::string name, output, type = "f32";
  bool inference = false;
  table.positional("NAME", name, "the workload");
  table.text("type", "f32|f64|bf16", type, "of the numbers (default: f32)");
  table.flag("inference", inference, "without labels and loss");
  table.text("o", "X.mlir", output, "where to write it");
  if (Status s = table.parse(words); !s)
    return s;
  if (table.helpAsked()) {
    std::fputs(table.help(tool).c_str(), stdout);
    return Status::success();
  }
  auto workload = workloads::named(name);
  if (!workload)
    return workload.status();
  if (output.empty())
    return Status::usage("expected -o X.mlir");
  if (type != "f32" && type != "f64" && type != "bf16")
    return Status::usage("expected --type to be f32, f64 or bf16, but got '" +
                         type + "'");
  Trace trace(name);
  using workloads::Purpose;
  workloads::trace(**workload, trace, *artifact::parseDType(type),
                   inference ? Purpose::Inference : Purpose::Training);
  return trace.save(output);
}

int main(int argc, char **argv) {
  const Command commands[] = {
      {"list", "list the workloads", list},
      {"optimizer", "print a workload's optimizer", optimizer},
      {"write", "write a workload's model", write},
      {"check", "compare an artifact with expected numbers",
       workloads::checkCommand}};
  return runTool("tandem-workload", commands, argc, argv);
}
