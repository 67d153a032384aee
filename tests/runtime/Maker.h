//===- Maker.h - small manifests, put together in a test ------------------===//
//
// A test names the values of a model and writes its programs as lists of
// launches of the elementwise kernels of TestKernels.c; the manifest's indices
// are kept here.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_MAKER_H
#define TANDEM_TESTS_RUNTIME_MAKER_H

#include "tests/runtime/TestModel.h"

#include <gtest/gtest.h>

namespace tandem::test {

using artifact::Alias;
using artifact::Role;
using artifact::View;

using Sizes = std::vector<int64_t>;

class Maker {
public:
  Maker() {
    manifest.model = "made";
    manifest.producer = "test";
  }

  artifact::Value &value(Role role, const char *name, Sizes shape) {
    artifact::Value made;
    made.role = role;
    made.name = name;
    made.shape = std::move(shape);
    if (role == Role::Param || role == Role::State)
      made.init = artifact::Init::constant(0);
    return manifest.values.emplace_back(made);
  }

  void program(const char *name) {
    manifest.programs.emplace_back().name = name;
  }

  /// Adds an argument to the last program; returns its buffer.
  int64_t argument(Role role, const char *name, Sizes shape,
                   artifact::Slot **slot = nullptr) {
    return add(last().arguments, artifact::Buffer::argument, role, name, shape,
               slot);
  }
  int64_t result(Role role, const char *name, Sizes shape,
                 artifact::Slot **slot = nullptr) {
    return add(last().results, artifact::Buffer::result, role, name, shape,
               slot);
  }
  /// Adds an update in place of the argument whose buffer is `buffer`.
  artifact::Slot &update(const char *name, Sizes shape) {
    artifact::Slot made;
    made.role = Role::Update;
    made.name = name;
    made.shape = std::move(shape);
    made.inPlace = true;
    return last().results.emplace_back(made);
  }
  int64_t arena(int64_t bytes) {
    artifact::Program &p = last();
    int64_t rounded = (bytes + 63) / 64 * 64;
    p.buffers.push_back(artifact::Buffer::arena(p.arenaBytes, rounded));
    p.buffers.back().bytes = bytes;
    p.arenaBytes += rounded;
    return static_cast<int64_t>(p.buffers.size()) - 1;
  }

  void alias(const char *name, Sizes shape, Alias alias,
             const char *partOf = "") {
    artifact::OutputAlias made;
    made.name = name;
    made.shape = std::move(shape);
    made.alias = std::move(alias);
    made.partOf = partOf;
    last().aliases.push_back(made);
  }

  /// Adds a launch that reads `reads` and writes `write`.
  artifact::Launch &launch(const char *kernel, Sizes reads, int64_t write,
                           int64_t work) {
    artifact::Launch made;
    made.kernel = kernelIndex(kernel);
    made.work = work;
    made.buffers = reads;
    made.buffers.push_back(write);
    auto count = static_cast<int64_t>(reads.size());
    for (int64_t i = 0; i < count; ++i)
      made.reads.push_back(i);
    made.writes = {count};
    return last().launches.emplace_back(made);
  }

  runtime::Model load(int threads = 1) {
    return modelFor(manifest, {threads, 0});
  }

  artifact::Manifest manifest;

private:
  artifact::Program &last() { return manifest.programs.back(); }

  template <typename Fn>
  int64_t add(std::vector<artifact::Slot> &slots, Fn buffer, Role role,
              const char *name, Sizes shape, artifact::Slot **slot) {
    artifact::Slot made;
    made.role = role;
    made.name = name;
    made.shape = std::move(shape);
    slots.push_back(made);
    if (slot)
      *slot = &slots.back();
    last().buffers.push_back(buffer(static_cast<int64_t>(slots.size()) - 1));
    return static_cast<int64_t>(last().buffers.size()) - 1;
  }

  int64_t kernelIndex(const char *symbol) {
    for (size_t i = 0; i < manifest.kernels.size(); ++i)
      if (manifest.kernels[i].symbol == symbol)
        return static_cast<int64_t>(i);
    artifact::Kernel made;
    made.symbol = symbol;
    made.kind = "pointwise";
    manifest.kernels.push_back(made);
    return static_cast<int64_t>(manifest.kernels.size()) - 1;
  }
};

/// Expects a status that failed, with `part` in its message.
inline void expectMessage(const Status &status, const std::string &part) {
  EXPECT_FALSE(status.ok()) << "expected '" << part << "'";
  EXPECT_NE(status.message().find(part), std::string::npos)
      << "expected '" << part << "' in: " << status.message();
}

inline runtime::Tensor filled(Sizes shape, double first = 0, double step = 1) {
  runtime::Tensor made = *runtime::Tensor::zeros(artifact::DType::F32, shape);
  for (int64_t i = 0; i < made.elements(); ++i)
    made.mutableData<float>()[i] = static_cast<float>(first + step * double(i));
  return tensorDevice().isHost() ? made : *made.copyTo(tensorDevice());
}

} // namespace tandem::test

#endif
