//===- Choices.cpp - what options name, and what is trained ---------------===//
//
// An option that names nothing of the model is a mistake of usage: a name that
// is misspelt in --freeze would else train what should stay. Of what remains to
// the translation's own choice notes say how it chose.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Expressions.h"
#include "compiler/import/onnx/GraphTranslator.h"
#include "ir/Signature.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

#include <map>
#include <set>

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

using Names = std::set<std::string>;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

bool onnx::namesParameter(StringRef name) {
  return (name.contains('.') && !name.contains(':') && !name.contains('/')) ||
         name == "weight" || name == "bias";
}

void GraphTranslator::checkExpression(const char *option,
                                      const std::string &expression) {
  if (expression.empty())
    return;
  auto matched = [&](StringRef part) {
    Names found;
    for (const std::string &name : trainable)
      if (matches(part.str(), name))
        found.insert(name);
    return found;
  };
  auto isSubset = [](const Names &some, const Names &all) {
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
  };
  for (StringRef part : alternativesOf(expression))
    if (matched(part).empty())
      misuse(std::string(option) + "=" + expression,
             "'" + part.str() + "' matches no initializer" +
                 suggestion(part, trainable) + "; the floats are " +
                 listed(trainable));
    else if (Names found = matched(part); isSubset(found, buffers))
      misuse(std::string(option) + "=" + expression,
             "'" + part.str() + "' matches running statistics alone (" +
                 listed(found) +
                 "), which no gradient trains; --keep-eval leaves them as they "
                 "are");
}

/// With --train all that it does not match is frozen: what --freeze names there
/// is trained neither way.
void GraphTranslator::checkFrozen() {
  if (options.freeze.empty() || options.train.empty())
    return;
  for (StringRef part : alternativesOf(options.freeze))
    if (llvm::none_of(trainable, [&](const std::string &name) {
          return !buffers.count(name) && matches(part.str(), name) &&
                 matches(options.train, name);
        }))
      misuse("--freeze=" + options.freeze,
             "'" + part.str() + "' has no effect: --train=" + options.train +
                 " trains what it matches and nothing else; --keep-eval leaves "
                 "running statistics and dropout as in inference");
}

void GraphTranslator::checkChoices() {
  Names inputs, dims;
  for (const NamedType &input : model.graph.inputs)
    inputs.insert(input.name);
  for (const auto *list :
       {&model.graph.inputs, &model.graph.values, &model.graph.outputs})
    for (const NamedType &value : *list)
      for (const Dim &dim : value.type.shape)
        if (!dim.name.empty())
          dims.insert(dim.name);
  auto expect = [&](const char *option, const std::string &name,
                    const Names &known, const char *what) {
    if (!known.count(name))
      misuse(option + name, std::string("the model has no ") + what +
                                " of this name" + suggestion(name, known) +
                                "; there are " + listed(known));
  };
  for (const auto &[name, size] : options.dims)
    expect("--dim=", name, dims, "dimension");
  for (const auto &[name, shape] : options.shapes)
    expect("--shape=", name, inputs, "input");
  for (const auto &[name, value] : options.values)
    expect("--value=", name, inputs, "input");
  checkExpression("--freeze", options.freeze);
  checkExpression("--train", options.train);
  if (problems.empty())
    checkFrozen();
  if (!problems.empty() || (options.freeze.empty() && options.train.empty()))
    return;
  if (llvm::none_of(func.getArguments(), [&](BlockArgument argument) {
        return roleOfArgument(func, argument.getArgNumber())
            .has(RoleAttr::kRequiresGrad);
      })) {
    std::string asked =
        options.freeze.empty() ? "" : "--freeze=" + options.freeze;
    if (!options.train.empty())
      asked += (asked.empty() ? "--train=" : " and --train=") + options.train;
    misuse(asked, "nothing is left to train");
  }
}

//===----------------------------------------------------------------------===//
// What is trained
//===----------------------------------------------------------------------===//

bool GraphTranslator::isTrained(const std::string &name, bool isWeight) const {
  if (matches(options.freeze, name) || buffers.count(name))
    return false;
  if (!options.train.empty())
    return matches(options.train, name);
  return !options.loss.empty() && isWeight && !ofLoss.count(name);
}

