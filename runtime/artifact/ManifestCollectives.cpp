//===- ManifestCollectives.cpp - rules of what ranks do together ----------===//
//
// Part of `validate`: a mesh has each axis once, shardings and collectives
// speak of its axes, and a collective reads and writes buffers that have the
// bytes that it says: more, where it overwrites a larger value that was
// donated.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestRules.h"

#include <algorithm>
#include <set>

namespace tandem::artifact {

namespace {

constexpr int64_t maxRanks = int64_t(1) << 20;

bool hasAxis(const Manifest &manifest, const std::string &name) {
  return std::any_of(manifest.mesh.begin(), manifest.mesh.end(),
                     [&](const MeshAxis &axis) { return axis.name == name; });
}

/// That `names` are axes of the mesh, of which `seen` has none yet.
bool checkAxes(const Manifest &manifest, const std::vector<std::string> &names,
               std::set<std::string> &seen, const std::string &at,
               ManifestProblems &problems) {
  bool isRight = true;
  for (size_t i = 0; i < names.size(); ++i) {
    bool isKnown = hasAxis(manifest, names[i]);
    bool isNew = seen.insert(names[i]).second;
    if (!isKnown)
      problems.add(child(at, static_cast<int64_t>(i)),
                   "the mesh has no axis '" + names[i] + "'");
    else if (!isNew)
      problems.add(child(at, static_cast<int64_t>(i)),
                   "'" + names[i] + "' is repeated");
    isRight &= isKnown && isNew;
  }
  return isRight;
}

class CollectiveRules {
public:
  CollectiveRules(const Manifest &manifest, const Program &program,
                  ManifestProblems &problems)
      : manifest(manifest), program(program), problems(problems) {}

  void check(const Launch &launch, const std::string &at) {
    const Collective &collective = *launch.collective;
    if (launch.isCopy())
      problems.add(at, "expected it not on a copy");
    std::set<std::string> seen;
    if (collective.axes.empty())
      problems.add(at + "/axes", "expected an axis of the mesh but got none");
    bool isRight =
        checkAxes(manifest, collective.axes, seen, at + "/axes", problems) &&
        !collective.axes.empty();
    using enum Collective::Op;
    bool isBarrier = collective.op == Barrier;
    std::vector<int64_t> reads, writes;
    if (!isBarrier)
      reads = {0}, writes = {1};
    if (launch.buffers.size() != reads.size() + writes.size() ||
        launch.reads != reads || launch.writes != writes) {
      problems.add(at, isBarrier ? "expected a barrier to have no buffers"
                                 : "expected it to read its first buffer and "
                                   "to write its second, and no more");
      return;
    }
    // Products of the sizes of a wrong mesh are none.
    if (!isRight || !isMeshRight())
      return;
    int64_t ranks = groupSize(manifest.mesh, collective.axes);
    if (collective.op == BroadcastFrom ? collective.root >= ranks
                                       : collective.root != 0)
      problems.add(at + "/root", "expected a rank of the group's " +
                                     std::to_string(ranks) +
                                     ", of 'broadcast_from' alone, but got " +
                                     std::to_string(collective.root));
    bool reduces = collective.op == AllReduce || collective.op == ReduceScatter;
    if (reduces ? !isNumber(collective.dtype)
                : collective.reduce != Collective::Reduce::Sum)
      problems.add(at + "/reduce", "expected a reduction of numbers, of "
                                   "'all_reduce' and 'reduce_scatter' alone");
    if (!isBarrier)
      checkBuffers(launch, ranks, at);
  }

private:
  bool isMeshRight() const {
    int64_t ranks = 1;
    for (const MeshAxis &axis : manifest.mesh) {
      if (axis.size < 1 || axis.size > maxRanks / ranks)
        return false;
      ranks *= axis.size;
    }
    return true;
  }

  static bool isNumber(DType dtype) {
    return dtype != DType::Bool && byteSize(dtype) > 0 &&
           dtype != DType::F8E4M3FN && dtype != DType::F8E5M2;
  }

  std::optional<int64_t> bytesOf(const Buffer &buffer) const {
    bool isArgument = buffer.place == Buffer::Place::Argument;
    if (!isArgument && buffer.place != Buffer::Place::Result)
      return buffer.bytes;
    const auto &slots = isArgument ? program.arguments : program.results;
    if (buffer.index < 0 || buffer.index >= static_cast<int64_t>(slots.size()))
      return std::nullopt;
    return tensorBytes(slots[buffer.index].dtype, slots[buffer.index].shape);
  }

  const Buffer *bufferOf(int64_t number) const {
    bool isThere =
        number >= 0 && number < static_cast<int64_t>(program.buffers.size());
    return isThere ? &program.buffers[number] : nullptr;
  }

