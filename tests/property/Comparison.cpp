//===- Comparison.cpp - what compiled functions give, against the oracle --===//
#include "tests/property/Comparison.h"

#include "ir/Signature.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace tandem;
using namespace tandem::property;

/// The same arithmetic in another order.
static constexpr double kTolerance = 1e-9;

Comparison::Comparison(const Oracle &oracle, func::FuncOp captured,
                       const std::vector<Array> &values)
    : oracle(oracle), atCall(values) {
  for (unsigned i = 0; i < values.size(); ++i) {
    roles.push_back(roleOfArgument(captured, i));
    names.push_back(roles.back().getName().str());
    expectedForward.push_back(oracle.contents(i).values());
  }
}

unsigned Comparison::argumentOf(StringRef name) const {
  return llvm::find(names, name) - names.begin();
}

static std::string text(const Array &value) {
  std::string result = "[";
  for (double x : value.data)
    result += (result.size() > 1 ? ", " : "") + std::to_string(x);
  return result + "]";
}

std::string Comparison::same(const std::string &what, const Array &expected,
                             const Array &got) const {
  bool isSame = expected.shape == got.shape;
  for (int64_t i = 0; isSame && i < expected.size(); ++i)
    isSame = std::abs(expected[i] - got[i]) <=
             kTolerance * (1 + std::abs(expected[i]) + oracle.largest);
  if (isSame)
    return "";
  return what + "\nexpected " + text(expected) + "\ngot      " + text(got);
}

std::string Comparison::evaluate(func::FuncOp func, Values &results) {
  reference::Call call;
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(func, i);
    std::string name = role.getName().str();
    std::optional<Array> value;
    if (role.getKind() == RoleKind::Saved)
      value = saved[name];
    else if (role.getKind() != RoleKind::Cotangent)
      value = role.has("pass") ? found[name] : storages[name];
    else if (auto it = given.find(name); it != given.end())
      value = it->second;
    call.arguments.push_back(value);
  }
  auto outcome = reference::run(func, call);
  if (failed(outcome))
    return "'" + func.getName().str() + "' cannot be evaluated";
  for (auto [i, value] : llvm::enumerate(outcome->results)) {
    RoleAttr role = roleOfResult(func, i);
    results[stringifyRoleKind(role.getKind()).str() + " " +
            (role.has("pass") ? "backward " : "") + role.getName().str()] =
        value;
  }
  return "";
}

/// The positions that the steps of an alias show of `base`.
static Array positionsOf(const Array &base, DictionaryAttr alias) {
  MLIRContext *context = alias.getContext();
  reference::Ref ref{nullptr, base, Float64Type::get(context)};
  auto view =
      ref.view(alias.getAs<ArrayAttr>("views"), UnknownLoc::get(context));
  return succeeded(view) ? view->positions : Array(ArrayRef<int64_t>{0});
}

/// The positions of the elements of a dense tensor.
static Array whole(ArrayRef<int64_t> shape) {
  Array positions(shape);
  std::iota(positions.data.begin(), positions.data.end(), 0.0);
  return positions;
}

void Comparison::applyUpdates(const Values &results, bool isBackward) {
  std::set<unsigned> updated;
  for (unsigned i = 0; i < names.size(); ++i)
    if (auto it = results.find(isBackward ? "update backward " + names[i]
                                          : "update " + names[i]);
        it != results.end() && it->second) {
      storages[names[i]] = *it->second;
      updated.insert(i);
    }
  // Arguments that share storage all see it.
  std::map<int, std::map<double, double>> memory;
  for (bool isNew : {false, true})
    for (unsigned i = 0; i < names.size(); ++i)
      if (updated.count(i) == isNew)
        for (auto [position, x] : llvm::zip_equal(
                 oracle.atCall[i].positions.data, storages[names[i]].data))
          memory[oracle.atCall[i].storage][position] = x;
  for (unsigned i = 0; i < names.size(); ++i)
    for (auto [position, x] : llvm::zip_equal(oracle.atCall[i].positions.data,
                                              storages[names[i]].data))
      x = memory[oracle.atCall[i].storage][position];
}

//===----------------------------------------------------------------------===//
// What shares storage
//===----------------------------------------------------------------------===//

/// What the roles say that the handles of the arguments show at the end.
std::string Comparison::handles(func::FuncOp func) {
  for (unsigned i = 0; i < names.size(); ++i) {
    RoleAttr role = roleOfArgument(func, i);
    unsigned base = i;
    Array positions = oracle.atCall[i].positions;
    for (StringRef property : {"metadata", "storage"})
      if (auto change = role.getProperties().getAs<DictionaryAttr>(property)) {
        base = argumentOf(change.getAs<StringAttr>("of"));
        positions = positionsOf(oracle.atCall[base].positions, change);
      }
    const RealRef &end = oracle.atEnd[i];
    if (oracle.atCall[base].storage != end.storage ||
        positions.shape != end.positions.shape ||
        positions.data != end.positions.data)
      return "a handle shows something else at the end\n'" + role.str() + "'";
  }
  return "";
}

