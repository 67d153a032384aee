//===- Signature.cpp - reading, writing and checking roles ----------------===//
#include "ir/Signature.h"
#include "ir/Init.h"
#include "ir/Sharding.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

RoleAttr tandem::roleOfArgument(func::FuncOp func, unsigned index) {
  return func.getArgAttrOfType<RoleAttr>(index, kRoleAttr);
}
RoleAttr tandem::roleOfResult(func::FuncOp func, unsigned index) {
  return func.getResultAttrOfType<RoleAttr>(index, kRoleAttr);
}
void tandem::setRoleOfArgument(func::FuncOp func, unsigned index,
                               RoleAttr role) {
  func.setArgAttr(index, kRoleAttr, role);
}
void tandem::setRoleOfResult(func::FuncOp func, unsigned index, RoleAttr role) {
  func.setResultAttr(index, kRoleAttr, role);
}

void tandem::setRolesOfResults(func::FuncOp func, ArrayRef<RoleAttr> roles) {
  SmallVector<DictionaryAttr> all;
  for (auto [i, role] : llvm::enumerate(roles)) {
    NamedAttrList list(func.getResultAttrDict(i));
    if (role)
      list.set(kRoleAttr, role);
    all.push_back(list.getDictionary(func.getContext()));
  }
  func.setAllResultAttrs(all);
}

PlanAttr tandem::planOf(func::FuncOp func) {
  return func->getAttrOfType<PlanAttr>(kPlanAttr);
}

RoleIndex::RoleIndex(func::FuncOp func) {
  auto add = [](Positions &positions, RoleAttr role, unsigned index) {
    if (role)
      positions.try_emplace(
          {static_cast<unsigned>(role.getKind()), role.getName().getValue()},
          index);
  };
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    add(arguments, roleOfArgument(func, i), i);
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    add(results, roleOfResult(func, i), i);
}

std::optional<unsigned> RoleIndex::find(const Positions &positions,
                                        RoleKind kind, StringRef name) {
  auto found = positions.find({static_cast<unsigned>(kind), name});
  return found == positions.end() ? std::nullopt : std::optional(found->second);
}
std::optional<unsigned> RoleIndex::argument(RoleKind kind,
                                            StringRef name) const {
  return find(arguments, kind, name);
}
std::optional<unsigned> RoleIndex::result(RoleKind kind, StringRef name) const {
  return find(results, kind, name);
}
std::optional<unsigned> RoleIndex::value(StringRef name) const {
  for (RoleKind kind : {RoleKind::Input, RoleKind::Param, RoleKind::State})
    if (auto index = argument(kind, name))
      return index;
  return std::nullopt;
}

std::optional<unsigned> tandem::findArgument(func::FuncOp func, RoleKind kind,
                                             StringRef name) {
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    if (RoleAttr role = roleOfArgument(func, i))
      if (role.getKind() == kind && role.getName() == name)
        return i;
  return std::nullopt;
}

std::optional<unsigned> tandem::findResult(func::FuncOp func, RoleKind kind,
                                           StringRef name) {
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(func, i))
      if (role.getKind() == kind && role.getName() == name)
        return i;
  return std::nullopt;
}

std::optional<unsigned> tandem::findValue(func::FuncOp func, StringRef name) {
  for (RoleKind kind : {RoleKind::Input, RoleKind::Param, RoleKind::State})
    if (auto index = findArgument(func, kind, name))
      return index;
  return std::nullopt;
}

/// The tensor type behind a tensor or ref.
static Type valueType(Type type) {
  if (auto ref = dyn_cast<RefType>(type))
    return ref.getTensorType();
  return type;
}

/// What a role says of its value's numbers, against their type.
static LogicalResult verifyRoleOfType(func::FuncOp func, RoleAttr role,
                                      Type element) {
  auto error = [&] { return func.emitOpError(); };
  DictionaryAttr properties = role.getProperties();
  // One that was read has been verified, one that was built has not.
  if (mlir::failed(
          RoleAttr::verify(error, role.getKind(), role.getName(), properties)))
    return failure();
  bool failed = false;
  if (auto init = properties.getAs<DictionaryAttr>("init"))
    failed |= mlir::failed(verifyInitOfType(error, role.str(), init, element));
  if (properties.contains("high") && !isa<IntegerType>(element)) {
    failed = true;
    error() << "expected '" << role.str()
            << "' with 'high' to have integer elements, but got " << element;
  }
  return failure(failed);
}

