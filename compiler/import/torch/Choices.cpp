//===- Choices.cpp - what options say of an exported program --------------===//
//
// Sizes of symbols, the loss, and what is trained. An option that names nothing
// of the program is a mistake of usage.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Expressions.h"
#include "compiler/import/Losses.h"
#include "compiler/import/torch/GraphTranslator.h"
#include "compiler/import/torch/Summary.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/Where.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using Form = Argument::Form;

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

/// Gives the symbols of an input the sizes that --shape says.
void GraphTranslator::bind(const InputSpec &input) {
  const std::string &name = input.argument.names[0];
  auto given = options.shapes.find(name);
  auto meta = program.graph.tensors.find(name);
  if (given == options.shapes.end() || meta == program.graph.tensors.end())
    return;
  std::string option = "--shape=" + name;
  const std::vector<Size> &sizes = meta->second.sizes;
  if (sizes.size() != given->second.size())
    return misuse(option, "expected " + std::to_string(sizes.size()) +
                              " sizes, but got " +
                              std::to_string(given->second.size()));
  for (auto [size, number] : llvm::zip(sizes, given->second)) {
    std::string symbol = symbolOf(size);
    if (symbol.empty())
      continue; // checkRanges compares
    auto [it, isNew] = symbols.try_emplace(symbol, number);
    if (!isNew && it->second != number)
      misuse(option, "gives '" + symbol + "' the size " +
                         std::to_string(number) + ", but it is " +
                         std::to_string(it->second) + " elsewhere");
  }
}

void GraphTranslator::checkRanges() {
  auto within = [&](const std::string &symbol, int64_t value) {
    auto it = program.ranges.find(symbol);
    if (it == program.ranges.end())
      return;
    const Range &range = it->second;
    if ((range.low && value < *range.low) ||
        (range.high && value > *range.high))
      misuse("the size " + std::to_string(value) + " of '" + symbol + "'",
             "the program was exported for " +
                 (range.low ? "at least " + std::to_string(*range.low)
                            : std::string()) +
                 (range.low && range.high ? " and " : "") +
                 (range.high ? "at most " + std::to_string(*range.high)
                             : std::string()));
  };
  for (const auto &[symbol, value] : symbols)
    within(symbol, value);
  for (const InputSpec &input : program.inputs) {
    if (input.kind != InputSpec::Kind::User ||
        input.argument.form != Form::Tensor)
      continue;
    const std::string &name = input.argument.names[0];
    auto meta = program.graph.tensors.find(name);
    if (meta == program.graph.tensors.end())
      continue;
    auto given = options.shapes.find(name);
    std::string missing;
    for (auto [i, size] : llvm::enumerate(meta->second.sizes)) {
      std::vector<std::string> unknown;
      auto value = evaluate(size, symbols, &unknown);
      for (const std::string &symbol : unknown) {
        Dimension open = {symbol, name, i, {}, {}, {}};
        if (symbolOf(size) == symbol)
          open.hint = size.hint;
        else
          open.derived = textOf(size);
        if (auto it = program.ranges.find(symbol); it != program.ranges.end())
          open.range = it->second;
        missing += (missing.empty() ? "" : ", ") + ("--dim=" + symbol) + "=N";
        std::string facts = open.facts();
        if (given != options.shapes.end() && i < given->second.size())
          facts += "; no size of '" + symbol + "' follows from " +
                   std::to_string(given->second[i]);
        if (!facts.empty())
          missing += " (dimension " + std::to_string(i) + ": " + facts + ")";
      }
      if (given != options.shapes.end() && i < given->second.size() && value &&
          *value != given->second[i])
        misuse("--shape=" + name, "expected dimension " + std::to_string(i) +
                                      " to be " + std::to_string(*value) +
                                      ", but got " +
                                      std::to_string(given->second[i]));
    }
    if (!missing.empty())
      misuse("input '" + name + "'",
             "has a dimension of no fixed size; give it with " + missing);
  }
}

