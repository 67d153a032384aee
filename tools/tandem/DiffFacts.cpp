//===- DiffFacts.cpp - what changed between two compilations -------------===//
#include "tools/tandem/DiffFacts.h"
#include "tools/tandem/DiffRows.h"

#include <algorithm>
#include <optional>
#include <set>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

/// "data=2,tensor=4", as `--mesh` takes it.
static std::string meshText(const Json &mesh) {
  std::string text;
  for (const Json &axis : mesh)
    text += (text.empty() ? "" : ",") + textAt(axis, "name") + "=" +
            axis["size"].dump();
  return text;
}

/// Which stage of which pipeline: who shares a digest fits together.
static void addPipeline(const Json &pipeline, Json &options) {
  options["stage"] = pipeline["stage"].dump() + " of " +
                     pipeline["stages"].dump() + " on " +
                     pipeline["ranks"].dump();
  options["pipeline"] = pipeline["digest"];
}

/// What is said of a compilation as a whole: each a text or true.
static Json optionsOf(const FactsView &view) {
  const Json &manifest = view.manifest();
  Json options = {{"target", view.targetText()}};
  for (const char *key : {"model", "producer", "loss", "optimizer", "graph"})
    if (std::string text = textAt(manifest, key); !text.empty())
      options[key] = text;
  for (const Json &feature : manifest["target"]["features"])
    options["feature " + feature.get<std::string>()] = true;
  if (manifest.contains("mesh"))
    options["mesh"] = meshText(manifest["mesh"]);
  if (manifest.contains("pipeline"))
    addPipeline(manifest["pipeline"], options);
  if (manifest.contains("sizes")) {
    std::string names;
    for (const std::string &name : view.sizes())
      names += (names.empty() ? "" : ", ") + name;
    options["sizes"] = names;
  }
  return options;
}

/// Inputs, params, states and outputs as "param fc.w": what it is.
static Json valuesOf(const FactsView &view) {
  Json values = Json::object();
  for (const Json &value : view.manifest()["values"]) {
    std::string text = typeOf(value);
    if (value.value("requires_grad", false))
      text += ", requires a gradient";
    if (value.contains("init"))
      text += ", begins as " + value["init"].dump();
    if (value.contains("sharding"))
      text += ", cut by " + value["sharding"].dump();
    values[textAt(value, "role") + " " + textAt(value, "name")] = {
        {"what", text}, {"bytes", bytesOf(value)}};
  }
  return values;
}

static Json valuesDiff(BothViews views) {
  Json rows = changedMembers(valuesOf(*views[0]), valuesOf(*views[1]));
  for (Json &row : rows) {
    int64_t bytes[2] = {0, 0};
    int number = 0;
    for (const char *side : {"a", "b"}) {
      if (Json what = row[side]; what.is_object()) {
        bytes[number] = what["bytes"];
        row[side] = what["what"];
      }
      ++number;
    }
    row["bytes"] = bytes[1] - bytes[0];
  }
  sortByEffect(rows, "bytes");
  return rows;
}

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

/// The figures of one step together.
static Json stepOf(const FactsView &view) {
  Json step = Json::object(), programs = Json::array();
  for (const FactsView::Program *program : view.stepPrograms()) {
    programs.push_back(program->name);
    for (const char *key : {"seconds", "flops", "bytes", "kernels"}) {
      const Json &more = (*program->summary)[key];
      if (more.is_number_float())
        step[key] = step.value(key, 0.0) + more.get<double>();
      else
        step[key] = step.value(key, int64_t(0)) + more.get<int64_t>();
    }
  }
  step["peak"] = view.summary()["peaks"][0];
  step["programs"] = std::move(programs);
  return step;
}

static Json memoryDiff(BothViews views) {
  Json rows = Json::array();
  size_t sizes = std::min(views[0]->sizes().size(), views[1]->sizes().size());
  for (size_t size = 0; size < sizes; ++size)
    for (Json &row : changedMembers(views[0]->stepMemory(size),
                                    views[1]->stepMemory(size))) {
      auto of = [&](const char *side) {
        return row[side].is_null() ? int64_t(0) : row[side].get<int64_t>();
      };
      row["bytes"] = of("b") - of("a");
      if (std::string name = views[0]->sizes()[size]; !name.empty())
        row["size"] = name;
      rows.push_back(std::move(row));
    }
  sortByEffect(rows, "bytes");
  return rows;
}

