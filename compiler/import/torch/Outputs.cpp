//===- Outputs.cpp - what an exported program gives and changes -----------===//
//
// Outputs get the names of their tree's keys; mutations, which functional
// graphs have as results, become writes again.
//
//===----------------------------------------------------------------------===//
#include "compiler/capture/DemoteRefs.h"
#include "compiler/import/torch/GraphTranslator.h"
#include "ir/Ops.h"
#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using Form = Argument::Form;

void GraphTranslator::addOutputs(Scope &to) {
  auto refOf = [&](const Argument &argument) -> Value {
    if (argument.form != Form::Tensor)
      return {};
    auto it = to.refs.find(argument.names[0]);
    return it == to.refs.end() ? Value() : it->second;
  };
  size_t users = llvm::count_if(program.outputs, [](const OutputSpec &output) {
    return output.kind == OutputSpec::Kind::User;
  });
  bool hasNames = program.outputNames.size() == users;
  SmallVector<std::pair<std::string, Value>> outputs;
  std::set<std::string> names;
  auto isArgument = [&](const std::string &name) {
    return findValue(func, name).has_value();
  };
  size_t next = 0;
  for (const OutputSpec &output : program.outputs) {
    using Kind = OutputSpec::Kind;
    std::string where =
        "output '" +
        (output.argument.names.empty() ? output.what
                                       : output.argument.names[0]) +
        "'";
    if (output.kind == Kind::Other) {
      problem(where,
              "unsupported: an output of kind '" + output.what + "'" +
                  (StringRef(output.what).starts_with("gradient")
                       ? ": the program was differentiated already; "
                         "export its forward"
                       : ""),
              true);
      continue;
    }
    if (output.kind == Kind::User || output.kind == Kind::Loss) {
      std::string name = output.kind == Kind::Loss ? "loss"
                         : hasNames                ? program.outputNames[next]
                         : output.argument.names.empty()
                             ? ""
                             : output.argument.names[0];
      next += output.kind == Kind::User;
      if (output.argument.form != Form::Tensor) {
        // A number or None: known, or nothing.
        if (output.argument.form == Form::Other)
          problem(where, "unsupported: an output that is no tensor", true);
        continue;
      }
      Value made = refOf(output.argument);
      if (!made) {
        if (!to.refs.count(output.argument.names[0]))
          problem(where, "the graph makes no such value");
        to.refs.try_emplace(name); // for --loss: its maker is wrong
        continue;
      }
      std::string unique = name;
      for (int i = 1; !names.insert(unique).second || isArgument(unique); ++i)
        unique = name + "_" + std::to_string(i);
      outputs.emplace_back(unique, made);
      continue;
    }
    // A mutation: what functional graphs have for a write.
    Value made = refOf(output.argument), storage;
    for (const InputSpec &input : program.inputs)
      if (!input.argument.names.empty() &&
          (output.kind == Kind::InputMutation
               ? input.argument.names[0] == output.target
               : input.target == output.target))
        storage = refOf(input.argument);
    if (!made || !storage) {
      if (!to.refs.count(
              output.argument.names.empty() ? "" : output.argument.names[0]))
        problem(where, "the graph has no '" + output.target + "' to change");
      continue;
    }
    Location loc = made.getLoc();
    if (made.getType() != storage.getType())
      problem(where, "has another type than '" + output.target + "'");
    else if (made != storage)
      WriteOp::create(builder, loc, ReadOp::create(builder, loc, made),
                      storage);
  }
  if (!options.loss.empty())
    addLoss(to, outputs);
  if (random) {
    Location loc = random.getLoc();
    auto step = ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(cast<RankedTensorType>(randomValue.getType()),
                               ArrayRef<int64_t>{0, 1}));
    WriteOp::create(builder, loc,
                    AddOp::create(builder, loc, randomValue, step), random);
  }
  checkConstants();
  checkStorage();
  if (outputs.empty() && problems.empty() && !changesArguments(func))
    problem("the graph", "it has no outputs");
  SmallVector<Value> results;
  for (const auto &[name, value] : outputs)
    results.push_back(value);
  returnOutputs(builder, func, results);
  for (size_t i = 0; i < outputs.size(); ++i)
    setRoleOfResult(func, i,
                    RoleAttr::get(builder.getContext(), RoleKind::Output,
                                  outputs[i].first));
  if (problems.empty())
    demoteRefs(func);
}
