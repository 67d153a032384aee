//===- Programs.cpp - the functions that a joint falls into ---------------===//
#include "passes/partition/Programs.h"

#include "passes/Doors.h"

#include "ir/HostCopy.h"
#include "ir/Where.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

namespace {

/// Copies ops of a joint into a program.
class Copier {
public:
  Copier(OpBuilder &builder) : builder(builder) {}

  void copy(Operation *op) {
    Operation *made = builder.clone(*op, map);
    // Which pass an op belongs to is now said by where it stands.
    made->removeAttr(kPassAttr);
    made->removeAttr(kNoGradAttr);
    dropTags(made);
  }

  OpBuilder &builder;
  IRMapping map;
};

} // namespace

DenseSet<Operation *> tandem::neededOps(ValueRange wanted,
                                        const IRMapping &map) {
  DenseSet<Operation *> needed;
  SmallVector<Value> work(wanted);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (op && !map.contains(value) && needed.insert(op).second)
      work.append(op->operand_begin(), op->operand_end());
  }
  return needed;
}

SavedNames::SavedNames(func::FuncOp joint, const SavedValues &saved,
                       StringRef prefix) {
  llvm::StringMap<unsigned> counts;
  DenseMap<Operation *, unsigned> ordinals;
  for (Operation &op : joint.getOps())
    ordinals[&op] = counts[op.getName().stripDialect()]++;
  llvm::StringSet<> taken;
  for (const auto &[value, reason] : saved) {
    std::string name = prefix.str();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      name += roleOfArgument(joint, argument.getArgNumber()).getName().str();
    } else {
      Operation *op = value.getDefiningOp();
      name += (op->getName().stripDialect() + "." + Twine(ordinals[op])).str();
      if (unsigned result = cast<OpResult>(value).getResultNumber())
        name += ("." + Twine(result)).str();
    }
    while (!taken.insert(name).second)
      name += ".saved";
    names[value] = name;
  }
}

SmallVector<Slot> tandem::savedSlots(const JointView &view,
                                     const SavedValues &saved,
                                     const SavedNames &names) {
  func::FuncOp joint = view.joint;
  Builder builder(joint.getContext());
  SmallVector<Slot> slots;
  for (const auto &[value, reason] : saved) {
    RoleAttr role =
        RoleAttr::get(joint.getContext(), RoleKind::Saved, names.of(value))
            .with("reason", builder.getStringAttr(reason));
    if (StringAttr output = view.outputOf(value))
      role = role.with(
          "alias",
          builder.getDictionaryAttr(
              {builder.getNamedAttr("output", output),
               builder.getNamedAttr("views", builder.getArrayAttr({}))}));
    else if (view.isOnHost(value))
      role = role.withUnit("host");
    slots.push_back({value.getType(), role, value.getLoc()});
  }
  return slots;
}

static Slot argumentSlot(func::FuncOp func, BlockArgument argument) {
  return {argument.getType(), roleOfArgument(func, argument.getArgNumber()),
          argument.getLoc()};
}

static Slot resultSlot(func::FuncOp func, unsigned i) {
  return {func.getResultTypes()[i], roleOfResult(func, i), func.getLoc()};
}

func::FuncOp tandem::copyProgram(func::FuncOp joint, StringRef name,
                                 ArrayRef<Slot> arguments,
                                 ArrayRef<Value> sources,
                                 ArrayRef<Slot> results,
                                 ArrayRef<Value> wanted) {
  OpBuilder builder(joint);
  func::FuncOp program =
      createGraphFunction(builder, joint.getLoc(), name, arguments, results);
  builder.setInsertionPointToStart(&program.getBody().front());
  Copier copier(builder);
  copier.map.map(sources, program.getArguments());
  DenseSet<Operation *> needed = neededOps(wanted, copier.map);
  for (Operation &op : joint.getOps())
    if (needed.contains(&op))
      copier.copy(&op);
  SmallVector<Value> returned;
  for (Value value : wanted)
    returned.push_back(copier.map.lookup(value));
  func::ReturnOp::create(builder, joint.getLoc(), returned);
  return program;
}

//===----------------------------------------------------------------------===//
// Outputs that are views
//===----------------------------------------------------------------------===//

/// Lists on `func` the outputs of `source` that are views.
static void setAliases(func::FuncOp func, func::FuncOp source) {
  Builder builder(func.getContext());
  SmallVector<Attribute> list;
  for (unsigned i = 0, n = source.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(source, i);
    if (!isAliasOutput(role))
      continue;
    NamedAttrList entry(role.getProperties().getAs<DictionaryAttr>("alias"));
    entry.set("name", role.getName());
    entry.set("type", TypeAttr::get(source.getResultTypes()[i]));
    if (Attribute part = role.getProperties().get("part_of"))
      entry.set("part_of", part);
    list.push_back(entry.getDictionary(func.getContext()));
  }
  if (!list.empty())
    func->setAttr(kAliasesAttr, builder.getArrayAttr(list));
}

