//===- ManifestParts.cpp - attributes in the manifest's terms -------------===//
#include "compiler/emit/ManifestParts.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
namespace am = tandem::artifact;

am::DType tandem::dtypeOf(Type element) {
  if (element.isInteger(1))
    return am::DType::Bool;
  std::string text;
  llvm::raw_string_ostream(text) << element;
  // ui8 is u8 in the manifest.
  StringRef name = text;
  if (element.isUnsignedInteger())
    name.consume_front("ui"), text = "u" + name.str();
  return *am::parseDType(text);
}

am::TensorType tandem::typeOf(RankedTensorType type) {
  return {dtypeOf(type.getElementType()), type.getShape().vec()};
}

am::Role tandem::roleOf(RoleKind kind) {
  return *am::parseRole(stringifyRoleKind(kind));
}

static Status expected(const char *what, Attribute got) {
  std::string text;
  llvm::raw_string_ostream(text) << got;
  return Status::failed(std::string("expected ") + what + ", but got " + text);
}

static std::string textOf(DictionaryAttr properties, StringRef key) {
  auto text = properties.getAs<StringAttr>(key);
  return text ? text.str() : std::string();
}

static double number(DictionaryAttr init, StringRef key) {
  Attribute value = init.get(key);
  if (auto f = dyn_cast_or_null<FloatAttr>(value))
    return f.getValueAsDouble();
  if (auto i = dyn_cast_or_null<IntegerAttr>(value))
    return static_cast<double>(i.getInt());
  return 0;
}

static int64_t integer(DictionaryAttr properties, StringRef key) {
  auto value = properties.getAs<IntegerAttr>(key);
  return value && value.getType().isSignlessInteger(64) ? value.getInt() : 0;
}

/// JSON has no other numbers.
static double finite(DictionaryAttr properties, StringRef key) {
  double value = number(properties, key);
  return std::isfinite(value) ? value : 0;
}

/// The dictionaries of the list `key`.
static SmallVector<DictionaryAttr> entries(DictionaryAttr of, StringRef key) {
  SmallVector<DictionaryAttr> list;
  if (auto all = of.getAs<ArrayAttr>(key))
    for (Attribute one : all)
      if (auto entry = dyn_cast<DictionaryAttr>(one))
        list.push_back(entry);
  return list;
}

am::StepMemory tandem::stepMemoryOf(DictionaryAttr memory) {
  am::StepMemory out;
  out.parameters = integer(memory, "parameters");
  out.states = integer(memory, "states");
  out.constants = integer(memory, "constants");
  out.inputs = integer(memory, "inputs");
  out.outputs = integer(memory, "outputs");
  out.gradients = integer(memory, "gradients");
  out.saved = integer(memory, "saved");
  out.staged = integer(memory, "staged");
  out.arena = integer(memory, "arena");
  out.host = integer(memory, "host");
  out.prepared = integer(memory, "prepared");
  return out;
}

am::Partition tandem::partitionOf(DictionaryAttr report) {
  am::Partition out;
  for (DictionaryAttr saved : entries(report, "saved"))
    out.saved.push_back({textOf(saved, "name"), textOf(saved, "op"),
                         textOf(saved, "where"), finite(saved, "seconds")});
  for (DictionaryAttr op : entries(report, "repeated"))
    out.repeated.push_back({textOf(op, "op"), textOf(op, "where"),
                            textOf(op, "reason"), finite(op, "seconds"),
                            integer(op, "bytes")});
  out.seconds = finite(report, "seconds");
  for (DictionaryAttr point : entries(report, "chain"))
    out.chain.push_back({integer(point, "peak"), integer(point, "saved"),
                         finite(point, "seconds"), finite(point, "flops")});
  return out;
}

am::Value tandem::valueOf(RoleAttr role, RankedTensorType type) {
  am::Value value;
  value.role = roleOf(role.getKind());
  value.name = role.getName().str();
  value.dtype = dtypeOf(type.getElementType());
  value.shape = type.getShape().vec();
  value.requiresGrad = role.has("requires_grad");
  if (auto high = role.getProperties().getAs<IntegerAttr>("high"))
    value.high = high.getInt();
  if (auto low = role.getProperties().getAs<IntegerAttr>("low"))
    value.low = low.getInt();
  if (auto ignored = role.getProperties().getAs<IntegerAttr>("ignored"))
    value.ignored = ignored.getInt();
  if (auto init = role.getProperties().getAs<DictionaryAttr>("init")) {
    StringRef how = init.getAs<StringAttr>("kind").getValue();
    if (how == "constant")
      value.init = am::Init::constant(number(init, "value"));
    else if (how == "uniform")
      value.init = am::Init::uniform(number(init, "low"), number(init, "high"));
    else if (how == "normal")
      value.init = am::Init::normal(number(init, "mean"), number(init, "std"));
    else if (how == "seed")
      value.init = am::Init::seed();
    else
      value.init = am::Init::counter(
          static_cast<int64_t>(number(init, "stream")), number(init, "scale"));
  }
  return value;
}