  void expectBytes(const Buffer &buffer, std::optional<int64_t> elements,
                   const Collective &collective, const std::string &at) {
    std::optional<int64_t> has = bytesOf(buffer);
    // At most 2^48 elements of at most 8 bytes.
    if (has && elements && *has < *elements * byteSize(collective.dtype))
      problems.add(at, "expected a buffer of at least " +
                           std::to_string(*elements) +
                           " elements of the type '" +
                           std::string(spelling(collective.dtype)) +
                           "' but got " + std::to_string(*has) + " bytes");
  }

  void checkBuffers(const Launch &launch, int64_t ranks,
                    const std::string &at) {
    const Collective &collective = *launch.collective;
    std::optional<int64_t> output = collective.elementsOfOutput(ranks);
    if (!output)
      problems.add(at + "/elements",
                   "expected elements for a group of " + std::to_string(ranks) +
                       " ranks but got " + std::to_string(collective.elements));
    const Buffer *from = bufferOf(launch.buffers[0]),
                 *to = bufferOf(launch.buffers[1]);
    if (!from || !to)
      return;
    expectBytes(*from, collective.elements, collective, at + "/buffers/0");
    expectBytes(*to, output, collective, at + "/buffers/1");
    bool mayBeOne = collective.op == Collective::Op::AllReduce ||
                    collective.op == Collective::Op::BroadcastFrom;
    if (overlap(*from, *to) && !(mayBeOne && begin(*from) == begin(*to)))
      problems.add(at + "/buffers", "expected two buffers that share nothing");
  }

  static int64_t begin(const Buffer &buffer) {
    return buffer.place <= Buffer::Place::Result ? 0 : buffer.offset;
  }

  static bool overlap(const Buffer &a, const Buffer &b) {
    if (a.place != b.place)
      return false;
    if (a.place <= Buffer::Place::Result)
      return a.index == b.index;
    // Each is checked to be at least 0 and within its memory; else the sum is
    // of no use, but does not overflow either.
    return a.offset < maxBytes && b.offset < maxBytes && a.bytes <= maxBytes &&
           b.bytes <= maxBytes && a.offset < b.offset + b.bytes &&
           b.offset < a.offset + a.bytes;
  }

