//===- LoadsAhead.h - asking for what loops will load ---------------------===//
//
// A processor foresees what a loop reads up to the end of a page, and at most
// some lines beyond; and where many lines are asked for at once, they wait for
// room. So a loop over a large input asks, with each line that it loads, for
// the one that it will load some kilobytes later. LLVM does not vectorize loops
// with prefetches: they come after it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_LOADSAHEAD_H
#define TANDEM_COMPILER_EMIT_LOADSAHEAD_H

namespace llvm {
class Module;
}

namespace tandem {

/// After optimization: in functions with the attribute kLoadsAheadAttr
/// (passes/lower/common/KernelBody.h), vector loads of a parameter ask for what
/// lies as many bytes ahead as the attribute says, once a cache line.
void emitLoadsAhead(llvm::Module &module);

} // namespace tandem

#endif