void GraphTranslator::noteChoices() {
  if (options.loss.empty() && options.train.empty())
    return;
  int64_t elements = 0, fixed = 0, states = 0;
  std::vector<std::string> trained;
  for (auto [i, argument] : llvm::enumerate(func.getArguments())) {
    RoleAttr role = roleOfArgument(func, i);
    if (role.getKind() == RoleKind::State && argument != random)
      ++states;
    if (role.getKind() != RoleKind::Param)
      continue;
    if (!role.has(RoleAttr::kRequiresGrad)) {
      ++fixed;
      continue;
    }
    trained.push_back(role.getName().str());
    elements += cast<RankedTensorType>(argument.getType()).getNumElements();
  }
  std::string text =
      "trains " + std::to_string(trained.size()) +
      (trained.size() == 1 ? " initializer of " : " initializers of ") +
      std::to_string(elements) + " numbers: " + listed(trained);
  if (fixed)
    text += "; " + std::to_string(fixed) + " stay as they are";
  if (states)
    text += "; " + std::to_string(states) +
            " running statistics follow the batches";
  notes.push_back(text);
  noteSplit();
  noteLeft(trained);
  noteShared();
  noteTransposed();
  noteMadeNames();
}

/// The --train of what is trained and `more`; empty if there is too much of it,
/// or nothing that a model would call a parameter.
static std::string adviceFor(ArrayRef<std::string> trained, const Names &more) {
  std::string names;
  for (const std::string &name : more)
    if (!StringRef(name).contains("::") && !StringRef(name).contains('/') &&
        !StringRef(name).starts_with("val_"))
      names += (names.empty() ? "" : "|") + llvm::Regex::escape(name);
  if (names.empty())
    return "";
  if (trained.size() > kMostNames)
    return "; --train trains all that it matches, and no others: '^(" + names +
           ")$' and an expression of what is trained now";
  std::string all;
  for (const std::string &name : trained)
    all += llvm::Regex::escape(name) + "|";
  return "; --train='^(" + all + names + ")$' trains them too";
}

/// What could be trained and is not, or is trained and should not.
void GraphTranslator::noteLeft(ArrayRef<std::string> trained) {
  Names numbers, constantMasks, trainedMasks;
  if (options.train.empty() && !ofLoss.empty())
    notes.push_back("not trained, since they belong to the loss alone: " +
                    listed(ofLoss) + adviceFor(trained, ofLoss));
  for (const std::string &name : left)
    if (options.train.empty() && !matches(options.freeze, name))
      (masks.count(name) ? constantMasks : numbers).insert(name);
  for (const TensorPtr &data : trainedWeights())
    if (masks.count(candidates[data.get()]))
      trainedMasks.insert(candidates[data.get()]);
  if (!numbers.empty())
    notes.push_back("not trained, since they are single numbers: " +
                    listed(numbers) + adviceFor(trained, numbers));
  if (!constantMasks.empty())
    notes.push_back("not trained, since they are masks by their values "
                    "(infinite, or of 1e30 and beyond): " +
                    listed(constantMasks) +
                    "; --train=REGEX trains all that it matches, and no "
                    "others");
  if (!trainedMasks.empty())
    notes.push_back("trained, since --train matches them, though they are "
                    "masks by their values (infinite, or of 1e30 and "
                    "beyond): " +
                    listed(trainedMasks));
}

/// Exporters make one initializer of those that are equal, as all weights of
/// layers that were not trained yet are.
void GraphTranslator::noteShared() {
  std::map<std::string, std::map<std::string, int>> readers; ///< by operator
  // Parts of one, as those of the gates of an LSTM, are one all the same; what
  // Identities read was split.
  for (const NodeData &node : model.graph.nodes)
    if (node.op != "Slice" && node.op != "Identity" && node.op != "Shape")
      for (const std::string &input :
           std::set<std::string>(node.inputs.begin(), node.inputs.end()))
        ++readers[input][node.op];
  Names shared, statistics;
  for (auto [i, argument] : llvm::enumerate(func.getArguments())) {
    RoleAttr role = roleOfArgument(func, i);
    std::string name = role.getName().str();
    if (llvm::none_of(readers[name],
                      [](const auto &entry) { return entry.second > 1; }))
      continue;
    if (role.getKind() == RoleKind::Param && role.has(RoleAttr::kRequiresGrad))
      shared.insert(name);
    if (role.getKind() == RoleKind::State)
      statistics.insert(name);
  }
  if (!shared.empty())
    notes.push_back("trained as one, since several nodes of one operator read "
                    "them: " +
                    listed(shared));
  if (!statistics.empty())
    notes.push_back("running statistics of several nodes, of which the last "
                    "one moves them: " +
                    listed(statistics));
}
