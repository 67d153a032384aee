//===- bench-partition.cpp - memory and recomputation on the workloads ----===//
//
// For each workload: what is saved between forward and backward against what
// has to be, the planned memory of a step against what a run takes, and a
// memory budget of a half against none. With --peers, PyTorch's eager step
// beside them, in the same run.
//
//   bench-partition measure [--workload=NAME ...] [--rounds=N] [--seconds=S]
//                           [--peers=DIR] [--python=PROGRAM]
//                           [--torch-saved=FILE] [--json=FILE]
//
//===----------------------------------------------------------------------===//
#include "tools/bench/partition/Measure.h"
#include "tools/bench/partition/Peers.h"
#include "tools/bench/partition/Processes.h"
#include "tools/bench/partition/Saved.h"
#include "tools/commands/Commands.h"
#include "tools/commands/Print.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

namespace {

struct Options {
  static constexpr std::string_view
      usage = "measure [options]",
      description = "What the workloads keep between forward and backward, and "
                    "what a step takes.";
  std::vector<std::string> workloads;
  std::string folder, peers, python = "python3", torchSaved, json;
  std::optional<int64_t> rounds;
  std::optional<double> seconds;

  void declare(OptionTable &table);
};

/// One row of the report, as it is written and as it is shown.
class Bench {
public:
  explicit Bench(const Options &options) : options(options) {}

  Status add(const workloads::Workload &workload);
  Json json() const { return report; }
  void print() const { printTable(rows, true); }

private:
  Status writeModel(const workloads::Workload &workload,
                    const std::string &path);
  void describePlan(const bench::Compiled &plan, Json &out);

  const Options &options;
  Json report = Json::array();
  std::vector<std::vector<std::string>> rows = {
      {"workload", "saved", "needed", "ratio", "again", "planned", "actual",
       "resident", "ms", "half planned", "half ms", "x", "torch MB",
       "torch ms"}};
};

} // namespace

Status Bench::writeModel(const workloads::Workload &workload,
                         const std::string &path) {
  return bench::run({bench::sibling("tandem-workload"), "write", workload.name,
                     "-o", path})
      .status();
}

void Bench::describePlan(const bench::Compiled &plan, Json &out) {
  bench::Repeats repeats = bench::repeatedOps(plan.manifest);
  out["compile_seconds"] = plan.seconds;
  out["saved_bytes"] = bench::savedBytes(plan.manifest);
  out["repeated_ops"] = repeats.ops;
  out["repeated_contractions"] = repeats.contractions;
  out["planned_peak_bytes"] =
      plan.manifest.stepMemory ? plan.manifest.stepMemory->peak() : 0;
  for (const artifact::Program &program : plan.manifest.programs)
    out["programs"].push_back({{"name", program.name},
                               {"arena_bytes", program.arenaBytes},
                               {"live_bytes", program.peakBytes}});
}

static std::string megabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", double(bytes) / 1e6);
  return text;
}

static std::string fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

