//===- Saved.cpp - what must be saved, and what is ------------------------===//
#include "tools/bench/partition/Saved.h"

using namespace tandem;

static constexpr int64_t kFloat = 4;

/// Every layer's output; the derivative of relu follows from it. The loss and
/// its softmax are made again from the last one.
static int64_t layers(int64_t batch, std::initializer_list<int64_t> widths) {
  int64_t elements = 0;
  for (int64_t width : widths)
    elements += batch * width;
  return kFloat * elements;
}

/// Every convolution's output and every block's (or the residual stream would
/// have to be made again from its beginning), the stem's among them, and the
/// logits. Stages halve the image and double the width.
static int64_t resnet(int64_t width, int64_t stages, int64_t blocks) {
  constexpr int64_t batch = 32, image = 32, classes = 10;
  auto output = [&](int64_t stage) {
    int64_t side = image >> stage;
    return batch * (width << stage) * side * side;
  };
  int64_t elements = output(0) + batch * classes;
  for (int64_t stage = 0; stage < stages; ++stage)
    for (int64_t block = 0; block < blocks; ++block) {
      bool hasShortcut = stage > 0 && block == 0;
      elements += (hasShortcut ? 4 : 3) * output(stage);
    }
  return kFloat * elements;
}

/// A layer keeps the residual stream before each norm, queries, keys and
/// values, what attention gives, and what the first of the two products of the
/// last part gives; then there are the last residual stream and the logits.
static int64_t gpt(const workloads::GptSize &size) {
  int64_t tokens = size.batch * size.time, width = size.width;
  return kFloat * tokens *
         (size.layers * (2 + 3 + 1 + 4) * width + width + size.vocabulary);
}

std::optional<int64_t> bench::mustSave(const workloads::Workload &workload) {
  if (workload.name == "mlp")
    return layers(256, {1024, 1024, 10});
  if (workload.name == "mnist-fc")
    return layers(500, {500, 10});
  if (workload.name == "resnet8")
    return resnet(16, 3, 1);
  if (workload.name == "resnet18")
    return resnet(64, 4, 2);
  if (workload.name == "gpt")
    return gpt(workloads::kGpt);
  if (workload.name == "gpt2-124m")
    return gpt(workloads::kGpt2);
  // What every layer but the last adds to.
  if (workload.name == "normchain")
    return kFloat * workloads::kRows * workloads::kColumns * 3;
  return std::nullopt;
}

int64_t bench::savedBytes(const artifact::Manifest &manifest) {
  int64_t bytes = 0;
  if (const artifact::Program *forward = manifest.findProgram("forward"))
    for (const artifact::Slot &slot : forward->results)
      if (slot.role == artifact::Role::Saved && !slot.alias)
        bytes += artifact::tensorBytes(slot.dtype, slot.shape).value_or(0);
  return bytes;
}

bench::Repeats bench::repeatedOps(const artifact::Manifest &manifest) {
  Repeats repeats;
  if (!manifest.partition)
    return repeats;
  for (const artifact::Partition::Repeated &op : manifest.partition->repeated) {
    ++repeats.ops;
    repeats.contractions += op.op == "tandem.matmul" ||
                            op.op.starts_with("tandem.conv") ||
                            op.op.starts_with("tandem.attention");
  }
  return repeats;
}
