//===- CheckCommand.cpp - the command `check` of the workloads ------------===//
#include "cuda/Register.h"
#include "tools/bench/workloads/Check.h"

#include <cstdio>

using namespace tandem;

Result<const workloads::Workload *> workloads::named(const std::string &name) {
  if (const Workload *workload = find(name))
    return workload;
  std::string known;
  for (const Workload &workload : all())
    known += (known.empty() ? "" : ", ") + workload.name;
  return Status::usage("expected a workload (" + known + "), but got '" + name +
                       "'");
}

namespace {

struct CheckOptions {
  static constexpr std::string_view
      usage = "check NAME X.tdm --expected=DIR",
      description = "Trains three steps and compares the losses, and the "
                    "gradient norms of the first, with the expected ones.";
  std::string name, path, expected, device;
  std::optional<int64_t> threads;
  std::optional<double> tolerance;

  void declare(commands::OptionTable &table) {
    table.positional("NAME", name, "the workload");
    table.positional("X.tdm", path, "its artifact");
    table.text("expected", "DIR", expected, "the folder of expected numbers");
    table.number("tolerance", "X", tolerance, "largest relative difference")
        .atLeast(0)
        .byDefault("1e-4 for f32 models, 1e-6 for f64 ones, which are "
                   "compared with the f64 numbers");
    table
        .text("device", "DEVICE", device,
              "where it runs: cpu, cuda, cuda:1, cuda-emu")
        .byDefault("the artifact's");
    table.integer("threads", "N", threads, 1, 1024, "threads");
  }
};

Status check(const CheckOptions &command) {
  auto workload = workloads::named(command.name);
  if (!workload)
    return workload.status();
  cuda::registerDevices();
  runtime::Options options;
  options.threads = static_cast<int>(command.threads.value_or(0));
  if (!command.device.empty()) {
    auto known = runtime::parseDevice(command.device);
    if (!known)
      return known.status();
    options.device = *known;
  }
  return workloads::check(**workload, command.path, command.expected,
                          command.tolerance, options);
}

} // namespace

commands::Command workloads::checkCommand() {
  return commands::commandOf<::check>(
      "check", "compare an artifact with expected numbers");
}
