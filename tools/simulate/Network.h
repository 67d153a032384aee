//===- Network.h - what collectives of a mesh cost ------------------------===//
//
// Ranks are numbered row-major over the axes of the mesh, the last one fastest,
// and fill one machine after the other. Inside of a machine they are connected
// by one link, and machines by another one.
//
// A collective costs the least of what known algorithms take (alpha-beta: a
// latency for each step, and bytes by the rate of the slowest link):
//
//   ring          f (g - 1) steps; f (g - 1) / g of the bytes through each
//   rank.
//                 Over several machines, each of the m ranks of the group in a
//                 machine uses its own link to others.
//   hierarchical  inside of the machines, between them for the m-th part, and
//                 inside again
//   tree          f times the bytes, in f (log2(n) + m - 1) steps
//   direct        what the runtime does on processors (PeerCommunicator.cpp):
//   all
//                 messages of an exchange at once
//
// with f = 2 for all_reduce, else 1; g ranks in the group, m of them in each of
// n machines.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_NETWORK_H
#define TANDEM_TOOLS_SIMULATE_NETWORK_H

#include "passes/target/Machines.h"
#include "runtime/artifact/Manifest.h"

namespace tandem::simulate {

/// What a collective takes, and by which algorithm.
struct ExchangeCost {
  double seconds = 0;
  std::string_view algorithm;
};

/// Where the ranks of a group are.
struct Group {
  int64_t ranks = 1;
  int64_t ofMachine = 1; ///< in one machine
  int64_t machines = 1;
};

class Network {
public:
  /// `ofMachine` ranks fill a machine. Without `between`, all ranks are in one.
  Network(std::vector<artifact::MeshAxis> mesh, const LinkRow &inside,
          const LinkRow *between, int64_t ofMachine, bool isDirect);

  const std::vector<artifact::MeshAxis> &mesh() const { return mesh_; }
  int64_t ranks() const;
  /// How many ranks the fullest machine has.
  int64_t ranksOfMachine() const;
  /// The group of rank 0.
  Group groupOf(const std::vector<std::string> &axes) const;
  /// Of a collective that communicates, of `bytes` in the input of one rank.
  ExchangeCost costOf(artifact::Collective::Op op, double bytes,
                      const Group &group) const;
  /// A message of `bytes` between two ranks.
  double message(double bytes, int64_t from, int64_t to) const;
  /// How far the numbers of neighbours along an axis are apart.
  int64_t strideOf(std::string_view axis) const;

  /// Multiplies the time of all exchanges.
  void slowDown(double factor) { slowness = factor; }

private:
  double rateInside() const;
  double rateBetween() const;
  int64_t machineOf(int64_t rank) const { return rank / ofMachine; }

  std::vector<artifact::MeshAxis> mesh_;
  LinkRow inside, between;
  int64_t ofMachine;
  bool isDirect;
  double slowness = 1;
};

} // namespace tandem::simulate

#endif
