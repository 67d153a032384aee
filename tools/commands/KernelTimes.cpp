//===- KernelTimes.cpp - how fast each kernel of a program is -------------===//
//
// A kernel that is launched several times is one row: the sum of its launches.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/KernelTimes.h"

#include "tools/commands/FmaLoops.h"
#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"

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

struct Report {
  const Model &model;
  const Program &program;
  const Timing &timing;
  const Roofs &roofs;
  std::vector<KernelRow> rows; ///< by time lost

  double total(double KernelRow::*member) const {
    double sum = 0;
    for (const KernelRow &row : rows)
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

} // namespace

Result<Roofs> commands::prepareRoofs(const Model &model,
                                     const Program &program) {
  return Roofs::prepare(model.threads(), dtypesOf(model, program));
}

std::vector<KernelRow> commands::kernelRows(const artifact::Manifest &manifest,
                                            const Program &program,
                                            const std::vector<double> &seconds,
                                            const Roofs *roofs) {
  const std::vector<Kernel> &kernels = manifest.kernels;
  std::vector<KernelRow> rows(kernels.size());
  for (size_t i = 0; i < program.launches.size(); ++i) {
    if (!program.launches[i].hasKernel())
      continue;
    KernelRow &row = rows[program.launches[i].kernel];
    row.kernel = &kernels[program.launches[i].kernel];
    row.places.push_back(i);
    row.launches.push_back(seconds[i]);
    row.seconds += seconds[i];
  }
  std::erase_if(rows, [](const KernelRow &row) { return !row.kernel; });
  for (KernelRow &row : rows)
    if (roofs)
      row.roof =
          roofs->seconds(row.flops(), row.bytes(), roofType(row.kernel->dtype));
  std::sort(
      rows.begin(), rows.end(), [](const KernelRow &a, const KernelRow &b) {
        return std::pair(b.lost(), a.kernel) < std::pair(a.lost(), b.kernel);
      });
  return rows;
}

std::string commands::describe(const Kernel &kernel) {
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

std::string commands::fixed(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string commands::percent(double part, double whole) {
  return fixed(whole > 0 ? 100 * part / whole : 0, 1) + "%";
}

std::string commands::describe(const Roofs &roofs, int threads) {
  std::string text = "roofs of " + std::to_string(threads) + " thread" +
                     (threads == 1 ? ":" : "s:");
  for (DType type : roofs.dtypes())
    text += " " + fixed(roofs.flops(type) * 1e-9, 1) + " GFLOP/s in " +
            std::string(spelling(type)) + " (" + widestFmaLoop(type).name +
            "),";
  text += " " + fixed(roofs.bandwidth() * 1e-9, 1) + " GB/s";
  if (roofs.roundTrip() > 0)
    text += ", " + fixed(roofs.roundTrip() * 1e9, 0) +
            " ns to another thread and back";
  return text;
}

namespace {

void printReport(const Report &report) {
  double step = report.timing.median(), roof = report.total(&KernelRow::roof);
  std::vector<std::vector<std::string>> table = {{"kernel", "launches", "ms",
                                                  "lost ms", "GFLOP/s", "GB/s",
                                                  "of roof", "of step"}};
  for (const KernelRow &row : report.rows)
    table.push_back({row.kernel->symbol, std::to_string(row.launches.size()),
                     fixed(row.seconds * 1e3, 4), fixed(row.lost() * 1e3, 4),
                     fixed(row.rate(row.flops()) * 1e-9, 1),
                     fixed(row.rate(row.bytes()) * 1e-9, 1),
                     percent(row.roof, row.seconds),
                     percent(row.seconds, step)});
  double kernels = report.total(&KernelRow::seconds);
  table.push_back({"all kernels", "", fixed(kernels * 1e3, 4),
                   fixed((kernels - roof) * 1e3, 4), "", "",
                   percent(roof, kernels), percent(kernels, step)});
  if (rankCount() > 1) {
    double others = medianOfUnsorted(report.timing.together);
    table.push_back({"with other ranks", "", fixed(others * 1e3, 4), "", "", "",
                     "", percent(others, step)});
  }
  table.push_back({report.program.name, "", fixed(step * 1e3, 4),
                   fixed((step - roof) * 1e3, 4), "", "", percent(roof, step),
                   "100.0%"});
  printTable(table, true);
  std::printf("\n");
  std::vector<std::vector<std::string>> what;
  for (const KernelRow &row : report.rows)
    what.push_back({row.kernel->symbol, describe(*row.kernel)});
  printTable(what);
  std::printf("\n%s; medians of %zu calls\n",
              describe(report.roofs, report.model.threads()).c_str(),
              report.timing.sorted.size());
}

void printJson(const Report &report) {
  nlohmann::ordered_json roofs = nlohmann::ordered_json::object();
  for (DType type : report.roofs.dtypes())
    roofs["gflops_" + std::string(spelling(type))] =
        report.roofs.flops(type) * 1e-9;
  roofs["gbytes_per_second"] = report.roofs.bandwidth() * 1e-9;
  if (report.roofs.roundTrip() > 0)
    roofs["round_trip_ns"] = report.roofs.roundTrip() * 1e9;
  auto kernels = nlohmann::ordered_json::array();
  double step = report.timing.median();
  for (const KernelRow &row : report.rows) {
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
      {"kernels_ms", report.total(&KernelRow::seconds) * 1e3},
      {"with_others_ms", medianOfUnsorted(report.timing.together) * 1e3},
      {"roof_ms", report.total(&KernelRow::roof) * 1e3},
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
  auto roofs = prepareRoofs(model, program);
  if (!roofs)
    return std::move(roofs).status();
  roofs->measure();
  LaunchTimes launches;
  auto timing = timeCalls(repeats, model, program, inputs, &launches);
  if (!timing)
    return std::move(timing).status();
  roofs->measure();
  Report report{
      model, program, *timing, *roofs,
      kernelRows(model.manifest(), program, launches.medians(), &*roofs)};
  if (!isFirstRank())
    return Status::success();
  asJson ? printJson(report) : printReport(report);
  return Status::success();
}
