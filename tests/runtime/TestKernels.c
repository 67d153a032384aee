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

/*--- Loss scaling: numbers go through f16, and what overflowed is left out
 * ---*/

union bits {
  float value;
  uint32_t bits;
};

static uint16_t half_of(float value) {
  union bits b = {value};
  uint32_t sign = b.bits >> 16 & 0x8000;
  b.bits &= 0x7fffffff;
  if (b.bits >= 0x477ff000) /* rounds to more than 65504, or is no number */
    return (uint16_t)(sign | (b.bits > 0x7f800000 ? 0x7e00 : 0x7c00));
  if (b.bits < 0x38800000) { /* subnormal: a multiple of 2^-24 */
    b.value += 0.5f;
    return (uint16_t)(sign | (b.bits - 0x3f000000));
  }
  return (uint16_t)(sign |
                    (b.bits - 0x38000000 + 0xfff + (b.bits >> 13 & 1)) >> 13);
}

static float number_of(uint16_t half) {
  union bits b, tiny = {.bits = 0x38800000};
  uint32_t magnitude = half & 0x7fff;
  b.bits = magnitude << 13;
  if (magnitude >= 0x7c00)
    b.bits += 0x70000000;
  else if (magnitude >= 0x400)
    b.bits += 0x38000000;
  else {
    b.bits += 0x38800000;
    b.value -= tiny.value;
  }
  b.bits |= (uint32_t)(half & 0x8000) << 16;
  return b.value;
}

KERNEL(to_half) {
  UNUSED_SCRATCH;
  const float *x = b[0];
  uint16_t *to = b[1];
  for (int64_t i = begin; i < end; ++i)
    to[i] = half_of(x[i]);
}

KERNEL(from_half) {
  UNUSED_SCRATCH;
  const uint16_t *x = b[0];
  float *to = b[1];
  for (int64_t i = begin; i < end; ++i)
    to[i] = number_of(x[i]);
}

/* gradients of w and of the bias -> 1 if all are finite, else 0; one item. */
KERNEL(all_finite) {
  UNUSED_SCRATCH;
  const float *w = b[0], *bias = b[1];
  float *flag = b[2];
  if (begin >= end)
    return;
  flag[0] = bias[0] - bias[0] == 0;
  for (int64_t i = 0; i < features; ++i)
    flag[0] *= w[i] - w[i] == 0;
}

/* value, gradient, rate, scale, flag -> value - rate * gradient / scale where
 * the flag is set; in place. */
KERNEL(sgd_scaled) {
  UNUSED_SCRATCH;
  const float *value = b[0], *g = b[1], *rate = b[2], *scale = b[3];
  const float *flag = b[4];
  float *to = b[5];
  for (int64_t i = begin; i < end; ++i)
    to[i] = flag[0] != 0 ? value[i] - rate[0] * (g[i] / scale[0]) : value[i];
}

/* scale, flag -> the scale, halved if the flag is not set; one item. */
KERNEL(next_scale) {
  UNUSED_SCRATCH;
  const float *scale = b[0], *flag = b[1];
  float *to = b[2];
  if (begin < end)
    to[0] = flag[0] != 0 ? scale[0] : scale[0] / 2;
}
