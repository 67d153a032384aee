//===- LoneLanes.h - masked stores of one lane ----------------------------===//
#ifndef TANDEM_COMPILER_EMIT_LONELANES_H
#define TANDEM_COMPILER_EMIT_LONELANES_H

namespace llvm {
class Module;
}

namespace tandem {

/// After optimization, for x86: masked stores whose mask is constant and has
/// one lane are stores of that element. LLVM 22 does the same while it selects
/// instructions, but of a vector that is truncated it stores the wide element,
/// over what lies behind (github.com/llvm/llvm-project/issues/179489).
/// Vectorized loops of one element more than vectors have such stores.
void storeLoneLanes(llvm::Module &module);

} // namespace tandem

#endif
