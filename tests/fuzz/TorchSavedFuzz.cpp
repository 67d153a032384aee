//===- TorchSavedFuzz.cpp - any bytes as a pickle of torch.save -----------===//
//
// What is accepted is a list of tensors whose elements are all there; what is
// not has a message.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/torch/SavedTensors.h"
#include "tests/fuzz/Fuzz.h"

using namespace tandem;
using namespace tandem::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef pickle(reinterpret_cast<const char *>(data), size);
  auto made = torch::readSavedTensors(
      pickle, [](const std::string &name) -> Result<std::string> {
        if (name.size() > 1)
          return Status::failed("no such storage");
        return std::string(512, 'x');
      });
  if (!made) {
    requireMessage(made.status());
    return 0;
  }
  for (const torch::SavedTensor &tensor : *made) {
    require(bool(tensor.data) != !tensor.why.empty());
    if (tensor.data)
      require(static_cast<int64_t>(tensor.data->bytes.size()) ==
              tensor.data->elements() * byteSize(tensor.data->kind));
  }
  return 0;
}
