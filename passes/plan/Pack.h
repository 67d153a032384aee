//===- Pack.h - places for blocks of memory that live for a while ---------===//
#ifndef TANDEM_PASSES_PLAN_PACK_H
#define TANDEM_PASSES_PLAN_PACK_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace tandem {

/// A block of memory that is in use from step `first` to step `last`.
struct PackedBlock {
  int64_t bytes, first, last;
  int64_t offset = 0;
};

/// The most bytes that are in use at one step: no packing needs less.
int64_t mostInUse(llvm::ArrayRef<PackedBlock> blocks);

/// Sets the offsets such that blocks that are in use at one step have bytes of
/// their own; returns the bytes of all. Tries several orders, and repairs the
/// best, until `mostInUse` is reached or the time for it is used up. Equal
/// blocks get equal offsets at each call.
int64_t packBlocks(llvm::MutableArrayRef<PackedBlock> blocks);

} // namespace tandem

#endif
