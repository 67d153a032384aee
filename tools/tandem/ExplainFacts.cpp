//===- ExplainFacts.cpp - questions about one compilation -----------------===//
#include "tools/tandem/ExplainFacts.h"
#include "tools/tandem/ExplainParts.h"

#include "runtime/artifact/Text.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <map>
#include <set>

using namespace tandem;
using namespace tandem::commands;
using namespace tandem::commands::explain;
using artifact::inQuotes;
using Json = nlohmann::ordered_json;

Json Explainer::finish(Json facts) {
  Json answer = {{"target", view.targetText()}, {"sentences", sentences}};
  answer["facts"] = std::move(facts);
  sentences.clear();
  return answer;
}

//===----------------------------------------------------------------------===//
// A value
//===----------------------------------------------------------------------===//

/// Which kernels of which programs read and write it.
void Explainer::sayUses(const std::string &role, const std::string &name) {
  for (const FactsView::Program &program : view.programs()) {
    const Json &json = *program.program;
    std::string in = "in " + inQuotes(program.name) +
                     (program.size.empty() ? "" : " (" + program.size + ")");
    const Json &arguments = json["arguments"];
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i]["name"] != name || arguments[i]["role"] != role)
        continue;
      auto readers = launchesOf(json, "argument", i, "reads");
      if (!readers.empty())
        say(in + " " + things(readers.size(), "launch reads", "launches read") +
            " it: " + few(namesOf(view, json, readers)));
      auto writers = launchesOf(json, "argument", i, "writes");
      if (!writers.empty())
        say(in + " " +
            things(writers.size(), "launch writes", "launches write") +
            " its storage: " + few(namesOf(view, json, writers)));
    }
    const Json &results = json["results"];
    for (size_t i = 0; i < results.size(); ++i) {
      const Json &slot = results[i];
      std::string where = textAt(slot, "where");
      std::string by = where.empty() ? "" : ", by " + where;
      if (slot["name"] != name)
        continue;
      if (slot["role"] == "update")
        say(in + " it gets a new value" + by + ", " +
            (slot.value("in_place", false)
                 ? "in its own storage"
                 : "which is copied to it when the program ends"));
      else if (slot["role"] == "grad")
        say(in + " its gradient is computed" + by);
      else if (slot["role"] == role)
        say(in + " it is written by " +
            few(namesOf(view, json, launchesOf(json, "result", i, "writes"))));
    }
  }
}

/// True if the model has the value under this name, too.
static bool isAlsoCalled(const Json &value, const std::string &name) {
  auto others = value.find("also_called");
  return others != value.end() &&
         std::find(others->begin(), others->end(), name) != others->end();
}

/// All that can be asked about by name.
static std::vector<std::string> valueNames(const FactsView &view) {
  std::vector<std::string> names;
  for (const Json &value : view.manifest()["values"]) {
    names.push_back(value["name"]);
    for (const Json &other : value.value("also_called", Json::array()))
      names.push_back(other);
  }
  if (const FactsView::Program *forward = view.find("forward"))
    for (const Json &slot : (*forward->program)["results"])
      if (slot["role"] == "saved")
        names.push_back(slot["name"]);
  return names;
}

Result<Json> Explainer::value(const std::string &name) {
  Json facts = Json::array();
  for (const Json &value : view.manifest()["values"]) {
    bool isOther = isAlsoCalled(value, name);
    if (value["name"] != name && !isOther)
      continue;
    std::string own = value["name"], role = value["role"];
    if (isOther)
      say(inQuotes(name) + " is one more name of " + inQuotes(own) +
          ", whose storage it has");
    std::string sentence = inQuotes(own) + " is a value of role " + role +
                           ": " + typeOf(value) + ", " +
                           bytesText(bytesOf(value));
    if (value.value("requires_grad", false))
      sentence += "; it requires a gradient";
    say(sentence);
    if (value.contains("init"))
      say("it begins as " +
          artifact::printable(value["init"].dump(
              -1, ' ', false, Json::error_handler_t::replace)));
    else if (role == "param" || role == "state")
      say("it has no initial value: --params gives it");
    sayUses(role, own);
    facts.push_back(value);
  }
  Json saved;
  if (saySaved(name, saved))
    facts.push_back(std::move(saved));
  if (facts.empty())
    return unknown("value", name, valueNames(view));
  return finish(std::move(facts));
}

