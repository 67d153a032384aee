//===- SimulationReport.cpp - what a simulation has shown -----------------===//
#include "tools/tandem/SimulationReport.h"

#include "runtime/artifact/Text.h"
#include "tools/commands/Print.h"

#include <cstdio>
#include <nlohmann/json.hpp>

using namespace tandem;
using namespace tandem::commands;
using namespace tandem::simulate;
using nlohmann::ordered_json;

static std::string textOf(double value, const char *format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

static std::string millis(double seconds) {
  return textOf(seconds * 1e3, "%.3f ms");
}

static std::string percent(double part) {
  return textOf(100 * part, "%.1f %%");
}

std::string commands::ranksText(const Simulation &simulation) {
  int64_t ranks = simulation.ranks();
  std::string text = std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  std::string axes;
  for (const artifact::MeshAxis &axis : simulation.network->mesh())
    axes += (axes.empty() ? "" : ", ") + axis.name + "=" +
            std::to_string(axis.size);
  return axes.empty() ? text : text + " (" + artifact::forScreen(axes) + ")";
}

static std::string machineText(const Simulation &simulation) {
  const SimulatedMachine &machine = simulation.machine;
  std::string text = machine.device.name;
  if (simulation.ranks() == 1)
    return text;
  text += ", " + std::to_string(simulation.network->ranksOfMachine()) +
          " a machine";
  if (simulation.network->ranksOfMachine() > 1)
    text += " with " + machine.inside.name;
  if (simulation.ranks() > machine.ranksOfMachine)
    text += ", " + machine.between->name + " between machines";
  return text;
}

/// The part of the communication that is beside kernels.
static double hiddenPart(const RankTimes &times) {
  return times.exchanges > times.exposed ? 1 - times.exposed / times.exchanges
                                         : 0;
}

static void printTimes(const StepResult &step) {
  const RankTimes &times = slowestOf(step).times;
  std::pair<const char *, double> parts[] = {
      {"arithmetic", times.arithmetic},
      {"memory", times.memory},
      {"launches", times.launches},
      {"exposed communication", times.exposed},
      {"pipeline bubble", times.bubble}};
  for (auto [name, seconds] : parts)
    std::printf("  %-22s %14s %9s\n", name, millis(seconds).c_str(),
                percent(seconds / times.step).c_str());
}

static std::string groupText(const Group &group) {
  std::string text = std::to_string(group.ranks);
  return group.machines > 1
             ? text + " on " + std::to_string(group.machines) + " machines"
             : text;
}

static void printExchanges(const RankResult &rank) {
  if (rank.exchanges.empty())
    return;
  std::printf("\n%-34s %6s %12s %14s  %-13s %s\n", "exchanges of a rank",
              "count", "bytes", "time", "algorithm", "ranks");
  for (const ExchangeSum &one : rank.exchanges)
    std::printf("%-34s %6lld %12s %14s  %-13s %s\n",
                artifact::forScreen(one.what).c_str(),
                static_cast<long long>(one.count),
                bytesText(int64_t(one.bytes)).c_str(),
                millis(one.seconds).c_str(), std::string(one.algorithm).c_str(),
                groupText(one.group).c_str());
}

/// Of a pipeline, each rank along it.
static void printRanks(const StepResult &step) {
  if (step.ranks.size() < 2)
    return;
  std::printf("\n%-10s %14s %14s %14s %12s %12s\n", "stages", "kernels",
              "exposed", "bubble", "memory", "in flight");
  for (const RankResult &rank : step.ranks) {
    std::string stages;
    for (int64_t stage : rank.stages)
      stages += (stages.empty() ? "" : ", ") + std::to_string(stage);
    std::printf(
        "%-10s %14s %14s %14s %12s %12s\n", stages.c_str(),
        millis(rank.times.kernels()).c_str(),
        millis(rank.times.exposed).c_str(), millis(rank.times.bubble).c_str(),
        bytesText(rank.memory).c_str(), bytesText(rank.inFlight).c_str());
  }
}

void commands::printSimulation(const std::string &name,
                               const Simulation &simulation) {
  const StepResult &step = simulation.step;
  const RankResult &slowest = slowestOf(step);
  std::printf("%s on %s\n", artifact::forScreen(name).c_str(),
              ranksText(simulation).c_str());
  std::printf("%-24s %s\n", "device",
              artifact::forScreen(machineText(simulation)).c_str());
  std::printf("%-24s %14s\n", "step", millis(step.seconds).c_str());
  printTimes(step);
  std::printf("%-24s %14s, %s of it beside kernels\n", "communication",
              millis(slowest.times.exchanges).c_str(),
              percent(hiddenPart(slowest.times)).c_str());
  std::printf("%-24s %14s of %s%s\n", "memory of a rank",
              bytesText(simulation.memory()).c_str(),
              bytesText(int64_t(simulation.machine.device.capacity)).c_str(),
              simulation.fits() ? "" : ": too little");
  std::printf("%-24s %14s%s\n", "MFU", percent(simulation.mfu()).c_str(),
              simulation.isOfModel ? ""
                                   : ", with what several ranks compute alike");
  std::printf("%-24s %14s\n", "bound by", std::string(boundOf(step)).c_str());
  printRanks(step);
  printExchanges(slowest);
}

void commands::printSweep(const std::vector<Candidate> &candidates) {
  std::printf("%-28s %-14s %14s %12s %7s %9s %9s  %s\n", "mesh", "plan", "step",
              "memory", "MFU", "exposed", "bubble", "bound by");
  for (const Candidate &one : candidates) {
    std::string mesh = one.mesh.empty() ? "one rank" : one.mesh;
    std::string plan = one.parallel.empty() ? "-" : one.parallel;
    std::printf("%-28s %-14s ", artifact::forScreen(mesh).c_str(),
                artifact::forScreen(plan).c_str());
    if (!one.simulation) {
      std::printf("%s\n", artifact::forScreen(one.problem).c_str());
      continue;
    }
    const RankTimes &times = slowestOf(one.simulation->step).times;
    std::printf("%14s %12s %7s %9s %9s  %s%s\n",
                millis(one.simulation->step.seconds).c_str(),
                bytesText(one.simulation->memory()).c_str(),
                percent(one.simulation->mfu()).c_str(),
                percent(times.exposed / times.step).c_str(),
                percent(times.bubble / times.step).c_str(),
                std::string(boundOf(one.simulation->step)).c_str(),
                one.simulation->fits() ? "" : "; does not fit");
  }
}

static ordered_json toJson(const RankResult &rank) {
  ordered_json one = {{"kernels_ms", rank.times.kernels() * 1e3},
                      {"arithmetic_ms", rank.times.arithmetic * 1e3},
                      {"memory_ms", rank.times.memory * 1e3},
                      {"launches_ms", rank.times.launches * 1e3},
                      {"exposed_ms", rank.times.exposed * 1e3},
                      {"bubble_ms", rank.times.bubble * 1e3},
                      {"communication_ms", rank.times.exchanges * 1e3},
                      {"memory_bytes", rank.memory},
                      {"in_flight_bytes", rank.inFlight},
                      {"exchanges", ordered_json::array()}};
  if (!rank.stages.empty())
    one["stages"] = rank.stages;
  for (const ExchangeSum &sum : rank.exchanges)
    one["exchanges"].push_back({{"what", sum.what},
                                {"algorithm", std::string(sum.algorithm)},
                                {"ranks", sum.group.ranks},
                                {"machines", sum.group.machines},
                                {"count", sum.count},
                                {"bytes", sum.bytes},
                                {"ms", sum.seconds * 1e3}});
  return one;
}

ordered_json commands::toJson(const Simulation &simulation) {
  ordered_json mesh = ordered_json::object();
  for (const artifact::MeshAxis &axis : simulation.network->mesh())
    mesh[axis.name] = axis.size;
  const SimulatedMachine &machine = simulation.machine;
  ordered_json all = {
      {"kind", "simulation"},
      {"ranks", simulation.ranks()},
      {"mesh", mesh},
      {"device", machine.device.name},
      {"links", machine.inside.name},
      {"ranks_per_machine", simulation.network->ranksOfMachine()},
      {"step_ms", simulation.step.seconds * 1e3},
      {"memory_bytes", simulation.memory()},
      {"fits", simulation.fits()},
      {"mfu", simulation.mfu()},
      {"model_flops", simulation.modelFlops},
      {"product_flops_of_rank",
       simulation.step.flops / double(simulation.step.ranks.size())},
      {"bound_by", std::string(boundOf(simulation.step))},
      {"rank_kinds", ordered_json::array()}};
  if (machine.between)
    all["links_between"] = machine.between->name;
  for (const RankResult &rank : simulation.step.ranks)
    all["rank_kinds"].push_back(::toJson(rank));
  return all;
}

ordered_json commands::toJson(const std::vector<Candidate> &candidates) {
  ordered_json all = {{"kind", "sweep"}, {"candidates", ordered_json::array()}};
  for (const Candidate &one : candidates) {
    ordered_json row = {{"mesh", one.mesh}, {"parallel", one.parallel}};
    if (one.simulation)
      row["simulation"] = toJson(*one.simulation);
    else
      row["problem"] = one.problem;
    all["candidates"].push_back(row);
  }
  return all;
}
