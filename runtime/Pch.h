//===- Pch.h - the precompiled header of the runtime side -----------------===//
//
// The standard library and JSON, which take more than half of the time that a
// source of the runtime takes to compile. Sources include what they use all the
// same: the preset runtime-only has no precompiled header.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_PCH_H
#define TANDEM_RUNTIME_PCH_H

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#endif
