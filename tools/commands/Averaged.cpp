//===- Averaged.cpp - averages in the place of parameters -----------------===//
#include "tools/commands/Averaged.h"

#include "runtime/io/Cast.h"
#include "runtime/io/Tensors.h"
#include "tools/commands/Checkpoint.h"
#include "tools/commands/Print.h"

#include <utility>

namespace tandem::commands {

Status Averaged::check(const runtime::Model &model,
                       const std::string &average) {
  if (rankCount() > 1)
    return Status::unsupported("--average while a model is trained by several "
                               "ranks; 'train --steps=0 --params=F' evaluates "
                               "what was saved");
  const AverageKind &kind = averageKind(average);
  for (const artifact::Value &value : model.manifest().values)
    if (value.role == artifact::Role::Param &&
        model.manifest().findValue(std::string(kind.count) + value.name))
      return Status::success();
  return Status::usage("the artifact has no averages " + io::inQuotes(average) +
                       " of parameters: compile with " +
                       std::string(kind.option));
}

Result<Averaged> Averaged::of(runtime::Model &model,
                              const std::string &average) {
  Averaged averaged(model);
  const AverageKind &kind = averageKind(average);
  for (const artifact::Value &value : model.manifest().values) {
    if (value.role != artifact::Role::Param ||
        !model.manifest().findValue(std::string(kind.count) + value.name))
      continue;
    auto count = model.get(std::string(kind.count) + value.name);
    if (!count)
      return std::move(count).status();
    if (!(count->at(0) > 0))
      continue;
    auto mean = model.get(std::string(kind.state) + value.name);
    auto param = model.get(value.name);
    if (!mean || !param)
      return std::move(mean ? param : mean).status();
    auto own = param->copyTo(runtime::Device{});
    auto host = mean->onHost();
    if (!own || !host)
      return std::move(own ? host : own).status();
    auto array =
        io::castArray(io::viewOf(*host), value.dtype, {.rounds = true});
    if (!array)
      return std::move(array).status();
    auto tensor = io::toTensor(*array);
    if (!tensor)
      return std::move(tensor).status();
    averaged.kept_.push_back({value.name, std::move(*own)});
    if (Status status = model.set(value.name, *tensor); !status)
      return status;
  }
  return averaged;
}

Status Averaged::restore() {
  for (const NamedTensor &kept : std::exchange(kept_, {}))
    if (Status status = model_.set(kept.name, kept.tensor); !status)
      return status;
  return Status::success();
}

} // namespace tandem::commands
