//===- StrideTwoLoad.cpp - what windows of one pixel see with strides -----===//
#include "passes/lower/cpu/convolution/StrideTwoLoad.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

Value lower::cpu::loadStrideTwo(Code &code, const Operand &image, Value from,
                                int64_t seen, int64_t lanes, Type type) {
  auto shuffle = [&](Value x, Value y, ArrayRef<int64_t> of) -> Value {
    return vector::ShuffleOp::create(code.b, code.loc, x, y, of);
  };
  auto load = [&](Value at, ArrayRef<bool> on) {
    return code.widen(code.load(image.memref, at, lanes, code.lanesOn(on)),
                      type);
  };
  // What is beside the pixels is not asked for: it may be no part of the image.
  SmallVector<bool> isSeen(lanes);
  SmallVector<int64_t> even;
  int64_t line = std::min(lanes, seen);
  for (int64_t lane = 0; lane < line; ++lane) {
    if (2 * lane < lanes)
      isSeen[2 * lane] = true;
    even.push_back(2 * lane);
  }
  if (line == lanes)
    return shuffle(load(from, isSeen), load(code.add(from, lanes), isSeen),
                   even);
  // Of each line, two lines of the image apart; then pairs of what there is.
  Code::Values parts;
  for (int64_t first = 0; first < lanes; first += line) {
    Value whole =
        load(code.add(from, first / line * 2 * image.stride(2)), isSeen);
    parts.push_back(shuffle(whole, whole, even));
  }
  while (parts.size() > 1) {
    int64_t length = cast<VectorType>(parts[0].getType()).getNumElements();
    auto both = llvm::to_vector(llvm::seq<int64_t>(0, 2 * length));
    Code::Values pairs;
    for (size_t i = 0; i < parts.size(); i += 2)
      pairs.push_back(shuffle(parts[i], parts[i + 1], both));
    parts = pairs;
  }
  return parts[0];
}
