//===- Manifest.h - what an artifact says about itself --------------------===//
//
// The manifest as structs, and its JSON spelling (docs/ARCHITECTURE.md, section
// 3). `toJson` is deterministic. `fromJson` rejects unknown and repeated
// fields, names each problem by its JSON pointer, and reports all of them at
// once. `validate` checks everything that the executor relies on: after it,
// every index, offset and size is in range and every result is written, so that
// the executor does not check again.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_MANIFEST_H
#define TANDEM_RUNTIME_ARTIFACT_MANIFEST_H

#include "runtime/artifact/DType.h"
#include "runtime/artifact/LibraryCall.h"
#include "runtime/artifact/Status.h"
#include "runtime/artifact/View.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::artifact {

/// Every buffer begins at a multiple of this many bytes.
inline constexpr int64_t bufferAlignment = 64;
enum class Role : uint8_t {
  Input,
  Param,
  State,
  Output,
  Cotangent,
  Grad,
  Update,
  Saved,
  Prepared
};

/// Returns "input", "param", ...
std::string_view spelling(Role role);
std::optional<Role> parseRole(std::string_view name);

/// How a parameter or state begins.
struct Init {
  enum class Kind : uint8_t {
    Constant, ///< every element is `a`
    Uniform,  ///< uniform in [a, b)
    Normal,   ///< mean `a`, standard deviation `b`
    Counter,  ///< the workloads' generator: stream `stream`, scale `a`
    Seed      ///< i64 alone: the seed, then zeros
  };
  Kind kind = Kind::Constant;
  double a = 0, b = 0;
  int64_t stream = 0;

  static Init constant(double value) { return {Kind::Constant, value, 0, 0}; }
  static Init uniform(double low, double high) {
    return {Kind::Uniform, low, high, 0};
  }
  static Init normal(double mean, double std) {
    return {Kind::Normal, mean, std, 0};
  }
  static Init counter(int64_t stream, double scale) {
    return {Kind::Counter, scale, 0, stream};
  }
  static Init seed() { return {Kind::Seed, 0, 0, 0}; }
  bool operator==(const Init &) const = default;
};

/// A named value of the model: an input, param, state or output.
struct Value {
  Role role = Role::Input;
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  bool requiresGrad = false; ///< inputs and params only
  std::optional<Init> init;  ///< params and states; without it, it must be set
  /// Integer inputs only: the values that make sense are [0, high).
  std::optional<int64_t> high = std::nullopt;
  /// Where there is a `high`: the values are [low, high), and those below 0
  /// count from the end.
  std::optional<int64_t> low = std::nullopt;
  /// Where there is a `high`: one value beside them, which means no class.
  std::optional<int64_t> ignored = std::nullopt;
  bool operator==(const Value &) const = default;
};

/// A tensor in one of a launch's buffers as CUDA's bulk copies see it: what a
/// tensor map is made of. Dimension 0 has neighbours; sizes are in elements.
struct TensorMap {
  int64_t buffer = 0; ///< position in the launch's `buffers`
  int64_t offset = 0; ///< bytes from its begin to the first element
  /// "f16", "bf16", "f32", or "tf32": f32, rounded to it by the copy.
  std::string element;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides; ///< bytes; of the dimensions from 1 on
  std::vector<int64_t> box;     ///< what one copy takes
  int64_t swizzle = 0; ///< bytes in which pieces of 16 are permuted, or 0
  bool operator==(const TensorMap &) const = default;

  /// Returns the bytes of an element, or 0 for an unknown name.
  int64_t elementBytes() const;
};

