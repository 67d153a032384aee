//===- Summary.cpp - what is in an archive of torch.export, as text -------===//
#include "compiler/import/torch/Summary.h"
#include "compiler/import/torch/ElementTypes.h"
#include "compiler/import/torch/Sizes.h"
#include "runtime/artifact/Text.h"

#include "llvm/ADT/StringRef.h"

using namespace tandem;
using namespace tandem::torch;
using artifact::inQuotes;
using artifact::printable;
using Form = Argument::Form;

/// What PyTorch writes for no bound.
static constexpr int64_t kEndless = int64_t(1) << 62;

std::string Dimension::facts() const {
  std::string text, bounds;
  if (hint)
    text = std::to_string(*hint) + " when it was exported";
  if (range.low)
    bounds = "at least " + std::to_string(*range.low);
  if (range.high && *range.high < kEndless)
    bounds += (bounds.empty() ? "at most " : " and at most ") +
              std::to_string(*range.high);
  if (!derived.empty())
    return derived + (bounds.empty() ? "" : ", " + symbol + " " + bounds);
  return text + (text.empty() || bounds.empty() ? "" : ", ") + bounds;
}

static bool isTensorInput(const InputSpec &input) {
  return input.kind == InputSpec::Kind::User &&
         input.argument.form == Form::Tensor && !input.argument.names.empty();
}

std::vector<Dimension> torch::openDimensions(const Program &program,
                                             const ImportOptions &options) {
  Symbols known(options.dims.begin(), options.dims.end());
  std::vector<Dimension> open;
  auto forEach = [&](auto visit) {
    for (const InputSpec &input : program.inputs) {
      if (!isTensorInput(input))
        continue;
      const std::string &name = input.argument.names[0];
      auto meta = program.graph.tensors.find(name);
      if (meta != program.graph.tensors.end())
        for (size_t i = 0; i < meta->second.sizes.size(); ++i)
          visit(name, i, meta->second.sizes[i]);
    }
  };
  forEach([&](const std::string &name, size_t i, const Size &size) {
    auto given = options.shapes.find(name);
    std::string symbol = symbolOf(size);
    if (!symbol.empty() && given != options.shapes.end() &&
        i < given->second.size())
      known.try_emplace(symbol, given->second[i]);
  });
  forEach([&](const std::string &name, size_t i, const Size &size) {
    auto given = options.shapes.find(name);
    if (given != options.shapes.end() && i < given->second.size())
      if (auto solved = solve(size, known, given->second[i]))
        known.insert(*std::move(solved));
  });
  forEach([&](const std::string &name, size_t i, const Size &size) {
    std::vector<std::string> unknown;
    (void)evaluate(size, known, &unknown);
    for (const std::string &symbol : unknown) {
      known.try_emplace(symbol, 1);
      Dimension made = {symbol, name, i, {}, {}, {}};
      if (symbolOf(size) == symbol)
        made.hint = size.hint;
      else
        made.derived = textOf(size);
      if (auto it = program.ranges.find(symbol); it != program.ranges.end())
        made.range = it->second;
      open.push_back(std::move(made));
    }
  });
  return open;
}

static std::string typeOf(const Program &program, const std::string &name) {
  auto meta = program.graph.tensors.find(name);
  if (meta == program.graph.tensors.end())
    return "of no type";
  std::string text = spellingOf(meta->second.dtype) + "[";
  for (size_t i = 0; i < meta->second.sizes.size(); ++i)
    text += (i ? ", " : "") + textOf(meta->second.sizes[i]);
  return text + "]";
}

static std::string row(std::string role, std::string name,
                       const std::string &rest) {
  role.resize(std::max<size_t>(role.size(), 10), ' ');
  name = printable(name);
  name.resize(std::max<size_t>(name.size(), 32), ' ');
  return role + " " + name + " " + printable(rest) + "\n";
}

std::string torch::summaryOf(const Program &program,
                             const std::vector<Dimension> &open) {
  std::string text = "an archive of torch.export\n\n";
  size_t parameters = 0, buffers = 0;
  for (const InputSpec &input : program.inputs) {
    parameters += input.kind == InputSpec::Kind::Parameter;
    buffers += input.kind == InputSpec::Kind::Buffer && input.isPersistent;
    if (isTensorInput(input))
      text += row("input", input.argument.names[0],
                  typeOf(program, input.argument.names[0]));
  }
  size_t next = 0;
  for (const OutputSpec &output : program.outputs) {
    bool isUser = output.kind == OutputSpec::Kind::User;
    if (!isUser && output.kind != OutputSpec::Kind::Loss)
      continue;
    const auto &names = output.argument.names;
    std::string name = names.empty() ? "" : names[0];
    if (isUser && next < program.outputNames.size())
      name = program.outputNames[next];
    next += isUser;
    if (output.argument.form == Form::Tensor && !names.empty())
      text += row("output", name, typeOf(program, names[0]));
  }
  text += "\n" + std::to_string(parameters) +
          (parameters == 1 ? " parameter, " : " parameters, ") +
          std::to_string(buffers) + (buffers == 1 ? " buffer" : " buffers") +
          "\n\n";
  std::string options;
  for (const Dimension &one : open) {
    std::string facts = one.facts();
    text += row("dimension", one.symbol,
                "dimension " + std::to_string(one.dim) + " of " +
                    inQuotes(one.input) + (facts.empty() ? "" : ": ") + facts);
    options += " --dim=" + printable(one.symbol) + "=N";
  }
  return text + "\nit is compiled for sizes that are given:" + options + "\n";
}