std::string Comparison::sharingOf(const Oracle::Output &output, RoleAttr role) {
  auto alias = role.getProperties().getAs<DictionaryAttr>("alias");
  std::string which = "\n'" + role.str() + "'";
  if (!output.ref)
    return alias ? "a value is an alias" + which : "";
  if (!alias)
    return output.ref->storage < oracle.numArgumentStorages
               ? "an alias of an argument is not declared" + which
               : "";
  Array base;
  int baseStorage = -1;
  if (auto of = alias.getAs<StringAttr>("of")) {
    unsigned i = argumentOf(of);
    base = oracle.atCall[i].positions;
    baseStorage = oracle.atCall[i].storage;
  } else {
    unsigned i = 0;
    alias.getAs<StringAttr>("output").getValue().drop_front().getAsInteger(10,
                                                                           i);
    if (!oracle.outputs[i].ref)
      return "an output is an alias of a value" + which;
    base = oracle.outputs[i].ref->positions;
    baseStorage = oracle.outputs[i].ref->storage;
  }
  Array positions = positionsOf(base, alias);
  bool isSame = baseStorage == output.ref->storage &&
                positions.shape == output.ref->positions.shape &&
                positions.data == output.ref->positions.data;
  return isSame ? ""
                : "an output is declared an alias of something else" + which;
}