/// A function of the code object.
struct Kernel {
  std::string symbol;
  std::string kind;             ///< JSON "class": "pointwise", "reduction", ...
  std::vector<std::string> ops; ///< what was fused into it, in order
  int64_t flops = 0, bytes = 0; ///< of one launch over all its work
  /// Private to each thread (cpu), or to each launch (cuda: passed as the
  /// kernel's last parameter; all zeros before and after every launch).
  int64_t scratchBytes = 0;
  /// cuda: the threads of a block, [x, y, z]; cpu: empty.
  std::vector<int64_t> block = {};
  /// cuda: bytes of shared memory given at the launch, beside what the kernel
  /// declares itself.
  int64_t sharedBytes = 0;
  /// cuda: parameters after those of the buffers, made when these are placed.
  std::vector<TensorMap> tensorMaps = {};
  /// For people: the op that computes most, with its types
  /// ("matmul 64x1024 1024x64 -> 64x64"), and in which element type it does.
  std::string summary = {};
  DType dtype = DType::F32;
  bool operator==(const Kernel &) const = default;
};

/// Which cotangents must be defined: of each group of names at least one.
/// Empty: always true.
using Condition = std::vector<std::vector<std::string>>;

/// A type of tensors.
struct TensorType {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  bool operator==(const TensorType &) const = default;
};

/// A view of another value. Exactly one of `of` and `output` is not empty.
struct Alias {
  std::string of;     ///< an argument; or a storage that is no argument
  std::string output; ///< an output of the same program
  std::vector<View> views;
  /// Of the storage `of`, where that is no argument.
  std::optional<TensorType> storage;
  bool operator==(const Alias &) const = default;
};

/// How an output follows from the rows of a batch: the first dimension of the
/// inputs.
enum class Rows : uint8_t {
  Unknown,
  Each, ///< row i of it from row i of the inputs, wherever in the batch that is
  Mean  ///< each element is a mean over rows of what follows from one row
};

/// Returns "each" or "mean"; of what is unknown an empty text.
std::string_view spelling(Rows rows);
std::optional<Rows> parseRows(std::string_view name);

/// An argument or result of a program. `dtype` and `shape` are always filled;
/// in JSON those of an argument with role input, param or state are left out,
/// because `values` has them. What the call does to the handle of an input
/// (`metadata`, `storage`) and to the storage that it had at the call
/// (`resize`), it does when the program has run, the storage first.
struct Slot {
  Role role = Role::Input;
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  bool inPlace = false; ///< updates only: the result is the argument's storage
  std::string reason;   ///< saved results only: why it is saved
  /// Of an input: it is declared to share memory, as this view. Of a saved
  /// result: it is the output's storage, in no buffer of its own.
  std::optional<Alias> alias = std::nullopt;
  bool freed = false; ///< inputs: its storage has no bytes at the call
  /// Inputs: the handle shows these views of itself afterwards.
  std::optional<Alias> metadata = std::nullopt;
  /// Inputs: the handle shows these views of the argument `of` afterwards.
  std::optional<Alias> storage = std::nullopt;
  /// Inputs: the elements of the storage afterwards.
  std::optional<int64_t> resize = std::nullopt;
  /// Arguments of a backward: the value as the backward finds it, and not that
  /// of the forward's call.
  bool asFound = false;
  bool unchecked = false;  ///< saved, inputs: no version is compared
  bool visible = false;    ///< updates: a write that is differentiated
  Condition needs = {};    ///< grads and updates: else it is undefined
  std::string partOf = {}; ///< outputs: as in OutputAlias
  std::string where = {};  ///< for messages: "'tandem.sin' at m.mlir:7:3"
  /// Saved: it lies in the host's memory, and only copies read or write it.
  bool onHost = false;
  /// Outputs: the inputs that it follows from; nothing: any.
  std::optional<std::vector<std::string>> inputs = std::nullopt;
  Rows rows = Rows::Unknown; ///< outputs
  /// Outputs with `Rows::Mean`: the integer input whose `ignored` elements do
  /// not count in the mean; empty: all count.
  std::string counted = {};
  bool operator==(const Slot &) const = default;
};

/// An output that is a view of an argument, or of an output in a buffer.
struct OutputAlias {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  Alias alias;
  /// Not empty: one of several pieces of a value, made by the op of this name.
  std::string partOf;
  bool operator==(const OutputAlias &) const = default;
};

