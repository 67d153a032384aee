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
#include "runtime/artifact/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::artifact {

/// Every buffer begins at a multiple of this many bytes.
inline constexpr int64_t bufferAlignment = 64;
/// No tensor, arena or scratch is larger than this.
inline constexpr int64_t maxBytes = int64_t(1) << 48;
/// No tensor has more dimensions.
inline constexpr int maxManifestRank = 16;

enum class Role : uint8_t {
  Input,
  Param,
  State,
  Output,
  Cotangent,
  Grad,
  Update,
  Saved
};

/// Returns "input", "param", ...
std::string_view spelling(Role role);
std::optional<Role> parseRole(std::string_view name);

/// Returns the bytes of a dense tensor, or nothing if a size is negative, the
/// rank too large, or there are more than `maxBytes`.
std::optional<int64_t> tensorBytes(DType dtype,
                                   const std::vector<int64_t> &shape);

/// How a parameter or state begins.
struct Init {
  enum class Kind : uint8_t {
    Constant, ///< every element is `a`
    Uniform,  ///< uniform in [a, b)
    Normal,   ///< mean `a`, standard deviation `b`
    Counter   ///< the workloads' generator: stream `stream`, scale `a`
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
  bool operator==(const Value &) const = default;
};

/// A function of the code object.
struct Kernel {
  std::string symbol;
  std::string kind;             ///< JSON "class": "pointwise", "reduction", ...
  std::vector<std::string> ops; ///< what was fused into it, in order
  int64_t flops = 0, bytes = 0; ///< of one launch over all its work
  int64_t scratchBytes = 0;     ///< private to each thread
  bool operator==(const Kernel &) const = default;
};

/// An argument or result of a program. `dtype` and `shape` are always filled;
/// in JSON those of an argument with role input, param or state are left out,
/// because `values` has them.
struct Slot {
  Role role = Role::Input;
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  bool inPlace = false; ///< updates only: the result is the argument's storage
  std::string reason;   ///< saved results only: why it is saved
  bool operator==(const Slot &) const = default;
};

/// Where a buffer of a program lies.
struct Buffer {
  enum class Place : uint8_t { Argument, Result, Arena, Constant };
  Place place = Place::Arena;
  int64_t index = 0;             ///< of the argument or result
  int64_t offset = 0, bytes = 0; ///< in the arena or the constants section
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
  bool operator==(const Buffer &) const = default;
};

/// One call of a kernel over `work` items.
struct Launch {
  int64_t kernel = 0;
  std::vector<int64_t> buffers;       ///< indices of the program's buffers
  std::vector<int64_t> reads, writes; ///< positions in `buffers`
  int64_t work = 1, grain = 1, stream = 0;
  bool operator==(const Launch &) const = default;
};

/// A compiled function. "forward" gives what "backward" takes (role saved), and
/// the inputs, params and states that the backward reads: those have the values
/// of the forward's call, so the forward must not update them; but one that the
/// backward updates itself it reads as it is at that time.
struct Program {
  std::string name;
  std::vector<Slot> arguments, results;
  int64_t arenaBytes = 0, peakBytes = 0;
  std::vector<Buffer> buffers;
  std::vector<Launch> launches;
  bool operator==(const Program &) const = default;
};

/// What the code was made for.
struct Target {
  std::string kind = "cpu";
  std::string arch;                  ///< LLVM's name of the processor
  std::vector<std::string> features; ///< LLVM's names of what the code needs
  bool operator==(const Target &) const = default;
};

struct Manifest {
  std::string model;
  std::string producer;
  Target target;
  std::string loss; ///< the output that is the loss; empty if there is none
  std::string optimizer; ///< empty if none is compiled in
  std::vector<Value> values;
  std::vector<Kernel> kernels;
  std::vector<Program> programs;
  /// Indices into `values` of the inputs, params and states that require grad
  /// and that the backward writes.
  std::vector<int64_t> mutatedInBackward;
  bool operator==(const Manifest &) const = default;

  /// Returns the input, param or state `name`, or null.
  const Value *findValue(std::string_view name) const;
  /// Returns the output `name`, or null.
  const Value *findOutput(std::string_view name) const;
  const Program *findProgram(std::string_view name) const;
};

/// Returns the deterministic JSON text: one line.
Result<std::string> toJson(const Manifest &manifest);

/// Reads what `toJson` writes. Checks form only: call `validate` next.
Result<Manifest> fromJson(std::string_view text);

/// Checks every rule of the contract against the size of the constants section;
/// the message lists all problems, each with its JSON pointer.
Status validate(const Manifest &manifest, int64_t constantsBytes);

} // namespace tandem::artifact

#endif
