//===- Manifest.h - what an artifact says about itself --------------------===//
//
// The manifest as structs, whose members Manifest.def lists with their names in
// JSON and what they mean (docs/manifest.md). `toJson` is deterministic.
// `fromJson` rejects formats that this runtime does not read, unknown and
// repeated fields, names each problem by its JSON pointer, and reports all of
// them at once. `validate` checks everything that the executor relies on: after
// it, every index, offset and size is in range and every result is written, so
// that the executor does not check again.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_MANIFEST_H
#define TANDEM_RUNTIME_ARTIFACT_MANIFEST_H

#include "runtime/artifact/DType.h"
#include "runtime/artifact/Init.h"
#include "runtime/artifact/LibraryCall.h"
#include "runtime/artifact/Status.h"
#include "runtime/artifact/View.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

/// Which cotangents must be defined: of each group of names at least one.
/// Empty: always true.
using Condition = std::vector<std::vector<std::string>>;

/// For each dimension of a value, names of axes of the mesh.
using Sharding = std::vector<std::vector<std::string>>;

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

// The members of the structs are the rows of Manifest.def.
#define FIELD(type, member, initial, ...) type member = initial;
#define FLAT(type, member, meaning) type member;
#define MANIFEST_HAS(name) MANIFEST_HAS_##name

/// The ranks of a mesh are numbered row-major, the last axis fastest.
struct MeshAxis {
#define MANIFEST_HAS_MeshAxis 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_MeshAxis
  bool operator==(const MeshAxis &) const = default;
};

/// The slice is that of the operator `x[begins:ends:steps]`.
struct SliceRange {
#define MANIFEST_HAS_SliceRange 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_SliceRange
  bool operator==(const SliceRange &) const = default;
};

/// A named value of the model: an input, param, state or output.
struct Value {
#define MANIFEST_HAS_Value 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Value
  bool operator==(const Value &) const = default;

  /// Returns the least value, and one more than the largest, that each element
  /// of an integer input may have, whichever slices it is in; none where
  /// nothing is said, or no integer is all of it.
  std::optional<std::pair<int64_t, int64_t>> commonRange() const;
};

/// One of the stages of a model.
struct Pipeline {
#define MANIFEST_HAS_Pipeline 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Pipeline
  bool operator==(const Pipeline &) const = default;
};

struct TensorMap {
#define MANIFEST_HAS_TensorMap 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_TensorMap
  bool operator==(const TensorMap &) const = default;

  /// Returns the bytes of an element, or 0 for an unknown name.
  int64_t elementBytes() const;
};

struct Kernel {
#define MANIFEST_HAS_Kernel 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Kernel
  bool operator==(const Kernel &) const = default;
};

struct TensorType {
#define MANIFEST_HAS_TensorType 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_TensorType
  bool operator==(const TensorType &) const = default;
};

struct Alias {
#define MANIFEST_HAS_Alias 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Alias
  bool operator==(const Alias &) const = default;
};

/// An argument or result of a program. `dtype` and `shape` are always filled;
/// in JSON those of an argument with role input, param or state are left out,
/// because `values` has them.
struct Slot {
#define MANIFEST_HAS_Slot 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Slot
  bool operator==(const Slot &) const = default;
};

struct OutputAlias {
#define MANIFEST_HAS_OutputAlias 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_OutputAlias
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

/// Returns "argument", "result", ...
std::string_view spelling(Buffer::Place place);

struct Choice {
#define MANIFEST_HAS_Choice 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Choice
  bool operator==(const Choice &) const = default;
};

/// What the ranks of a group do together.
struct Collective {
  enum class Op : uint8_t {
    AllReduce,
    ReduceScatter,
    AllGather,
    AllToAll,
    BroadcastFrom,
    RankSlice,
    Barrier
  };
  enum class Reduce : uint8_t { Sum, Max, Min };
#define MANIFEST_HAS_Collective 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Collective

  /// False for what a rank does by itself.
  bool communicates() const { return op != Op::RankSlice; }
  /// The elements of the output of one rank, where the group has so many ranks;
  /// nothing where the input cannot be cut so, or there is no such number.
  std::optional<int64_t> elementsOfOutput(int64_t ranks) const;
  bool operator==(const Collective &) const = default;
};

/// Returns "all_reduce", ... and "sum", "max", "min".
std::string_view spelling(Collective::Op op);
std::string_view spelling(Collective::Reduce reduce);

/// The ranks of a group over `axes`, which are axes of the mesh.
int64_t groupSize(const std::vector<MeshAxis> &mesh,
                  const std::vector<std::string> &axes);

/// One call of a kernel, a collective, or a copy between a device and the host.
struct Launch {
#define MANIFEST_HAS_Launch 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Launch

