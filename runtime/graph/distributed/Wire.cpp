//===- Wire.cpp - how messages are written --------------------------------===//
#include "runtime/graph/distributed/Wire.h"

#include <bit>

namespace tandem::graph::distributed {

static_assert(std::endian::native == std::endian::little,
              "elements are sent as they lie");

/// Where the type of a tensor would stand: there is none.
static constexpr uint8_t undefinedTensor = 0xff;

Writer &Writer::put(const std::string &text) {
  put(uint64_t(text.size()));
  bytes.insert(bytes.end(), text.begin(), text.end());
  return *this;
}

Writer &Writer::append(std::span<const unsigned char> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
  return *this;
}

Writer &Writer::put(std::span<const uint64_t> numbers) {
  put(uint64_t(numbers.size()));
  for (uint64_t number : numbers)
    put(number);
  return *this;
}

Status Writer::put(const Tensor &tensor) {
  if (!tensor.defined()) {
    put(undefinedTensor);
    return Status::success();
  }
  Result<Tensor> host = tensor.onHost();
  if (host)
    host = host->dense();
  if (!host)
    return std::move(host).status();
  put(static_cast<uint8_t>(host->dtype()));
  put(static_cast<uint8_t>(host->rank()));
  for (int64_t size : host->shape())
    put(static_cast<uint64_t>(size));
  if (host->bytes() == 0)
    return Status::success();
  const auto *from = static_cast<const unsigned char *>(host->data());
  bytes.insert(bytes.end(), from, from + host->bytes());
  return Status::success();
}

std::span<const unsigned char> Reader::next(size_t count) {
  if (!isRight || bytes.size() < count) {
    isRight = false;
    return {};
  }
  std::span<const unsigned char> from = bytes.first(count);
  bytes = bytes.subspan(count);
  return from;
}

std::string Reader::text() {
  std::span<const unsigned char> from = next(get<uint64_t>());
  return {from.begin(), from.end()};
}

std::vector<uint64_t> Reader::numbers() {
  uint64_t count = get<uint64_t>();
  if (count > bytes.size() / sizeof(uint64_t)) {
    isRight = false;
    return {};
  }
  std::vector<uint64_t> numbers(count);
  for (uint64_t &number : numbers)
    number = get<uint64_t>();
  return numbers;
}

Result<Tensor> Reader::tensor() {
  uint8_t dtype = get<uint8_t>();
  if (!isRight || dtype == undefinedTensor)
    return Tensor();
  std::vector<int64_t> shape(get<uint8_t>());
  for (int64_t &size : shape)
    size = static_cast<int64_t>(get<uint64_t>());
  if (!isRight || dtype > static_cast<uint8_t>(artifact::DType::F8E5M2)) {
    isRight = false;
    return Tensor();
  }
  auto type = static_cast<artifact::DType>(dtype);
  Result<int64_t> count = runtime::elementCount(type, shape);
  if (!count)
    return std::move(count).status();
  std::span<const unsigned char> from =
      next(static_cast<size_t>(*count * artifact::byteSize(type)));
  return isRight ? Tensor::copyOf(from.data(), type, shape) : Tensor();
}

Status Reader::end(const char *what) const {
  if (isRight && bytes.empty())
    return Status::success();
  return Status::failed(
      std::string("a message ('") + what + "') is broken: " +
      (isRight ? "it has " + std::to_string(bytes.size()) + " bytes too many"
               : std::string("it ends too early")));
}

} // namespace tandem::graph::distributed
