//===- Wire.h - how messages are written ----------------------------------===//
//
// Numbers are little-endian, a text is its length and its bytes, a tensor its
// type, shape and row-major elements. A reader believes nothing: what does not
// fit makes `ok` false, and everything after it empty.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_DISTRIBUTED_WIRE_H
#define TANDEM_RUNTIME_GRAPH_DISTRIBUTED_WIRE_H

#include "runtime/graph/distributed/Transport.h"
#include "runtime/tensor/Tensor.h"

#include <concepts>
#include <span>
#include <string>

namespace tandem::graph::distributed {

using runtime::Tensor;

class Writer {
public:
  template <std::unsigned_integral T> Writer &put(T number) {
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes.push_back(static_cast<unsigned char>(number >> (8 * i)));
    return *this;
  }
  Writer &put(const std::string &text);
  Writer &put(std::span<const uint64_t> numbers);
  /// Bytes as they are.
  Writer &append(std::span<const unsigned char> more);
  /// An undefined one, too. Of a device: waits for its elements.
  Status put(const Tensor &tensor);
  Bytes take() { return std::move(bytes); }

private:
  Bytes bytes;
};

class Reader {
public:
  explicit Reader(std::span<const unsigned char> bytes) : bytes(bytes) {}

  template <std::unsigned_integral T> T get() {
    std::span<const unsigned char> from = next(sizeof(T));
    T number = 0;
    for (size_t i = 0; i < from.size(); ++i)
      number = static_cast<T>(number | (static_cast<T>(from[i]) << (8 * i)));
    return number;
  }
  std::string text();
  std::vector<uint64_t> numbers();
  Result<Tensor> tensor();

  bool ok() const { return isRight; }
  /// An error that says of what message too little came, or too much.
  Status end(const char *what) const;

private:
  std::span<const unsigned char> next(size_t count);

  std::span<const unsigned char> bytes;
  bool isRight = true;
};

} // namespace tandem::graph::distributed

#endif
