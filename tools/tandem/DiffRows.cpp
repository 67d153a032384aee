//===- DiffRows.cpp - rows of what differs -------------------------------===//
#include "tools/tandem/DiffRows.h"

#include <algorithm>
#include <cmath>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

Json &Matched::at(const std::string &key, int side) {
  auto [place, isNew] = places.try_emplace(key, rows.size());
  if (isNew)
    rows.push_back({key, {Json(), Json()}});
  return rows[place->second].sides[side];
}

double Matched::Row::change(const char *name) const {
  auto of = [&](const Json &side) {
    return side.is_object() ? side.value(name, 0.0) : 0.0;
  };
  return of(sides[1]) - of(sides[0]);
}

void commands::sortByEffect(Json &rows, const char *key) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < rows.size(); ++i)
    order.emplace_back(-std::abs(rows[i].value(key, 0.0)), i);
  std::sort(order.begin(), order.end());
  Json sorted = Json::array();
  for (const auto &[effect, i] : order)
    sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

Json commands::changedMembers(const Json &a, const Json &b) {
  Matched matched;
  int number = 0;
  for (const Json *side : {&a, &b}) {
    if (side->is_object())
      for (const auto &[name, value] : side->items())
        matched.at(name, number) = value;
    ++number;
  }
  Json rows = Json::array();
  for (const Matched::Row &row : matched.rows)
    if (row.differs())
      rows.push_back(
          {{"name", row.key}, {"a", row.sides[0]}, {"b", row.sides[1]}});
  return rows;
}
