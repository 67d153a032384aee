//===- Manifest.cpp - the manifest's structs and their JSON text ----------===//
//
// Look-ups and `toJson`. The order of the members is fixed by this file and is
// that of docs/ARCHITECTURE.md; ManifestReader.cpp reads them back.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Manifest.h"

#include <nlohmann/json.hpp>

namespace tandem::artifact {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view roleNames[] = {"input",  "param",     "state",
                                          "output", "cotangent", "grad",
                                          "update", "saved",     "prepared"};

Json initJson(const Init &init) {
  switch (init.kind) {
  case Init::Kind::Constant:
    return {{"kind", "constant"}, {"value", init.a}};
  case Init::Kind::Uniform:
    return {{"kind", "uniform"}, {"low", init.a}, {"high", init.b}};
  case Init::Kind::Normal:
    return {{"kind", "normal"}, {"mean", init.a}, {"std", init.b}};
  case Init::Kind::Counter:
    return {{"kind", "counter"}, {"stream", init.stream}, {"scale", init.a}};
  case Init::Kind::Seed:
    return {{"kind", "seed"}};
  }
  return nullptr;
}

Json valueJson(const Value &value) {
  Json json = {{"role", spelling(value.role)},
               {"name", value.name},
               {"dtype", spelling(value.dtype)},
               {"shape", value.shape}};
  if (value.requiresGrad)
    json["requires_grad"] = true;
  if (value.init)
    json["init"] = initJson(*value.init);
  if (value.high)
    json["high"] = *value.high;
  if (value.low)
    json["low"] = *value.low;
  if (value.ignored)
    json["ignored"] = *value.ignored;
  return json;
}

template <typename T, typename Fn>
Json listJson(const std::vector<T> &list, Fn fn) {
  Json json = Json::array();
  for (const T &item : list)
    json.push_back(fn(item));
  return json;
}

Json tensorMapJson(const TensorMap &map) {
  return {{"buffer", map.buffer},   {"offset", map.offset},
          {"element", map.element}, {"sizes", map.sizes},
          {"strides", map.strides}, {"box", map.box},
          {"swizzle", map.swizzle}};
}

Json kernelJson(const Kernel &kernel) {
  Json json = {
      {"symbol", kernel.symbol}, {"class", kernel.kind},
      {"ops", kernel.ops},       {"flops", kernel.flops},
      {"bytes", kernel.bytes},   {"scratch_bytes", kernel.scratchBytes}};
  if (!kernel.block.empty())
    json["block"] = kernel.block;
  if (kernel.sharedBytes)
    json["shared_bytes"] = kernel.sharedBytes;
  if (!kernel.tensorMaps.empty())
    json["tensor_maps"] = listJson(kernel.tensorMaps, tensorMapJson);
  if (!kernel.summary.empty())
    json["summary"] = kernel.summary;
  if (kernel.dtype != DType::F32)
    json["dtype"] = spelling(kernel.dtype);
  return json;
}

Json viewJson(const View &view) {
  Json json = {{"op", spelling(view.op)}};
  switch (view.op) {
  case View::Op::Reshape:
    json["shape"] = view.shape;
    break;
  case View::Op::Permute:
    json["permutation"] = view.dims;
    break;
  case View::Op::Slice:
    json["starts"] = view.starts;
    json["limits"] = view.limits;
    json["strides"] = view.strides;
    break;
  case View::Op::Broadcast:
    json["shape"] = view.shape;
    json["dims"] = view.dims;
    break;
  case View::Op::AsStrided:
    json["sizes"] = view.shape;
    json["strides"] = view.strides;
    json["offset"] = view.offset;
    break;
  case View::Op::Bitcast:
    json["dtype"] = spelling(view.dtype);
    break;
  case View::Op::Detach:
    break;
  }
  return json;
}

void addAlias(Json &json, const Alias &alias) {
  if (!alias.output.empty())
    json["output"] = alias.output;
  else
    json["of"] = alias.of;
  if (alias.storage) {
    json["dtype"] = spelling(alias.storage->dtype);
    json["shape"] = alias.storage->shape;
  }
  json["views"] = listJson(alias.views, viewJson);
}

Json aliasJson(const Alias &alias) {
  Json json = Json::object();
  addAlias(json, alias);
  return json;
}

Json outputAliasJson(const OutputAlias &output) {
  Json json = {{"name", output.name},
               {"dtype", spelling(output.dtype)},
               {"shape", output.shape}};
  addAlias(json, output.alias);
  if (!output.partOf.empty())
    json["part_of"] = output.partOf;
  return json;
}

Json slotJson(const Slot &slot, bool isArgument) {
  Json json = {{"role", spelling(slot.role)}, {"name", slot.name}};
  bool named = slot.role == Role::Input || slot.role == Role::Param ||
               slot.role == Role::State;
  if (!isArgument || !named) {
    json["dtype"] = spelling(slot.dtype);
    json["shape"] = slot.shape;
  }
  if (!isArgument && slot.role == Role::Update)
    json["in_place"] = slot.inPlace;
  if (!isArgument && slot.role == Role::Saved)
    json["reason"] = slot.reason;
  if (slot.alias)
    json["alias"] = aliasJson(*slot.alias);
  if (slot.freed)
    json["freed"] = true;
  if (slot.metadata)
    json["metadata"] = aliasJson(*slot.metadata);
  if (slot.storage)
    json["storage"] = aliasJson(*slot.storage);
  if (slot.resize)
    json["resize"] = *slot.resize;
  if (slot.asFound)
    json["as_found"] = true;
  if (slot.unchecked)
    json["unchecked"] = true;
  if (slot.visible)
    json["visible"] = true;
  if (!slot.needs.empty())
    json["needs"] = slot.needs;
  if (!slot.partOf.empty())
    json["part_of"] = slot.partOf;
  if (!slot.where.empty())
    json["where"] = slot.where;
  if (slot.onHost)
    json["host"] = true;
  if (slot.inputs)
    json["inputs"] = *slot.inputs;
  if (slot.rows != Rows::Unknown)
    json["rows"] = spelling(slot.rows);
  if (!slot.counted.empty())
    json["counted"] = slot.counted;
  return json;
}

Json bufferJson(const Buffer &buffer) {
  switch (buffer.place) {
  case Buffer::Place::Argument:
    return {{"in", "argument"}, {"index", buffer.index}};
  case Buffer::Place::Result:
    return {{"in", "result"}, {"index", buffer.index}};
  case Buffer::Place::Arena:
    return {
        {"in", "arena"}, {"offset", buffer.offset}, {"bytes", buffer.bytes}};
  case Buffer::Place::Constant:
    return {
        {"in", "constant"}, {"offset", buffer.offset}, {"bytes", buffer.bytes}};
  case Buffer::Place::Host:
    return {{"in", "host"}, {"offset", buffer.offset}, {"bytes", buffer.bytes}};
  }
  return nullptr;
}

Json choiceJson(const Choice &choice) {
  Json json = {{"when", choice.when}};
  if (choice.copy)
    json["copy"] = *choice.copy;
  return json;
}

Json libraryJson(const LibraryCall &call) {
  Json json = {{"op", call.op}, {"dtype", spelling(call.dtype)}};
  if (call.tf32)
    json["tf32"] = true;
  json["operands"] = call.operands;
  json["sizes"] = call.sizes;
  for (auto [key, list] : {std::pair("lds", &call.lds),
                           std::pair("batch_strides", &call.batchStrides),
                           std::pair("transposes", &call.transposes),
                           std::pair("strides", &call.strides),
                           std::pair("padding", &call.padding),
                           std::pair("dilation", &call.dilation)})
    if (!list->empty())
      json[key] = *list;
  if (call.relu)
    json["relu"] = true;
  if (call.workspace)
    json["workspace"] = *call.workspace;
  return json;
}

Json launchJson(const Launch &launch) {
  if (launch.isCopy()) {
    Json json = {{"copy", true},
                 {"buffers", launch.buffers},
                 {"reads", launch.reads},
                 {"writes", launch.writes}};
    if (!launch.needs.empty())
      json["needs"] = launch.needs;
    return json;
  }
  Json json = {{"kernel", launch.kernel}, {"buffers", launch.buffers},
               {"reads", launch.reads},   {"writes", launch.writes},
               {"work", launch.work},     {"grain", launch.grain},
               {"stream", launch.stream}};
  if (!launch.needs.empty())
    json["needs"] = launch.needs;
  if (!launch.choices.empty())
    json["choices"] = listJson(launch.choices, choiceJson);
  if (!launch.grid.empty())
    json["grid"] = launch.grid;
  if (launch.library)
    json["library"] = libraryJson(*launch.library);
  return json;
}

Json programJson(const Program &program) {
  auto argument = [](const Slot &slot) { return slotJson(slot, true); };
  auto result = [](const Slot &slot) { return slotJson(slot, false); };
  Json json = {{"name", program.name},
               {"arguments", listJson(program.arguments, argument)},
               {"results", listJson(program.results, result)}};
  if (!program.aliases.empty())
    json["aliases"] = listJson(program.aliases, outputAliasJson);
  json["arena_bytes"] = program.arenaBytes;
  json["peak_bytes"] = program.peakBytes;
  if (program.hostBytes)
    json["host_bytes"] = program.hostBytes;
  json["buffers"] = listJson(program.buffers, bufferJson);
  json["launches"] = listJson(program.launches, launchJson);
  return json;
}

Json stepMemoryJson(const StepMemory &memory) {
  Json json = {{"parameters", memory.parameters},
               {"states", memory.states},
               {"constants", memory.constants},
               {"inputs", memory.inputs},
               {"outputs", memory.outputs},
               {"gradients", memory.gradients},
               {"saved", memory.saved},
               {"staged", memory.staged},
               {"arena", memory.arena}};
  if (memory.host)
    json["host"] = memory.host;
  if (memory.prepared)
    json["prepared"] = memory.prepared;
  return json;
}

Json partitionJson(const Partition &partition) {
  auto saved = [](const Partition::Saved &saved) -> Json {
    return {{"name", saved.name},
            {"op", saved.op},
            {"where", saved.where},
            {"seconds", saved.seconds}};
  };
  auto repeated = [](const Partition::Repeated &op) -> Json {
    return {{"op", op.op},
            {"where", op.where},
            {"reason", op.reason},
            {"seconds", op.seconds},
            {"bytes", op.bytes}};
  };
  auto point = [](const Partition::Point &point) -> Json {
    return {{"peak", point.peak},
            {"saved", point.saved},
            {"seconds", point.seconds},
            {"flops", point.flops}};
  };
  Json json = {{"saved", listJson(partition.saved, saved)},
               {"repeated", listJson(partition.repeated, repeated)}};
  if (partition.seconds)
    json["seconds"] = partition.seconds;
  if (!partition.chain.empty())
    json["chain"] = listJson(partition.chain, point);
  return json;
}

} // namespace

