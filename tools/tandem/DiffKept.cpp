//===- DiffKept.cpp - what is saved or repeated otherwise ----------------===//
//
// Values and ops meet by op, type and line, and not by their names, which have
// numbers.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/DiffRows.h"

#include <algorithm>
#include <map>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

/// "3:7" of "m.mlir:3:7": two files of one model have other names.
static std::string placeIn(const std::string &where) {
  size_t column = where.rfind(':');
  size_t line =
      column == std::string::npos ? column : where.rfind(':', column - 1);
  return line == std::string::npos ? where : where.substr(line + 1);
}

/// `saved` and `repeated` of a partition as rows by what they are. Equal ones
/// have numbers.
static void addPartition(const FactsView &view, size_t size, int side,
                         Matched &matched) {
  std::map<std::string, int> known;
  auto add = [&](const Json &identity, Json what) {
    std::string key =
        identity.dump(-1, ' ', false, Json::error_handler_t::replace);
    key += "\n" + std::to_string(known[key]++);
    matched.at(key, side) = std::move(what);
  };
  const Json &partition = view.partition(size);
  std::map<std::string, Json> about;
  if (partition.is_object())
    for (const Json &saved : partition["saved"])
      about[saved["name"]] = saved;
  if (const FactsView::Program *forward = view.find("forward", size))
    for (const Json &slot : (*forward->program)["results"])
      if (slot["role"] == "saved") {
        const Json &maker = about[slot["name"]];
        std::string where = textAt(maker, "where");
        add({{"as", "saved"},
             {"op", maker.is_object() ? opName(maker["op"]) : ""},
             {"type", typeOf(slot)},
             {"place", placeIn(where)}},
            {{"name", slot["name"]},
             {"where", where},
             {"bytes", slot.contains("alias") ? 0 : bytesOf(slot)},
             {"seconds", maker.value("seconds", 0.0)},
             {"reason", textAt(slot, "reason")},
             {"host", slot.value("host", false)}});
      }
  if (partition.is_object())
    for (const Json &op : partition["repeated"])
      add({{"as", "repeated"},
           {"op", opName(op["op"])},
           {"bytes", op["bytes"]},
           {"place", placeIn(op["where"])}},
          {{"where", op["where"]},
           {"bytes", op["bytes"]},
           {"seconds", op["seconds"]},
           {"reason", op["reason"]}});
}

/// Names have numbers, which change where nothing else does.
static bool differInKeeping(Json a, Json b) {
  for (Json *side : {&a, &b})
    if (side->is_object())
      for (const char *key : {"name", "where"})
        side->erase(key);
  return a != b;
}

void commands::partitionDiff(BothViews views, Json &saved, Json &repeated) {
  size_t sizes = std::min(views[0]->sizes().size(), views[1]->sizes().size());
  for (size_t size = 0; size < sizes; ++size) {
    Matched matched;
    for (int side = 0; side < 2; ++side)
      addPartition(*views[side], size, side, matched);
    for (const Matched::Row &match : matched.rows) {
      if (!differInKeeping(match.sides[0], match.sides[1]))
        continue;
      Json identity = Json::parse(match.key.substr(0, match.key.rfind('\n')));
      bool isSaved = identity["as"] == "saved";
      Json row = Json::object();
      if (std::string name = views[0]->sizes()[size]; !name.empty())
        row["size"] = name;
      row["op"] = identity["op"];
      if (isSaved)
        row["type"] = identity["type"];
      const char *effect = isSaved ? "bytes" : "seconds";
      row[effect] = match.change(effect);
      row["a"] = match.sides[0];
      row["b"] = match.sides[1];
      (isSaved ? saved : repeated).push_back(std::move(row));
    }
  }
  sortByEffect(saved, "bytes");
  sortByEffect(repeated, "seconds");
}