void tandem::dropAliasOutputs(func::FuncOp func) {
  setAliases(func, func);
  llvm::BitVector dropped(func.getNumResults());
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    dropped[i] = isAliasOutput(roleOfResult(func, i));
  func.getBody().front().getTerminator()->eraseOperands(dropped);
  (void)func.eraseResults(dropped);
}

//===----------------------------------------------------------------------===//
// The host's memory
//===----------------------------------------------------------------------===//

static bool isOnHost(RoleAttr role) {
  return role.getKind() == RoleKind::Saved && role.has("host");
}

void tandem::copyOverHost(func::FuncOp func) {
  OpBuilder builder(func.getContext());
  for (BlockArgument argument : func.getArguments()) {
    if (!isOnHost(roleOfArgument(func, argument.getArgNumber())))
      continue;
    builder.setInsertionPointToStart(argument.getOwner());
    auto copy =
        ToDeviceOp::create(builder, argument.getLoc(), argument.getType(),
                           argument, BufferAttr(), ArrayAttr());
    argument.replaceAllUsesExcept(copy, copy);
  }
  Operation *terminator = func.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    if (!isOnHost(roleOfResult(func, operand.getOperandNumber())))
      continue;
    Value value = operand.get();
    builder.setInsertionPointAfterValue(value);
    operand.set(ToHostOp::create(builder, value.getLoc(), value.getType(),
                                 value, BufferAttr(), ArrayAttr()));
  }
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

func::FuncOp tandem::buildForward(const JointView &view,
                                  const SavedValues &saved,
                                  const SavedNames &names) {
  func::FuncOp joint = view.joint;
  SmallVector<Slot> arguments, results;
  SmallVector<Value> sources;
  for (BlockArgument argument : joint.getArguments())
    if (Slot slot = argumentSlot(joint, argument); !isBackward(slot.role)) {
      slot.role = slot.role.without("unchecked");
      arguments.push_back(slot);
      sources.push_back(argument);
    }
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (Slot slot = resultSlot(joint, i);
        !isBackward(slot.role) && !isAliasOutput(slot.role)) {
      if (slot.role.getKind() == RoleKind::Output)
        slot.role = slot.role.without("unchecked");
      results.push_back(slot);
    }
  results.append(savedSlots(view, saved, names));

  SmallVector<Value> wanted(view.forwardResults);
  for (const auto &[value, reason] : saved)
    wanted.push_back(value);
  func::FuncOp forward =
      copyProgram(joint, "forward", arguments, sources, results, wanted);
  setAliases(forward, joint);
  return forward;
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// The op of the model for which `reader` reads what it reads, and its place.
static std::string readerIs(Operation *reader) {
  std::string text = whereIs(reader);
  auto named = dyn_cast<NameLoc>(reader->getLoc());
  StringRef name = named ? named.getName().getValue() : "";
  if (!name.consume_front("grad of "))
    return text;
  size_t own = reader->getName().getStringRef().size() + 2;
  return "'tandem." + name.str() + "'" + text.substr(own);
}

/// One attribute dictionary per role. Setting roles one by one takes quadratic
/// time.
static ArrayAttr rolesAttr(MLIRContext *context, ArrayRef<RoleAttr> roles) {
  Builder builder(context);
  SmallVector<Attribute> attributes;
  for (RoleAttr role : roles)
    attributes.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role)));
  return builder.getArrayAttr(attributes);
}

void tandem::setReaders(func::FuncOp program, ArrayRef<Value> sources,
                        const DenseSet<Value> &unchecked) {
  SmallVector<RoleAttr> roles;
  for (auto [i, argument] : llvm::enumerate(program.getArguments())) {
    RoleAttr &role = roles.emplace_back(roleOfArgument(program, i));
    if (RoleAttr::belongs(role.getKind()) || role.has("pass"))
      continue;
    Operation *first = nullptr;
    for (Operation *user : argument.getUsers())
      if (!user->hasTrait<OpTrait::IsTerminator>() &&
          (!first || user->isBeforeInBlock(first)))
        first = user;
    // Handles are the forward's to check and to change.
    if (role.getKind() != RoleKind::Saved)
      for (StringRef property :
           {"alias", "metadata", "storage", "resize", "freed"})
        role = role.without(property);
    role = role.without("unchecked");
    if (first)
      role = role.with("where",
                       StringAttr::get(program.getContext(), readerIs(first)));
    if (unchecked.contains(sources[i]))
      role = role.withUnit("unchecked");
  }
  if (!roles.empty())
    program.setArgAttrsAttr(rolesAttr(program.getContext(), roles));
}