/// What makes the two hard to compare.
static Json notesOf(BothViews views) {
  Json notes = Json::array();
  auto trains = [](const FactsView &view) { return view.find("backward"); };
  const char *names[2] = {"A", "B"};
  for (int side = 0; side < 2; ++side)
    if (trains(*views[side]) && !trains(*views[1 - side]))
      notes.push_back(std::string(names[side]) + " trains, and " +
                      names[1 - side] +
                      " does not: what is saved, and a step, are in " +
                      names[side] + " alone");
  std::string graphs[2] = {textAt(views[0]->manifest(), "graph"),
                           textAt(views[1]->manifest(), "graph")};
  if (!graphs[0].empty() && graphs[0] == graphs[1])
    notes.push_back("both are of one graph, which was compiled otherwise");
  else if (!graphs[0].empty() && !graphs[1].empty())
    notes.push_back("the graphs of the models differ");
  std::set<std::string> params[2];
  for (int side = 0; side < 2; ++side)
    for (const Json &value : views[side]->manifest()["values"])
      if (value["role"] == "param")
        params[side].insert(textAt(value, "name") + " " + typeOf(value));
  size_t common = 0;
  for (const std::string &name : params[0])
    common += params[1].count(name);
  if (common != params[0].size() || common != params[1].size())
    notes.push_back(std::to_string(common) + " parameters are in both, of " +
                    std::to_string(params[0].size()) + " in A and " +
                    std::to_string(params[1].size()) +
                    " in B: a checkpoint of one does not fit the other");
  if (views[0]->isPlanned() != views[1]->isPlanned())
    notes.push_back("schedules are known of a model alone, so kernels are "
                    "compared by how they are launched");
  return notes;
}

static Json targetDiff(BothViews views) {
  Json diff = {{"a", views[0]->targetText()}, {"b", views[1]->targetText()}};
  diff["notes"] = notesOf(views);
  diff["step"] = {{"a", stepOf(*views[0])}, {"b", stepOf(*views[1])}};
  diff["options"] = changedMembers(optionsOf(*views[0]), optionsOf(*views[1]));
  diff["values"] = valuesDiff(views);
  diff["memory"] = memoryDiff(views);
  diff["programs"] = programsDiff(views);
  Json kernels = Json::array(), schedules = Json::array();
  kernelsDiff(views, kernels, schedules);
  diff["kernels"] = std::move(kernels);
  diff["schedules"] = std::move(schedules);
  diff["ops"] = opsDiff(views);
  Json saved = Json::array(), repeated = Json::array();
  partitionDiff(views, saved, repeated);
  diff["saved"] = std::move(saved);
  diff["repeated"] = std::move(repeated);
  return diff;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

/// Sections whose bytes differ.
static Json sectionsDiff(const DiffSide &a, const DiffSide &b) {
  Json rows = Json::array();
  auto of =
      [](const DiffSide &side,
         const std::string &name) -> std::optional<std::span<const std::byte>> {
    for (const auto &section : side.reader.sections())
      if (section.name == name)
        return section.bytes;
    return std::nullopt;
  };
  auto add = [&](const std::string &name) {
    auto x = of(a, name), y = of(b, name);
    if (x && y && std::ranges::equal(*x, *y))
      return;
    rows.push_back({{"name", name},
                    {"a", x ? Json(x->size()) : Json()},
                    {"b", y ? Json(y->size()) : Json()}});
  };
  for (const auto &section : a.reader.sections())
    add(section.name);
  for (const auto &section : b.reader.sections())
    if (!of(a, section.name))
      add(section.name);
  return rows;
}

static Json sideOf(const DiffSide &side) {
  return {{"file", side.file},
          {"bytes", side.reader.fileBytes()},
          {"model", side.facts["manifests"][0]["model"]}};
}

Json commands::diffFacts(const DiffSide &a, const DiffSide &b) {
  Json diff = {{"kind", "diff"}, {"version", diffVersion}};
  diff["a"] = sideOf(a);
  diff["b"] = sideOf(b);
  Json sections = sectionsDiff(a, b), targets = Json::array(),
       alone = Json::array();
  // Targets meet by their kinds.
  const Json *lists[2] = {&a.facts["manifests"], &b.facts["manifests"]};
  std::vector<bool> taken(lists[1]->size());
  for (size_t i = 0; i < lists[0]->size(); ++i) {
    size_t j = 0;
    while (j < taken.size() &&
           (taken[j] || (*lists[0])[i]["target"]["kind"] !=
                            (*lists[1])[j]["target"]["kind"]))
      ++j;
    FactsView x(a.facts, i);
    if (j == taken.size()) {
      alone.push_back({{"in", "a"}, {"target", x.targetText()}});
      continue;
    }
    taken[j] = true;
    FactsView y(b.facts, j);
    const FactsView *views[2] = {&x, &y};
    targets.push_back(targetDiff(views));
  }
  for (size_t j = 0; j < taken.size(); ++j)
    if (!taken[j])
      alone.push_back(
          {{"in", "b"}, {"target", FactsView(b.facts, j).targetText()}});
  diff["equal"] = sections.empty();
  diff["sections"] = std::move(sections);
  diff["targets"] = std::move(targets);
  diff["alone"] = std::move(alone);
  return diff;
}