std::string_view spelling(Role role) {
  return roleNames[static_cast<int>(role)];
}

std::optional<Role> parseRole(std::string_view name) {
  for (size_t i = 0; i < std::size(roleNames); ++i)
    if (roleNames[i] == name)
      return static_cast<Role>(i);
  return std::nullopt;
}

std::string_view spelling(Rows rows) {
  return rows == Rows::Each ? "each" : rows == Rows::Mean ? "mean" : "";
}

std::optional<Rows> parseRows(std::string_view name) {
  for (Rows rows : {Rows::Each, Rows::Mean})
    if (spelling(rows) == name)
      return rows;
  return std::nullopt;
}

const Value *Manifest::findValue(std::string_view name) const {
  for (const Value &value : values)
    if (value.role != Role::Output && value.name == name)
      return &value;
  return nullptr;
}

const Value *Manifest::findOutput(std::string_view name) const {
  for (const Value &value : values)
    if (value.role == Role::Output && value.name == name)
      return &value;
  return nullptr;
}

const Program *Manifest::findProgram(std::string_view name) const {
  for (const Program &program : programs)
    if (program.name == name)
      return &program;
  return nullptr;
}

std::optional<size_t> updatedArgument(const Program &program,
                                      std::string_view name) {
  std::optional<size_t> found;
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const Slot &slot = program.arguments[i];
    bool isIt = slot.role <= Role::State
                    ? slot.name == name
                    : slot.role == Role::Cotangent &&
                          name.starts_with(cotangentOf) &&
                          name.substr(cotangentOf.size()) == slot.name;
    if (isIt && (!found || slot.asFound))
      found = i;
  }
  return found;
}