/// What the joint lets custom backwards alone read, and no check guards.
static DenseSet<Value> uncheckedValues(func::FuncOp joint) {
  DenseSet<Value> values;
  for (BlockArgument argument : joint.getArguments())
    if (roleOfArgument(joint, argument.getArgNumber()).has("unchecked"))
      values.insert(argument);
  Operation *terminator = joint.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
    if (roleOfResult(joint, i).has("unchecked"))
      values.insert(value);
  return values;
}

func::FuncOp tandem::buildBackward(const JointView &view,
                                   const SavedValues &saved,
                                   const SavedNames &names,
                                   SmallVectorImpl<Operation *> &repeated) {
  func::FuncOp joint = view.joint;
  // Which arguments the backward needs follows from what it computes.
  IRMapping given;
  for (const auto &[value, reason] : saved)
    given.map(value, value);
  DenseSet<Operation *> needed = neededOps(view.backwardResults, given);
  DenseSet<Value> used(view.backwardResults.begin(),
                       view.backwardResults.end());
  for (Operation *op : needed)
    used.insert(op->operand_begin(), op->operand_end());

  SmallVector<Slot> arguments, own, results;
  SmallVector<Value> sources, ownSources;
  for (BlockArgument argument : joint.getArguments()) {
    Slot slot = argumentSlot(joint, argument);
    if (isBackward(slot.role)) {
      // What a backward finds and only overwrites is an argument all the same:
      // the update is of it.
      own.push_back(slot);
      ownSources.push_back(argument);
    } else if (used.contains(argument) && !saved.contains(argument)) {
      arguments.push_back(slot);
      sources.push_back(argument);
    }
  }
  for (const auto &[value, reason] : saved)
    sources.push_back(value);
  sources.append(ownSources);
  arguments.append(savedSlots(view, saved, names));
  arguments.append(own);
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (Slot slot = resultSlot(joint, i); isBackward(slot.role))
      results.push_back(slot);

  OpBuilder builder(joint);
  func::FuncOp backward = createGraphFunction(builder, joint.getLoc(),
                                              "backward", arguments, results);
  builder.setInsertionPointToStart(&backward.getBody().front());
  Copier copier(builder);
  copier.map.map(sources, backward.getArguments());
  DenseSet<Value> unchecked = uncheckedValues(joint);
  // Copies `op` and what it needs, in the order of the joint.
  auto copyChain = [&](ValueRange wanted) {
    DenseSet<Operation *> set = neededOps(wanted, copier.map);
    SmallVector<Operation *> chain(set.begin(), set.end());
    llvm::sort(chain, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    for (Operation *link : chain) {
      copier.copy(link);
      if (passOf(link) != "forward")
        continue;
      // An op that is computed again wants what the forward saw.
      for (Value operand : link->getOperands())
        unchecked.erase(operand);
      if (!link->hasTrait<OpTrait::ConstantLike>())
        repeated.push_back(link);
    }
  };
  for (Operation &op : joint.getOps())
    if (needed.contains(&op) && passOf(&op) == "backward" &&
        !copier.map.contains(op.getResult(0)))
      copyChain(op.getResults());
  // A result may be a value that no backward op makes.
  for (Value value : view.backwardResults)
    if (!copier.map.contains(value))
      copyChain(value);
  SmallVector<Value> returned;
  for (Value value : view.backwardResults)
    returned.push_back(copier.map.lookup(value));
  func::ReturnOp::create(builder, joint.getLoc(), returned);
  setReaders(backward, sources, unchecked);
  return backward;
}

void tandem::copyReaders(func::FuncOp forward, func::FuncOp backward) {
  llvm::StringMap<RoleAttr> readers;
  for (unsigned i = 0, n = backward.getNumArguments(); i < n; ++i)
    if (RoleAttr role = roleOfArgument(backward, i);
        role.getKind() == RoleKind::Saved)
      readers[role.getName()] = role;
  SmallVector<RoleAttr> roles;
  for (unsigned i = 0, n = forward.getNumResults(); i < n; ++i) {
    RoleAttr &role = roles.emplace_back(roleOfResult(forward, i));
    RoleAttr reader = readers.lookup(role.getName());
    if (role.getKind() != RoleKind::Saved || role.has("where") || !reader)
      continue;
    for (StringRef property : {"where", "unchecked"})
      if (Attribute value = reader.getProperties().get(property))
        role = role.with(property, value);
  }
  if (!roles.empty())
    forward.setResAttrsAttr(rolesAttr(forward.getContext(), roles));
}
