//===- UpdateGroups.cpp - whose numbers a param has, and when -------------===//
//
// Groups of params, rates that follow schedules, and averages.
//
//===----------------------------------------------------------------------===//
#include "passes/partition/ClipGradients.h"
#include "passes/partition/UpdateBuilder.h"

#include "ir/Expr.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

LogicalResult UpdateBuilder::findGroups() {
  SmallVector<bool> hasMember(asked.groups.size()), isShadowed(hasMember);
  std::string names;
  for (auto [i, slot] : llvm::enumerate(params)) {
    StringRef name = slot.role.getName();
    constexpr size_t shown = 12;
    if (i < shown)
      names += (i ? ", '" : "'") + name.str() + "'";
    else if (i == shown)
      names += ", ...";
    groupOf.push_back(0);
    for (auto [k, group] : llvm::enumerate(asked.groups)) {
      if (!group.matches(name))
        continue;
      (groupOf.back() ? isShadowed : hasMember)[k] = true;
      if (!groupOf.back())
        groupOf.back() = k + 1;
    }
  }
  bool isWrong = false;
  for (auto [k, group] : llvm::enumerate(asked.groups)) {
    // What no param of a stage is of may have those of another one: whoever
    // cuts the model has looked.
    if (hasMember[k] || isStage)
      continue;
    isWrong = true;
    auto error = mlir::emitError(forward.getLoc())
                 << "--group: '" << group.pattern << "' has no member: ";
    if (isShadowed[k])
      error << "what it matches is of groups before it";
    else
      error << "it matches no whole name of a param that is trained; there are "
            << names;
  }
  return failure(isWrong);
}

LogicalResult UpdateBuilder::checkEffects() {
  // A stage may have params of another kind.
  if (isStage)
    return success();
  bool isWrong = false;
  if (asked.centralizes && llvm::none_of(gradients, [](const Slot &gradient) {
        return hasCenter(cast<RankedTensorType>(gradient.type).getShape());
      })) {
    isWrong = true;
    mlir::emitError(forward.getLoc())
        << "--centralize has no effect: it takes the mean off each row of a "
           "gradient, but no param that is trained has rows of several "
           "elements";
  }
  // Of a group that a param is of, or 0.
  auto hasOwnSchedule = [&](size_t group) {
    return group && asked.groups[group - 1].schedule;
  };
  if (asked.schedule && llvm::all_of(groupOf, hasOwnSchedule)) {
    isWrong = true;
    mlir::emitError(forward.getLoc())
        << "--lr-schedule has no effect: every param that is trained is in a "
           "group with a schedule of its own";
  }
  std::vector<std::string> idle;
  for (const OptimizerOption &option : spec.kind->options)
    if (option.name != "lr" && !std::isnan(option.value) &&
        spec.values.lookup(option.name) != option.value &&
        llvm::none_of(usedOptions, [&](const llvm::StringSet<> &used) {
          return used.contains(option.name);
        }))
      idle.push_back(option.name.str());
  if (!idle.empty()) {
    isWrong = true;
    mlir::emitError(forward.getLoc())
        << "--optimizer: '" << llvm::join(idle, "' and '")
        << "' has no effect: optimizer '" << spec.kind->name
        << "' updates every param that is trained without it";
  }
  for (auto [k, group] : llvm::enumerate(asked.groups)) {
    bool isRead = llvm::any_of(group.own, [&](const std::string &option) {
      return option == "lr" || usedOptions[k + 1].contains(option);
    });
    if (isRead || group.schedule)
      continue;
    isWrong = true;
    mlir::emitError(forward.getLoc())
        << "--group: '" << group.pattern << "' has no effect: optimizer '"
        << spec.kind->name << "' updates what it matches without '"
        << llvm::join(group.own, "' and '") << "'";
  }
  return failure(isWrong);
}

void UpdateBuilder::addRates() {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  bool isScheduled = false;
  for (size_t group = 0; group <= asked.groups.size(); ++group) {
    if (!group || asked.groups[group - 1].hasRate)
      addState(
          stateName(rateVariable(group, "lr")), scalar,
          (group ? asked.groups[group - 1].spec : spec).values.lookup("lr"));
    if (scheduleOf(group) && (!group || hasOwnRate(group)))
      addState(stateName(rateVariable(group, "rate")), scalar, 0);
    isScheduled |= scheduleOf(group).has_value();
  }
  if (isScheduled)
    addState(stateName("updates"), scalar, 0);
}

void UpdateBuilder::findRates() {
  SmallVector<StringRef> names;
  for (const Slot &param : params)
    names.push_back(param.role.getName());
  // What follows from no gradient is written where there is one of any param.
  auto any = builder.getArrayAttr(builder.getStrArrayAttr(names));
  // Those that a rate is of: the runtime knows groups by it.
  auto membersOf = [&](size_t group) {
    SmallVector<StringRef> members;
    for (auto [name, of] : llvm::zip_equal(names, groupOf))
      if ((of && hasOwnRate(of) ? of : 0) == group)
        members.push_back(name);
    return members.empty()
               ? any
               : builder.getArrayAttr(builder.getStrArrayAttr(members));
  };
  Value updates;
  for (size_t group = 0; group <= asked.groups.size(); ++group) {
    bool hasLr = group && asked.groups[group - 1].hasRate;
    Value base = argument(stateName(rateVariable(hasLr ? group : 0, "lr")));
    const std::optional<ScheduleSpec> &schedule = scheduleOf(group);
    if (!schedule || (group && !hasOwnRate(group))) {
      rates.push_back(group && !hasOwnRate(group) ? rates.front() : base);
      continue;
    }
    std::string counter = stateName("updates");
    if (!updates) {
      updates = argument(counter);
      update(counter, Expr(builder, loc, updates) + 1.0);
      needs[counter] = any;
    }
    Type exact = builder.getF64Type();
    Expr rate = schedule->rate(Expr(builder, loc, base).cast(exact),
                               Expr(builder, loc, updates).cast(exact));
    rates.push_back(rate.cast(builder.getF32Type()));
    std::string name = stateName(rateVariable(group, "rate"));
    update(name, rates.back());
    needs[name] = membersOf(group);
  }
}

void UpdateBuilder::updateNoise() {
  if (!asked.noise)
    return;
  SmallVector<StringRef> names;
  for (const Slot &param : params)
    names.push_back(param.role.getName());
  std::string name = stateName("noise");
  update(name, NoiseSpec::next({builder, loc, argument(name)}));
  needs[name] = builder.getArrayAttr(builder.getStrArrayAttr(names));
}

/// Behind updateParam(i).
void UpdateBuilder::average(size_t i) {
  StringRef param = params[i].role.getName();
  auto only = builder.getArrayAttr(builder.getStrArrayAttr({param}));
  for (const AverageSpec &average : asked.averages) {
    std::string name = (average.name + ":" + param).str();
    std::string count = (average.name + "_count:" + param).str();
    std::string counter =
        average.name == "swa" ? "swa_updates:" + param.str() : count;
    Expr number = Expr(builder, loc, argument(counter)) + 1.0;
    Expr old(builder, loc, argument(name));
    Expr now(builder, loc, updates[param]);
    update(name,
           average.average(old, now.cast(old.type().getElementType()), number));
    update(counter, number);
    if (counter != count)
      update(count, average.count(number));
    needs[count] = needs[counter] = only;
  }
}
