//===- Workloads.cpp - the benchmark models: names, sizes and data --------===//
#include "tools/bench/workloads/Workloads.h"

using namespace tandem;
using namespace tandem::workloads;

namespace {

std::vector<DataSpec> perceptronData(int64_t batch, int64_t in, int64_t out) {
  return {{"x", {batch, in}, DataSpec::Uniform, 0, 2.0, 0, -1},
          {"labels", {batch}, DataSpec::Integers, 1, 0, out, -1}};
}

std::vector<DataSpec> imageData(int64_t batch) {
  return {{"x", {batch, 3, 32, 32}, DataSpec::Uniform, 0, 2.0, 0, -1},
          {"labels", {batch}, DataSpec::Integers, 1, 0, 10, -1}};
}

std::vector<DataSpec> tokenData(const GptSize &g) {
  return {{"x", {g.batch, g.time}, DataSpec::Tokens, 0, 0, g.vocabulary, -1},
          {"labels",
           {g.batch, g.time},
           DataSpec::NextTokens,
           0,
           0,
           g.vocabulary,
           -1}};
}

const std::string kSgd = "momentum:lr=0.01,momentum=0.9";

} // namespace

const std::vector<Workload> &workloads::all() {
  static const std::vector<Workload> list = {
      {"mlp", "fully connected 784-1024-1024-10, batch 256", kSgd,
       perceptronData(256, 784, 10)},
      {"resnet8", "CIFAR ResNet-8, widths 16/32/64, batch 32",
       "momentum:lr=0.05,momentum=0.9", imageData(32)},
      {"resnet18", "CIFAR ResNet-18, widths 64/128/256/512, batch 32",
       "momentum:lr=0.05,momentum=0.9", imageData(32)},
      {"gpt", "decoder, 4 layers, d 256, seq 128, batch 8, vocab 1024",
       "adamw:lr=3e-4,weight_decay=0", tokenData(kGpt)},
      {"gpt2-124m", "decoder, 12 layers, d 768, seq 64, batch 4, vocab 50257",
       "adamw:lr=1e-4,weight_decay=0", tokenData(kGpt2)},
      {"normchain",
       "4 x residual(gelu(layernorm)) on [4096, 1024]",
       kSgd,
       {{"x", {kRows, kColumns}, DataSpec::Uniform, 0, 2.0, 0, 0}}},
      {"mnist-fc", "fully connected 784-500-10, batch 500",
       "adamw:lr=1e-3,weight_decay=0", perceptronData(500, 784, 10)},
      {"gpt2-124m-large", "gpt2-124m, seq 1024, batch 16: to be timed on GPUs",
       "adamw:lr=1e-4,weight_decay=0", tokenData(kGpt2Large)},
      {"resnet18-large", "resnet18, batch 256: to be timed on GPUs",
       "momentum:lr=0.05,momentum=0.9", imageData(256)},
  };
  return list;
}

const Workload *workloads::find(const std::string &name) {
  for (const Workload &workload : all())
    if (workload.name == name)
      return &workload;
  return nullptr;
}