void GraphTranslator::bindSymbols() {
  std::set<std::string> known, inputs;
  for (const InputSpec &input : program.inputs) {
    if (input.argument.form != Form::Tensor || input.argument.names.empty() ||
        input.kind != InputSpec::Kind::User)
      continue;
    inputs.insert(input.argument.names[0]);
    auto meta = program.graph.tensors.find(input.argument.names[0]);
    if (meta == program.graph.tensors.end())
      continue;
    for (const Size &size : meta->second.sizes) {
      std::vector<std::string> names;
      (void)evaluate(size, {}, &names);
      known.insert(names.begin(), names.end());
    }
  }
  for (const auto &[name, size] : options.dims) {
    if (!known.count(name))
      misuse("--dim=" + name, "the program has no dimension of this name" +
                                  suggestion(name, known) + "; there are " +
                                  listed(known));
    symbols[name] = size;
  }
  for (const auto &[name, shape] : options.shapes)
    if (!inputs.count(name))
      misuse("--shape=" + name, "the program has no input of this name" +
                                    suggestion(name, inputs) + "; there are " +
                                    listed(inputs));
  for (const auto &[name, value] : options.values)
    misuse("--value=" + name,
           "no input of an exported program decides a shape");
  for (const InputSpec &input : program.inputs)
    if (input.kind == InputSpec::Kind::User &&
        input.argument.form == Form::Tensor)
      bind(input);
  // With all that --dim and bare symbols say.
  for (const auto &[name, shape] : options.shapes)
    if (auto meta = program.graph.tensors.find(name);
        inputs.count(name) && meta != program.graph.tensors.end() &&
        meta->second.sizes.size() == shape.size())
      for (auto [size, number] : llvm::zip(meta->second.sizes, shape))
        if (auto solved = solve(size, symbols, number))
          symbols.insert(*std::move(solved));
  checkRanges();
}

//===----------------------------------------------------------------------===//
// The loss
//===----------------------------------------------------------------------===//

void GraphTranslator::addLoss(
    Scope &to, SmallVectorImpl<std::pair<std::string, Value>> &outputs) {
  if (options.loss.find(':') == std::string::npos)
    return; // an output, which is differentiated by name
  std::string where = "--loss=" + options.loss;
  auto spec = parseLoss(options.loss);
  if (!spec)
    return misuse(where, spec.status().message());
  Value ref;
  std::vector<std::string> names;
  for (const auto &[name, value] : outputs) {
    names.push_back(name);
    if (name == spec->output)
      ref = value;
  }
  if (auto it = to.refs.find(spec->output); !ref && it != to.refs.end()) {
    ref = it->second;
    if (!ref)
      return; // its maker is wrong
  }
  if (!ref)
    return misuse(where, "the program has no value '" + spec->output + "'" +
                             suggestion(spec->output, names) +
                             "; its outputs are " + listed(names));
  Location loc = placeWithoutLine(path, "loss", "", 0, builder.getContext());
  Expr x(builder, loc, ReadOp::create(builder, loc, ref));
  auto operands = lossOperands(*spec, x);
  if (!operands)
    return misuse(where, operands.status().message());
  if (!operands->note.empty())
    notes.push_back(where + ": " + operands->note);
  Value labels;
  if (auto index = findValue(func, spec->labels)) {
    RoleAttr role = roleOfArgument(func, *index);
    labels = func.getArgument(*index);
    if (role.getKind() != RoleKind::Input ||
        labels.getType() != RefType::of(operands->labels))
      return misuse(where, "the program has another '" + spec->labels + "'");
  } else {
    auto role =
        RoleAttr::get(builder.getContext(), RoleKind::Input, spec->labels);
    if (operands->classes)
      role = role.with(RoleAttr::kHigh,
                       builder.getI64IntegerAttr(operands->classes));
    labels = addArgument(
        operands->labels, role,
        placeWithoutLine(path, spec->labels, "", 0, builder.getContext()));
  }
  for (const std::string &name : names)
    if (name == "loss" || name == spec->labels)
      return misuse(where, "the program has an output '" + name +
                               "' already: --loss=" + name +
                               " differentiates it");
  ScopedDiagnosticHandler handler(
      builder.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        problem(where, diagnostic.str(),
                StringRef(diagnostic.str()).starts_with("unsupported"));
        return success();
      });
  auto made = buildLoss(builder, loc, *spec, operands->x,
                        ReadOp::create(builder, loc, labels));
  if (succeeded(made))
    outputs.emplace_back("loss", MakeRefOp::create(builder, loc, *made));
}