//===----------------------------------------------------------------------===//
// Views and aliases
//===----------------------------------------------------------------------===//

static Result<am::View> viewOf(Attribute attribute) {
  auto step = dyn_cast<DictionaryAttr>(attribute);
  if (!step)
    return expected("a view to be a dictionary", attribute);
  std::string op = textOf(step, "op");
  auto list = [&](StringRef key) {
    auto numbers = step.getAs<DenseI64ArrayAttr>(key);
    return numbers ? numbers.asArrayRef().vec() : std::vector<int64_t>();
  };
  if (op == "reshape")
    return am::View::reshape(list("shape"));
  if (op == "permute")
    return am::View::permute(list("permutation"));
  if (op == "slice")
    return am::View::slice(list("starts"), list("limits"), list("strides"));
  if (op == "broadcast")
    return am::View::broadcast(list("shape"), list("dims"));
  if (op == "as_strided") {
    auto offset = step.getAs<IntegerAttr>("offset");
    return am::View::asStrided(list("sizes"), list("strides"),
                               offset ? offset.getInt() : 0);
  }
  if (op == "bitcast")
    if (auto type = step.getAs<TypeAttr>("type"))
      return am::View::bitcast(dtypeOf(type.getValue()));
  if (op == "detach")
    return am::View::detach();
  return expected("a view that a manifest can say", step);
}

static Result<am::Alias> aliasOf(DictionaryAttr from) {
  am::Alias alias;
  alias.of = textOf(from, "of");
  alias.output = textOf(from, "output");
  if (auto views = from.getAs<ArrayAttr>("views"))
    for (Attribute step : views) {
      auto view = viewOf(step);
      if (!view)
        return view.status();
      alias.views.push_back(std::move(*view));
    }
  return alias;
}

Result<am::OutputAlias> tandem::outputAliasOf(Attribute attribute) {
  auto entry = dyn_cast<DictionaryAttr>(attribute);
  if (!entry)
    return expected("an alias to be a dictionary", attribute);
  am::OutputAlias output;
  output.name = textOf(entry, "name");
  auto type = entry.getAs<TypeAttr>("type");
  auto tensor =
      type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  if (output.name.empty() || !tensor)
    return Status::failed("expected the entries of '" + kAliasesAttr.str() +
                          "' to have a 'name' and a 'type'");
  output.dtype = dtypeOf(tensor.getElementType());
  output.shape = tensor.getShape().vec();
  output.partOf = textOf(entry, "part_of");
  auto alias = aliasOf(entry);
  if (!alias)
    return std::move(alias).status().in("output '" + output.name + "'");
  output.alias = std::move(*alias);
  return output;
}