  const Manifest &manifest;
  const Program &program;
  ManifestProblems &problems;
};

/// The sizes of a value whose dimensions do not divide: each has as many pieces
/// of the shape's size as cover it, and no more than its ranks need.
void checkWhole(const Manifest &manifest, const Value &value,
                const std::string &at, ManifestProblems &problems) {
  if (value.whole.size() != value.shape.size() || value.sharding.empty()) {
    problems.add(at, "expected a size for each of " +
                         std::to_string(value.shape.size()) +
                         " dimensions, and a sharding, but got " +
                         std::to_string(value.whole.size()));
    return;
  }
  for (size_t d = 0; d < std::min(value.whole.size(), value.sharding.size());
       ++d) {
    int64_t pieces = groupSize(manifest.mesh, value.sharding[d]);
    int64_t whole = value.whole[d];
    if (whole < 0 || whole > maxBytes ||
        (whole + pieces - 1) / pieces != value.shape[d])
      problems.add(child(at, static_cast<int64_t>(d)),
                   "expected a size of which each of " +
                       std::to_string(pieces) + " ranks has " +
                       std::to_string(value.shape[d]) + " but got " +
                       std::to_string(whole));
  }
  if (!tensorBytes(value.dtype, value.whole))
    problems.add(at, "expected the sizes of a tensor");
}

} // namespace

void checkMesh(const Manifest &manifest, ManifestProblems &problems) {
  std::set<std::string> names;
  int64_t ranks = 1;
  bool isRight = true;
  for (size_t i = 0; i < manifest.mesh.size(); ++i) {
    const MeshAxis &axis = manifest.mesh[i];
    std::string at = child("/mesh", static_cast<int64_t>(i));
    isRight &= axis.size >= 1 && axis.size <= maxRanks;
    if (!names.insert(axis.name).second) {
      isRight = false;
      problems.add(at + "/name", "'" + axis.name + "' is repeated");
    }
    if (axis.size > maxRanks / ranks) {
      isRight = false;
      problems.add(at + "/size", "expected at most " +
                                     std::to_string(maxRanks) +
                                     " ranks in all");
      break;
    }
    ranks *= axis.size;
  }
  for (size_t i = 0; i < manifest.values.size(); ++i) {
    const Value &value = manifest.values[i];
    if (!value.whole.empty() && isRight)
      checkWhole(manifest, value,
                 child("/values", static_cast<int64_t>(i)) + "/whole",
                 problems);
    if (value.sharding.empty())
      continue;
    std::string at = child("/values", static_cast<int64_t>(i)) + "/sharding";
    if (value.sharding.size() != value.shape.size())
      problems.add(at, "expected a list of axes for each of " +
                           std::to_string(value.shape.size()) +
                           " dimensions but got " +
                           std::to_string(value.sharding.size()));
    std::set<std::string> seen;
    for (size_t d = 0; d < value.sharding.size(); ++d)
      checkAxes(manifest, value.sharding[d], seen,
                child(at, static_cast<int64_t>(d)), problems);
  }
}

void checkPipeline(const Manifest &manifest, ManifestProblems &problems) {
  if (!manifest.pipeline)
    return;
  const Pipeline &pipeline = *manifest.pipeline;
  if (pipeline.stage >= pipeline.stages)
    problems.add("/pipeline/stage", "expected one of " +
                                        std::to_string(pipeline.stages) +
                                        " stages");
  if (pipeline.ranks < 1 || pipeline.stages % pipeline.ranks != 0)
    problems.add("/pipeline/stages",
                 "expected a multiple of 'ranks', which is " +
                     std::to_string(pipeline.ranks));
  auto check = [&](const std::vector<std::string> &names, bool areTaken) {
    std::set<std::string> seen;
    for (size_t i = 0; i < names.size(); ++i) {
      std::string at = child(areTaken ? "/pipeline/takes" : "/pipeline/gives",
                             static_cast<int64_t>(i));
      const Value *value = areTaken ? manifest.findValue(names[i])
                                    : manifest.findOutput(names[i]);
      if (!value || value->role != (areTaken ? Role::Input : Role::Output))
        problems.add(at, "there is no such " +
                             std::string(areTaken ? "input" : "output"));
      if (!seen.insert(names[i]).second)
        problems.add(at, "'" + names[i] + "' is repeated");
    }
  };
  check(pipeline.takes, true);
  check(pipeline.gives, false);
  for (size_t i = 0; i < pipeline.inputs.size(); ++i)
    if (pipeline.inputs[i].role != Role::Input ||
        !tensorBytes(pipeline.inputs[i].dtype, pipeline.inputs[i].shape))
      problems.add(child("/pipeline/inputs", static_cast<int64_t>(i)),
                   "expected an input with the sizes of a tensor");
}

void checkCollectives(const Manifest &manifest, const Program &program,
                      const std::string &at, ManifestProblems &problems) {
  CollectiveRules rules(manifest, program, problems);
  for (size_t i = 0; i < program.launches.size(); ++i)
    if (program.launches[i].isCollective())
      rules.check(program.launches[i],
                  child(at + "/launches", static_cast<int64_t>(i)) +
                      "/collective");
}

/// The fewest pieces that give a rank so much of a dimension, among the numbers
/// of ranks that axes can have together; 0 if there are none.
static int64_t fewestPieces(int64_t whole, int64_t piece, int64_t ranks) {
  if (piece < 1 || whole < 1 || piece > whole)
    return 0;
  for (int64_t pieces = (whole + piece - 1) / piece;
       pieces <= ranks && (whole + pieces - 1) / pieces == piece; ++pieces)
    if (ranks % pieces == 0)
      return pieces;
  return 0;
}

bool isPieceOf(const Manifest &manifest, const Slot &slot) {
  const Value *value = manifest.findValue(slot.name);
  if (!value || manifest.mesh.empty())
    return false;
  // A stage has an index for each rank in front of what ranks sum up.
  if (manifest.pipeline && slot.shape.size() == value->shape.size() + 1 &&
      slot.shape[0] == 1) {
    Slot part = slot;
    part.shape.erase(part.shape.begin());
    return part.shape == value->shape || isPieceOf(manifest, part);
  }
  if (value->shape.size() != slot.shape.size())
    return false;
  int64_t ranks = 1, pieces = 1;
  for (const MeshAxis &axis : manifest.mesh)
    if (axis.size < 1 || __builtin_mul_overflow(ranks, axis.size, &ranks))
      return false;
  for (size_t dim = 0; dim < slot.shape.size(); ++dim) {
    int64_t whole = value->shape[dim];
    if (dim < value->whole.size())
      whole = value->whole[dim];
    else if (dim < value->sharding.size() &&
             __builtin_mul_overflow(
                 whole, groupSize(manifest.mesh, value->sharding[dim]), &whole))
      return false;
    if (whole > maxBytes)
      return false;
    int64_t of = fewestPieces(whole, slot.shape[dim], ranks);
    if (!of || __builtin_mul_overflow(pieces, of, &pieces))
      return false;
  }
  return ranks % pieces == 0;
}

} // namespace tandem::artifact