//===----------------------------------------------------------------------===//
// Kernels and time
//===----------------------------------------------------------------------===//

/// "1.25 GFLOP", "64 FLOP".
static std::string flopText(double flops) {
  return countText(flops) + (flops < 1000 ? " FLOP" : "FLOP");
}

/// What bounds a kernel, in numbers of the machine that predictions reckon
/// with.
static std::string boundText(const Json &kernel, const Json &cost,
                             const Json &machine) {
  double flops = kernel["flops"], bytes = kernel["bytes"];
  std::string bound = cost["bound"];
  if (bound == "launch")
    return "starting it takes longer than what it computes";
  if (bound == "memory")
    return "it moves " + bytesText(static_cast<int64_t>(bytes)) +
           ", which takes longer than its " + flopText(flops) +
           ": the machine moves " + bytesText(machine["bytes"].get<double>()) +
           " in a second";
  return "its " + flopText(flops) + " take longer than moving its " +
         bytesText(static_cast<int64_t>(bytes));
}

Result<Json> Explainer::kernel(const std::string &name) {
  const Json &kernels = view.manifest()["kernels"];
  size_t number = kernels.size();
  std::vector<std::string> names;
  for (size_t i = 0; i < kernels.size(); ++i) {
    names.push_back(kernels[i]["symbol"]);
    if (names.back() == name || std::to_string(i) == name)
      number = i;
  }
  if (number == kernels.size())
    return unknown("kernel", name, names);
  const Json &kernel = kernels[number];
  const Json &cost = view.summary()["kernels"][number];
  std::string ops;
  for (const Json &op : kernel["ops"])
    ops += (ops.empty() ? "" : ", ") + opName(op);
  say(inQuotes(names[number]) + " is of the class " + textAt(kernel, "class") +
      (kernel.contains("summary")
           ? ", its most work: " +
                 artifact::printable(textAt(kernel, "summary"))
           : "") +
      "; fused in it are " + artifact::printable(ops));
  say("a launch is predicted to take " + secondsText(cost["seconds"]) + ": " +
      boundText(kernel, cost, view.summary()["machine"]));
  Json facts = {{"number", number}, {"kernel", kernel}, {"cost", cost}};
  std::set<std::string> schedules;
  Json uses = Json::array();
  for (const FactsView::Program &program : view.programs()) {
    const Json &launches = (*program.program)["launches"];
    size_t count = 0;
    std::set<std::string> places;
    for (size_t i = 0; i < launches.size(); ++i) {
      if (!launches[i].contains("kernel") || launches[i]["kernel"] != number)
        continue;
      ++count;
      const Json &planned = program.launch(i);
      if (!planned.is_object())
        continue;
      std::string place = textAt(planned, "path"),
                  at = textAt(planned, "where");
      place += (place.empty() || at.empty() ? "" : " at ") + at;
      if (planned.contains("gradient_of"))
        place =
            "the gradient of " + textAt(planned, "gradient_of") + ", " + place;
      else if (textAt(planned, "pass") == "recompute")
        place = "what the backward runs again, " + place;
      if (!place.empty())
        places.insert(place);
      if (planned.contains("schedule"))
        schedules.insert(textAt(planned, "schedule"));
    }
    if (!count)
      continue;
    double part = static_cast<double>(count) * cost["seconds"].get<double>();
    double whole = (*program.summary)["seconds"];
    std::string sentence = inQuotes(program.name) + " launches it " +
                           things(count, "time", "times") + ": " +
                           secondsText(part);
    if (whole > 0)
      sentence += ", " + percent(part / whole) + " of its predicted time";
    if (!places.empty())
      sentence += "; from " +
                  few(std::vector<std::string>(places.begin(), places.end()));
    say(sentence);
    uses.push_back({{"program", program.name},
                    {"size", program.size},
                    {"launches", count},
                    {"seconds", part}});
  }
  facts["programs"] = std::move(uses);
  for (const std::string &schedule : schedules)
    say("its schedule: " + artifact::printable(schedule));
  if (!view.isPlanned())
    say("an artifact does not say where in the model its ops are from, nor how "
        "it was cut: ask the model");
  else
    say("'tandem inspect MODEL --methods' has the other methods and what they "
        "are expected to take");
  return finish(std::move(facts));
}