Result<am::Slot> tandem::slotOf(RoleAttr role, RankedTensorType type) {
  DictionaryAttr properties = role.getProperties();
  am::Slot slot;
  slot.role = roleOf(role.getKind());
  slot.name = role.getName().str();
  slot.dtype = dtypeOf(type.getElementType());
  slot.shape = type.getShape().vec();
  slot.inPlace = role.has("in_place");
  slot.reason = textOf(properties, "reason");
  slot.freed = role.has("freed");
  // An update's pass is that of its program; a value's says which one it is.
  slot.asFound = role.getKind() <= RoleKind::State && role.has("pass");
  slot.unchecked = role.has("unchecked");
  slot.visible = role.has("visible");
  slot.onHost = role.has("host");
  slot.partOf = textOf(properties, "part_of");
  slot.where = textOf(properties, "where");
  auto needs = conditionOf(properties.get("needs"));
  if (!needs)
    return std::move(needs).status().in("'" + role.str() + "'");
  slot.needs = std::move(*needs);
  if (auto names = properties.getAs<ArrayAttr>("inputs")) {
    slot.inputs.emplace();
    for (auto name : names.getAsRange<StringAttr>())
      slot.inputs->push_back(name.str());
  }
  slot.rows =
      am::parseRows(textOf(properties, "rows")).value_or(am::Rows::Unknown);
  slot.counted = textOf(properties, "counted");
  if (auto elements = properties.getAs<IntegerAttr>("resize"))
    slot.resize = elements.getInt();

  // An output's alias is said by its program (`tandem.aliases`).
  for (auto [key, field] :
       {std::pair("alias", &slot.alias), std::pair("metadata", &slot.metadata),
        std::pair("storage", &slot.storage)}) {
    auto from = properties.getAs<DictionaryAttr>(key);
    if (!from || role.getKind() == RoleKind::Output)
      continue;
    auto alias = aliasOf(from);
    if (!alias)
      return std::move(alias).status().in("'" + role.str() + "'");
    *field = std::move(*alias);
  }
  if (auto from = properties.getAs<DictionaryAttr>("alias"))
    if (auto storage = from.getAs<TypeAttr>("type"); storage && slot.alias)
      if (auto tensor = dyn_cast<RankedTensorType>(storage.getValue()))
        slot.alias->storage = typeOf(tensor);
  return slot;
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

Result<am::Condition> tandem::conditionOf(Attribute condition) {
  am::Condition groups;
  if (!condition)
    return groups;
  auto list = dyn_cast<ArrayAttr>(condition);
  bool isRight = list != nullptr;
  for (Attribute group : list ? list.getValue() : ArrayRef<Attribute>()) {
    groups.emplace_back();
    auto names = dyn_cast<ArrayAttr>(group);
    isRight &= names && llvm::all_of(names, llvm::IsaPred<StringAttr>);
    if (isRight)
      for (auto name : names.getAsRange<StringAttr>())
        groups.back().push_back(name.str());
  }
  if (!isRight)
    return expected("a condition to be a list of lists of names", condition);
  return groups;
}

Result<std::vector<am::Choice>> tandem::choicesOf(ArrayAttr choices) {
  std::vector<am::Choice> list;
  for (Attribute attribute :
       choices ? choices.getValue() : ArrayRef<Attribute>()) {
    auto entry = dyn_cast<DictionaryAttr>(attribute);
    if (!entry)
      return expected("a choice to be a dictionary", attribute);
    auto when = conditionOf(entry.get("when"));
    if (!when)
      return std::move(when).status();
    am::Choice choice;
    choice.when = std::move(*when);
    if (auto copy = entry.getAs<IntegerAttr>("copy"))
      choice.copy = copy.getInt();
    list.push_back(std::move(choice));
  }
  return list;
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

std::vector<am::TensorMap> tandem::tensorMapsOf(ArrayAttr maps) {
  std::vector<am::TensorMap> list;
  if (!maps)
    return list;
  for (auto map : maps.getAsRange<TensorMapAttr>())
    list.push_back({map.getBuffer(), map.getOffset(), map.getElement().str(),
                    map.getSizes().asArrayRef().vec(),
                    map.getStrides().asArrayRef().vec(),
                    map.getBox().asArrayRef().vec(), map.getSwizzle()});
  return list;
}

//===----------------------------------------------------------------------===//
// Library calls
//===----------------------------------------------------------------------===//

PlannedLibraryCall tandem::libraryCallOf(LibraryCallAttr from) {
  PlannedLibraryCall planned;
  am::LibraryCall &call = planned.call;
  auto list = [](DenseI64ArrayAttr numbers) {
    return numbers ? numbers.asArrayRef().vec() : std::vector<int64_t>();
  };
  auto flag = [](BoolAttr isSet) { return isSet && isSet.getValue(); };
  call.op = from.getOp().str();
  call.dtype = dtypeOf(from.getDtype());
  call.tf32 = flag(from.getTf32());
  call.relu = flag(from.getRelu());
  call.operands = list(from.getOperands());
  call.sizes = list(from.getSizes());
  call.lds = list(from.getLds());
  call.batchStrides = list(from.getBatchStrides());
  call.transposes = list(from.getTransposes());
  call.strides = list(from.getStrides());
  call.padding = list(from.getPadding());
  call.dilation = list(from.getDilation());
  planned.workspaceBytes = from.getWorkspaceBytes();
  planned.workspace = from.getWorkspace();
  return planned;
}
