//===- StreamStores.h - stores that go past the caches --------------------===//
//
// LLVM does not vectorize loops with nontemporal stores of scalars, which no
// processor has. So they are ordinary ones, with a mark that vectorization
// keeps, while a module is optimized; and those that have become stores of
// whole aligned vectors are nontemporal after it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_STREAMSTORES_H
#define TANDEM_COMPILER_EMIT_STREAMSTORES_H

namespace llvm {
class Module;
}

namespace tandem {

/// Before optimization: marks the nontemporal stores.
void markStreamStores(llvm::Module &module);
/// After it: the marked stores of vectors are nontemporal where they are
/// aligned, and functions with such stores end with a fence, so that another
/// thread that is told of their end sees what they wrote.
void emitStreamStores(llvm::Module &module);

} // namespace tandem

#endif