/// The aliases of outputs; two that overlap are one storage.
std::string Comparison::sharing(func::FuncOp func) {
  std::map<int, std::set<double>> shown;
  for (auto [i, output] : llvm::enumerate(oracle.outputs)) {
    auto index = findResult(func, RoleKind::Output, "o" + std::to_string(i));
    if (!index)
      return "an output is missing";
    RoleAttr role = roleOfResult(func, *index);
    if (std::string problem = sharingOf(output, role); !problem.empty())
      return problem;
    if (!output.ref || role.has("alias"))
      continue;
    for (double position : output.ref->positions.data)
      shown[output.ref->storage].insert(position);
  }
  for (auto &[storage, positions] : shown) {
    size_t elements = 0;
    for (auto [i, output] : llvm::enumerate(oracle.outputs)) {
      auto index = findResult(func, RoleKind::Output, "o" + std::to_string(i));
      if (output.ref && output.ref->storage == storage &&
          !roleOfResult(func, *index).has("alias"))
        elements += std::set<double>(output.ref->positions.data.begin(),
                                     output.ref->positions.data.end())
                        .size();
    }
    if (elements != positions.size())
      return "outputs share storage, which their roles do not say";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// The forward
//===----------------------------------------------------------------------===//

std::string Comparison::forward(func::FuncOp func, const Values &results,
                                ArrayAttr aliases) {
  applyUpdates(results, /*isBackward=*/false);
  for (unsigned i = 0; i < names.size(); ++i) {
    if (std::string problem =
            same("a storage holds something else after the forward\n'" +
                     names[i] + "'",
                 expectedForward[i], storages[names[i]]);
        !problem.empty())
      return problem;
    auto update = findResult(func, RoleKind::Update, names[i]);
    if (update && roleOfResult(func, *update).has("pass"))
      continue;
    if (update && !oracle.isWritten(i))
      return "an update of what is not written\n'" + names[i] + "'";
    if (update && roleOfResult(func, *update).has("visible") &&
        !oracle.isVisiblyWritten(i))
      return "a hidden write is said to be visible\n'" + names[i] + "'";
  }
  std::map<std::string, Array> outputs;
  for (auto &[name, value] : results)
    if (StringRef(name).starts_with("output ") && value)
      outputs[name.substr(7)] = *value;
  // What is an alias is no result of a program: it is seen in its base.
  for (Attribute entry : aliases ? aliases.getValue() : ArrayRef<Attribute>()) {
    auto alias = cast<DictionaryAttr>(entry);
    Array base;
    if (auto of = alias.getAs<StringAttr>("of"))
      base = storages[of.str()];
    else
      base = outputs[alias.getAs<StringAttr>("output").str()];
    Array positions = positionsOf(whole(base.shape), alias);
    Array value(positions.shape);
    for (int64_t i = 0; i < value.size(); ++i)
      value[i] = base[static_cast<int64_t>(positions[i])];
    outputs[alias.getAs<StringAttr>("name").str()] = value;
  }
  for (auto [i, output] : llvm::enumerate(oracle.outputs)) {
    std::string name = "o" + std::to_string(i);
    if (!outputs.count(name))
      return "an output is missing\n'" + name + "'";
    if (std::string problem =
            same("an output has another value\n'" + name + "'", output.value,
                 outputs[name]);
        !problem.empty())
      return problem;
  }
  return "";
}

std::string Comparison::graph(func::FuncOp func) {
  for (auto [name, value] : llvm::zip_equal(names, atCall))
    storages[name] = value;
  Values results;
  if (std::string problem = evaluate(func, results); !problem.empty())
    return problem;
  for (std::string problem :
       {forward(func, results, {}), sharing(func), handles(func)})
    if (!problem.empty())
      return problem;
  return "";
}

//===----------------------------------------------------------------------===//
// The backward
//===----------------------------------------------------------------------===//

std::string
Comparison::cotangents(func::FuncOp joint,
                       const std::map<std::string, Array> &cotangents) {
  given = cotangents;
  auto takes = [&](const std::string &name) {
    return findArgument(joint, RoleKind::Cotangent, name).has_value();
  };
  for (auto [i, output] : llvm::enumerate(oracle.outputs)) {
    std::string name = "o" + std::to_string(i);
    if (output.isDifferentiable() && !takes(name))
      return "a differentiable output has no cotangent\n'" + name + "'";
    if (!output.depends && takes(name))
      return "an output that needs none has a cotangent\n'" + name + "'";
  }
  for (unsigned i = 0; i < names.size(); ++i) {
    std::string name = "update of " + names[i];
    Numbers now = oracle.contents(i);
    bool isDifferentiable =
        llvm::any_of(now.data, [](Number x) { return x.node >= 0; });
    bool isVisible =
        oracle.isVisiblyWritten(i) && roles[i].getKind() == RoleKind::Input;
    if (isVisible && isDifferentiable && !roles[i].has("alias") &&
        !oracle.isSameLeaf(i) && !takes(name))
      return "a visible write of an input has no cotangent\n'" + name + "'";
    if ((!now.depends || !oracle.isVisiblyWritten(i)) && takes(name))
      return "an update that needs none has a cotangent\n'" + name + "'";
  }
  return "";
}

std::string Comparison::backward(const Values &results) {
  applyUpdates(results, /*isBackward=*/true);
  for (unsigned i = 0; i < names.size(); ++i) {
    std::string which = "\n'" + names[i] + "'";
    if (std::string problem =
            same("a storage holds something else after the backward" + which,
                 oracle.contents(i).values(), storages[names[i]]);
        !problem.empty())
      return problem;
    auto it = results.find("grad " + names[i]);
    bool isDefined = it != results.end() && it->second;
    if (!isDefined && oracle.isReached(i))
      return "a gradient is undefined" + which;
    if (isDefined && !(oracle.defined >> i & 1))
      return "a gradient is defined that no cotangent reaches" + which;
    if (isDefined)
      if (std::string problem = same("a gradient has another value" + which,
                                     oracle.gradient(i), *it->second);
          !problem.empty())
        return problem;
  }
  return "";
}

std::string Comparison::joint(func::FuncOp func) {
  for (unsigned i = 0; i < names.size(); ++i) {
    storages[names[i]] = atCall[i];
    found[names[i]] = expectedForward[i];
  }
  Values results;
  if (std::string problem = evaluate(func, results); !problem.empty())
    return problem;
  if (std::string problem = forward(func, results, {}); !problem.empty())
    return problem;
  auto sealed =
      func->getParentOfType<ModuleOp>()->getAttrOfType<DenseI64ArrayAttr>(
          kMutatedInBackwardAttr);
  for (unsigned i : oracle.writtenInBackward)
    if (!sealed || !llvm::is_contained(sealed.asArrayRef(), i))
      return "the list of what the backward mutates is short\n'" + names[i] +
             "'";
  return backward(results);
}

std::string Comparison::programs(ModuleOp module) {
  auto forwardFunc = module.lookupSymbol<func::FuncOp>("forward");
  auto backwardFunc = module.lookupSymbol<func::FuncOp>("backward");
  if (!forwardFunc)
    return "there is no forward";
  for (unsigned i = 0; i < names.size(); ++i)
    storages[names[i]] = atCall[i];
  Values results;
  if (std::string problem = evaluate(forwardFunc, results); !problem.empty())
    return problem;
  if (std::string problem =
          forward(forwardFunc, results,
                  forwardFunc->getAttrOfType<ArrayAttr>(kAliasesAttr));
      !problem.empty())
    return problem;
  saved.clear();
  for (auto &[name, value] : results)
    if (StringRef(name).starts_with("saved "))
      saved[name.substr(6)] = value;
  found = storages;
  // What the backward takes as it was at the call must be there still.
  for (unsigned i = 0, n = backwardFunc ? backwardFunc.getNumArguments() : 0;
       i < n; ++i) {
    RoleAttr role = roleOfArgument(backwardFunc, i);
    std::string name = role.getName().str();
    if (storages.count(name) && !RoleAttr::belongs(role.getKind()) &&
        role.getKind() != RoleKind::Saved && !role.has("pass") &&
        !same("", atCall[argumentOf(name)], storages[name]).empty())
      return "the backward takes what the forward overwrote\n'" + name + "'";
  }
  Values gradients;
  if (backwardFunc)
    if (std::string problem = evaluate(backwardFunc, gradients);
        !problem.empty())
      return problem;
  return backward(gradients);
}