bool isOnHost(const Program &program, const Buffer &buffer) {
  auto isSlot = [&](const std::vector<Slot> &slots) {
    return buffer.index >= 0 &&
           buffer.index < static_cast<int64_t>(slots.size()) &&
           slots[buffer.index].onHost;
  };
  switch (buffer.place) {
  case Buffer::Place::Argument:
    return isSlot(program.arguments);
  case Buffer::Place::Result:
    return isSlot(program.results);
  case Buffer::Place::Arena:
  case Buffer::Place::Constant:
    return false;
  case Buffer::Place::Host:
    break;
  }
  return true;
}

std::vector<Slot> outputsOf(const Program &program) {
  std::vector<Slot> outputs;
  for (const Slot &slot : program.results)
    if (slot.role == Role::Output)
      outputs.push_back(slot);
  for (const OutputAlias &alias : program.aliases) {
    Slot &slot = outputs.emplace_back();
    slot.role = Role::Output;
    slot.name = alias.name;
    slot.dtype = alias.dtype;
    slot.shape = alias.shape;
  }
  return outputs;
}

Result<std::string> toJson(const Manifest &manifest) {
  Json json = {{"format", 1},
               {"model", manifest.model},
               {"producer", manifest.producer},
               {"target",
                {{"kind", manifest.target.kind},
                 {"arch", manifest.target.arch},
                 {"features", manifest.target.features}}}};
  if (!manifest.loss.empty())
    json["loss"] = manifest.loss;
  if (!manifest.optimizer.empty())
    json["optimizer"] = manifest.optimizer;
  if (!manifest.graph.empty())
    json["graph"] = manifest.graph;
  json["values"] = listJson(manifest.values, valueJson);
  json["kernels"] = listJson(manifest.kernels, kernelJson);
  json["programs"] = listJson(manifest.programs, programJson);
  json["mutated_in_backward"] = manifest.mutatedInBackward;
  if (manifest.stepMemory)
    json["step_memory"] = stepMemoryJson(*manifest.stepMemory);
  if (manifest.partition)
    json["partition"] = partitionJson(*manifest.partition);
  try {
    return json.dump() + "\n";
  } catch (const Json::exception &) {
    return Status::failed("manifest: expected names in UTF-8");
  }
}

} // namespace tandem::artifact
