//===- Compile.h - from a model file to an artifact -----------------------===//
//
// The compiler as a library: reads a model (.mlir in the dialect, at any phase,
// or in StableHLO's, a JSON graph, ONNX, or an archive of PyTorch), runs the
// phases that are left, and emits the artifact. Diagnostics go to the MLIR
// context's handler; nothing here prints or exits.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_COMPILE_H
#define TANDEM_COMPILER_COMPILE_H

#include "compiler/import/Import.h"
#include "compiler/tune/Tune.h"
#include "runtime/artifact/ArtifactWriter.h"
#include "runtime/artifact/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class TimingScope;
}

namespace tandem {

class KernelCache;
class PassLog;
class Reproducer;

struct CompileOptions {
  /// As `parseTargets` reads them; empty: the module's own, else `cpu`.
  std::string target;
  bool inference = false; ///< the program `evaluate` alone
  /// For inference: what follows from parameters and states alone is computed
  /// when they change, by the program `prepare`.
  bool prepare = false;
  std::string loss; ///< the output to differentiate; empty: "loss"
  /// Params that are not trained: an expression for a part of their names. Of
  /// an imported model its importer has that instead (`import`).
  std::string freeze;
  std::string optimizer; ///< `adamw:lr=1e-3,weight_decay=0.1`; empty: none
  /// Mixed precision: `bf16` or `f16`; empty: none.
  std::string amp;
  /// The weights whose products are of f8 values: `.*attn.*:margin=1`
  /// (passes/precision/Fp8Spec.h); empty: none.
  std::string fp8;
  /// Types of ops by their paths, and of the backward: `REGEX:f32`,
  /// `backward:f32`.
  std::vector<std::string> precision;
  /// Inputs that arrive in other types: `x:u8,scale=1/255` (InputTypes.h).
  std::vector<std::string> inputs;
  std::string mixup; ///< `x,labels:alpha=0.2` (Mixup.h); empty: none
  std::string lora;  ///< `.*attn.*:rank=8,alpha=16` (LoraSpec.h); empty
  std::string clip;  ///< `norm:1.0` or `value:0.5` of gradients; empty
  /// `0.01,gamma=0.55`: noise in gradients (NoiseSpec.h); empty: none.
  std::string gradientNoise;
  bool centralize = false; ///< gradients less the means of their rows
  std::string lossScale;   ///< `dynamic` or a number; empty: none
  bool accumulate = false; ///< gradients of several batches for an update
  /// What the optimizer does otherwise for some of the parameters,
  /// `.*bias:weight_decay=0` (passes/partition/GroupSpec.h): the first that
  /// matches a name.
  std::vector<std::string> groups;
  /// The rate by the number of updates, `cosine:warmup=50,total=1000`; empty:
  /// constant.
  std::string lrSchedule;
  std::string ema;          ///< the decay of parameters' averages; empty: none
  std::string swa;          ///< `start=1000,every=100`: averages; empty: none
  std::string partition;    ///< `min-cut` or `default`; empty: `min-cut`
  std::string memoryBudget; ///< `0.5`, `6GiB` (BudgetSpec.h); empty
  int order = 1;            ///< 2: gradients can be differentiated
  /// The ranks to compile for, `data=4,tensor=2` (passes/shard/ParallelSpec.h);
  /// empty: the module's mesh, else one process.
  std::string mesh;
  std::string parallel;  ///< `ddp+tp`; empty: none
  std::string batchNorm; ///< `per-rank` or `synchronized`; empty: the latter
  std::string shard;     ///< a file with the plan of shardings; empty: none
  /// The MiB that small sums of ranks wait for; nothing: what links are worth.
  std::optional<double> bucketMb;
  static constexpr double leastBucketMb = 1e-5, mostBucketMb = 1024;
  /// A phase, a pass, or a run of one (`erase-dead-ops:2`); empty: all.
  std::string stopAfter;
  std::string dumpPhases; ///< a folder for the module of each phase
  std::string dumpPasses; ///< the same for passes that change it
  bool remarks = false;   ///< decisions as remarks
  int threads = 0;        ///< 0: one for each processor
  /// For cpu, how much the code of kernels is optimized: 0, hardly, to 3.
  int effort = 2;
  /// Code of kernels that earlier compilations made; outlives the compilation.
  /// Null: none is kept. Bytes do not depend on it.
  KernelCache *kernels = nullptr;
  std::string kernelCache;     ///< for who makes one: a folder, or `off`
  std::string kernelCacheSize; ///< the most that it keeps, `2GiB`; empty: 1GiB
  std::string cubin = "auto";  ///< for cuda: `auto`, `yes` or `no`
  bool emulation = false;      ///< for cuda: the emulator's image too
  /// For cuda: `f32`, or `tf32` if products of f32 may round their factors.
  std::string matmulPrecision = "f32";
  /// For cpu: shorter functions, and products and sums rounded as one.
  bool fastMath = false;
  /// Extended regular expressions over the paths of ops: whose results are
  /// saved for the backward, in the host's memory, and never. Empty: nobody's.
  std::string save, offload, recompute;
  /// For cuda, which kernels may be calls of cuBLASLt or cuDNN: `auto`, where
  /// that is expected to be faster, `yes`, wherever it can be said, or `no`.
  std::string libraries = "auto";
  /// For cpu, whether convolutions may be computed by Winograd's method:
  /// `auto`, where that is expected to be faster, or `no`.
  std::string winograd = "auto";
  /// For cpu: the seconds to measure kernels' schedules for (compiler/tune); 0:
  /// those alone that are in `tuneCache`. Needs a timer.
  std::optional<double> tune;
  std::string tuneCache;        ///< a file; empty: nothing is kept
  KernelTimer *timer = nullptr; ///< outlives the compilation
  /// Gets the time of each pass. This and what follows outlive the compilation.
  mlir::TimingScope *timing = nullptr;
  /// Gets what each pass did, and slows it by counting ops.
  PassLog *passes = nullptr;
  /// Is written where the compiler is at fault.
  Reproducer *reproducer = nullptr;
  std::string reproducerFile; ///< for who makes one; empty: a temporary file
  /// Called after each kernel that was measured.
  std::function<void(const TuneReport &)> tuneProgress;
  /// The sizes to compile for, where these are several: sizes of symbolic
  /// dimensions, `batch=1,seq=128`, or further files of the model.
  std::vector<std::string> variants;
  /// What else is said of an imported model. A `loss` of the form `KIND:...` is
  /// its.
  ImportOptions import;
  /// `INPUT=VALUE`, which a tool reads into `import.values`.
  std::vector<std::string> importValues;
};

/// The time that a phase took.
struct PhaseTime {
  std::string phase;
  double seconds;
};

/// Registers everything that compiling needs.
void registerCompiler(mlir::DialectRegistry &registry);

/// Initial values by the names of parameters and states.
using Weights = std::map<std::string, TensorPtr>;

/// Reads a model. `path` ends in .mlir, .json, .onnx or .pt2. Null if that
/// failed: then the context's diagnostics, or `status`, say why. What `options`
/// say of an imported model has no effect on others.
mlir::OwningOpRef<mlir::ModuleOp>
readModel(const std::string &path, mlir::MLIRContext &context, Status &status,
          const ImportOptions &options = {}, Weights *weights = nullptr);

/// Makes of a model as it was read the one that `options` ask for: inputs of
/// other types, rows that are mixed. Not to be called again for its result.
Status adaptModel(mlir::ModuleOp module, const CompileOptions &options);

/// Checks the options that can be checked without a model; the message lists
/// everything that is wrong.
Status checkOptions(const CompileOptions &options);

using Modules = std::vector<mlir::OwningOpRef<mlir::ModuleOp>>;

/// Runs the phases from the module's stamp to `options.stopAfter` (or `lower`),
/// for one target. `times` gets what each took.
Status runPhases(mlir::ModuleOp module, const CompileOptions &options,
                 std::vector<PhaseTime> &times);

/// The same for each target: returns one module a target, in their order; one
/// module if the phases stop at `capture`, after which targets part. Of a
/// pipeline: one module a stage; one if they stop at `functionalize`.
Result<Modules> runTargets(mlir::OwningOpRef<mlir::ModuleOp> module,
                           const CompileOptions &options,
                           std::vector<PhaseTime> &times);

/// Returns the passes that the phases would run, for each target as MLIR writes
/// a pipeline: "builtin.module(...)".
Result<std::vector<std::string>> pipelinesOf(mlir::ModuleOp module,
                                             const CompileOptions &options);

/// Emits the artifact of a module that was lowered for one target.
Result<artifact::ArtifactWriter> emitArtifact(mlir::ModuleOp module,
                                              const CompileOptions &options,
                                              std::vector<PhaseTime> &times);
/// Emits one artifact of several modules, the first target's first.
Result<artifact::ArtifactWriter> emitTargets(const Modules &modules,
                                             const CompileOptions &options,
                                             std::vector<PhaseTime> &times);

/// One size of a model, compiled as any other: a module a target.
struct SizeModules {
  std::string name; ///< `batch=64`
  Modules modules;
};

/// Emits one artifact of at least two sizes; launches of further ones then name
/// kernels of the first's modules. Fails with Usage where sizes differ in more
/// than the shapes of inputs and outputs.
Result<artifact::ArtifactWriter> emitSizes(llvm::ArrayRef<SizeModules> sizes,
                                           const CompileOptions &options,
                                           std::vector<PhaseTime> &times);

} // namespace tandem

#endif
