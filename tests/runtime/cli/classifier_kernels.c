/* The kernels of the little classifier that the tests of the commands train
   (see Classifier.h): scores of 2 classes from 3 features, a batch of 4,
   squared loss against 1 for the label and -1 for the other class, gradient
   descent with momentum. Arithmetic only: the object needs no library. */
#include <stdint.h>

enum { batch = 4, features = 3, classes = 2 };

/* x [4, 3], w [2, 3] -> logits [4, 2]; an item is a row. */
void scores(void *const *buffers, int64_t begin, int64_t end, void *scratch) {
  const float *x = buffers[0], *w = buffers[1];
  float *logits = buffers[2];
  (void)scratch;
  for (int64_t row = begin; row < end; ++row)
    for (int c = 0; c < classes; ++c) {
      float sum = 0;
      for (int f = 0; f < features; ++f)
        sum += x[row * features + f] * w[c * features + f];
      logits[row * classes + c] = sum;
    }
}

static float difference(const float *logits, const int32_t *labels, int64_t row,
                        int c) {
  return logits[row * classes + c] - (labels[row] == c ? 1.0f : -1.0f);
}

/* logits, labels [4] -> loss []; one item. */
void loss(void *const *buffers, int64_t begin, int64_t end, void *scratch) {
  const float *logits = buffers[0];
  const int32_t *labels = buffers[1];
  float sum = 0;
  (void)begin, (void)end, (void)scratch;
  for (int row = 0; row < batch; ++row)
    for (int c = 0; c < classes; ++c) {
      float d = difference(logits, labels, row, c);
      sum += d * d;
    }
  *(float *)buffers[2] = sum / batch;
}

/* x, logits, labels, lr [], m [2, 3], w [2, 3]: updates m and w in place; an
   item is a class. */
void descend(void *const *buffers, int64_t begin, int64_t end, void *scratch) {
  const float *x = buffers[0], *logits = buffers[1];
  const int32_t *labels = buffers[2];
  const float lr = *(const float *)buffers[3];
  float *m = buffers[4], *w = buffers[5];
  (void)scratch;
  for (int64_t c = begin; c < end; ++c)
    for (int f = 0; f < features; ++f) {
      float grad = 0;
      for (int row = 0; row < batch; ++row)
        grad += 2.0f / batch * difference(logits, labels, row, (int)c) *
                x[row * features + f];
      m[c * features + f] = 0.5f * m[c * features + f] + grad;
      w[c * features + f] -= lr * m[c * features + f];
    }
}