Status Bench::add(const workloads::Workload &workload) {
  std::fprintf(stderr, "%s\n", workload.name.c_str());
  std::string model = options.folder + "/" + workload.name + ".mlir";
  if (Status s = writeModel(workload, model); !s)
    return s;
  std::vector<bench::Compiled> plans;
  for (auto [name, flags] :
       {std::pair{"fastest", std::vector<std::string>{}},
        std::pair{"half", std::vector<std::string>{"--memory-budget=0.5"}}}) {
    auto plan = bench::compile(model, workload, name, flags);
    if (!plan)
      return plan.status();
    plans.push_back(std::move(*plan));
  }
  auto runs = bench::runByTurns(plans, int(options.rounds.value_or(3)),
                                options.seconds.value_or(2));
  if (!runs)
    return runs.status();

  Json one = {{"workload", workload.name}};
  std::optional<int64_t> needed = bench::mustSave(workload);
  if (needed)
    one["saved_min_bytes"] = *needed;
  const char *names[] = {"fastest", "half"};
  for (size_t i = 0; i < plans.size(); ++i) {
    Json &out = one[names[i]];
    describePlan(plans[i], out);
    const bench::Ran &ran = (*runs)[i];
    out["actual_peak_bytes"] = ran.actualPeak;
    out["resident_bytes"] = ran.residentBytes;
    out["median_ms"] = ran.median();
    out["round_medians_ms"] = ran.milliseconds;
  }
  int64_t saved = one["fastest"]["saved_bytes"];
  double slower = (*runs)[1].median() / (*runs)[0].median();
  one["half_over_fastest"] = slower;
  std::vector<std::string> row = {
      workload.name,
      megabytes(saved),
      needed ? megabytes(*needed) : "-",
      needed ? fixed(double(saved) / double(*needed)) : "-",
      std::to_string(one["fastest"]["repeated_contractions"].get<int64_t>()),
      megabytes(one["fastest"]["planned_peak_bytes"]),
      megabytes((*runs)[0].actualPeak),
      megabytes((*runs)[0].residentBytes),
      fixed((*runs)[0].median()),
      megabytes(one["half"]["planned_peak_bytes"]),
      fixed((*runs)[1].median()),
      fixed(slower)};
  std::optional<bench::PeerStep> torch;
  if (!options.peers.empty())
    torch = bench::torchEager(options.python, options.peers, workload.name);
  if (torch)
    one["torch_eager"] = {{"median_ms", torch->milliseconds},
                          {"resident_bytes", torch->peakBytes}};
  row.push_back(torch ? megabytes(torch->peakBytes) : "-");
  row.push_back(torch ? fixed(torch->milliseconds) : "-");
  if (auto other = bench::torchSaved(options.torchSaved, workload.name))
    one["torch_saved"] = {{"eager_bytes", other->eager},
                          {"best_bytes", other->best},
                          {"best", other->bestName}};
  rows.push_back(std::move(row));
  report.push_back(std::move(one));
  return Status::success();
}

/// Where the models and artifacts lie meanwhile.
static Status makeFolder(std::string &folder, bool &isOurs) {
  if (!folder.empty())
    return Status::success();
  std::string pattern =
      (std::filesystem::temp_directory_path() / "bench-partition-XXXXXX")
          .string();
  isOurs = mkdtemp(pattern.data()) != nullptr;
  folder = pattern;
  return isOurs ? Status::success()
                : Status::failed("'" + pattern + "': cannot be made");
}

void Options::declare(OptionTable &table) {
  table.list("workload", "NAME", workloads, "a workload")
      .byDefault("all of a CPU's size");
  table.text("folder", "DIR", folder, "where models and artifacts are written")
      .byDefault("a temporary one");
  table
      .integer("rounds", "N", rounds, 1, 1000, "how often the plans take turns")
      .byDefault("3");
  table.number("seconds", "S", seconds, "how long each runs in a round")
      .above(0)
      .byDefault("2");
  table.text("peers", "DIR", peers,
             "the folder of torch_train.py: runs PyTorch's step too");
  table.text("python", "PROGRAM", python, "the Python that has PyTorch")
      .byDefault("python3");
  table.text("torch-saved", "FILE", torchSaved,
             "the output of torch_partition.py");
  table.text("json", "FILE", json, "write everything there");
}

static Status benchPartition(const Options &asked) {
  Options options = asked;
  bool isOurs = false;
  if (Status s = makeFolder(options.folder, isOurs); !s)
    return s;
  Bench bench(options);
  Status status = Status::success();
  for (const workloads::Workload &workload : workloads::all()) {
    bool isAsked =
        options.workloads.empty()
            ? bench::mustSave(workload).has_value()
            : std::find(options.workloads.begin(), options.workloads.end(),
                        workload.name) != options.workloads.end();
    if (isAsked && status)
      status = bench.add(workload);
  }
  if (isOurs)
    std::filesystem::remove_all(options.folder);
  if (!status)
    return status;
  bench.print();
  if (options.json.empty())
    return status;
  std::ofstream out(options.json);
  out << bench.json().dump(1) << '\n';
  return out ? status
             : Status::failed("'" + options.json + "': cannot be written");
}

int main(int argc, char **argv) {
  const commands::Command list[] = {
      commandOf<benchPartition>("measure", "compile and run the workloads"),
      helpCommand()};
  return runTool({"bench-partition", list, {}}, argc, argv);
}
