//===- ProfileTrace.cpp - a profile as a timeline for Perfetto ------------===//
#include "tools/tandem/ProfileTrace.h"

using Json = nlohmann::ordered_json;

static Json nameOf(const char *what, size_t thread, const std::string &name) {
  return {{"ph", "M"},
          {"pid", 0},
          {"tid", thread},
          {"name", what},
          {"args", {{"name", name}}}};
}

std::string tandem::commands::profileTrace(const Json &profile) {
  const Json &launches = profile["launches"];
  size_t threads = 0;
  for (const Json &launch : launches)
    if (launch.contains("threads"))
      threads = std::max(threads, launch["threads"].size());
  Json events = Json::array();
  events.push_back(nameOf("process_name", 0,
                          profile["program"].get<std::string>() +
                              ", median of each launch"));
  for (size_t i = 0; i < std::max<size_t>(threads, 1); ++i)
    events.push_back(nameOf("thread_name", i,
                            threads ? "thread " + std::to_string(i)
                                    : profile["device"].get<std::string>()));
  double start = 0;
  for (const Json &launch : launches) {
    double seconds = launch["seconds"]["median"].get<double>();
    Json places = Json::object();
    for (const char *key : {"pass", "path", "where", "gradient_of"})
      if (launch.contains(key))
        places[key] = launch[key];
    std::string category = launch.value("pass", std::string("kernel"));
    auto add = [&](size_t thread, double own) {
      Json event = {{"ph", "X"},       {"pid", 0},
                    {"tid", thread},   {"name", launch["kernel"]},
                    {"cat", category}, {"ts", start * 1e6},
                    {"dur", own * 1e6}};
      if (!places.empty())
        event["args"] = places;
      events.push_back(std::move(event));
    };
    if (!launch.contains("threads"))
      add(0, seconds);
    else
      for (size_t i = 0; i < launch["threads"].size(); ++i)
        if (double own = launch["threads"][i].get<double>(); own > 0)
          add(i, std::min(own, seconds));
    start += seconds;
  }
  Json all = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return all.dump(0, ' ', false, Json::error_handler_t::replace) + "\n";
}
