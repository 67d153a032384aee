//===- RankTimes.cpp - how long the calls of several ranks take -----------===//
#include "tools/commands/RankTimes.h"

#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"

#include <algorithm>
#include <cmath>
#include <sys/resource.h>

namespace tandem::commands {

int64_t residentPeak() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

Result<RankTimes> timesOfRanks(const Timing &own, int64_t peak) {
  nlohmann::json said = {{"calls", own.calls},
                         {"together", own.together},
                         {"peak", peak},
                         {"resident", residentPeak()}};
  auto texts = textsOfRanks(said.dump());
  if (!texts)
    return std::move(texts).status();
  RankTimes times;
  times.sorted.assign(own.calls.size(), 0);
  std::vector<double> least(own.calls.size(), INFINITY);
  for (const std::string &text : *texts) {
    nlohmann::json one = nlohmann::json::parse(text);
    auto calls = one["calls"].get<std::vector<double>>();
    auto together = one["together"].get<std::vector<double>>();
    for (size_t i = 0; i < std::min(calls.size(), least.size()); ++i) {
      times.sorted[i] = std::max(times.sorted[i], calls[i]);
      least[i] = std::min(least[i], together[i]);
    }
    times.ranks.push_back({medianOfUnsorted(std::move(calls)),
                           medianOfUnsorted(std::move(together)),
                           one["peak"].get<int64_t>(),
                           one["resident"].get<int64_t>()});
  }
  std::sort(times.sorted.begin(), times.sorted.end());
  times.exposed = medianOfUnsorted(std::move(least));
  return times;
}

int64_t RankTimes::peak() const {
  int64_t most = 0;
  for (const One &one : ranks)
    most = std::max(most, one.peak);
  return most;
}

std::vector<std::vector<std::string>> RankTimes::rows() const {
  auto milliseconds = [](double seconds) {
    return roundedText(seconds * 1e3) + " ms";
  };
  std::vector<std::vector<std::string>> rows = {
      {"ranks", std::to_string(ranks.size())},
      {"exposed communication", milliseconds(exposed)}};
  for (size_t i = 0; i < ranks.size(); ++i)
    rows.push_back({"rank " + std::to_string(i),
                    milliseconds(ranks[i].call) + ", with others " +
                        milliseconds(ranks[i].together) + ", peak " +
                        bytesText(ranks[i].peak)});
  return rows;
}

void RankTimes::addTo(nlohmann::json &json) const {
  json["ranks"] = ranks.size();
  json["exposed_ms"] = exposed * 1e3;
  for (const One &one : ranks)
    json["each_rank"].push_back({{"median_ms", one.call * 1e3},
                                 {"with_others_ms", one.together * 1e3},
                                 {"actual_peak_bytes", one.peak},
                                 {"peak_rss_bytes", one.resident}});
}

} // namespace tandem::commands