//===----------------------------------------------------------------------===//
// What is trained
//===----------------------------------------------------------------------===//

bool GraphTranslator::isTrained(const std::string &name) const {
  if (matches(options.freeze, name))
    return false;
  if (!options.train.empty())
    return matches(options.train, name);
  auto it = program.requiresGrad.find(name);
  return it == program.requiresGrad.end() || it->second;
}

void GraphTranslator::checkChoices() {
  for (auto [option, expression] :
       {std::pair{"--freeze", &options.freeze}, {"--train", &options.train}}) {
    if (expression->empty())
      continue;
    for (StringRef part : alternativesOf(*expression))
      if (llvm::none_of(trainable, [&](const std::string &name) {
            return matches(part.str(), name);
          }))
        misuse(std::string(option) + "=" + *expression,
               "'" + part.str() + "' matches no parameter" +
                   suggestion(part, trainable) + "; there are " +
                   listed(trainable));
  }
  if (!problems.empty() || (options.freeze.empty() && options.train.empty()))
    return;
  // With --train all that it does not match is frozen.
  for (StringRef part : alternativesOf(options.freeze))
    if (!options.train.empty() && !options.freeze.empty() &&
        llvm::none_of(trainable, [&](const std::string &name) {
          return matches(part.str(), name) && matches(options.train, name);
        }))
      misuse("--freeze=" + options.freeze,
             "'" + part.str() + "' has no effect: --train=" + options.train +
                 " trains what it matches and nothing else");
  if (llvm::none_of(trainable,
                    [&](const std::string &name) { return isTrained(name); }))
    misuse(options.freeze.empty() ? "--train=" + options.train
                                  : "--freeze=" + options.freeze,
           "nothing is left to train");
}

/// Says what will be trained as it is in inference.
void GraphTranslator::noteInference() {
  int64_t dropouts = inactive[Inactive::Dropout];
  int64_t norms = inactive[Inactive::Norm];
  if (options.loss.empty() || options.keepEval || dropouts + norms == 0)
    return;
  bool isAll = active[Inactive::Dropout] + active[Inactive::Norm] == 0;
  std::string text = isAll ? "exported in eval(): " : "partly in eval(): ";
  if (dropouts)
    text += std::to_string(dropouts) +
            (dropouts == 1 ? " dropout drops" : " dropouts drop") + " nothing";
  if (norms)
    text += (dropouts ? ", " : "") + std::to_string(norms) +
            (norms == 1 ? " normalization takes its running statistics, which "
                        : " normalizations take their running statistics, "
                          "which ") +
            "training leaves as they are";
  notes.push_back(text + "; to train with them, call model.train() before "
                         "torch.export.export; --keep-eval says that this is "
                         "meant");
}

void GraphTranslator::noteChoices() {
  int64_t elements = 0, fixed = 0, states = 0;
  std::vector<std::string> trained, unread;
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(func, i);
    Type type = func.getArgument(i).getType();
    auto tensor = isa<RefType>(type) ? cast<RefType>(type).getTensorType()
                                     : cast<RankedTensorType>(type);
    if (role.getKind() == RoleKind::State && func.getArgument(i) != random)
      ++states;
    if (role.getKind() == RoleKind::Input && func.getArgument(i).use_empty())
      unread.push_back(role.getName().str());
    if (role.getKind() != RoleKind::Param)
      continue;
    if (!role.has(RoleAttr::kRequiresGrad)) {
      ++fixed;
      continue;
    }
    trained.push_back(role.getName().str());
    elements += tensor.getNumElements();
  }
  std::string text =
      "trains " + std::to_string(trained.size()) +
      (trained.size() == 1 ? " parameter of " : " parameters of ") +
      std::to_string(elements) + " numbers: " + listed(trained);
  if (fixed)
    text += "; " + std::to_string(fixed) + " stay as they are";
  if (states)
    text += "; " + std::to_string(states) +
            (states == 1 ? " buffer is a state" : " buffers are states");
  notes.push_back(text);
  if (!unread.empty())
    notes.push_back("nothing reads " + listed(unread) +
                    " (torch.export takes one tensor that is given for two "
                    "arguments for one of them alone: export with two)");
  noteInference();
}
