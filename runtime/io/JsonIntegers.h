//===- JsonIntegers.h - lists of integers in a JSON document --------------===//
#ifndef TANDEM_RUNTIME_IO_JSONINTEGERS_H
#define TANDEM_RUNTIME_IO_JSONINTEGERS_H

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace tandem::io {

/// Reads a list of integers from 0 to 2^63 - 1; nothing where it is none.
std::optional<std::vector<int64_t>> integers(const nlohmann::json &list);

} // namespace tandem::io

#endif
