/* embed.c - trains and uses a compiled model from C, with the runtime alone.
 *
 *   embed mlp.tdm train_images.raw train_labels.raw   (64 and 1 bytes a digit)
 *
 * (The digits' .npy files are these bytes behind 128 bytes of a header.)
 * Loads the digits MLP that `tandem compile` made, trains it, saves it, and
 * predicts the last digits of the file, which it did not train on. */
#if __has_include("runtime/tandem.h") /* in Tandem's own tree */
#include "runtime/tandem.h"
#else
#include <tandem/tandem.h>
#endif

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 32, PIXELS = 64, CLASSES = 10, EPOCHS = 40 };

static void require(tdm_status status, const char *what) {
  if (status == TDM_OK)
    return;
  fprintf(stderr, "embed: %s: %s\n", what, tdm_last_error());
  exit(status);
}

static unsigned char *readFile(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  unsigned char *data = NULL;
  if (file && fseek(file, 0, SEEK_END) == 0) {
    *bytes = (size_t)ftell(file);
    rewind(file);
    data = malloc(*bytes + 1);
  }
  if (!data || fread(data, 1, *bytes, file) != *bytes) {
    fprintf(stderr, "embed: cannot read '%s'\n", path);
    exit(1);
  }
  fclose(file);
  return data;
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: embed MODEL.tdm IMAGES LABELS\n");
    return 2;
  }
  size_t imageBytes, digits;
  unsigned char *images = readFile(argv[2], &imageBytes);
  unsigned char *labels = readFile(argv[3], &digits);
  if (imageBytes != digits * PIXELS || digits < 2 * BATCH) {
    fprintf(stderr, "embed: expected %d bytes for each of the labels\n",
            PIXELS);
    return 1;
  }

  tdm_model *model = NULL;
  tdm_options options = TDM_OPTIONS_INIT; /* sets the struct's size */
  tdm_tensor *x = NULL, *y = NULL, *loss = NULL, *logits = NULL;
  require(tdm_model_load(argv[1], &options, &model), "load");
  require(tdm_tensor_zeros(TDM_F32, 2, (int64_t[]){BATCH, PIXELS}, &x), "x");
  require(tdm_tensor_zeros(TDM_I64, 1, (int64_t[]){BATCH}, &y), "labels");
  require(tdm_tensor_zeros(TDM_F32, 0, NULL, &loss), "loss");
  require(tdm_tensor_zeros(TDM_F32, 2, (int64_t[]){BATCH, CLASSES}, &logits),
          "logits");
  tdm_argument inputs[] = {{"x", x}, {"labels", y}};
  tdm_argument outputs[] = {{"loss", loss}, {"logits", logits}};

  size_t steps = digits / BATCH, right = 0;
  for (size_t step = 0; step < EPOCHS * (steps - 1) + 1; ++step) {
    /* The last batch of the file is for the end. */
    int last = step == EPOCHS * (steps - 1);
    size_t first = (last ? steps - 1 : step % (steps - 1)) * BATCH;
    float *pixels = tdm_tensor_data(x);
    int64_t *classes = tdm_tensor_data(y);
    for (size_t i = 0; i < BATCH * PIXELS; ++i)
      pixels[i] = images[first * PIXELS + i];
    for (size_t i = 0; i < BATCH; ++i)
      classes[i] = labels[first + i];
    require(tdm_run(model, last ? "evaluate" : "step", inputs, 2, outputs, 2),
            "run");
  }
  const float *scores = tdm_tensor_data(logits);
  for (int i = 0; i < BATCH; ++i) {
    int best = 0;
    for (int c = 1; c < CLASSES; ++c)
      if (scores[i * CLASSES + c] > scores[i * CLASSES + best])
        best = c;
    right += best == ((const int64_t *)tdm_tensor_data(y))[i];
  }
  printf("loss %.4f, %zu of %d unseen digits right\n",
         *(float *)tdm_tensor_data(loss), right, BATCH);
  tdm_tensor *tensors[] = {x, y, loss, logits};
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; ++i)
    tdm_tensor_free(tensors[i]);
  tdm_model_free(model);
  free(images);
  free(labels);
  return 0;
}