/// Where a buffer of a program lies.
struct Buffer {
  enum class Place : uint8_t { Argument, Result, Arena, Constant, Host };
  Place place = Place::Arena;
  int64_t index = 0; ///< of the argument or result
  /// In the arena, the constants section, or the program's host memory, which
  /// only copies read or write.
  int64_t offset = 0, bytes = 0;
  static Buffer argument(int64_t index) {
    return {Place::Argument, index, 0, 0};
  }
  static Buffer result(int64_t index) { return {Place::Result, index, 0, 0}; }
  static Buffer arena(int64_t offset, int64_t bytes) {
    return {Place::Arena, 0, offset, bytes};
  }
  static Buffer constant(int64_t offset, int64_t bytes) {
    return {Place::Constant, 0, offset, bytes};
  }
  static Buffer host(int64_t offset, int64_t bytes) {
    return {Place::Host, 0, offset, bytes};
  }
  bool operator==(const Buffer &) const = default;
};

/// What a launch does instead of its kernel, where `when` holds.
struct Choice {
  Condition when;
  /// Nothing: run the kernel. -1: zeros. Else the position in the launch's
  /// `buffers` of what is copied to the one that it writes.
  std::optional<int64_t> copy;
  bool operator==(const Choice &) const = default;
};

/// One call of a kernel over `work` items (cuda: `grid` blocks); or a copy of
/// one buffer to another, of which one is in the host's memory and one is not.
/// It stands in the list where it should have ended (to the host) or begun.
struct Launch {
  static constexpr int64_t noKernel = -1; ///< of a copy
  int64_t kernel = 0;
  std::vector<int64_t> buffers;       ///< indices of the program's buffers
  std::vector<int64_t> reads, writes; ///< positions in `buffers`
  int64_t work = 1, grain = 1, stream = 0;
  Condition needs = {};             ///< else it does not run
  std::vector<Choice> choices = {}; ///< the first that holds; none: the kernel
  /// cuda: the blocks, [x, y, z], `work` in all; cpu: empty.
  std::vector<int64_t> grid = {};
  /// cuda: the same as a call of a library.
  std::optional<LibraryCall> library = std::nullopt;

  /// A copy of `buffers[0]` to `buffers[1]`; has neither work nor choices.
  static Launch copy(int64_t from, int64_t to) {
    Launch made;
    made.kernel = noKernel;
    made.buffers = {from, to};
    made.reads = {0};
    made.writes = {1};
    return made;
  }
  bool isCopy() const { return kernel == noKernel; }
  bool operator==(const Launch &) const = default;
};

/// A compiled function. "forward" gives what "backward" takes (role saved), and
/// the inputs, params and states that the backward reads: those have the values
/// of the forward's call, so the forward must not update them, unless the
/// backward takes them as it finds them. "grad_forward" is a backward that
/// gives what "grad_backward" takes; it may take inputs and saved values of the
/// forward, and "grad_backward" may take those that it took. "prepare" gives
/// what "evaluate" takes (role prepared), and takes params and states alone:
/// its results hold until one of these is written.
struct Program {
  std::string name;
  std::vector<Slot> arguments, results;
  int64_t arenaBytes = 0, peakBytes = 0;
  std::vector<Buffer> buffers;
  std::vector<Launch> launches;
  std::vector<OutputAlias> aliases; ///< outputs that are no results
  /// Of the host's memory, while the program runs.
  int64_t hostBytes = 0;
  bool operator==(const Program &) const = default;
};

/// What the code was made for.
struct Target {
  std::string kind = "cpu";
  std::string arch;                  ///< LLVM's name of the processor
  std::vector<std::string> features; ///< LLVM's names of what the code needs
  bool operator==(const Target &) const = default;
};

