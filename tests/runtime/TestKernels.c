/*===- TestKernels.c - the code object of the hand-written artifacts
 *---------===
 *
 * Kernels in the artifact's ABI for a linear regression of 8 samples with 3
 * features, and a few that only exercise the executor. Built as a shared object
 * without any library, as the compiler's objects are.
 *
 *===----------------------------------------------------------------------===*/
#include <stdint.h>

#define KERNEL(name)                                                           \
  void name(void *const *b, int64_t begin, int64_t end, void *scratch)
#define UNUSED_SCRATCH (void)scratch

enum { samples = 8, features = 3 };

/* x, w, bias -> pred; an item is a sample. */
KERNEL(predict) {
  UNUSED_SCRATCH;
  const float *x = b[0], *w = b[1], *bias = b[2];
  float *pred = b[3];
  for (int64_t i = begin; i < end; ++i) {
    float sum = bias[0];
    for (int64_t j = 0; j < features; ++j)
      sum += x[i * features + j] * w[j];
    pred[i] = sum;
  }
}

/* pred, y -> pred - y; an item is a sample. */
KERNEL(residual) {
  UNUSED_SCRATCH;
  const float *pred = b[0], *y = b[1];
  float *r = b[2];
  for (int64_t i = begin; i < end; ++i)
    r[i] = pred[i] - y[i];
}

/* r -> mean of squares; one item. */
KERNEL(mean_square) {
  UNUSED_SCRATCH;
  const float *r = b[0];
  float *loss = b[1];
  float sum = 0;
  for (int64_t i = 0; begin < end && i < samples; ++i)
    sum += r[i] * r[i];
  if (begin < end)
    loss[0] = sum / samples;
}

/* x, r, cotangent -> gradient of w; an item is a feature. */
KERNEL(grad_w) {
  UNUSED_SCRATCH;
  const float *x = b[0], *r = b[1], *ct = b[2];
  float *g = b[3];
  for (int64_t j = begin; j < end; ++j) {
    float sum = 0;
    for (int64_t i = 0; i < samples; ++i)
      sum += x[i * features + j] * r[i];
    g[j] = 2 * sum / samples * ct[0];
  }
}

/* r, cotangent -> gradient of the bias; one item. */
KERNEL(grad_b) {
  UNUSED_SCRATCH;
  const float *r = b[0], *ct = b[1];
  float *g = b[2];
  float sum = 0;
  for (int64_t i = 0; begin < end && i < samples; ++i)
    sum += r[i];
  if (begin < end)
    g[0] = 2 * sum / samples * ct[0];
}

/* value, gradient, rate -> value - rate * gradient; may be in place. */
KERNEL(sgd) {
  UNUSED_SCRATCH;
  const float *value = b[0], *g = b[1], *rate = b[2];
  float *to = b[3];
  for (int64_t i = begin; i < end; ++i)
    to[i] = value[i] - rate[0] * g[i];
}

/* value -> value + 1; may be in place. */
KERNEL(increment) {
  UNUSED_SCRATCH;
  const float *value = b[0];
  float *to = b[1];
  for (int64_t i = begin; i < end; ++i)
    to[i] = value[i] + 1;
}

/* x -> x * x + i, through the scratch memory, 16 items at a time. */
KERNEL(square_scratch) {
  const float *x = b[0];
  float *to = b[1], *part = scratch;
  for (int64_t i = begin; i < end; i += 16) {
    int64_t count = end - i < 16 ? end - i : 16;
    for (int64_t k = 0; k < count; ++k)
      part[k] = x[i + k] * x[i + k];
    for (int64_t k = 0; k < count; ++k)
      to[i + k] = part[k] + (float)(i + k);
  }
}

/* x, constant of 4 -> x * constant[i % 4]. */
KERNEL(times_constant) {
  UNUSED_SCRATCH;
  const float *x = b[0], *c = b[1];
  float *to = b[2];
  for (int64_t i = begin; i < end; ++i)
    to[i] = x[i] * c[i % 4];
}

/* Elementwise, any number of items; may be in place. */
KERNEL(add) {
  UNUSED_SCRATCH;
  const float *x = b[0], *y = b[1];
  float *to = b[2];
  for (int64_t i = begin; i < end; ++i)
    to[i] = x[i] + y[i];
}

KERNEL(mul) {
  UNUSED_SCRATCH;
  const float *x = b[0], *y = b[1];
  float *to = b[2];
  for (int64_t i = begin; i < end; ++i)
    to[i] = x[i] * y[i];
}

KERNEL(twice) {
  UNUSED_SCRATCH;
  const float *x = b[0];
  float *to = b[1];
  for (int64_t i = begin; i < end; ++i)
    to[i] = 2 * x[i];
}

KERNEL(copy) {
  UNUSED_SCRATCH;
  const float *x = b[0];
  float *to = b[1];
  for (int64_t i = begin; i < end; ++i)
    to[i] = x[i];
}
