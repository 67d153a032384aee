//===- Fiber.cpp - stacks that take turns ---------------------------------===//
#include "cuda/emulator/kernel/Fiber.h"

#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define TANDEM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TANDEM_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TANDEM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TANDEM_TSAN 1
#endif
#endif

#ifdef TANDEM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TANDEM_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace tandem::emulator::kernel {

#ifdef __x86_64__

struct Fiber::Context {};

// Saves what a call must preserve, stores the stack pointer where the first
// argument says and continues from the second.
extern "C" void tandemSwitchFiber(void **save, void *to);
asm(R"(
.text
.globl tandemSwitchFiber
.hidden tandemSwitchFiber
.type tandemSwitchFiber,@function
tandemSwitchFiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tandemSwitchFiber, .-tandemSwitchFiber
.globl tandemStartFiber
.hidden tandemStartFiber
.type tandemStartFiber,@function
tandemStartFiber:
  movq %rbx, %rdi
  callq tandemEnterFiber
  ud2
.size tandemStartFiber, .-tandemStartFiber
)");
extern "C" void tandemStartFiber();
extern "C" __attribute__((visibility("hidden"), used)) void
tandemEnterFiber(Fiber *self);

#else

struct Fiber::Context {
  ucontext_t state;
};

#endif

Fiber::Fiber() {
#ifndef __x86_64__
  context = std::make_unique<Context>();
#endif
}

Fiber::~Fiber() {
#ifdef TANDEM_TSAN
  if (tsan && entry)
    __tsan_destroy_fiber(tsan);
#endif
}

/// The first thing that runs on a fiber.
void enterFiber(Fiber *self) {
  self->arrived();
  self->entry(self->argument);
  std::abort();
}

#ifdef __x86_64__
extern "C" void tandemEnterFiber(Fiber *self) { enterFiber(self); }
#else
static void enterSplit(unsigned low, unsigned high) {
  enterFiber(reinterpret_cast<Fiber *>(static_cast<uintptr_t>(low) |
                                       static_cast<uintptr_t>(high) << 32));
}
#endif

void Fiber::prepare(void *stack, size_t size, Entry function, void *data) {
  bottom = stack;
  bytes = size;
  fakeStack = nullptr;
#ifdef TANDEM_ASAN
  __asan_unpoison_memory_region(stack, size);
#endif
#ifdef TANDEM_TSAN
  if (tsan && entry)
    __tsan_destroy_fiber(tsan);
  tsan = __tsan_create_fiber(0);
#endif
  entry = function;
  argument = data;
#ifdef __x86_64__
  // What tandemSwitchFiber pops: r15, r14, r13, r12, rbx, rbp, then the
  // address it returns to; the pointer is at a multiple of 16 after that, as a
  // call wants it.
  auto top = reinterpret_cast<uintptr_t>(stack) + size;
  auto *frame = reinterpret_cast<void **>((top & ~uintptr_t(15)) - 72);
  for (int i = 0; i < 8; ++i)
    frame[i] = nullptr;
  frame[4] = this;
  frame[6] = reinterpret_cast<void *>(tandemStartFiber);
  stackPointer = frame;
#else
  getcontext(&context->state);
  context->state.uc_stack.ss_sp = stack;
  context->state.uc_stack.ss_size = size;
  context->state.uc_link = nullptr;
  auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context->state, reinterpret_cast<void (*)()>(enterSplit), 2,
              static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
#endif
}

void Fiber::arrived() {
#ifdef TANDEM_ASAN
  const void *from = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(fakeStack, &from, &size);
  if (!previous->entry) { // the host thread's own stack
    previous->bottom = from;
    previous->bytes = size;
  }
#endif
}

void Fiber::switchTo(Fiber &next, bool forGood) {
  next.previous = this;
#ifdef TANDEM_ASAN
  __sanitizer_start_switch_fiber(forGood ? nullptr : &fakeStack, next.bottom,
                                 next.bytes);
#endif
#ifdef TANDEM_TSAN
  if (!entry)
    tsan = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(next.tsan, 0);
#endif
  (void)forGood;
#ifdef __x86_64__
  tandemSwitchFiber(&stackPointer, next.stackPointer);
#else
  swapcontext(&context->state, &next.context->state);
#endif
  arrived();
}

FiberStacks::~FiberStacks() {
  if (memory)
    munmap(memory, stride * count);
}

bool FiberStacks::reserve(size_t wanted, size_t size) {
  size_t pages = (size + kGuard - 1) / kGuard;
  size_t each = (pages + 1) * kGuard;
  if (wanted <= count && each <= stride)
    return true;
  if (memory)
    munmap(memory, stride * count);
  stride = each > stride ? each : stride;
  count = wanted > count ? wanted : count;
  void *mapped = mmap(nullptr, stride * count, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    memory = nullptr;
    stride = count = 0;
    return false;
  }
  memory = static_cast<std::byte *>(mapped);
  for (size_t i = 0; i < count; ++i)
    mprotect(memory + i * stride, kGuard, PROT_NONE);
  return true;
}

} // namespace tandem::emulator::kernel
