//===- ManifestFuzz.cpp - valid manifests with hostile fields -------------===//
//
// The input's bytes are the decisions that a mutation takes: which manifest,
// which of its fields, and what it becomes. The file around it has right
// checksums, so that every mutant reaches the manifest's own checks. What they
// take must be sound, and say the same after a round trip.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/Fuzz.h"
#include "tests/runtime/Mutants.h"

using namespace tandem;
using namespace tandem::artifact;
using namespace tandem::fuzz;

namespace {

const test::Mutants &mutants() {
  std::string folder = TANDEM_SEEDS;
  static const test::Mutants made(test::seedManifests(
      {folder + "/manifest.json", folder + "/manifest-cuda.json",
       folder + "/manifest-prepared.json"}));
  return made;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t at = 0;
  auto decide = [&](size_t limit) {
    // Two bytes each; zeros where there are no more.
    size_t value = 0;
    for (int i = 0; i < 2; ++i, ++at)
      value = value << 8 | (at < size ? data[at] : 0);
    return value % limit;
  };
  std::string file = test::fileAround(mutants().next(decide), "");
  auto reader = ArtifactReader::fromMemory(std::as_bytes(std::span(file)));
  if (!reader) {
    requireMessage(reader.status());
    return 0;
  }
  const Manifest &manifest = reader->manifest();
  require(test::unsoundness(manifest, reader->constants().size()).empty());
  Result<Manifest> again = fromJson(*toJson(manifest));
  require(again.ok() && *again == manifest);
  return 0;
}
