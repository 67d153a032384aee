//===- Function.cpp - what models call that is no op ----------------------===//
#include "compiler/functions/Function.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cassert>
#include <limits>

using namespace mlir;
using namespace tandem;

const FunctionTable &FunctionTable::get() {
  static const FunctionTable table = [] {
    FunctionTable table;
    addActivationFunctions(table);
    addConvolutionFunctions(table);
    addPoolingFunctions(table);
    addArithmeticFunctions(table);
    addLogicFunctions(table);
    addMathFunctions(table);
    addErrorFunctions(table);
    addReductionFunctions(table);
    addShapeFunctions(table);
    addPadFunctions(table);
    addPatchFunctions(table);
    addDiagonalFunctions(table);
    addGatherFunctions(table);
    addScatterFunctions(table);
    addProductFunctions(table);
    addEinsumFunctions(table);
    addOrderFunctions(table);
    addCreationFunctions(table);
    addInterpolationFunctions(table);
    addSamplingFunctions(table);
    addSignalFunctions(table);
    addQuantizationFunctions(table);
    addNormalizationFunctions(table);
    addLossFunctions(table);
    addAttentionFunctions(table);
    addRecurrentFunctions(table);
    addRandomFunctions(table);
    return table;
  }();
  return table;
}

const Function *FunctionTable::find(StringRef name) const {
  auto found = table.find(std::string_view(name));
  return found == table.end() ? nullptr : &found->second;
}

/// The entries of "x, alpha=1.0, size=[1, 1]".
static SmallVector<StringRef> entries(StringRef list) {
  SmallVector<StringRef> found;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && depth == 0)) {
      if (StringRef entry = list.slice(begin, i).trim(); !entry.empty())
        found.push_back(entry);
      begin = i + 1;
    } else if (list[i] == '[' || list[i] == '(') {
      ++depth;
    } else if (list[i] == ']' || list[i] == ')') {
      --depth;
    }
  }
  return found;
}

void FunctionTable::add(StringRef signature, StringRef meaning,
                        Function::Build build) {
  Function function{
      signature.str(), meaning.str(), build, {}, current, 0, 0, {}};
  auto [head, rest] = signature.split('(');
  function.name = head.trim().str();
  assert(rest.ends_with(")") && "a signature ends with ')'");
  auto [operands, attributes] = rest.drop_back().split(';');
  for (StringRef operand : entries(operands)) {
    if (operand.ends_with("...")) {
      function.most = std::numeric_limits<size_t>::max();
      ++function.fewest;
    } else {
      ++function.most;
      function.fewest += operand.ends_with("?") ? 0 : 1;
    }
  }
  for (StringRef attribute : entries(attributes))
    function.attributes.push_back(attribute.split('=').first.trim().str());
  bool isNew = table.emplace(function.name, function).second;
  assert(isNew && "a function of this name exists");
  (void)isNew;
}

CallResults tandem::callFunction(OpBuilder &builder, Location loc,
                                 StringRef name, ValueRange operands,
                                 ArrayRef<NamedAttribute> attributes) {
  const Function *function = FunctionTable::get().find(name);
  if (!function)
    return emitError(loc) << "unknown function '" << name << "'";
  auto error = [&] { return emitError(loc) << "'" << name << "' "; };
  SmallVector<Value> given(operands);
  while (!given.empty() && !given.back())
    given.pop_back();
  if (given.size() < function->fewest || given.size() > function->most)
    return error() << "expected "
                   << (function->most == function->fewest ? ""
                       : given.size() < function->fewest  ? "at least "
                                                          : "at most ")
                   << (given.size() < function->fewest ? function->fewest
                                                       : function->most)
                   << " operands, but got " << given.size() << ": "
                   << function->signature;
  for (auto [i, value] : llvm::enumerate(given)) {
    if (!value && i < function->fewest)
      return error() << "expected operand #" << i
                     << ", but got none: " << function->signature;
    if (value && !isa<RankedTensorType>(value.getType()))
      return error() << "expected operand #" << i << " to be a tensor, but got "
                     << value.getType();
  }
  for (NamedAttribute attribute : attributes)
    if (!llvm::is_contained(function->attributes,
                            attribute.getName().getValue()))
      return error() << "has no attribute '" << attribute.getName().getValue()
                     << "': " << function->signature;
  Call call(builder, loc, name, given, builder.getDictionaryAttr(attributes));
  CallResults results = function->build(call);
  if (call.failed() || failed(results))
    return failure();
  for (Value result : *results)
    if (!result)
      return error() << "has no such result for these operands";
  return results;
}

CallResults tandem::callFunction(OpBuilder &builder, Location loc,
                                 StringRef name, ValueRange operands,
                                 ArrayRef<NamedAttribute> attributes,
                                 ArrayRef<NamedAttribute> tags) {
  Block *block = builder.getInsertionBlock();
  Block::iterator end = builder.getInsertionPoint();
  Operation *last = end == block->begin() ? nullptr : &*std::prev(end);
  CallResults results = callFunction(builder, loc, name, operands, attributes);
  for (Block::iterator op = last ? std::next(last->getIterator())
                                 : block->begin();
       op != end; ++op)
    for (NamedAttribute tag : tags)
      op->setAttr(tag.getName(), tag.getValue());
  return results;
}
