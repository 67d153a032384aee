//===- DiffWork.cpp - programs, kernels and ops that differ --------------===//
//
// Kernels meet by the ops in them and their types, and not by their symbols,
// which have numbers: one kernel more is one row.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/DiffRows.h"

#include <algorithm>
#include <array>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

static Json figuresOf(const FactsView::Program &program) {
  Json figures = Json::object();
  for (const char *key : {"seconds", "flops", "bytes", "kernels", "copies",
                          "collectives", "bound"})
    figures[key] = (*program.summary)[key];
  for (const char *key : {"peak_bytes", "arena_bytes"})
    figures[key] = (*program.program)[key];
  return figures;
}

/// The key under which programs of both sides meet.
static std::string keyOf(const FactsView::Program &program) {
  return program.name + "\n" + program.size;
}

static Json programRow(const std::string &key) {
  size_t end = key.find('\n');
  Json row = {{"program", key.substr(0, end)}};
  if (std::string size = key.substr(end + 1); !size.empty())
    row["size"] = size;
  return row;
}

Json commands::programsDiff(BothViews views) {
  Matched matched;
  for (int side = 0; side < 2; ++side)
    for (const FactsView::Program &program : views[side]->programs())
      matched.at(keyOf(program), side) = figuresOf(program);
  Json rows = Json::array();
  for (const Matched::Row &match : matched.rows)
    if (match.differs()) {
      Json row = programRow(match.key);
      row["seconds"] = match.change("seconds");
      row["a"] = match.sides[0];
      row["b"] = match.sides[1];
      rows.push_back(std::move(row));
    }
  sortByEffect(rows, "seconds");
  return rows;
}

/// What a kernel computes: those with one text are of one kind.
static Json identityOf(const Json &kernel) {
  Json ops = Json::array();
  for (const Json &op : kernel["ops"])
    ops.push_back(opName(op));
  Json identity = {{"class", kernel["class"]}, {"ops", std::move(ops)}};
  for (const char *key : {"summary", "dtype"})
    if (kernel.contains(key))
      identity[key] = kernel[key];
  return identity;
}

/// How a launch is cut, as far as both sides know.
static std::string scheduleOf(const Json &launch, const Json &kernel,
                              const Json *planned) {
  std::string text;
  auto add = [&](const Json &from, const char *key) {
    if (from.contains(key))
      text += (text.empty() ? "" : ", ") + std::string(key) + " " +
              from[key].dump();
  };
  for (const char *key : {"work", "grain", "grid", "library"})
    add(launch, key);
  for (const char *key : {"block", "shared_bytes", "scratch_bytes"})
    add(kernel, key);
  if (planned && planned->is_object())
    text += ", " + textAt(*planned, "schedule");
  return text;
}

/// The kernels of one program by what they compute: how often, at what cost.
static void addKernels(const FactsView &view, const FactsView::Program &program,
                       int side, bool withPlan, Matched &kernels,
                       Matched &schedules) {
  const Json &launches = (*program.program)["launches"];
  for (size_t i = 0; i < launches.size(); ++i) {
    if (!launches[i].contains("kernel"))
      continue;
    size_t number = launches[i]["kernel"];
    const Json &kernel = view.manifest()["kernels"][number];
    const Json &cost = view.summary()["kernels"][number];
    std::string key =
        identityOf(kernel).dump(-1, ' ', false, Json::error_handler_t::replace);
    Json &sum = kernels.at(key, side);
    if (sum.is_null())
      sum = {{"launches", 0}, {"seconds", 0.0}, {"flops", 0},
             {"bytes", 0},    {"bound", ""},    {"symbols", Json::array()}};
    sum["launches"] = sum["launches"].get<int64_t>() + 1;
    sum["seconds"] =
        sum["seconds"].get<double>() + cost["seconds"].get<double>();
    for (const char *figure : {"flops", "bytes"})
      sum[figure] = sum[figure].get<int64_t>() + kernel[figure].get<int64_t>();
    sum["bound"] = cost["bound"];
    Json &symbols = sum["symbols"];
    if (std::find(symbols.begin(), symbols.end(), kernel["symbol"]) ==
        symbols.end())
      symbols.push_back(kernel["symbol"]);
    std::string text = scheduleOf(launches[i], kernel,
                                  withPlan ? &program.launch(i) : nullptr);
    Json &count = schedules.at(key, side)[text];
    count = count.is_null() ? 1 : count.get<int64_t>() + 1;
  }
}

