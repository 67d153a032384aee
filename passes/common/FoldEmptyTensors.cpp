//===- FoldEmptyTensors.cpp - what has no elements is a constant ----------===//
#include "ir/EmptyTensors.h"
#include "passes/Passes.h"

namespace tandem {
#define GEN_PASS_DEF_FOLDEMPTYTENSORS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace tandem;

namespace {
struct FoldEmptyTensors : tandem::impl::FoldEmptyTensorsBase<FoldEmptyTensors> {
  void runOnOperation() final { foldEmptyTensors(getOperation()); }
};
} // namespace
