//===- Target.h - what code is made for -----------------------------------===//
//
// Targets as the options name them: `cpu`, `cpu:x86-64-v3`, `cuda:sm_90`, and
// several joined by '+': for each kind one or more architectures, the variants
// (`cpu:x86-64-v3+x86-64-v4`, `cuda:sm_90a+sm_80`), of which a machine takes
// the one that is best there. A processor is of the host's kind or of another
// one (`cpu:aarch64`, `cpu:neoverse-n1`). Plain `cuda` is `cuda:sm_90a+sm_80`.
// On a module a target is `tandem.target = #tandem.target<...>`
// (ir/Attributes.td), for cpu with `features` and `vector_bits`, of the host
// with `last_cache_bytes` and `processors`.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TARGET_H
#define TANDEM_COMPILER_TARGET_H

#include "runtime/artifact/Status.h"

#include "ir/Dialect.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace tandem {

struct CpuTarget {
  std::string
      arch; ///< LLVM's name of the processor, or "aarch64" for all of it
  std::vector<std::string> features; ///< those that are on, sorted
  int vectorBits = 128;              ///< of the widest registers
  int64_t lastCacheBytes = 0;        ///< of the last cache; 0: not known
  int64_t processors = 0;            ///< of the machine; 0: not known
};

struct CudaTarget {
  std::string arch; ///< "sm_90"

  /// Bytes of shared memory that a block can have.
  int64_t sharedLimit() const;
};

using Target = std::variant<CpuTarget, CudaTarget>;

/// Returns "cpu" or "cuda".
llvm::StringRef kindOf(const Target &target);

/// Returns the targets' names one by one, each with its kind: "cpu:x86-64-v4".
std::vector<std::string> targetNames(llvm::StringRef text);
/// Returns for each target what tells it apart in names of files: its kind, and
/// where there are several of it also the architecture, "cpu-x86-64-v4".
std::vector<std::string> targetLabels(const std::vector<Target> &targets);

/// Returns the targets that `text` names, in its order: for plain `cpu` the
/// host's processor, for plain `cuda` sm_90a and sm_80. The message of a
/// failure lists everything that is wrong.
Result<std::vector<Target>> parseTargets(const std::string &text);
/// The same for a text that names one processor.
Result<CpuTarget> parseCpuTarget(const std::string &text);

/// Returns the target without matrix tiles, and without what is used beside
/// them alone: for code that has none. Many machines hide them, and a process
/// has to ask for them.
CpuTarget withoutTiles(CpuTarget target);

/// Returns the target of a processor, of the host's where `arch` is empty.
Result<CpuTarget> cpuTarget(const std::string &arch);
/// Fails unless LLVM knows the processor `arch`, and makes code of 64 bits for
/// it.
Status checkProcessor(const std::string &arch);
/// Returns what LLVM calls the processor `arch`. From then on it has all that
/// it needs for code of its kind, and to read such code.
llvm::StringRef llvmProcessor(llvm::StringRef arch);
/// Returns the features that machines like `arch` can report, sorted.
std::vector<llvm::StringRef> knownFeatures(const std::string &arch);
/// Returns the bits of the widest registers that the features give.
int widestVectors(llvm::ArrayRef<std::string> features);
/// Returns the target of an architecture ("sm_90a").
Result<CudaTarget> cudaTarget(llvm::StringRef arch);

TargetAttr targetAttr(const Target &target, mlir::MLIRContext *context);
/// Returns the target that the attribute says. A printed module may have been
/// edited: fails, with everything that is wrong, where no machine is like that.
Result<Target> targetFromAttr(TargetAttr attr);

/// A product and a sum become one operation only where the code says so (inside
/// of contractions): elsewhere it would depend on which ops share a kernel, and
/// a value that the backward computes again would not be the forward's.
inline constexpr auto kFloatFusion = llvm::FPOpFusion::Standard;

/// Returns LLVM's machine for the target, for position-independent code.
std::unique_ptr<llvm::TargetMachine>
createMachine(const CpuTarget &target,
              llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Aggressive);

/// The same for PTX of at least the version that the architecture needs; e.g.
/// 81 for 8.1. Division and square roots are rounded correctly, and denormals
/// kept.
std::unique_ptr<llvm::TargetMachine> createMachine(const CudaTarget &target,
                                                   unsigned ptxVersion = 0);

} // namespace tandem

#endif
