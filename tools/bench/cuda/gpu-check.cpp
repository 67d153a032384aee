//===- gpu-check.cpp - what tools/gpu-check does where the GPU is ---------===//
//
//   gpu-check steps --out=F.jsonl [--minutes=8] [--device=cuda]
//   gpu-check report F.jsonl -o PAGE.md
//   gpu-check device|streams
//   gpu-check kernels X.tdm --expected=F.safetensors
//   gpu-check check WORKLOAD X.tdm --expected=DIR
//   gpu-check time X.tdm
//
// One program, so that there is one copy of the runtime to carry. It needs
// nothing but the system's C library and the driver.
//
//===----------------------------------------------------------------------===//
#include "cuda/Register.h"
#include "tools/bench/cuda/KernelCommands.h"
#include "tools/bench/cuda/Page.h"
#include "tools/bench/cuda/Steps.h"
#include "tools/bench/workloads/Check.h"

#include <filesystem>
#include <regex>

using namespace tandem;

namespace {

struct StepsOptions {
  static constexpr std::string_view
      usage = "steps --out=F.jsonl",
      description = "Runs the steps of the current folder's file 'steps' one "
                    "after the other, and appends what came of each to "
                    "F.jsonl.";
  std::string out, device = "cuda", only;
  std::optional<double> minutes;

  void declare(commands::OptionTable &table) {
    table.text("out", "F.jsonl", out, "where results go").required();
    table.number("minutes", "M", minutes, "what is over then is cut")
        .above(0)
        .atMost(600)
        .byDefault("8");
    table.text("device", "DEVICE", device, "cuda, cuda:1 or cuda-emu")
        .byDefault("cuda");
    table.text("only", "REGEX", only, "steps whose names it finds")
        .check([](std::string_view text) {
          try {
            std::regex(std::string(text), std::regex::extended);
          } catch (const std::regex_error &error) {
            return Status::usage("expected a regular expression but got '" +
                                 std::string(text) + "'");
          }
          return Status::success();
        });
  }
};

Status steps(const StepsOptions &options) {
  if (std::filesystem::exists(options.out))
    return Status::usage("'" + options.out +
                         "' exists: a run has a file of its own");
  return gpu::runSteps(
      {options.device, options.out, options.minutes.value_or(8), options.only});
}

struct ReportOptions {
  static constexpr std::string_view
      usage = "report F.jsonl -o PAGE.md",
      description = "Writes a page of a run's results, in Markdown.";
  std::string file, output, calibrations;

  void declare(commands::OptionTable &table) {
    table.positional("F.jsonl", file, "the results");
    table.text("o", "PAGE.md", output, "where to write it").required();
    table.text("calibrations", "PREFIX", calibrations,
               "also write times of kernels, for 'tandem inspect --estimate "
               "--calibrate', to PREFIX.STEP.json");
  }
};

Status report(const ReportOptions &options) {
  return gpu::writePage(options.file, options.output, options.calibrations);
}

} // namespace

int main(int argc, char **argv) {
  cuda::registerDevices();
  std::vector<commands::Command> list = gpu::kernelCommands();
  list.push_back(workloads::checkCommand());
  list.push_back(commands::commandOf<steps>("steps", "run a folder's steps"));
  list.push_back(commands::commandOf<report>("report", "a page of results"));
  list.push_back(commands::helpCommand());
  return commands::runTool({"gpu-check", list, {}}, argc, argv);
}
