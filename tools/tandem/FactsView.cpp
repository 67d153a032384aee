//===- FactsView.cpp - reading the facts of a compilation -----------------===//
#include "tools/tandem/FactsView.h"

#include "runtime/artifact/View.h"

#include <cstdio>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

static const Json &nothing() {
  static const Json none;
  return none;
}

FactsView::FactsView(const Json &facts, size_t target)
    : manifest_(&facts["manifests"][target]),
      summary_(&facts["summaries"][target]) {
  const std::vector<std::string> names = sizes();
  const Json &list = manifest()["programs"];
  for (size_t i = 0; i < list.size(); ++i) {
    Program one{list[i]["name"], "",
                &list[i],        &summary()["programs"][i],
                nullptr,         list[i].value("size", size_t(0))};
    one.size = names[one.sizeNumber];
    auto found = facts.find("planned");
    const Json &planned = found == facts.end() ? nothing() : *found;
    // A size has its targets in the manifests' order.
    if (one.sizeNumber < planned.size() &&
        target < planned[one.sizeNumber].size())
      for (const Json &known : planned[one.sizeNumber][target]["programs"])
        if (known["name"] == one.name &&
            known["launches"].size() == list[i]["launches"].size())
          one.planned = &known;
    isPlanned_ |= one.planned != nullptr;
    programs_.push_back(std::move(one));
  }
}

const Json &FactsView::Program::launch(size_t i) const {
  return planned ? (*planned)["launches"][i] : nothing();
}

std::string FactsView::targetText() const {
  const Json &target = manifest()["target"];
  return target["kind"].get<std::string>() + " " +
         target["arch"].get<std::string>();
}

std::vector<std::string> FactsView::sizes() const {
  std::vector<std::string> names;
  if (auto found = manifest().find("sizes"); found != manifest().end())
    for (const Json &size : *found)
      names.push_back(size["name"]);
  if (names.empty())
    names.emplace_back();
  return names;
}

const Json &FactsView::ofSize(const char *key, size_t size) const {
  const Json *at = &manifest();
  if (auto list = at->find("sizes");
      list != at->end() && size < list->size() && (*list)[size].contains(key))
    at = &(*list)[size];
  auto found = at->find(key);
  return found == at->end() ? nothing() : *found;
}

const Json &FactsView::stepMemory(size_t size) const {
  return ofSize("step_memory", size);
}

const Json &FactsView::partition(size_t size) const {
  return ofSize("partition", size);
}

const FactsView::Program *FactsView::find(std::string_view name,
                                          size_t size) const {
  for (const Program &program : programs_)
    if (program.name == name && program.sizeNumber == size)
      return &program;
  return nullptr;
}

std::vector<const FactsView::Program *> FactsView::stepPrograms() const {
  if (const Program *step = find("step"))
    return {step};
  const Program *forward = find("forward"), *backward = find("backward");
  if (forward && backward)
    return {forward, backward};
  if (programs_.empty())
    return {};
  return {&programs_.front()};
}

std::string commands::typeOf(const Json &value) {
  std::string text = value["dtype"].get<std::string>() + "[";
  for (const Json &size : value["shape"])
    text += (text.back() == '[' ? "" : ", ") + size.dump();
  return text + "]";
}

int64_t commands::bytesOf(const Json &value) {
  auto dtype = artifact::parseDType(value["dtype"].get<std::string>());
  if (!dtype)
    return 0;
  return artifact::tensorBytes(*dtype,
                               value["shape"].get<std::vector<int64_t>>())
      .value_or(0);
}

std::string commands::opName(const Json &op) {
  std::string name = op.get<std::string>();
  return name.starts_with("tandem.") ? name.substr(7) : name;
}

std::string commands::textAt(const Json &object, const char *key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
}

/// `value` with three digits.
static std::string threeDigits(double value, const char *unit) {
  char text[48];
  int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, value, unit);
  return text;
}

std::string commands::secondsText(double seconds) {
  if (seconds == 0)
    return "0 s";
  if (seconds >= 1)
    return threeDigits(seconds, "s");
  if (seconds >= 1e-3)
    return threeDigits(seconds * 1e3, "ms");
  if (seconds >= 1e-6)
    return threeDigits(seconds * 1e6, "us");
  return threeDigits(seconds * 1e9, "ns");
}

std::string commands::countText(double count) {
  static constexpr const char *letters[] = {"k", "M", "G", "T", "P"};
  if (count < 1000)
    return std::to_string(static_cast<int64_t>(count));
  size_t letter = 0;
  for (count /= 1000; count >= 1000 && letter < 4; count /= 1000)
    ++letter;
  return threeDigits(count, letters[letter]);
}
