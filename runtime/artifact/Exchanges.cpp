//===- Exchanges.cpp - which collectives of a program go together ---------===//
#include "runtime/artifact/Exchanges.h"

#include "runtime/artifact/Buckets.h"

namespace tandem::artifact {

namespace {

class Exchange {
public:
  Exchange(const Manifest &manifest, const Program &program)
      : manifest(manifest), program(program) {}

  /// True if the launch goes with those that were taken since `begin`.
  bool takes(size_t launch) const {
    if (launch == 0 || begin >= launch || !fits(begin) || !fits(launch))
      return false;
    const Collective &first = *program.launches[begin].collective,
                     &next = *program.launches[launch].collective;
    if (bytes + bytesOf(next) > joinedSumBytes(manifest.bucketBytes) ||
        first.axes != next.axes || first.dtype != next.dtype ||
        first.reduce != next.reduce)
      return false;
    for (size_t other = begin; other < launch; ++other)
      if (meet(launch, other))
        return false;
    return true;
  }
  void start(size_t launch) { begin = launch, bytes = 0; }
  void add(size_t launch) {
    bytes += bytesOf(*program.launches[launch].collective);
  }

private:
  static int64_t bytesOf(const Collective &one) {
    return one.elements * byteSize(one.dtype);
  }

  bool fits(size_t launch) const {
    const Launch &one = program.launches[launch];
    return one.isCollective() &&
           one.collective->op == Collective::Op::AllReduce &&
           groupSize(manifest.mesh, one.collective->axes) > 1 &&
           one.collective->elements > 0 &&
           bytesOf(*one.collective) <= smallSumBytes(manifest.bucketBytes);
  }

  /// True if one writes what the other one touches.
  bool meet(size_t a, size_t b) const {
    const std::vector<int64_t> &own = program.launches[a].buffers,
                               &its = program.launches[b].buffers;
    return meet(own[0], its[1]) || meet(own[1], its[0]) || meet(own[1], its[1]);
  }
  bool meet(int64_t x, int64_t y) const {
    const Buffer &a = program.buffers[size_t(x)],
                 &b = program.buffers[size_t(y)];
    if (a.place != b.place)
      return false;
    if (a.place == Buffer::Place::Argument || a.place == Buffer::Place::Result)
      return a.index == b.index;
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  }

  const Manifest &manifest;
  const Program &program;
  size_t begin = 0; ///< of the exchange
  int64_t bytes = 0;
};

} // namespace

std::vector<bool> joinsTheOneBefore(const Manifest &manifest,
                                    const Program &program) {
  std::vector<bool> joins(program.launches.size());
  Exchange exchange(manifest, program);
  for (size_t i = 0; i < joins.size(); ++i) {
    joins[i] = exchange.takes(i);
    if (!joins[i])
      exchange.start(i);
    if (program.launches[i].isCollective())
      exchange.add(i);
  }
  return joins;
}

} // namespace tandem::artifact
