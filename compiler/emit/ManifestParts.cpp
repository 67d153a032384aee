//===- ManifestParts.cpp - attributes in the manifest's terms -------------===//
#include "compiler/emit/ManifestParts.h"

#include "ir/Collective.h"
#include "ir/IndexRange.h"
#include "ir/Keys.h"
#include "ir/Pipeline.h"
#include "ir/Sharding.h"
#include "ir/TiedNames.h"
#include "ir/Where.h"

#include "llvm/ADT/TypeSwitch.h"

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
  out.parameters = integer(memory, key::kParameters);
  out.states = integer(memory, key::kStates);
  out.constants = integer(memory, key::kConstants);
  out.inputs = integer(memory, key::kInputs);
  out.outputs = integer(memory, key::kOutputs);
  out.gradients = integer(memory, key::kGradients);
  out.saved = integer(memory, key::kSaved);
  out.staged = integer(memory, key::kStaged);
  out.arena = integer(memory, key::kArena);
  out.host = integer(memory, key::kHost);
  out.prepared = integer(memory, key::kPrepared);
  return out;
}

am::Partition tandem::partitionOf(DictionaryAttr report) {
  am::Partition out;
  for (DictionaryAttr saved : entries(report, key::kSaved))
    out.saved.push_back({textOf(saved, key::kName), textOf(saved, key::kOp),
                         textOf(saved, key::kPath), textOf(saved, key::kWhere),
                         finite(saved, key::kSeconds)});
  for (DictionaryAttr op : entries(report, key::kRepeated))
    out.repeated.push_back({textOf(op, key::kOp), textOf(op, key::kPath),
                            textOf(op, key::kWhere), textOf(op, key::kReason),
                            finite(op, key::kSeconds),
                            integer(op, key::kBytes)});
  out.seconds = finite(report, key::kSeconds);
  for (DictionaryAttr point : entries(report, key::kChain))
    out.chain.push_back(
        {integer(point, key::kPeak), integer(point, key::kSaved),
         finite(point, key::kSeconds), finite(point, key::kFlops)});
  return out;
}

static std::vector<std::string> namesOf(ArrayAttr names) {
  std::vector<std::string> texts;
  for (auto name : names.getAsRange<StringAttr>())
    texts.push_back(name.str());
  return texts;
}

static am::SliceRange rangeOf(DictionaryAttr of) {
  auto list = [&](StringRef key) {
    return of.getAs<DenseI64ArrayAttr>(key).asArrayRef().vec();
  };
  am::SliceRange range;
  range.begins = list(kRangeBegins);
  range.ends = list(kRangeEnds);
  range.steps = list(kRangeSteps);
  range.low = integer(of, RoleAttr::kLow);
  range.high = integer(of, RoleAttr::kHigh);
  if (auto ignored = of.getAs<IntegerAttr>(RoleAttr::kIgnored))
    range.ignored = ignored.getInt();
  return range;
}

