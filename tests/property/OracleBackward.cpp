//===- OracleBackward.cpp - the tape is walked, customs run on storage ----===//
#include "tests/property/Oracle.h"

#include "ir/Signature.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::property;

/// Runs the forward without the tape; each element of a result is then a node
/// of its own.
void Oracle::runCustom(CustomVjpOp op, bool isPlain) {
  Block &block = op.getForward().front();
  Custom custom{op, -1,   static_cast<unsigned>(customs.size()), {}, {},
                {}, false};
  bool isHidden = isPlain || op->hasAttr(kNoGradAttr);
  uint64_t depends = 0;
  unsigned next = 0;
  for (Value input : op.getInputs()) {
    Numbers numbers = tensors.find(input)->second;
    custom.inputs.push_back(numbers);
    depends |= isHidden ? 0 : numbers.depends;
    for (Number &x : numbers.data) {
      custom.isCertain |= x.node >= 0;
      x.node = -1;
    }
    tensors.insert_or_assign(block.getArgument(next++), numbers);
  }
  for (Value ref : op.getRefs()) {
    custom.refs.push_back(refs.find(ref)->second);
    refs.insert_or_assign(block.getArgument(next++), custom.refs.back());
    for (unsigned i = 0; i < atCall.size(); ++i)
      if (auto alias =
              roleOfArgument(func, i).getProperties().getAs<DictionaryAttr>(
                  "alias");
          alias && alias.contains("type") &&
          atCall[i].storage == custom.refs.back().storage)
        allowed.insert(Mistake::SharedState);
  }
  run(block, /*isPlain=*/true);
  Operation *yield = block.getTerminator();
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    Numbers numbers = tensors.find(value)->second;
    numbers.depends = 0;
    for (Number &x : numbers.data)
      x.node = -1;
    if (i >= op.getNumResults()) {
      custom.saved.push_back(numbers);
      continue;
    }
    if (depends) {
      numbers.depends = depends | uint64_t(1) << (32 + custom.index % 32);
      for (Number &x : numbers.data) {
        x.node = tape.leaf();
        if (custom.first < 0)
          custom.first = x.node;
      }
    }
    tensors.insert_or_assign(op.getResult(i), numbers);
  }
  isAmbiguous |= depends && !custom.isCertain;
  if (depends)
    customs.push_back(custom);
}

void Oracle::runCustomBackward(Custom &custom) {
  Block &block = custom.op.getBackward().front();
  unsigned next = 0;
  for (const Numbers &saved : custom.saved)
    tensors.insert_or_assign(block.getArgument(next++), saved);
  bool isReached = false;
  int node = custom.first;
  for (Value result : custom.op.getResults()) {
    Numbers cotangent{cast<RankedTensorType>(result.getType()).getShape().vec(),
                      {}};
    for (int64_t i = 0, n = Array(cotangent.shape).size(); i < n; ++i, ++node) {
      isReached |= tape.isReached(node);
      cotangent.data.push_back({tape.cotangent(node), -1});
    }
    tensors.insert_or_assign(block.getArgument(next++), cotangent);
  }
  uint64_t bit = uint64_t(1) << (32 + custom.index % 32);
  if (!isReached) {
    isAmbiguous |= (defined & bit) != 0;
    return;
  }
  for (const RealRef &ref : custom.refs)
    refs.insert_or_assign(block.getArgument(next++), ref);
  run(block, /*isPlain=*/true);
  for (int64_t position : custom.op.getBackwardWrites())
    for (unsigned i = 0; i < atCall.size(); ++i)
      if (atCall[i].storage == custom.refs[position].storage &&
          roleOfArgument(func, i).has("requires_grad") &&
          !roleOfArgument(func, i).has("alias"))
        writtenInBackward.insert(i);
  for (auto [input, gradient] :
       llvm::zip_equal(custom.inputs, block.getTerminator()->getOperands())) {
    const Numbers &numbers = tensors.find(gradient)->second;
    if (!numbers.isUndefined)
      for (auto [to, from] : llvm::zip_equal(input.data, numbers.data)) {
        tape.add(to.node, from.value);
        largest = std::max(largest, std::abs(from.value));
      }
  }
}

void Oracle::backward(const std::map<std::string, Array> &cotangents) {
  auto seed = [&](ArrayRef<Number> numbers, uint64_t depends,
                  const std::string &name) {
    auto it = cotangents.find(name);
    if (it == cotangents.end())
      return;
    defined |= depends;
    for (auto [x, cotangent] : llvm::zip_equal(numbers, it->second.data))
      tape.add(x.node, cotangent);
  };
  for (auto [i, output] : llvm::enumerate(outputs))
    seed(output.numbers, output.depends, "o" + std::to_string(i));
  for (unsigned i = 0; i < atCall.size(); ++i) {
    Numbers now = contents(i);
    seed(now.data, now.depends,
         "update of " + roleOfArgument(func, i).getName().str());
  }
  tape.walk([&](int node) {
    for (Custom &custom : customs)
      if (custom.first == node)
        runCustomBackward(custom);
  });
  for (unsigned i = 0; i < atCall.size(); ++i)
    for (double x : gradient(i).data)
      largest = std::max(largest, std::abs(x));
}

Array Oracle::gradient(unsigned i) const {
  Array result(atCall[i].positions.shape);
  if (leaves[i] >= 0)
    for (int64_t k = 0; k < result.size(); ++k)
      result[k] = tape.cotangent(leaves[i] + static_cast<int>(k));
  return result;
}

bool Oracle::isReached(unsigned i) const {
  if (leaves[i] < 0)
    return false;
  for (int64_t k = 0, n = atCall[i].positions.size(); k < n; ++k)
    if (tape.isReached(leaves[i] + static_cast<int>(k)))
      return true;
  return false;
}
