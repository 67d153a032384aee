//===- TensorIndexFuzz.cpp - any text as an index of tensors --------------===//
//
// An index that is accepted is written and read again: the same one; its pieces
// lie inside of their tensors, and are found to cover them only if they have as
// many elements.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/TensorIndex.h"
#include "tests/fuzz/Fuzz.h"

using namespace tandem;
using namespace tandem::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  auto index = io::TensorIndex::parse(text);
  if (!index) {
    requireMessage(index.status());
    return 0;
  }
  for (const auto &[name, cut] : index->cut) {
    uint64_t all = uint64_t(*io::elementCount(cut.shape)), sum = 0;
    for (const io::TensorIndex::Piece &piece : cut.pieces) {
      require(piece.begin.size() == cut.shape.size());
      require(piece.file.find('/') == piece.file.npos);
      for (size_t d = 0; d < cut.shape.size(); ++d)
        require(piece.begin[d] >= 0 && piece.shape[d] >= 0 &&
                piece.begin[d] <= cut.shape[d] - piece.shape[d]);
      sum += uint64_t(*io::elementCount(piece.shape));
    }
    std::string problem;
    bool isCovered = io::covers(cut.shape, cut.pieces, problem);
    require(isCovered == problem.empty());
    require(!isCovered || sum == all);
  }
  std::string written = index->text();
  auto again = io::TensorIndex::parse(written);
  require(again.ok() && again->text() == written);
  return 0;
}