am::Value tandem::valueOf(RoleAttr role, RankedTensorType type) {
  am::Value value;
  value.role = roleOf(role.getKind());
  value.name = role.getName().str();
  value.dtype = dtypeOf(type.getElementType());
  value.shape = type.getShape().vec();
  value.requiresGrad = role.has(RoleAttr::kRequiresGrad);
  if (auto names = role.getProperty<ArrayAttr>(kAlsoCalled))
    value.alsoCalled = namesOf(names);
  if (auto high = role.getProperty<IntegerAttr>(RoleAttr::kHigh))
    value.high = high.getInt();
  if (auto low = role.getProperty<IntegerAttr>(RoleAttr::kLow))
    value.low = low.getInt();
  if (auto ignored = role.getProperty<IntegerAttr>(RoleAttr::kIgnored))
    value.ignored = ignored.getInt();
  if (auto ranges = role.getProperty<ArrayAttr>(kSliceRanges))
    for (auto range : ranges.getAsRange<DictionaryAttr>())
      value.ranges.push_back(rangeOf(range));
  if (ArrayAttr sharding = role.getSharding())
    for (auto axes : sharding.getAsRange<ArrayAttr>())
      value.sharding.push_back(namesOf(axes));
  if (auto sizes = role.getProperty<DenseI64ArrayAttr>(kWholeSizes))
    value.whole = sizes.asArrayRef().vec();
  if (auto init = role.getProperty<DictionaryAttr>(RoleAttr::kInit)) {
    StringRef how = init.getAs<StringAttr>(key::kKind).getValue();
    if (how == "constant")
      value.init = am::Init::constant(number(init, key::kValue));
    else if (how == "uniform")
      value.init =
          am::Init::uniform(number(init, key::kLow), number(init, key::kHigh));
    else if (how == "normal")
      value.init =
          am::Init::normal(number(init, key::kMean), number(init, key::kStd));
    else if (how == "seed")
      value.init = am::Init::seed();
    else
      value.init =
          am::Init::counter(static_cast<int64_t>(number(init, key::kStream)),
                            number(init, key::kScale));
  }
  return value;
}

am::Pipeline tandem::pipelineOf(DictionaryAttr fields) {
  am::Pipeline made;
  auto number = [&](StringRef key) {
    auto value = fields.getAs<IntegerAttr>(key);
    return value ? value.getInt() : 0;
  };
  auto names = [&](StringRef key) {
    auto list = fields.getAs<ArrayAttr>(key);
    return list ? namesOf(list) : std::vector<std::string>();
  };
  made.stage = number(pipeline::kStage);
  made.stages = number(pipeline::kStages);
  made.ranks = number(pipeline::kRanks);
  if (auto digest = fields.getAs<StringAttr>(pipeline::kDigest))
    made.digest = digest.str();
  made.takes = names(pipeline::kTakes);
  made.gives = names(pipeline::kGives);
  if (auto inputs = fields.getAs<ArrayAttr>(pipeline::kInputs))
    for (auto input : inputs.getAsRange<DictionaryAttr>())
      made.inputs.push_back(
          valueOf(input.getAs<RoleAttr>(pipeline::kRole),
                  cast<RankedTensorType>(
                      input.getAs<TypeAttr>(pipeline::kType).getValue())));
  return made;
}

//===----------------------------------------------------------------------===//
// Views and aliases
//===----------------------------------------------------------------------===//

static Result<am::View> viewOf(Attribute attribute) {
  auto step = dyn_cast<DictionaryAttr>(attribute);
  if (!step)
    return expected("a view to be a dictionary", attribute);
  std::string op = textOf(step, key::kOp);
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
    auto offset = step.getAs<IntegerAttr>(key::kOffset);
    return am::View::asStrided(list("sizes"), list("strides"),
                               offset ? offset.getInt() : 0);
  }
  if (op == "bitcast")
    if (auto type = step.getAs<TypeAttr>(key::kType))
      return am::View::bitcast(dtypeOf(type.getValue()));
  if (op == "detach")
    return am::View::detach();
  return expected("a view that a manifest can say", step);
}

