// What shows each flag of tandem_harden, for planted.sh: a library in which the
// lint 'hardening' must miss what was left out, and a program (HARDENED_MAIN)
// that fails unless variables begin as zero.
#include <string.h>

__attribute__((noinline)) static void use(void *memory) {
  __asm__ volatile("" : : "r"(memory) : "memory");
}

// A checked copy: the compiler knows the size of the one, not of the other.
void copy(const char *from, size_t bytes) {
  char small[16];
  use(small);
  memcpy(small, from, bytes);
  use(small);
}

// Several pages of the stack.
void deep(void) {
  char large[1 << 16];
  use(large);
}

// Functions that others may call.
int a(int x) { return x + 1; }
int b(int x) { return x + 1; }
int c(int x) { return x + 1; }
int d(int x) { return x + 1; }
int e(int x) { return x + 1; }
int f(int x) { return x + 1; }

#ifdef HARDENED_RWX
__asm__(".section .both, \"awx\"\n .byte 0\n .text");
#endif

#ifdef HARDENED_MAIN
__attribute__((noinline)) static void dirty(void) {
  volatile char left[256];
  for (size_t i = 0; i < sizeof left; ++i)
    left[i] = 'x';
}
__attribute__((noinline)) static int sumOfNothing(void) {
  char fresh[128];
  use(fresh); // which writes nothing
  int sum = 0;
  for (size_t i = 0; i < sizeof fresh; ++i)
    sum |= fresh[i];
  return sum;
}
int main(void) {
  dirty();
  return sumOfNothing() != 0;
}
#endif