/// The kernels that take most, and how many are small.
void Explainer::sayKernels(
    const std::vector<const FactsView::Program *> &programs, double seconds,
    Json &facts) {
  std::map<size_t, size_t> counts;
  for (const FactsView::Program *program : programs)
    for (const Json &launch : (*program->program)["launches"])
      if (launch.contains("kernel"))
        ++counts[launch["kernel"].get<size_t>()];
  std::vector<std::pair<double, size_t>> order;
  for (const auto &[number, count] : counts)
    order.emplace_back(
        -static_cast<double>(count) *
            view.summary()["kernels"][number]["seconds"].get<double>(),
        number);
  std::sort(order.begin(), order.end());
  facts["kernels"] = Json::array();
  for (size_t i = 0; i < std::min(order.size(), kFew); ++i) {
    auto [negative, number] = order[i];
    const Json &kernel = view.manifest()["kernels"][number];
    const Json &cost = view.summary()["kernels"][number];
    say(percent(-negative / seconds) + " is in " +
        things(counts[number], "launch", "launches") + " of " +
        inQuotes(textAt(kernel, "symbol")) +
        (kernel.contains("summary")
             ? " (" + artifact::printable(textAt(kernel, "summary")) + ")"
             : "") +
        ": " + boundText(kernel, cost, view.summary()["machine"]));
    facts["kernels"].push_back({{"symbol", kernel["symbol"]},
                                {"launches", counts[number]},
                                {"seconds", -negative},
                                {"bound", cost["bound"]}});
  }
}

Json Explainer::whySlow() {
  auto programs = view.stepPrograms();
  double seconds = 0;
  std::map<std::string, double> bounds;
  std::string names;
  int64_t others = 0;
  for (const FactsView::Program *program : programs) {
    const Json &summary = *program->summary;
    seconds += summary["seconds"].get<double>();
    for (const char *key : {"arithmetic", "memory", "launch"})
      bounds[key] += summary[key].get<double>();
    others += summary["copies"].get<int64_t>() +
              summary["collectives"].get<int64_t>();
    names += (names.empty() ? "" : " and ") + inQuotes(program->name);
  }
  Json facts = {{"seconds", seconds}, {"bounds", bounds}};
  say(names + " is predicted to take " + secondsText(seconds) + " on " +
      artifact::printable(textAt(view.summary()["machine"], "name")) +
      ", one kernel after the other; nothing was measured");
  if (seconds <= 0)
    return finish(std::move(facts));
  say(percent(bounds["memory"] / seconds) +
      " is in kernels bound by moving bytes, " +
      percent(bounds["arithmetic"] / seconds) + " by arithmetic, " +
      percent(bounds["launch"] / seconds) + " by starting kernels");
  sayKernels(programs, seconds, facts);
  if (const Json &partition = view.partition(0); partition.is_object()) {
    double again = 0;
    for (const Json &op : partition["repeated"])
      again += op["seconds"].get<double>();
    size_t count = partition["repeated"].size();
    facts["repeated"] = {{"ops", count}, {"seconds", again}};
    if (count)
      say("the backward computes " + things(count, "op", "ops") +
          " of the forward again: the partition expected that to take " +
          secondsText(again) + " within its kernels");
  }
  if (others)
    say(std::to_string(others) +
        " collectives and copies are in no prediction here: 'tandem simulate' "
        "has them");
  say("'tandem-run bench X.tdm --kernels' measures");
  return finish(std::move(facts));
}