/// The bytes that one training step needs: of the program `step`, else of
/// `forward` and `backward` with what is saved between them.
struct StepMemory {
  int64_t parameters = 0, states = 0, constants = 0;
  int64_t inputs = 0; ///< with cotangents
  int64_t outputs = 0, gradients = 0;
  int64_t saved = 0;  ///< beside outputs
  int64_t staged = 0; ///< updates that are not made in place
  int64_t arena = 0;
  int64_t host = 0; ///< what is saved in the host's memory; no part of the peak
  int64_t prepared = 0; ///< of params and states alone, and kept

  int64_t peak() const {
    return parameters + states + constants + inputs + outputs + gradients +
           saved + staged + arena + prepared;
  }
  bool operator==(const StepMemory &) const = default;
};

/// What the partition between forward and backward chose, and what it expected
/// of it. Times are predictions, in seconds.
struct Partition {
  struct Saved {
    std::string name, op, where; ///< the value, and the op that makes it
    double seconds = 0;          ///< of making it again
    bool operator==(const Saved &) const = default;
  };
  /// An op that the backward runs again.
  struct Repeated {
    std::string op, where, reason;
    double seconds = 0; ///< that it takes there
    int64_t bytes = 0;  ///< of its results
    bool operator==(const Repeated &) const = default;
  };
  /// A plan that a memory budget could choose.
  struct Point {
    int64_t peak = 0, saved = 0; ///< bytes
    double seconds = 0, flops = 0;
    bool operator==(const Point &) const = default;
  };
  std::vector<Saved> saved;
  std::vector<Repeated> repeated;
  double seconds = 0; ///< of a step; 0: not predicted
  std::vector<Point> chain;
  bool operator==(const Partition &) const = default;
};

struct Manifest {
  std::string model;
  std::string producer;
  Target target;
  std::string loss; ///< the output that is the loss; empty if there is none
  std::string optimizer; ///< empty if none is compiled in
  /// A digest of the model's graph: SHA-256 in hexadecimal digits. It depends
  /// on ops and roles alone, and not on how they were compiled. May be empty.
  std::string graph;
  std::vector<Value> values;
  std::vector<Kernel> kernels;
  std::vector<Program> programs;
  /// Indices into `values` of the inputs, params and states that require grad
  /// and that the backward writes.
  std::vector<int64_t> mutatedInBackward;
  /// For people alone: nothing follows from them.
  std::optional<StepMemory> stepMemory;
  std::optional<Partition> partition;
  bool operator==(const Manifest &) const = default;

  /// Returns the input, param or state `name`, or null.
  const Value *findValue(std::string_view name) const;
  /// Returns the output `name`, or null.
  const Value *findOutput(std::string_view name) const;
  const Program *findProgram(std::string_view name) const;
};

/// How names speak of what is no value: an update result "cotangent of o" is
/// the new value of a cotangent, a cotangent "update of x" that of an input's
/// new value, a cotangent "grad of w" (of grad_backward) that of a gradient.
inline constexpr std::string_view cotangentOf = "cotangent of ",
                                  updateOf = "update of ", gradOf = "grad of ";

/// Returns the argument that an update result called `name` is the new value
/// of: where a backward has two of that name, the one that it takes as found.
std::optional<size_t> updatedArgument(const Program &program,
                                      std::string_view name);

/// True if the buffer is in the host's memory, where the program is a device's.
bool isOnHost(const Program &program, const Buffer &buffer);

/// Returns all outputs of a program: first those among its results, then those
/// that are aliases.
std::vector<Slot> outputsOf(const Program &program);

/// Returns the deterministic JSON text: one line.
Result<std::string> toJson(const Manifest &manifest);

/// Reads what `toJson` writes. Checks form only: call `validate` next.
Result<Manifest> fromJson(std::string_view text);

/// Checks every rule of the contract against the size of the constants section;
/// the message lists all problems, each with its JSON pointer.
Status validate(const Manifest &manifest, int64_t constantsBytes);

/// Checks that two manifests are of one model, for two targets: they have the
/// same values. The message lists what differs.
Status checkSameModel(const Manifest &one, const Manifest &other);

} // namespace tandem::artifact

#endif
