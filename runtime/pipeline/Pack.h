//===- Pack.h - values that go between stages in one message --------------===//
#ifndef TANDEM_RUNTIME_PIPELINE_PACK_H
#define TANDEM_RUNTIME_PIPELINE_PACK_H

#include "runtime/artifact/Manifest.h"
#include "runtime/tensor/Tensor.h"

#include <memory>
#include <string>
#include <vector>

namespace tandem::pipeline {

/// The memory of one message: values one behind the other.
struct Buffer {
  runtime::Tensor memory;
  std::vector<runtime::Tensor> parts; ///< views of it, in their order
};

/// What values a message has, and memory for as many messages as there are at a
/// time: what is given back is used again.
class Pack {
public:
  /// `names` are of values that `slots` has; the slots outlive the pack.
  Pack() = default;
  Pack(const std::vector<std::string> &names,
       const std::vector<artifact::Slot> &slots, artifact::Role role);

  const std::vector<const artifact::Slot *> &slots() const { return slots_; }
  int64_t bytes() const { return bytes_; }

  /// New memory is charged to `account`.
  Result<std::unique_ptr<Buffer>>
  take(const std::shared_ptr<runtime::MemoryAccount> &account);
  void giveBack(std::unique_ptr<Buffer> buffer);

private:
  std::vector<const artifact::Slot *> slots_;
  std::vector<int64_t> offsets_;
  int64_t bytes_ = 0;
  std::vector<std::unique_ptr<Buffer>> free_;
};

} // namespace tandem::pipeline

#endif
