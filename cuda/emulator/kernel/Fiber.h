//===- Fiber.h - stacks that take turns -----------------------------------===//
//
// A fiber is a stack and where it stopped. Exactly one runs at a time on a host
// thread; `switchTo` is the only way from one to another. On x86-64 a switch is
// a dozen instructions; elsewhere it is ucontext's. AddressSanitizer and
// ThreadSanitizer are told about every switch.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNEL_FIBER_H
#define TANDEM_CUDA_EMULATOR_KERNEL_FIBER_H

#include <cstddef>
#include <memory>

namespace tandem::emulator::kernel {

class Fiber {
public:
  using Entry = void (*)(void *argument);

  /// The stack of whoever makes it: the first switch away from it fills it in.
  Fiber();
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// Puts a call of `entry(argument)` on the stack [bottom, bottom + bytes).
  /// `entry` must not return. What the stack held before is forgotten.
  void prepare(void *bottom, size_t bytes, Entry entry, void *argument);

  /// Leaves this fiber, which is running, for `next`. `forGood` says that
  /// this fiber is prepared anew before it runs again.
  void switchTo(Fiber &next, bool forGood = false);

private:
  struct Context;
  static void start(Fiber *self);
  void arrived();

  void *stackPointer = nullptr;
  const void *bottom = nullptr;
  size_t bytes = 0;
  Entry entry = nullptr;
  void *argument = nullptr;
  Fiber *previous = nullptr; ///< who switched to this one last
  void *fakeStack = nullptr; ///< AddressSanitizer's
  void *tsan = nullptr;      ///< ThreadSanitizer's
  std::unique_ptr<Context> context;
  friend void enterFiber(Fiber *self);
};

/// Stacks of one size with an unmapped page below each.
class FiberStacks {
public:
  FiberStacks() = default;
  ~FiberStacks();
  FiberStacks(const FiberStacks &) = delete;
  FiberStacks &operator=(const FiberStacks &) = delete;

  /// Makes at least `count` stacks of at least `bytes` each; false where there
  /// is no memory. Earlier stacks may move.
  bool reserve(size_t count, size_t bytes);
  /// The lowest byte of stack `i`, of `bytes()`.
  std::byte *bottom(size_t i) const { return memory + i * stride + kGuard; }
  size_t bytes() const { return stride - kGuard; }

private:
  static constexpr size_t kGuard = 4096;
  std::byte *memory = nullptr;
  size_t stride = 0, count = 0;
};

} // namespace tandem::emulator::kernel

#endif