  /// A copy of `buffers[0]` to `buffers[1]`; has neither work nor choices.
  static Launch copy(int64_t from, int64_t to) {
    Launch made;
    made.copies = true;
    made.buffers = {from, to};
    made.reads = {0};
    made.writes = {1};
    return made;
  }
  /// A collective of `buffers[0]` to `buffers[1]`; has neither work nor
  /// choices.
  static Launch over(Collective collective, std::vector<int64_t> buffers) {
    Launch made;
    made.collective = std::move(collective);
    made.buffers = std::move(buffers);
    if (!made.buffers.empty())
      made.reads = {0}, made.writes = {1};
    return made;
  }
  bool isCopy() const { return copies; }
  bool isCollective() const { return collective.has_value(); }
  bool hasKernel() const { return !copies && !collective; }
  bool operator==(const Launch &) const = default;
};

/// A compiled function. "forward" gives what "backward" takes (role saved), and
/// the inputs, params and states that the backward reads: those have the values
/// of the forward's call, so the forward must not update them, unless the
/// backward takes them as it finds them. "grad_forward" is a backward that
/// gives what "grad_backward" takes; it may take inputs and saved values of the
/// forward, and "grad_backward" may take those that it took. "prepare" gives
/// what "evaluate", "step" and "accumulate" take (role prepared), and takes
/// params and states alone: its results hold until one of these is written by
/// somebody who does not update them, too, as a step does.
struct Program {
#define MANIFEST_HAS_Program 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Program
  bool operator==(const Program &) const = default;
};

struct Target {
#define MANIFEST_HAS_Target 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Target
  bool operator==(const Target &) const = default;
};

struct StepMemory {
#define MANIFEST_HAS_StepMemory 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_StepMemory

  int64_t peak() const {
    return parameters + states + constants + inputs + outputs + gradients +
           saved + staged + arena + prepared;
  }
  bool operator==(const StepMemory &) const = default;
};

struct PartitionSaved {
#define MANIFEST_HAS_PartitionSaved 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_PartitionSaved
  bool operator==(const PartitionSaved &) const = default;
};

struct PartitionRepeated {
#define MANIFEST_HAS_PartitionRepeated 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_PartitionRepeated
  bool operator==(const PartitionRepeated &) const = default;
};

struct PartitionPoint {
#define MANIFEST_HAS_PartitionPoint 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_PartitionPoint
  bool operator==(const PartitionPoint &) const = default;
};

struct Partition {
#define MANIFEST_HAS_Partition 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Partition

  using Saved = PartitionSaved;
  using Repeated = PartitionRepeated;
  using Point = PartitionPoint;
  bool operator==(const Partition &) const = default;
};

/// One of several sizes: programs that share parameters, states and code.
struct Size {
#define MANIFEST_HAS_Size 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Size
  bool operator==(const Size &) const = default;
};

struct Manifest {
#define MANIFEST_HAS_Manifest 1
#include "runtime/artifact/Manifest.def"
#undef MANIFEST_HAS_Manifest
  bool operator==(const Manifest &) const = default;

  /// Returns the input, param or state `name`, or null.
  const Value *findValue(std::string_view name) const;
  /// Returns the same as the size of that number has it, if there are sizes.
  const Value *findValue(std::string_view name, int64_t size) const;
  /// Returns the output `name`, or null.
  const Value *findOutput(std::string_view name) const;
  /// Of several sizes that of the first one that has it.
  const Program *findProgram(std::string_view name) const;
};

#undef FIELD
#undef FLAT
#undef MANIFEST_HAS

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

/// True for a program that may be the first size's in all sizes: none of its
/// arguments is an input.
bool servesAllSizes(std::string_view program);

/// Returns the manifest of one size alone: its values and programs, with those
/// of the first size that serve it, and all kernels. It is a manifest without
/// sizes. A number of 0 without sizes gives the manifest itself.
Manifest ofSize(const Manifest &manifest, size_t number);

/// Returns the names of the sizes: "'batch=64', 'batch=1'".
std::string sizesText(const Manifest &manifest);

/// Returns the deterministic JSON text: one line.
Result<std::string> toJson(const Manifest &manifest);

/// Reads what `toJson` writes, and older formats (FormatVersion.h); another one
/// than `fileFormat`, that of the file around it, is refused. Checks form only:
/// call `validate` next.
Result<Manifest> fromJson(std::string_view text,
                          std::optional<int64_t> fileFormat = std::nullopt);

/// Checks every rule of the contract against the size of the constants section;
/// the message lists all problems, each with its JSON pointer.
Status validate(const Manifest &manifest, int64_t constantsBytes);

/// Checks that two manifests are of one model, for two targets: they have the
/// same values. The message lists what differs.
Status checkSameModel(const Manifest &one, const Manifest &other);

} // namespace tandem::artifact

#endif
