//===- Handles.h - objects behind the driver's handles --------------------===//
//
// Owns objects whose addresses are given out as handles, and knows which of
// them are live, so that a bad handle is an error and not a crash.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_HANDLES_H
#define TANDEM_CUDA_EMULATOR_HANDLES_H

#include <memory>
#include <unordered_map>

namespace tandem::emulator {

template <typename T> class Handles {
public:
  T &add(std::unique_ptr<T> object) {
    T &result = *object;
    live.emplace(&result, std::move(object));
    return result;
  }
  /// Returns the object of a handle, or null.
  T *find(const void *handle) const {
    auto it = live.find(handle);
    return it == live.end() ? nullptr : it->second.get();
  }
  void remove(const T &object) { live.erase(&object); }
  size_t size() const { return live.size(); }

private:
  std::unordered_map<const void *, std::unique_ptr<T>> live;
};

} // namespace tandem::emulator

#endif
