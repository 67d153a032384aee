//===- ExplainLarge.cpp - what a peak is made of, and what halves it ------===//
#include "tools/tandem/ExplainFacts.h"
#include "tools/tandem/ExplainParts.h"
#include "tools/tandem/LoadFacts.h"
#include "tools/tandem/ReportFacts.h"
#include "tools/tandem/Session.h"

#include "runtime/artifact/Text.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cmath>

using namespace tandem;
using namespace tandem::commands;
using namespace tandem::commands::explain;
using artifact::inQuotes;
using Json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Smaller plans
//===----------------------------------------------------------------------===//

/// Predicted seconds of a step.
static double secondsOfStep(const FactsView &view) {
  double seconds = 0;
  for (const FactsView::Program *program : view.stepPrograms())
    seconds += (*program->summary)["seconds"].get<double>();
  return seconds;
}

static Result<SmallerPlan> planOf(const std::string &path,
                                  CompileOptions options,
                                  const std::string &budget) {
  options.memoryBudget = budget;
  options.partition.clear(); // the budget decides
  Session session(options);
  session.silenceRemarks();
  auto reader = session.loaded(path);
  if (!reader)
    return reader.status();
  auto facts = reportFacts(*reader, Json());
  if (!facts)
    return facts.status();
  FactsView view(*facts, 0);
  SmallerPlan plan{budget, 0, secondsOfStep(view), 0, view.stepMemory(0)};
  if (const Json &peak = view.summary()["peaks"][0]; peak.is_number())
    plan.peak = peak;
  if (const Json &partition = view.partition(0); partition.is_object())
    plan.repeated = partition["repeated"].size();
  return plan;
}

Result<SmallerPlans> commands::smallerPlans(const std::string &path,
                                            const CompileOptions &options,
                                            int64_t peak) {
  auto least = planOf(path, options, "0");
  if (!least)
    return least.status();
  SmallerPlans plans{std::nullopt, *std::move(least)};
  if (plans.least.peak > peak / 2)
    return plans;
  auto half = planOf(path, options, std::to_string(peak / 2));
  if (!half)
    return half.status();
  plans.half = *std::move(half);
  return plans;
}

//===----------------------------------------------------------------------===//
// The answer
//===----------------------------------------------------------------------===//

/// "arena 1.2 MiB (60.0 %), parameters ...", the largest first.
static std::string partsText(const Json &memory, int64_t peak) {
  std::vector<std::pair<int64_t, std::string>> parts;
  for (const char *key :
       {"parameters", "states", "constants", "inputs", "outputs", "gradients",
        "saved", "staged", "prepared", "arena"})
    if (int64_t bytes = memory.value(key, int64_t(0)))
      parts.emplace_back(
          -bytes, std::string_view(key) == "staged" ? "staged updates" : key);
  std::sort(parts.begin(), parts.end());
  std::string text;
  for (const auto &[negative, name] : parts)
    text += (text.empty() ? "" : ", ") + name + " " + bytesText(-negative) +
            " (" + percent(double(-negative) / double(peak)) + ")";
  return text;
}

/// What no budget makes smaller.
static int64_t fixedBytes(const Json &memory) {
  int64_t bytes = 0;
  for (const char *key :
       {"parameters", "states", "constants", "inputs", "outputs", "prepared"})
    bytes += memory.value(key, int64_t(0));
  return bytes;
}

/// "+3.0 %" of a quotient.
static std::string changeText(double quotient) {
  double percents = 100 * (quotient - 1);
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%",
                std::abs(percents) < 0.05 ? 0.0 : percents);
  return text;
}

/// "1.2 MiB (-40.0 %), predicted to take 1.10 ms, +3.0 %".
static std::string planText(const SmallerPlan &plan, int64_t peak,
                            double seconds) {
  std::string text = bytesText(plan.peak) + " (" +
                     changeText(double(plan.peak) / double(peak)) + ")";
  if (seconds > 0 && plan.seconds > 0)
    text += ", predicted to take " + secondsText(plan.seconds) + ", " +
            changeText(plan.seconds / seconds);
  return text + "; the backward runs " + things(plan.repeated, "op", "ops") +
         " of the forward again";
}

static Json planJson(const SmallerPlan &plan) {
  return {{"memory_budget", plan.budget},
          {"peak_bytes", plan.peak},
          {"seconds", plan.seconds},
          {"repeated_ops", plan.repeated}};
}

/// The values that cross from the forward to the backward, and their bytes.
static std::pair<size_t, int64_t> savedIn(const FactsView &view) {
  std::pair<size_t, int64_t> saved;
  if (const FactsView::Program *forward = view.find("forward"))
    for (const Json &slot : (*forward->program)["results"])
      if (slot["role"] == "saved" && !slot.contains("alias")) {
        ++saved.first;
        saved.second += bytesOf(slot);
      }
  return saved;
}

Result<Json> Explainer::whyLarge(const SmallerPlans *plans) {
  const Json &memory = view.stepMemory(0), &known = view.summary()["peaks"][0];
  if (!memory.is_object() || !known.is_number() || known == 0)
    return Status::usage("the memory of a step is not known: the artifact does "
                         "not say it");
  int64_t peak = known;
  double seconds = secondsOfStep(view);
  Json facts = {{"peak_bytes", peak}, {"seconds", seconds}, {"parts", memory}};
  say("the planned peak of a step is " + bytesText(peak) + ": " +
      partsText(memory, peak));
  if (const Json &thread = view.summary()["thread_bytes"][0];
      thread.is_number() && thread > 0)
    say("each thread has " + bytesText(thread.get<int64_t>()) + " beside it");
  auto [count, bytes] = savedIn(view);
  facts["saved"] = {{"values", count}, {"bytes", bytes}};
  if (count)
    say(things(count, "value is", "values are") +
        " saved for the backward: " + bytesText(bytes) +
        (view.find("step") ? ", which lie in the arena of 'step'" : ""));
  if (!view.find("backward"))
    return finish(std::move(facts));
  if (!plans) {
    say("what another memory budget would do is known of a model, compiled "
        "for one target in one size: ask that");
    return finish(std::move(facts));
  }
  facts["least"] = planJson(plans->least);
  if (const auto &half = plans->half) {
    facts["half"] = planJson(*half);
    say("--memory-budget=" + half->budget +
        " halves it: " + planText(*half, peak, seconds));
  } else {
    say("no memory budget halves it: the least, with --memory-budget=0, is " +
        planText(plans->least, peak, seconds));
    say("there it is made of " +
        partsText(plans->least.memory, plans->least.peak));
  }
  say("no budget changes " + bytesText(fixedBytes(memory)) +
      " of it: parameters, states, constants, inputs and outputs");
  say("'tandem inspect MODEL --budget-curve' has the budgets between");
  return finish(std::move(facts));
}
