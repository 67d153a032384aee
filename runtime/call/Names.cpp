//===- Names.cpp - what messages call arguments and results ---------------===//
#include "runtime/call/Names.h"

namespace tandem::runtime {

using artifact::Role;
using artifact::Slot;

std::string slotName(const Slot &slot, size_t index) {
  std::string role = slot.role == Role::Cotangent ? "cotangent of "
                     : slot.role == Role::Grad    ? "grad of "
                                                  : "";
  if (role.empty())
    role = std::string(spelling(slot.role)) + " ";
  return role + "'" + slot.name + "' (index " + std::to_string(index) + ")";
}

std::string argumentName(const artifact::Program &plan, size_t index) {
  return slotName(plan.arguments[index], index);
}

std::string entryName(const artifact::Program &plan, int entry) {
  auto index = static_cast<size_t>(entry);
  if (index < plan.arguments.size())
    return argumentName(plan, index);
  index -= plan.arguments.size();
  if (index < plan.results.size())
    return slotName(plan.results[index], index);
  return "output '" + plan.aliases[index - plan.results.size()].name +
         "' (index " + std::to_string(index) + ")";
}

std::string writerOf(const artifact::Program &plan, const std::string &value) {
  for (const Slot &slot : plan.results)
    if (slot.role == Role::Update && slot.name == value && !slot.where.empty())
      return slot.where;
  return "the program";
}

} // namespace tandem::runtime