/// The axes over which the dimensions of a value are cut, against its type and
/// the mesh.
static LogicalResult verifySharding(func::FuncOp func, RoleAttr role,
                                    Type type) {
  ArrayAttr sharding = role.getSharding();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!sharding || !tensor)
    return success();
  auto error = [&] {
    return func.emitOpError()
           << "expected the sharding of '" << role.str() << "' to ";
  };
  MeshAttr mesh = MeshAttr::of(func);
  if (!mesh)
    return error() << "stand in a module with '" << kMeshAttr << "'";
  if (static_cast<int64_t>(sharding.size()) != tensor.getRank())
    return error() << "have a list of axes for each of its " << tensor.getRank()
                   << " dimensions, but got " << sharding.size();
  auto whole = role.getProperty<DenseI64ArrayAttr>(kWholeSizes);
  if (whole && !func->hasAttr(kLocalAttr))
    return error() << "have no '" << kWholeSizes
                   << "' beside it before the function is local to a rank";
  if (whole && whole.size() != tensor.getRank())
    return error() << "have as '" << kWholeSizes << "' beside it "
                   << tensor.getRank() << " sizes, but got " << whole.size();
  bool failed = false;
  for (auto [dim, axes] : llvm::enumerate(sharding.getAsRange<ArrayAttr>())) {
    bool areKnown = true;
    for (auto axis : axes.getAsRange<StringAttr>())
      if (!mesh.getSize(axis)) {
        failed = true, areKnown = false;
        error() << "name axes of " << mesh << ", but got " << axis;
      }
    if (!areKnown || !whole)
      continue;
    int64_t ranks = mesh.groupSize(axes), size = tensor.getDimSize(dim);
    if (llvm::divideCeil(whole[dim], ranks) != static_cast<uint64_t>(size)) {
      failed = true;
      error() << "cut dimension " << dim << ", of size " << whole[dim]
              << ", over " << ranks << " ranks so that each has "
              << llvm::divideCeil(whole[dim], ranks) << ", but got " << size;
    }
  }
  return failure(failed);
}

LogicalResult tandem::verifySignature(func::FuncOp func) {
  using K = RoleKind;
  bool failed = false;
  auto error = [&] {
    failed = true;
    return func.emitOpError();
  };
  // The namespaces: values (input, param, state), and each other kind alone.
  llvm::StringMap<Type> values, outputs;
  llvm::StringSet<> seen;
  auto unique = [&](RoleAttr role, bool isArgument) {
    bool isValue = role.getKind() == K::Input || role.getKind() == K::Param ||
                   role.getKind() == K::State;
    StringRef name = role.getName();
    if (name == "__metadata__" && isValue && role.getKind() != K::Input)
      error() << "expected '" << role.str()
              << "' to have another name: no tensor of a safetensors file can "
                 "be called '__metadata__', so that it could not be saved";
    std::string key =
        isValue ? "value" : stringifyRoleKind(role.getKind()).str();
    // A value may come in, and be updated, once per pass.
    if (role.has("pass"))
      key += " in the backward";
    if (role.getName().getValue().starts_with("update of ") &&
        role.getKind() != K::Cotangent && role.getKind() != K::Grad)
      error() << "expected '" << role.str()
              << "' not to begin with 'update of '";
    key += isArgument ? ">" : "<";
    if (!seen.insert(key + role.getName().str()).second)
      error() << "expected names to be unique, but got '" << role.str()
              << "' twice";
  };

  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(func, i);
    if (!role) {
      error() << "expected argument #" << i << " to have a role";
      continue;
    }
    if (role.getKind() == K::Output || role.getKind() == K::Update)
      error() << "expected '" << role.str() << "' to be a result, but it is "
              << "argument #" << i;
    unique(role, true);
    Type type = valueType(func.getArgumentTypes()[i]);
    if (!isTensorType(type))
      error() << "expected '" << role.str()
              << "' to be a tensor or ref of static shape, at most "
                 "2^40 elements, but got "
              << type;
    if (role.has("requires_grad") && !isDifferentiableType(type))
      error()
          << "'" << role.str()
          << "' requires grad, so expected floating-point elements, but got "
          << type;
    if (isTensorType(type))
      failed |= mlir::failed(verifyRoleOfType(
          func, role, cast<RankedTensorType>(type).getElementType()));
    failed |= mlir::failed(verifySharding(func, role, type));
    if (!RoleAttr::belongs(role.getKind()))
      values[role.getName()] = type;
    if (role.getKind() == K::Cotangent)
      values[("cotangent of " + role.getName().getValue()).str()] = type;
  }
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(func, i);
    if (!role) {
      error() << "expected result #" << i << " to have a role";
      continue;
    }
    if (role.getKind() == K::Input || role.getKind() == K::Param ||
        role.getKind() == K::State || role.getKind() == K::Cotangent)
      error() << "expected '" << role.str() << "' to be an argument, but it is "
              << "result #" << i;
    unique(role, false);
    Type type = func.getResultTypes()[i];
    failed |= mlir::failed(verifySharding(func, role, valueType(type)));
    if (role.getKind() == K::Output)
      outputs[role.getName()] = type;
    if (role.getKind() == K::Update) {
      auto it = values.find(role.getName());
      if (it == values.end())
        error() << "'" << role.str() << "' names no argument";
      else if (it->second != type)
        error() << "expected '" << role.str() << "' to have type " << it->second
                << ", but got " << type;
    }
  }
  return failure(failed);
}

