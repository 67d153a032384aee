//===- ShowCollectives.cpp - what the ranks of an artifact do together ----===//
#include "runtime/artifact/Exchanges.h"
#include "runtime/artifact/Text.h"
#include "tools/commands/Print.h"
#include "tools/commands/Show.h"

#include <cstdio>

namespace tandem::commands {
namespace {

using artifact::Collective;

/// What a rank sends where the group is a ring.
int64_t bytesSent(const Collective &collective, int64_t ranks) {
  int64_t in = collective.elements * byteSize(collective.dtype);
  int64_t others = in - in / ranks;
  using enum Collective::Op;
  switch (collective.op) {
  case AllReduce:
    return 2 * others;
  case ReduceScatter:
  case AllToAll:
    return others;
  case AllGather:
    return in * (ranks - 1);
  case BroadcastFrom:
    return ranks > 1 ? in : 0;
  case RankSlice:
  case Barrier:
    break;
  }
  return 0;
}

std::string opText(const Collective &collective) {
  std::string text(spelling(collective.op));
  if (collective.op == Collective::Op::AllReduce ||
      collective.op == Collective::Op::ReduceScatter)
    text += " " + std::string(spelling(collective.reduce));
  return text;
}

std::string listText(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return artifact::printable(text);
}

} // namespace

void showCollectives(const artifact::Manifest &manifest) {
  if (manifest.mesh.empty())
    return;
  std::string mesh;
  int64_t all = 1;
  for (const artifact::MeshAxis &axis : manifest.mesh) {
    mesh += (mesh.empty() ? "" : ", ") + artifact::printable(axis.name) + " " +
            std::to_string(axis.size);
    all *= axis.size;
  }
  std::printf("\nmesh of %lld ranks: %s; small sums fill buckets of %s\n",
              static_cast<long long>(all), mesh.c_str(),
              bytesText(manifest.bucketBytes).c_str());
  std::printf("%-10s %5s %-20s %-20s %5s %8s %12s %s\n", "program", "step",
              "collective", "over", "ranks", "exchange", "sent bytes", "where");
  for (const artifact::Program &program : manifest.programs) {
    std::vector<bool> joins = joinsTheOneBefore(manifest, program);
    int64_t total = 0, exchanges = 0;
    for (size_t step = 0; step < program.launches.size(); ++step) {
      if (!program.launches[step].isCollective())
        continue;
      const Collective &one = *program.launches[step].collective;
      int64_t ranks = artifact::groupSize(manifest.mesh, one.axes);
      int64_t bytes = bytesSent(one, ranks);
      bool isExchange = one.communicates() && ranks > 1;
      total += bytes;
      exchanges += isExchange && !joins[step];
      std::printf(
          "%-10s %5zu %-20s %-20s %5lld %8s %12s %s\n",
          artifact::printable(program.name).c_str(), step, opText(one).c_str(),
          listText(one.axes).c_str(), static_cast<long long>(ranks),
          isExchange ? std::to_string(exchanges).c_str() : "-",
          bytesText(bytes).c_str(), artifact::printable(one.where).c_str());
    }
    if (total)
      std::printf("%-10s %5s %-20s %-20s %5s %8lld %12s\n",
                  artifact::printable(program.name).c_str(), "", "all", "", "",
                  static_cast<long long>(exchanges), bytesText(total).c_str());
  }
}

} // namespace tandem::commands
