//===- ExplainSaved.cpp - why values are saved, or made again -------------===//
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

/// "relu at mlp.mlir:34:11 ('fc1')"; nothing of an argument.
static std::string opText(const Json &of) {
  std::string text = opName(of["op"]), where = textAt(of, "where"),
              path = textAt(of, "path");
  if (text.empty())
    return text;
  text += where.empty() ? "" : " at " + where;
  // The place of a node has its name.
  bool isKnown = path.empty() || text.find("'" + path + "'") != text.npos;
  return isKnown ? text : text + " (" + inQuotes(path) + ")";
}

bool Explainer::saySaved(const std::string &name, Json &facts) {
  const FactsView::Program *forward = view.find("forward");
  const FactsView::Program *backward = view.find("backward");
  if (!forward)
    return false;
  const Json *slot = nullptr;
  for (const Json &one : (*forward->program)["results"])
    if (one["role"] == "saved" && one["name"] == name)
      slot = &one;
  if (!slot)
    return false;
  facts = {{"slot", *slot}};
  const Json &partition = view.partition(0);
  Json about;
  if (partition.is_object())
    for (const Json &one : partition["saved"])
      if (one["name"] == name)
        about = one;
  std::string sentence = inQuotes(name) +
                         " is saved for the backward: " + typeOf(*slot) + ", " +
                         bytesText(bytesOf(*slot));
  if (slot->contains("alias"))
    sentence += ", which are those of the output " +
                inQuotes(textAt((*slot)["alias"], "output")) +
                ", so it costs no memory";
  if (slot->value("host", false))
    sentence += ", in the host's memory";
  say(sentence);
  if (std::string reason = textAt(*slot, "reason"); !reason.empty())
    say("the reason of the partition: " + artifact::printable(reason));
  if (about.is_object()) {
    facts["partition"] = about;
    if (std::string op = opText(about); !op.empty())
      say("the op that makes it is " + artifact::printable(op) +
          "; making it again, with all that it follows from and the backward "
          "has not, is expected to take " +
          secondsText(about["seconds"]));
  }
  if (!backward)
    return true;
  const Json &arguments = (*backward->program)["arguments"];
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i]["role"] == "saved" && arguments[i]["name"] == name) {
      auto readers = launchesOf(*backward->program, "argument", i, "reads");
      auto names = namesOf(view, *backward->program, readers);
      facts["readers"] = names;
      say("the backward reads it in " +
          (names.empty() ? "no launch" : few(names)));
    }
  return true;
}

Result<Json> Explainer::whySaved(const std::string &name) {
  Json facts;
  if (saySaved(name, facts))
    return finish(std::move(facts));
  if (!view.find("backward"))
    return Status::usage("nothing is saved: there is no backward");
  for (const Json &value : view.manifest()["values"])
    if (value["name"] == name) {
      say(inQuotes(name) + " is not saved: it is a value of role " +
          textAt(value, "role") +
          (value["role"] == "output"
               ? ", which the forward gives out"
               : ", which the backward reads itself where it needs it"));
      return finish({{"value", value}});
    }
  facts = Json::object();
  bool isModule = sayModule(name, facts), isOp = sayRepeated(name, facts);
  if (isModule || isOp)
    return finish(std::move(facts));
  std::vector<std::string> names;
  for (const Json &slot : (*view.find("forward")->program)["results"])
    if (slot["role"] == "saved")
      names.push_back(slot["name"]);
  return unknown("saved value", name, names);
}

/// True if a path is that of the module, or of an op in it.
static bool isWithin(const std::string &path, const std::string &module) {
  return path == module || path.starts_with(module + ".") ||
         path.starts_with(module + "/");
}

bool Explainer::sayModule(const std::string &name, Json &facts) {
  const Json &partition = view.partition(0);
  if (!partition.is_object())
    return false;
  std::map<std::string, bool> isOwn;
  for (const Json &one : partition["saved"])
    isOwn[one["name"]] = isWithin(textAt(one, "path"), name);
  size_t repeated = 0;
  for (const Json &op : partition["repeated"])
    repeated += isWithin(textAt(op, "path"), name);
  std::vector<std::pair<int64_t, std::string>> own;
  int64_t bytes = 0, all = 0;
  for (const Json &slot : (*view.find("forward")->program)["results"]) {
    if (slot["role"] != "saved")
      continue;
    all += bytesOf(slot);
    if (!isOwn[slot["name"]])
      continue;
    own.emplace_back(-bytesOf(slot), slot["name"]);
    bytes += bytesOf(slot);
  }
  if (own.empty())
    return false;
  std::sort(own.begin(), own.end());
  std::vector<std::string> names;
  Json list = Json::array();
  for (const auto &[negative, one] : own) {
    names.push_back(one);
    list.push_back({{"name", one}, {"bytes", -negative}});
  }
  say("in " + inQuotes(name) + " " +
      things(own.size(), "value is", "values are") +
      " saved for the backward: " + bytesText(bytes) + " of " + bytesText(all) +
      (own.size() > 1 ? "; the largest first, " : ", ") + few(names));
  say("the backward runs " +
      (repeated ? things(repeated, "op", "ops") : std::string("none")) +
      " of it again");
  facts["module"] = name;
  facts["saved"] = std::move(list);
  facts["repeated_ops"] = repeated;
  return true;
}

/// The kernels of the backward that an op is in that is computed again; and
/// whether one of them has nothing else to do.
static std::vector<std::string> kernelsOf(const FactsView &view, const Json &op,
                                          bool &isAlone) {
  const FactsView::Program *backward = view.find("backward");
  std::vector<std::string> names;
  if (!backward || !backward->planned || !backward->planned->contains("ops"))
    return names;
  std::set<size_t> launches, shared;
  for (const Json &planned : (*backward->planned)["ops"]) {
    if (!planned.contains("launch"))
      continue;
    if (planned.contains("gradient_of"))
      shared.insert(planned["launch"].get<size_t>());
    else if (textAt(planned, "pass") == "recompute" &&
             opName(planned["op"]) == opName(op["op"]) &&
             textAt(planned, "path") == textAt(op, "path") &&
             textAt(planned, "where") == textAt(op, "where"))
      launches.insert(planned["launch"].get<size_t>());
  }
  isAlone = std::any_of(launches.begin(), launches.end(),
                        [&](size_t one) { return !shared.contains(one); });
  return namesOf(view, *backward->program, {launches.begin(), launches.end()});
}

bool Explainer::sayRepeated(const std::string &name, Json &facts) {
  const Json &partition = view.partition(0);
  if (!partition.is_object())
    return false;
  // An op that is computed again has no name but its place.
  Json repeated = Json::array();
  for (const Json &op : partition["repeated"]) {
    std::string place = textAt(op, "where");
    if (place != name && !place.ends_with(":" + name) &&
        textAt(op, "path") != name && opName(op["op"]) != name)
      continue;
    std::string sentence =
        opText(op) + " is not saved: the backward runs it again, expected in " +
        secondsText(op["seconds"]) + ", because " + textAt(op, "reason");
    bool isAlone = false;
    auto kernels = kernelsOf(view, op, isAlone);
    if (!kernels.empty())
      sentence += std::string("; it is in ") + few(kernels) +
                  (!isAlone              ? ""
                   : kernels.size() == 1 ? ", which computes no gradient"
                                         : ", some of which compute no "
                                           "gradient");
    say(artifact::printable(sentence));
    repeated.push_back(op);
  }
  if (repeated.empty())
    return false;
  facts["repeated"] = std::move(repeated);
  return true;
}
