//===- ParallelSpec.cpp - what a user says of shardings, as text ----------===//
#include "passes/shard/ParallelSpec.h"

#include "ir/UserText.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace tandem;

static constexpr ParallelKind kinds[] = {
    {"ddp", "data", "the rows of a batch are cut, gradients summed up"},
    {"zero1", "data", "and the optimizer's states are cut"},
    {"zero2", "data", "and the gradients"},
    {"fsdp", "data", "and the parameters, which are gathered for their use"},
    {"tp", "tensor", "parameters are cut as --shard says"},
    {"sp", "sequence", "the second dimension of inputs is cut"},
    {"pp", "pipe",
     "the model is cut into stages, one a rank; pp:N: N of them a rank"}};

ArrayRef<ParallelKind> tandem::parallelKinds() { return kinds; }

static std::string kindNames() {
  SmallVector<StringRef> names;
  for (const ParallelKind &kind : kinds)
    names.push_back(kind.name);
  return llvm::join(names, ", ");
}

int64_t tandem::stagesOfEachRank(StringRef plan) {
  constexpr int64_t kMost = 64;
  int64_t stages = 1;
  if (!plan.consume_front("pp") ||
      (!plan.empty() &&
       (!plan.consume_front(":") || plan.getAsInteger(10, stages))))
    return 0;
  return stages >= 1 && stages <= kMost ? stages : 0;
}

std::optional<MeshSpec> tandem::parseMeshSpec(StringRef text,
                                              std::string &error) {
  MeshSpec mesh;
  SmallVector<StringRef> axes;
  text.split(axes, ',');
  int64_t ranks = 1;
  for (StringRef axis : axes) {
    auto [name, number] = axis.split('=');
    int64_t size = 0;
    bool isName =
        !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_') &&
        llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (!isName || number.getAsInteger(10, size) || size < 1) {
      error =
          ("expected a mesh such as data=4,tensor=2, with sizes of at least "
           "1, but got '" +
           text + "'")
              .str();
      return std::nullopt;
    }
    if (llvm::any_of(mesh, [&](const auto &other) {
          return other.first == name.str();
        })) {
      error = ("expected each axis of a mesh once, but got '" + name +
               "' twice in '" + text + "'")
                  .str();
      return std::nullopt;
    }
    if (size > MeshAttr::kMaxRanks / ranks) {
      error = ("expected a mesh of at most " + Twine(MeshAttr::kMaxRanks) +
               " ranks, but got '" + text + "'")
                  .str();
      return std::nullopt;
    }
    ranks *= size;
    mesh.emplace_back(name.str(), size);
  }
  return mesh;
}

std::optional<std::vector<std::string>>
tandem::parseParallelSpec(StringRef text, const MeshSpec &mesh,
                          std::string &error) {
  auto fail = [&](const Twine &message) {
    error = message.str();
    return std::nullopt;
  };
  SmallVector<StringRef> names;
  text.split(names, '+');
  std::vector<std::string> found;
  StringRef data;
  for (StringRef name : names) {
    const auto *kind = llvm::find_if(kinds, [&](const ParallelKind &known) {
      return known.name == (stagesOfEachRank(name) ? "pp" : name);
    });
    if (kind == std::end(kinds))
      return fail("expected plans among " + kindNames() +
                  ", joined by '+', but got '" + name + "'");
    if (llvm::is_contained(found, name.str()))
      return fail("expected each plan once, but got '" + name + "' twice");
    if (kind->axis == "data") {
      if (!data.empty())
        return fail("'" + data + "' and '" + name +
                    "' exclude each other: each says what is cut over 'data'");
      data = name;
    }
    if (llvm::none_of(mesh, [&](const auto &axis) {
          return axis.first == kind->axis.str();
        }))
      return fail("'" + name + "' needs an axis '" + kind->axis +
                  "' of the mesh (--mesh=" + kind->axis + "=N)");
    found.push_back(name.str());
  }
  bool hasPipe = llvm::any_of(
      mesh, [](const auto &axis) { return axis.first == kPipeAxis; });
  if (hasPipe && llvm::none_of(found, stagesOfEachRank))
    return fail(
        "the axis 'pipe' of the mesh is for stages: expected 'pp' among "
        "the plans");
  if (hasPipe && mesh.front().first != kPipeAxis)
    return fail("expected the axis 'pipe' to be the first of the mesh");
  if (hasPipe && mesh.front().second < 2)
    return fail("expected at least 2 ranks of the axis 'pipe'");
  return found;
}

DictionaryAttr tandem::parseShardPlan(StringRef json, MLIRContext *context,
                                      std::string &error) {
  auto fail = [&](const Twine &message) {
    error = message.str();
    return DictionaryAttr();
  };
  auto parsed = parseUserJson(json);
  if (!parsed)
    return fail(llvm::toString(parsed.takeError()));
  const llvm::json::Object *object = parsed->getAsObject();
  if (!object)
    return fail("expected an object of names and shardings");
  Builder b(context);
  SmallVector<NamedAttribute> plan;
  for (const auto &[key, value] : *object) {
    StringRef pattern = key;
    std::string problem;
    if (pattern.empty() || !isRegex(pattern, problem))
      return fail("expected '" + pattern +
                  "' to be a regular expression: " + problem);
    auto wrong = [&] {
      return fail("expected for '" + pattern +
                  "' a list that names for each dimension an axis, a list of "
                  "axes, or null");
    };
    const llvm::json::Array *list = value.getAsArray();
    if (!list)
      return wrong();
    SmallVector<Attribute> dims;
    for (const llvm::json::Value &entry : *list) {
      SmallVector<StringRef> axes;
      if (auto name = entry.getAsString()) {
        axes.push_back(*name);
      } else if (const llvm::json::Array *several = entry.getAsArray()) {
        for (const llvm::json::Value &axis : *several) {
          auto one = axis.getAsString();
          if (!one)
            return wrong();
          axes.push_back(*one);
        }
      } else if (entry.kind() != llvm::json::Value::Null) {
        return wrong();
      }
      dims.push_back(b.getStrArrayAttr(axes));
    }
    plan.push_back(b.getNamedAttr(pattern, b.getArrayAttr(dims)));
  }
  return b.getDictionaryAttr(plan);
}