static Result<am::Alias> aliasOf(DictionaryAttr from) {
  am::Alias alias;
  alias.of = textOf(from, key::kOf);
  alias.output = textOf(from, key::kOutput);
  if (auto views = from.getAs<ArrayAttr>(key::kViews))
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
  output.name = textOf(entry, key::kName);
  auto type = entry.getAs<TypeAttr>(key::kType);
  auto tensor =
      type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  if (output.name.empty() || !tensor)
    return Status::failed("expected the entries of '" + kAliasesAttr.str() +
                          "' to have a 'name' and a 'type'");
  output.dtype = dtypeOf(tensor.getElementType());
  output.shape = tensor.getShape().vec();
  output.partOf = textOf(entry, key::kPartOf);
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
  slot.inPlace = role.has(RoleAttr::kInPlace);
  slot.reason = textOf(properties, RoleAttr::kReason);
  slot.freed = role.has(RoleAttr::kFreed);
  // An update's pass is that of its program; a value's says which one it is.
  slot.asFound = role.getKind() <= RoleKind::State && role.has(RoleAttr::kPass);
  slot.unchecked = role.has(RoleAttr::kUnchecked);
  slot.visible = role.has(RoleAttr::kVisible);
  slot.onHost = role.has(RoleAttr::kHost);
  slot.partOf = textOf(properties, RoleAttr::kPartOf);
  slot.where = textOf(properties, RoleAttr::kWhere);
  auto needs = conditionOf(properties.get(RoleAttr::kNeeds));
  if (!needs)
    return std::move(needs).status().in("'" + role.str() + "'");
  slot.needs = std::move(*needs);
  if (auto names = properties.getAs<ArrayAttr>(RoleAttr::kInputs)) {
    slot.inputs.emplace();
    for (auto name : names.getAsRange<StringAttr>())
      slot.inputs->push_back(name.str());
  }
  slot.rows = am::parseRows(textOf(properties, RoleAttr::kRows))
                  .value_or(am::Rows::Unknown);
  slot.counted = textOf(properties, RoleAttr::kCounted);
  if (auto elements = properties.getAs<IntegerAttr>(RoleAttr::kResize))
    slot.resize = elements.getInt();

  // An output's alias is said by its program (`tandem.aliases`).
  for (auto [key, field] : {std::pair(RoleAttr::kAlias, &slot.alias),
                            std::pair(RoleAttr::kMetadata, &slot.metadata),
                            std::pair(RoleAttr::kStorage, &slot.storage)}) {
    auto from = properties.getAs<DictionaryAttr>(key);
    if (!from || role.getKind() == RoleKind::Output)
      continue;
    auto alias = aliasOf(from);
    if (!alias)
      return std::move(alias).status().in("'" + role.str() + "'");
    *field = std::move(*alias);
  }
  if (auto from = properties.getAs<DictionaryAttr>(RoleAttr::kAlias))
    if (auto storage = from.getAs<TypeAttr>(key::kType); storage && slot.alias)
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
    auto when = conditionOf(entry.get(key::kWhen));
    if (!when)
      return std::move(when).status();
    am::Choice choice;
    choice.when = std::move(*when);
    if (auto copy = entry.getAs<IntegerAttr>(key::kCopy))
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

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static am::Collective::Reduce reduceOf(CollectiveReduce reduce) {
  switch (reduce) {
  case CollectiveReduce::sum:
    return am::Collective::Reduce::Sum;
  case CollectiveReduce::max:
    return am::Collective::Reduce::Max;
  case CollectiveReduce::min:
    return am::Collective::Reduce::Min;
  }
  return am::Collective::Reduce::Sum;
}

am::Collective tandem::collectiveOf(CollectiveOpInterface op) {
  using Op = am::Collective::Op;
  am::Collective made;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](AllReduceOp reduce) {
        made.op = Op::AllReduce;
        made.reduce = reduceOf(reduce.getReduce());
      })
      .Case([&](ReduceScatterOp reduce) {
        made.op = Op::ReduceScatter;
        made.reduce = reduceOf(reduce.getReduce());
      })
      .Case([&](AllGatherOp) { made.op = Op::AllGather; })
      .Case([&](AllToAllOp) { made.op = Op::AllToAll; })
      .Case([&](BroadcastFromOp broadcast) {
        made.op = Op::BroadcastFrom;
        made.root = static_cast<int64_t>(broadcast.getRoot());
      })
      .Case([&](RankSliceOp) { made.op = Op::RankSlice; })
      .Case([&](BarrierOp) { made.op = Op::Barrier; });
  made.axes = namesOf(op.axes());
  made.number = op.orderNumber();
  made.where = whereIs(op);
  if (op->getNumOperands()) {
    auto type = cast<RankedTensorType>(op->getOperand(0).getType());
    made.dtype = dtypeOf(type.getElementType());
    made.elements = type.getNumElements();
  }
  return made;
}