SmallVector<int64_t> tandem::mutatedInBackward(ModuleOp module) {
  auto taking = module.lookupSymbol<func::FuncOp>("joint"), giving = taking;
  if (!taking) {
    taking = module.lookupSymbol<func::FuncOp>("forward");
    giving = module.lookupSymbol<func::FuncOp>("backward");
  }
  SmallVector<int64_t> list;
  if (!taking || !giving)
    return list;
  llvm::StringSet<> updated;
  for (unsigned i = 0, n = giving.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(giving, i);
        role && role.getKind() == RoleKind::Update && role.has("pass"))
      updated.insert(role.getName().getValue());
  for (unsigned i = 0, n = taking.getNumArguments(); i < n; ++i)
    if (RoleAttr role = roleOfArgument(taking, i);
        role && role.has("requires_grad") && !role.has("pass") &&
        updated.contains(role.getName().getValue()))
      list.push_back(i);
  return list;
}

LogicalResult tandem::verifyMutatedInBackward(ModuleOp module) {
  auto sealed =
      module->getAttrOfType<DenseI64ArrayAttr>(kMutatedInBackwardAttr);
  auto phase = module->getAttrOfType<StringAttr>(kPhaseAttr);
  bool isEarly = phase && (phase == "capture" || phase == "functionalize");
  // Within the phase that builds the joint it comes when all is built.
  if (isEarly && sealed && !module.lookupSymbol("joint"))
    return module.emitError() << "expected no '" << kMutatedInBackwardAttr
                              << "' before the joint is built";
  SmallVector<int64_t> expected = mutatedInBackward(module);
  if ((isEarly && !sealed) || (!sealed && expected.empty()) ||
      (sealed && sealed.asArrayRef() == ArrayRef<int64_t>(expected)))
    return success();
  auto error = module.emitError()
               << "expected '" << kMutatedInBackwardAttr << "' to be [";
  llvm::interleaveComma(expected, error);
  error << "], the arguments that require grad and that the backward updates, "
           "but got ";
  if (!sealed)
    return error << "none";
  error << "[";
  llvm::interleaveComma(sealed.asArrayRef(), error);
  return error << "]";
}

func::FuncOp tandem::createGraphFunction(OpBuilder &builder, Location loc,
                                         StringRef name,
                                         ArrayRef<Slot> arguments,
                                         ArrayRef<Slot> results) {
  SmallVector<Type> inputTypes, resultTypes;
  SmallVector<Location> locs;
  for (const Slot &slot : arguments) {
    inputTypes.push_back(slot.type);
    locs.push_back(slot.loc);
  }
  for (const Slot &slot : results)
    resultTypes.push_back(slot.type);
  auto func = func::FuncOp::create(
      builder, loc, name, builder.getFunctionType(inputTypes, resultTypes));
  func.getBody().push_back(new Block);
  func.getBody().front().addArguments(inputTypes, locs);
  // All at once: setting them one by one takes quadratic time.
  auto roles = [&](ArrayRef<Slot> slots) {
    SmallVector<Attribute> attributes;
    for (const Slot &slot : slots)
      attributes.push_back(builder.getDictionaryAttr(
          builder.getNamedAttr(kRoleAttr, slot.role)));
    return builder.getArrayAttr(attributes);
  };
  if (!arguments.empty())
    func.setArgAttrsAttr(roles(arguments));
  if (!results.empty())
    func.setResAttrsAttr(roles(results));
  return func;
}
