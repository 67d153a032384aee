//===- Results.cpp - what was measured, as a table and as JSON ------------===//
#include "tools/bench/cpu/Results.h"
#include "tools/bench/cpu/Roofs.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

using namespace tandem;
using namespace tandem::bench;
using Json = nlohmann::ordered_json;

/// Four significant digits say all that is measured.
static double rounded(double value) {
  if (value == 0 || !std::isfinite(value))
    return value;
  double unit = std::pow(10.0, 3 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * unit) / unit;
}

static std::string formatted(const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

Json bench::roofsJson(int threads, const Effort &effort) {
  constexpr int64_t kElements = 32 << 20; // 128 MiB an array
  std::vector<Contender> roofs = {
      fmaRoof(threads, DType::F32), fmaRoof(threads, DType::BF16),
      triad(kElements, threads), copyOf(8.0 * kElements, threads)};
  const double work[] = {threads * roofFlops(DType::F32),
                         threads * roofFlops(DType::BF16), 12.0 * kElements,
                         8.0 * kElements};
  const char *names[] = {"f32_gflops", "bf16_gflops", "triad_gbs", "copy_gbs"};
  std::vector<Times> times = measure(roofs, effort);
  Json json = {{"threads", threads}};
  for (size_t i = 0; i < roofs.size(); ++i)
    json[names[i]] = rounded(work[i] / quantile(times[i], 0.5) * 1e-9);
  return json;
}

/// What Tandem's time is beside the others': of libraries, the fastest that
/// does what Tandem does, and the fastest that has layouts of its own.
static void addRatios(const Row &row, Json &json) {
  double least[2] = {0, 0};
  for (size_t i = 1; i < row.contenders.size(); ++i) {
    const Contender &contender = row.contenders[i];
    double times = ratio(row.times[i], row.times[0]);
    if (contender.name == "roof") {
      json["of_roof"] =
          rounded(times * row.which->flops /
                  (row.threads * roofFlops(row.which->inputs[0].dtype)));
    } else if (contender.name == "copy") {
      json["of_copy"] = rounded(times);
    } else {
      bool isOwn = contender.group == Contender::OwnLayout;
      double time = quantile(row.times[i], 0.5);
      if (least[isOwn] != 0 && time >= least[isOwn])
        continue;
      least[isOwn] = time;
      json[isOwn ? "best_own_layout" : "best"] = contender.name;
      json[isOwn ? "ratio_own_layout" : "ratio"] = rounded(times);
    }
  }
}

Json bench::rowJson(const Row &row) {
  const Case &c = *row.which;
  Json json = {{"case", c.name},
               {"threads", row.threads},
               {"flops", c.flops},
               {"bytes", c.bytes}};
  for (size_t i = 0; i < row.contenders.size(); ++i) {
    const Contender &contender = row.contenders[i];
    Json entry = {{"name", contender.name}};
    if (i == 0 && !row.wrong.empty())
      entry["wrong"] = row.wrong;
    if (!row.times.empty()) {
      const Times &times = row.times[i];
      double median = quantile(times, 0.5);
      entry["ms"] = rounded(median * 1e3);
      entry["ms_low"] = rounded(quantile(times, 0.1) * 1e3);
      entry["ms_high"] = rounded(quantile(times, 0.9) * 1e3);
      entry["rounds"] = times.size();
      entry["times_tandem"] = rounded(ratio(times, row.times[0]));
    }
    json["contenders"].push_back(std::move(entry));
  }
  if (row.times.empty())
    return json;
  double median = quantile(row.times[0], 0.5);
  json["gflops"] = rounded(c.flops / median * 1e-9);
  json["gbs"] = rounded(c.bytes / median * 1e-9);
  addRatios(row, json);
  return json;
}

std::string bench::tableHead() {
  return formatted("%-36s %2s %9s %-19s %7s %6s %5s %5s %6s %6s  %s", "case",
                   "T", "ms", "[low-high]", "GFLOP/s", "GB/s", "roof", "copy",
                   "ratio", "own", "others, in Tandem's times");
}

static std::string percent(const Json &json, const char *key) {
  return json.contains(key)
             ? formatted("%4.0f%%", json[key].get<double>() * 100)
             : "-";
}

static std::string factor(const Json &json, const char *key) {
  return json.contains(key) ? formatted("%.2f", json[key].get<double>()) : "-";
}

std::string bench::tableLine(const Json &json) {
  const Json &tandem = json["contenders"][0];
  std::string line =
      formatted("%-36s %2d", json["case"].get<std::string>().c_str(),
                json["threads"].get<int>());
  if (tandem.contains("ms")) {
    std::string spread =
        formatted("[%.4g-%.4g]", tandem["ms_low"].get<double>(),
                  tandem["ms_high"].get<double>());
    double gflops = json["gflops"];
    line += formatted(
        " %9.4g %-19s %7s %6.1f %5s %5s %6s %6s ", tandem["ms"].get<double>(),
        spread.c_str(), gflops > 0 ? formatted("%.1f", gflops).c_str() : "-",
        json["gbs"].get<double>(), percent(json, "of_roof").c_str(),
        percent(json, "of_copy").c_str(), factor(json, "ratio").c_str(),
        factor(json, "ratio_own_layout").c_str());
  }
  for (size_t i = 0; i < json["contenders"].size(); ++i) {
    const Json &entry = json["contenders"][i];
    std::string name = entry["name"];
    if (entry.contains("wrong"))
      line += " " + name + " WRONG: " + entry["wrong"].get<std::string>();
    else if (i > 0 && entry.contains("ms") && name != "roof" && name != "copy")
      line += formatted(" %s %.2f", name.c_str(),
                        entry["times_tandem"].get<double>());
  }
  return line;
}

std::string bench::roofLine(const Json &roofs) {
  return formatted(
      "roofs of %d threads: %.1f GFLOP/s in f32, %.1f in bf16, "
      "triad %.1f GB/s, copy %.1f GB/s",
      roofs["threads"].get<int>(), roofs["f32_gflops"].get<double>(),
      roofs["bf16_gflops"].get<double>(), roofs["triad_gbs"].get<double>(),
      roofs["copy_gbs"].get<double>());
}
