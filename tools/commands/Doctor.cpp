//===- Doctor.cpp - `doctor` ----------------------------------------------===//
//
// Opens what running would open, in the same way, and says what came of it.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Doctor.h"

#include "runtime/device/Backend.h"
#include "runtime/device/CpuFeatures.h"
#include "runtime/device/Processors.h"
#include "tools/commands/Commands.h"
#include "tools/commands/Help.h"
#include "tools/commands/Print.h"
#include "tools/commands/RoundTrip.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <thread>

namespace tandem::commands {
namespace {

using State = Finding::State;

/// The rest of the first line of a file that begins with `key`, after a colon.
std::string lineOf(const char *path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) {
      size_t at = line.find(':');
      at = line.find_first_not_of(" \t", at == std::string::npos ? 0 : at + 1);
      return at == std::string::npos ? "" : line.substr(at);
    }
  return "";
}

/// "23.5 GiB", of a line of /proc/meminfo, which is in KiB.
std::string memoryText(std::string_view key) {
  return bytesText(
      std::strtoll(lineOf("/proc/meminfo", key).c_str(), nullptr, 10) * 1024);
}

#if defined(__aarch64__)
constexpr const char *ownProcessors = "aarch64";

/// What artifacts use beyond the least that all processors of the kind have.
std::string featuresText() {
  std::string text = "neon";
  for (const char *more :
       {"lse", "rdm", "dotprod", "fullfp16", "fp16fml", "bf16", "i8mm"})
    if (runtime::missingCpuFeatures({more}).empty())
      text += std::string(", ") + more;
  return text;
}
#else
constexpr const char *ownProcessors = "x86_64";

/// The highest of the levels of x86-64 (its psABI) that the processor has, and
/// what artifacts use beyond it.
std::string featuresText() {
  using Features = std::vector<std::string>;
  const std::pair<const char *, Features> levels[] = {
      {"x86-64-v2",
       {"cx16", "sahf", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}},
      {"x86-64-v3",
       {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}},
      {"x86-64-v4",
       {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}};
  std::string text = "x86-64";
  for (const auto &[name, features] : levels) {
    if (!runtime::missingCpuFeatures(features).empty())
      break;
    text = name;
  }
  for (const char *more :
       {"avx512vnni", "avx512bf16", "avx512fp16", "amx-tile", "amx-bf16"})
    if (runtime::missingCpuFeatures({more}).empty())
      text += std::string(", ") + more;
  return text;
}
#endif

std::string cachesText() {
  auto seconds = commands::roundTrip();
  if (!seconds)
    return "two threads did not run side by side";
  return "a line takes " + std::to_string(std::lround(*seconds * 1e9)) +
         " ns from one processor to another and back";
}

void checkMachine(std::vector<Finding> &findings) {
  utsname system = {};
  ::uname(&system);
  std::string model = lineOf("/proc/cpuinfo", "model name");
  int threads = runtime::availableThreads();
  auto all = std::thread::hardware_concurrency();
  bool isKnown = std::string_view(system.machine) == ownProcessors;
  findings.push_back(
      {"processor", isKnown ? State::Ok : State::Broken,
       (model.empty() ? std::string(system.machine) : model) + ", " +
           std::to_string(threads) + (threads == 1 ? " thread" : " threads") +
           (unsigned(threads) < all ? " of " + std::to_string(all) : ""),
       isKnown ? "" : "artifacts are for x86-64 and aarch64"});
  if (isKnown)
    findings.push_back({"features", State::Ok, featuresText(), ""});
  if (threads > 1)
    findings.push_back({"caches", State::Ok, cachesText(), ""});
  findings.push_back(
      {"memory", State::Ok,
       memoryText("MemTotal") + ", " + memoryText("MemAvailable") + " free",
       ""});
  findings.push_back({"system", State::Ok,
                      std::string(system.sysname) + " " + system.release, ""});
}

/// The devices of one kind, or why there is none.
void checkDevices(std::vector<Finding> &findings, runtime::DeviceKind kind,
                  const char *remedy) {
  constexpr int most = 64;
  for (int i = 0; i < most; ++i) {
    runtime::Device device{kind, i};
    auto backend = runtime::backendOf(device);
    if (backend && *backend) {
      findings.push_back(
          {toString(device), State::Ok, (*backend)->description(), ""});
      if (kind == runtime::DeviceKind::CudaEmu)
        return; // Has as many as are asked for.
      continue;
    }
    if (i == 0) {
      // What follows a semicolon is the remedy in other words.
      const std::string &why = backend.status().message();
      findings.push_back({toString(device), State::Missing,
                          why.substr(0, why.find(';')), remedy});
    }
    return;
  }
}

const char *spelling(State state) {
  return state == State::Ok        ? "ok"
         : state == State::Missing ? "missing"
                                   : "broken";
}

struct DoctorOptions {
  static constexpr std::string_view
      usage = "doctor [--json]",
      description =
          "Says what is installed, what the processor and the devices "
          "are, what is missing, and how to get it. The exit code is "
          "0 if models can be run here.";
  bool json = false;

  void declare(OptionTable &table) {
    table.flag("json", json, "print it as one JSON object");
  }
};

void printText(const std::vector<Finding> &findings) {
  constexpr size_t column = 14, width = 80;
  for (const Finding &finding : findings) {
    std::string name = finding.name;
    name.resize(std::max(name.size() + 1, column), ' ');
    std::string text = (finding.state == State::Ok
                            ? ""
                            : std::string(spelling(finding.state)) + ": ") +
                       finding.text;
    std::printf("%s%s\n", name.c_str(), wrapped(text, column, width).c_str());
    if (!finding.remedy.empty())
      std::printf(
          "%*s%s\n", int(column), "",
          wrapped("to get it: " + finding.remedy, column, width).c_str());
  }
}

Status doctor(const DoctorOptions &options, const Tool &tool) {
  std::vector<Finding> findings = {
      {std::string(tool.name), State::Ok, TANDEM_VERSION, ""}};
  checkMachine(findings);
  for (DoctorCheck check : tool.checks)
    check(findings);
  checkDevices(findings, runtime::DeviceKind::Cuda,
               "an NVIDIA GPU and its driver (apt-get install nvidia-driver)");
  checkDevices(
      findings, runtime::DeviceKind::CudaEmu,
      "ninja -C build tandem-cuda-emulator in a checkout, or the package "
      "tandem-compiler");
  bool isUsable = true;
  for (const Finding &finding : findings)
    isUsable &= finding.state != State::Broken;
  if (options.json) {
    nlohmann::ordered_json all = {
        {"tool", tool.name},
        {"version", TANDEM_VERSION},
        {"usable", isUsable},
        {"findings", nlohmann::ordered_json::array()}};
    for (const Finding &finding : findings)
      all["findings"].push_back({{"name", finding.name},
                                 {"state", spelling(finding.state)},
                                 {"text", finding.text},
                                 {"remedy", finding.remedy}});
    std::printf("%s\n", all.dump(1, ' ', false,
                                 nlohmann::json::error_handler_t::replace)
                            .c_str());
  } else {
    printText(findings);
  }
  return isUsable ? Status::success()
                  : Status::noDevice("something is broken; see above");
}

} // namespace

Command doctorCommand() {
  return commandOf<doctor>("doctor",
                           "say what is installed and what is missing");
}

} // namespace tandem::commands
