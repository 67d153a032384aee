//===- KernelTimes.cpp - how fast each kernel of a program is -------------===//
//
// A kernel that is launched several times is one row: the sum of its launches.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/KernelTimes.h"

#include "tools/commands/FmaLoops.h"
#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"
#include "tools/commands/Roofs.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

using namespace tandem;
using namespace tandem::commands;
using artifact::DType;
using artifact::Kernel;
using artifact::Program;
using runtime::Model;

namespace {

/// A kernel of the program, over all its launches in a call.
struct Row {
  const Kernel *kernel = nullptr;
  std::vector<double> launches; ///< seconds of each, medians
  double seconds = 0;           ///< their sum
  double roof = 0;              ///< the least for as many flops and bytes

  double count() const { return double(launches.size()); }
  double flops() const { return double(kernel->flops) * count(); }
  double bytes() const { return double(kernel->bytes) * count(); }
  double lost() const { return seconds - roof; }
  /// What a second would do; nothing for kernels that no clock sees.
  double rate(double amount) const {
    return seconds > 0 ? amount / seconds : 0;
  }
};

struct Report {
  const Model &model;
  const Program &program;
  const Timing &timing;
  const Roofs &roofs;
  std::vector<Row> rows; ///< by time lost

  double total(double Row::*member) const {
    double sum = 0;
    for (const Row &row : rows)
      sum += row.*member;
    return sum;
  }
};

/// The types in which the program's kernels compute products, each once.
std::vector<DType> dtypesOf(const Model &model, const Program &program) {
  std::vector<DType> types = {DType::F32};
  for (const artifact::Launch &launch : program.launches) {
    if (!launch.hasKernel())
      continue;
    DType type = model.manifest().kernels[launch.kernel].dtype;
    if ((type == DType::F64 || type == DType::BF16) &&
        std::find(types.begin(), types.end(), type) == types.end())
      types.push_back(type);
  }
  return types;
}

/// That of the list whose rate a kernel can reach.
DType roofType(DType type) {
  return type == DType::F64 || type == DType::BF16 ? type : DType::F32;
}

std::vector<Row> rowsOf(const Model &model, const Program &program,
                        const std::vector<double> &seconds,
                        const Roofs &roofs) {
  const std::vector<Kernel> &kernels = model.manifest().kernels;
  std::vector<Row> rows(kernels.size());
  for (size_t i = 0; i < program.launches.size(); ++i) {
    if (!program.launches[i].hasKernel())
      continue;
    Row &row = rows[program.launches[i].kernel];
    row.kernel = &kernels[program.launches[i].kernel];
    row.launches.push_back(seconds[i]);
    row.seconds += seconds[i];
  }
  std::erase_if(rows, [](const Row &row) { return !row.kernel; });
  for (Row &row : rows)
    row.roof =
        roofs.seconds(row.flops(), row.bytes(), roofType(row.kernel->dtype));
  std::sort(rows.begin(), rows.end(), [](const Row &a, const Row &b) {
    return std::pair(b.lost(), a.kernel) < std::pair(a.lost(), b.kernel);
  });
  return rows;
}

/// What the kernel computes: the op that does most, and what else there is,
/// "matmul 64x64 64x64 -> 64x64 + 2 add, gelu".
std::string describe(const Kernel &kernel) {
  std::string_view most(kernel.summary);
  most = most.substr(0, most.find(' '));
  bool isSaid = false;
  std::vector<std::pair<std::string, int>> others;
  for (const std::string &op : kernel.ops) {
    std::string name = op.substr(op.find('.') + 1);
    if (name == "constant" || name == "broadcast" || name == "reshape")
      continue; // nothing is done for them
    if (name == most && !std::exchange(isSaid, true))
      continue;
    auto known = std::find_if(others.begin(), others.end(),
                              [&](auto &other) { return other.first == name; });
    if (known == others.end())
      others.emplace_back(name, 1);
    else
      ++known->second;
  }
  std::string text = kernel.summary;
  for (size_t i = 0; i < others.size(); ++i)
    text +=
        (i ? ", " : " + ") +
        (others[i].second > 1 ? std::to_string(others[i].second) + " " : "") +
        others[i].first;
  return text;
}

std::string fixed(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void printReport(const Report &report) {
  double step = report.timing.median(), roof = report.total(&Row::roof);
  std::vector<std::vector<std::string>> table = {{"kernel", "launches", "ms",
                                                  "lost ms", "GFLOP/s", "GB/s",
                                                  "of roof", "of step"}};
  auto share = [](double part, double whole) {
    return fixed(whole > 0 ? 100 * part / whole : 0, 1) + "%";
  };
  for (const Row &row : report.rows)
    table.push_back({row.kernel->symbol, std::to_string(row.launches.size()),
                     fixed(row.seconds * 1e3, 4), fixed(row.lost() * 1e3, 4),
                     fixed(row.rate(row.flops()) * 1e-9, 1),
                     fixed(row.rate(row.bytes()) * 1e-9, 1),
                     share(row.roof, row.seconds), share(row.seconds, step)});
  double kernels = report.total(&Row::seconds);
  table.push_back({"all kernels", "", fixed(kernels * 1e3, 4),
                   fixed((kernels - roof) * 1e3, 4), "", "",
                   share(roof, kernels), share(kernels, step)});
  if (rankCount() > 1) {
    double others = medianOfUnsorted(report.timing.together);
    table.push_back({"with other ranks", "", fixed(others * 1e3, 4), "", "", "",
                     "", share(others, step)});
  }
  table.push_back({report.program.name, "", fixed(step * 1e3, 4),
                   fixed((step - roof) * 1e3, 4), "", "", share(roof, step),
                   "100.0%"});
  printTable(table, true);
  std::printf("\n");
  std::vector<std::vector<std::string>> what;
  for (const Row &row : report.rows)
    what.push_back({row.kernel->symbol, describe(*row.kernel)});
  printTable(what);
  std::printf("\nroofs of %d thread%s:", report.model.threads(),
              report.model.threads() == 1 ? "" : "s");
  for (DType type : report.roofs.dtypes())
    std::printf(" %.1f GFLOP/s in %s (%s),", report.roofs.flops(type) * 1e-9,
                std::string(spelling(type)).c_str(), widestFmaLoop(type).name);
  std::printf(" %.1f GB/s; medians of %zu calls\n",
              report.roofs.bandwidth() * 1e-9, report.timing.sorted.size());
}

void printJson(const Report &report) {
  nlohmann::ordered_json roofs = nlohmann::ordered_json::object();
  for (DType type : report.roofs.dtypes())
    roofs["gflops_" + std::string(spelling(type))] =
        report.roofs.flops(type) * 1e-9;
  roofs["gbytes_per_second"] = report.roofs.bandwidth() * 1e-9;
  auto kernels = nlohmann::ordered_json::array();
  double step = report.timing.median();
  for (const Row &row : report.rows) {
    std::vector<double> each;
    for (double seconds : row.launches)
      each.push_back(seconds * 1e3);
    kernels.push_back({{"kernel", row.kernel->symbol},
                       {"class", row.kernel->kind},
                       {"computes", describe(*row.kernel)},
                       {"dtype", spelling(row.kernel->dtype)},
                       {"launches", row.launches.size()},
                       {"flops", row.kernel->flops},
                       {"bytes", row.kernel->bytes},
                       {"ms", row.seconds * 1e3},
                       {"launch_ms", each},
                       {"gflops", row.rate(row.flops()) * 1e-9},
                       {"gbytes_per_second", row.rate(row.bytes()) * 1e-9},
                       {"roof_ms", row.roof * 1e3},
                       {"lost_ms", row.lost() * 1e3},
                       {"of_roof", row.rate(row.roof)},
                       {"of_step", step > 0 ? row.seconds / step : 0}});
  }
  nlohmann::ordered_json json = {
      {"program", report.program.name},
      {"threads", report.model.threads()},
      {"calls", report.timing.sorted.size()},
      {"median_ms", step * 1e3},
      {"kernels_ms", report.total(&Row::seconds) * 1e3},
      {"with_others_ms", medianOfUnsorted(report.timing.together) * 1e3},
      {"roof_ms", report.total(&Row::roof) * 1e3},
      {"roofs", roofs},
      {"kernels", kernels}};
  std::printf("%s\n", json.dump(2).c_str());
}

} // namespace

Status commands::benchKernels(const Repeats &repeats, Model &model,
                              const Program &program,
                              std::vector<NamedTensor> &inputs, bool asJson) {
  if (!model.device().isHost())
    return Status::unsupported("--kernels: device '" +
                               toString(model.device()) +
                               "' has --profile for this");
  auto roofs = Roofs::prepare(model.threads(), dtypesOf(model, program));
  if (!roofs)
    return std::move(roofs).status();
  roofs->measure();
  LaunchTimes launches;
  auto timing = timeCalls(repeats, model, program, inputs, &launches);
  if (!timing)
    return std::move(timing).status();
  roofs->measure();
  Report report{model, program, *timing, *roofs,
                rowsOf(model, program, launches.medians(), *roofs)};
  if (!isFirstRank())
    return Status::success();
  asJson ? printJson(report) : printReport(report);
  return Status::success();
}
