//===- RandomCollectives.h - programs that are collectives ----------------===//
//
// Artifacts without kernels, whose launches are collectives over the groups of
// a mesh with the axes "a" and "b", run by the host's executor. What each rank
// should have is computed from what all of them had, by the definition of each
// op.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_COMM_RANDOMCOLLECTIVES_H
#define TANDEM_TESTS_RUNTIME_COMM_RANDOMCOLLECTIVES_H

#include "runtime/artifact/ArtifactReader.h"
#include "runtime/comm/MeshCommunicators.h"

namespace tandem::comm::testing {

using Elements = std::vector<double>;

/// The mesh of so many ranks: of 4 ranks a = 2, b = 2.
std::vector<artifact::MeshAxis> axesOf(int ranks);

/// A program of one chain of collectives from the input "x" to the output "y".
artifact::Manifest chainOf(const std::vector<artifact::Collective> &chain,
                           int64_t elements, int ranks);

artifact::ArtifactReader readerOf(const artifact::Manifest &manifest);

/// Runs the only program of an artifact on one rank.
Status runOn(const artifact::ArtifactReader &reader,
             MeshCommunicators *communicators, Elements &x, Elements &y);

/// Runs random programs over all communicators of the mesh, the same ones on
/// all ranks, which all call this.
void expectRandomPrograms(const std::shared_ptr<Communicator> &world,
                          int programs);

} // namespace tandem::comm::testing

#endif
