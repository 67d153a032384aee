//===- kernel-cases.cpp - writes the models of gpu-check kernels ----------===//
//
//   kernel-cases list [--quick]
//   kernel-cases write NAME [--reference] -o X.mlir
//
//===----------------------------------------------------------------------===//
#include "runtime/io/File.h"
#include "tools/bench/cuda/Cases.h"
#include "tools/commands/Commands.h"
#include "tools/commands/Print.h"

#include <cstdio>

using namespace tandem;
using gpu::Case;

namespace {

struct ListOptions {
  static constexpr std::string_view
      usage = "list",
      description = "Prints a line for each case: its name, that of its "
                    "results, the type that inputs are rounded to, the "
                    "tolerance, the repeats, what "
                    "the PTX has to have ('-': anything), and options of "
                    "'tandem compile'.";
  bool quick = false;

  void declare(commands::OptionTable &table) {
    table.flag("quick", quick, "those alone that the emulator is fast with");
  }
};

Status list(const ListOptions &options) {
  for (const Case &one : gpu::cases()) {
    if (options.quick && !one.isQuick)
      continue;
    std::string line = one.name + " " + one.expected + " " +
                       std::string(artifact::spelling(one.type)) + " " +
                       commands::roundedText(one.tolerance) + " " +
                       std::to_string(one.repeats) + " " +
                       (one.code.empty() ? "-" : one.code);
    if (!one.isDifferentiated)
      line += " --inference";
    if (one.products == gpu::Products::Chosen) // else the module says it
      line += " --target=cuda:sm_90a";
    if (one.products == gpu::Products::Chosen && one.isTf32)
      line += " --matmul-precision=tf32";
    if (!one.options.empty())
      line += " " + one.options;
    std::printf("%s\n", line.c_str());
  }
  return Status::success();
}

struct WriteOptions {
  static constexpr std::string_view usage = "write NAME -o X.mlir",
                                    description = "Writes a case's program.";
  std::string name, output;
  bool reference = false;

  void declare(commands::OptionTable &table) {
    table.positional("NAME", name, "the case");
    table.flag("reference", reference,
               "the program that gives the expected results, on the CPU");
    table.text("o", "X.mlir", output, "where to write it").required();
  }
};

Status writeCase(const WriteOptions &options) {
  for (const Case &one : gpu::cases()) {
    if (one.name != options.name)
      continue;
    auto text = gpu::textOf(one, options.reference);
    if (!text)
      return std::move(text).status();
    return io::replaceFile(
        options.output,
        std::vector{io::Bytes(reinterpret_cast<const std::byte *>(text->data()),
                              text->size())});
  }
  return Status::usage("expected a case ('kernel-cases list') but got '" +
                       options.name + "'");
}

} // namespace

int main(int argc, char **argv) {
  const commands::Command commands[] = {
      commands::commandOf<list>("list", "list the cases"),
      commands::commandOf<writeCase>("write", "write a case's program"),
      commands::helpCommand()};
  return commands::runTool({"kernel-cases", commands, {}}, argc, argv);
}
