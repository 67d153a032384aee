//===- SafetensorsFuzz.cpp - any bytes as a safetensors file --------------===//
//
// A file that is accepted is written and read again: the same tensors and
// metadata; and its tensors are disjoint parts of it.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Safetensors.h"
#include "tests/fuzz/Fuzz.h"

using namespace tandem;
using namespace tandem::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto *begin = reinterpret_cast<const std::byte *>(data);
  auto file = io::Safetensors::parse({begin, begin + size});
  if (!file) {
    requireMessage(file.status());
    return 0;
  }
  std::map<std::string, io::ArrayView> tensors;
  size_t total = 0;
  for (const auto &[name, entry] : file->entries()) {
    require(entry.offset <= size && entry.bytes <= size - entry.offset);
    tensors.emplace(name, *file->find(name));
    requireWhole(tensors[name]);
    total += entry.bytes;
  }
  require(total <= size);

  std::map<std::string, io::TensorType> types;
  for (const auto &[name, entry] : file->entries())
    types[name] = {entry.dtype, entry.shape};
  std::vector<std::string> order;
  std::vector<std::byte> written =
      io::safetensorsHeader(types, file->metadata(), order);
  require(order.size() == tensors.size());
  for (const std::string &name : order)
    written.insert(written.end(), tensors[name].bytes.begin(),
                   tensors[name].bytes.end());
  auto again = io::Safetensors::parse(written);
  require(again.ok() && again->metadata() == file->metadata());
  require(again->entries().size() == tensors.size());
  for (const auto &[name, view] : tensors)
    require(same(view, *again->find(name)));
  return 0;
}