/// Symbols have numbers, which change where nothing else does.
static bool differInWork(Json a, Json b) {
  for (Json *side : {&a, &b})
    if (side->is_object())
      side->erase("symbols");
  return a != b;
}

/// How often a kernel runs is told with the kernels.
static bool haveSameMembers(const Json &a, const Json &b) {
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(),
                    b.items().end(), [](const auto &one, const auto &other) {
                      return one.key() == other.key();
                    });
}

/// For the keys of programs on either side: both, or null.
static std::vector<
    std::pair<std::string, std::array<const FactsView::Program *, 2>>>
programPairs(BothViews views) {
  std::vector<std::pair<std::string, std::array<const FactsView::Program *, 2>>>
      pairs;
  for (int side = 0; side < 2; ++side)
    for (const FactsView::Program &program : views[side]->programs()) {
      std::string key = keyOf(program);
      auto found = std::find_if(pairs.begin(), pairs.end(),
                                [&](auto &pair) { return pair.first == key; });
      if (found == pairs.end())
        found = pairs.insert(pairs.end(), {key, {nullptr, nullptr}});
      found->second[side] = &program;
    }
  return pairs;
}

void commands::kernelsDiff(BothViews views, Json &kernels, Json &schedules) {
  bool withPlan = views[0]->isPlanned() && views[1]->isPlanned();
  for (const auto &[key, pair] : programPairs(views)) {
    if (!pair[0] || !pair[1])
      continue;
    Matched sums, cuts;
    for (int side = 0; side < 2; ++side)
      addKernels(*views[side], *pair[side], side, withPlan, sums, cuts);
    for (const Matched::Row &match : sums.rows) {
      Json identity = Json::parse(match.key);
      if (differInWork(match.sides[0], match.sides[1])) {
        Json row = programRow(key);
        row.update(identity);
        row["seconds"] = match.change("seconds");
        row["a"] = match.sides[0];
        row["b"] = match.sides[1];
        kernels.push_back(std::move(row));
      }
      const Json &a = cuts.at(match.key, 0), &b = cuts.at(match.key, 1);
      if (a.is_null() || b.is_null() || haveSameMembers(a, b))
        continue;
      Json row = programRow(key);
      row.update(identity);
      row["seconds"] = std::max(match.sides[0]["seconds"].get<double>(),
                                match.sides[1]["seconds"].get<double>());
      row["a"] = a;
      row["b"] = b;
      schedules.push_back(std::move(row));
    }
  }
  sortByEffect(kernels, "seconds");
  sortByEffect(schedules, "seconds");
}

Json commands::opsDiff(BothViews views) {
  Json rows = Json::array();
  for (const auto &[key, pair] : programPairs(views)) {
    if (!pair[0] || !pair[1])
      continue;
    Json counts[2] = {Json::object(), Json::object()};
    for (int side = 0; side < 2; ++side)
      for (const Json &launch : (*pair[side]->program)["launches"])
        if (launch.contains("kernel"))
          for (const Json &op :
               views[side]->manifest()["kernels"]
                                      [launch["kernel"].get<size_t>()]["ops"])
            counts[side][opName(op)] =
                counts[side].value(opName(op), int64_t(0)) + 1;
    for (Json &change : changedMembers(counts[0], counts[1])) {
      Json row = programRow(key);
      auto of = [&](const char *side) {
        return change[side].is_null() ? int64_t(0)
                                      : change[side].get<int64_t>();
      };
      row["op"] = change["name"];
      row["a"] = of("a");
      row["b"] = of("b");
      row["more"] = of("b") - of("a");
      rows.push_back(std::move(row));
    }
  }
  sortByEffect(rows, "more");
  return rows;
}
