//===- NarrowFloats.h - f16 and bf16 as the bits they are -----------------===//
//
// Kernels compute in f32 and wider; narrower floats are only moved. Where
// LLVM's optimizer has made choices among bits into choices among bf16 or f16,
// its code generator would, on processors without such numbers, widen and
// narrow them by calls of the compiler's library, which the process that loads
// the code need not have.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_NARROWFLOATS_H
#define TANDEM_COMPILER_EMIT_NARROWFLOATS_H

namespace llvm {
class Module;
}

namespace tandem {

/// After optimization: narrow floats are selected, and loaded and stored with
/// masks or at several places, as integers; bf16 is loaded, stored and shuffled
/// so too.
void moveNarrowFloatsAsBits(llvm::Module &module);

} // namespace tandem

#endif
