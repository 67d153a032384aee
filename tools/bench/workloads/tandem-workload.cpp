//===- tandem-workload.cpp - writes and checks the benchmark models -------===//
//
//   tandem-workload list
//   tandem-workload write NAME [--type=f64] [--inference] [--rows=N] [--small]
//   -o X.mlir tandem-workload optimizer NAME tandem-workload check NAME X.tdm
//   --expected=DIR
//
//===----------------------------------------------------------------------===//
#include "tools/bench/workloads/Check.h"
#include "tools/bench/workloads/Models.h"
#include "tools/commands/Commands.h"

#include <cstdio>

using namespace tandem;
using namespace tandem::commands;

namespace {

struct ListOptions {
  static constexpr std::string_view usage = "list",
                                    description = "Lists the workloads.";
  void declare(OptionTable &) {}
};

Status list(const ListOptions &) {
  for (const workloads::Workload &workload : workloads::all())
    std::printf("%-12s %s\n", workload.name.c_str(), workload.text.c_str());
  return Status::success();
}

struct OptimizerOptions {
  static constexpr std::string_view usage = "optimizer NAME",
                                    description =
                                        "Prints the workload's optimizer.";
  std::string name;

  void declare(OptionTable &table) {
    table.positional("NAME", name, "the workload");
  }
};

Status optimizer(const OptimizerOptions &options) {
  auto workload = workloads::named(options.name);
  if (workload)
    std::printf("%s\n", (*workload)->optimizer.c_str());
  return std::move(workload).status();
}

struct WriteOptions {
  static constexpr std::string_view usage = "write NAME -o X.mlir",
                                    description = "Writes a workload's model.";
  std::string name, output, type = "f32";
  bool inference = false, small = false;
  std::optional<int64_t> rows;

  void declare(OptionTable &table) {
    table.positional("NAME", name, "the workload");
    table.text("type", "f32|f64|bf16", type, "of the numbers")
        .oneOf({"f32", "f64", "bf16"})
        .byDefault("f32");
    table.flag("inference", inference, "without labels and loss");
    table
        .integer("rows", "N", rows, 1, 1 << 20,
                 "rows of a batch: to be cut over ranks, or of a rank")
        .byDefault("the workload's");
    table.flag("small", small,
               "with few rows, layers and columns: to be run on an emulated "
               "GPU");
    table.text("o", "X.mlir", output, "where to write it").required();
  }
};

Status writeModel(const WriteOptions &options) {
  auto workload = workloads::named(options.name);
  if (!workload)
    return workload.status();
  if (options.rows && (*workload)->data.size() == 1)
    return Status::usage("--rows has no effect: '" + options.name +
                         "' has one size");
  Trace trace(options.name);
  using workloads::Purpose;
  workloads::trace(**workload, trace, *artifact::parseDType(options.type),
                   options.inference ? Purpose::Inference : Purpose::Training,
                   options.rows, options.small);
  return trace.save(options.output);
}

} // namespace

int main(int argc, char **argv) {
  const Command commands[] = {
      commandOf<list>("list", "list the workloads"),
      commandOf<optimizer>("optimizer", "print a workload's optimizer"),
      commandOf<writeModel>("write", "write a workload's model"),
      workloads::checkCommand(), helpCommand()};
  return runTool({"tandem-workload", commands, {}}, argc, argv);
}
