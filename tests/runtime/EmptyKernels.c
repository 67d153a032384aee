/*===- EmptyKernels.c - TestKernels.c's kernels, doing nothing --------------===
 *
 * What a hostile manifest is run with: a kernel's code is trusted, so what goes
 * wrong is the runtime's.
 *
 *===----------------------------------------------------------------------===*/
#define KERNEL(name)                                                           \
  void name(void *const *b, long begin, long end, void *scratch) {             \
    (void)b, (void)begin, (void)end, (void)scratch;                            \
  }

KERNEL(add)
KERNEL(all_finite)
KERNEL(copy)
KERNEL(from_half)
KERNEL(grad_b)
KERNEL(grad_w)
KERNEL(increment)
KERNEL(mean_square)
KERNEL(mul)
KERNEL(next_scale)
KERNEL(predict)
KERNEL(residual)
KERNEL(sgd)
KERNEL(sgd_scaled)
KERNEL(square_scratch)
KERNEL(times_constant)
KERNEL(to_half)
KERNEL(twice)
