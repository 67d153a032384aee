/*===- CApiTest.c - the C API from C ----------------------------------------===
 *
 * runtime-capi ARTIFACT FOLDER: a C11 program that links libtandem.so only. It
 * trains the regression of TestModel.h through `step` and through the separate
 * programs, and checks errors, DLPack, saving and loading.
 *
 *===----------------------------------------------------------------------===*/
#include "runtime/dlpack.h"
#include "runtime/tandem.h"
#include "tests/runtime/CApiCheck.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static float xs[24], ys[8];
static const int64_t x_shape[] = {8, 3}, y_shape[] = {8};

static void make_data(void) {
  for (int i = 0; i < 24; ++i)
    xs[i] = (float)sin(1.7 * i);
  for (int i = 0; i < 8; ++i)
    ys[i] = xs[3 * i] - 2 * xs[3 * i + 1] + 3 * xs[3 * i + 2] + 0.5f;
}

static void test_null_and_bad_arguments(const char *path) {
  tdm_model *model = NULL;
  tdm_tensor *tensor = NULL;
  CHECK_FAILS(tdm_model_load(NULL, NULL, &model), TDM_USAGE, "path");
  CHECK_FAILS(tdm_model_load(path, NULL, NULL), TDM_USAGE, "null");
  CHECK_FAILS(tdm_model_load("/nowhere/x.tdm", NULL, &model), TDM_FAILED,
              "cannot open '/nowhere/x.tdm'");
  tdm_options options = TDM_OPTIONS_INIT;
  options.threads = -1;
  CHECK_FAILS(tdm_model_load(path, &options, &model), TDM_USAGE, "threads");
  CHECK(model == NULL);
  CHECK_FAILS(tdm_step(NULL, NULL, 0, NULL, 0), TDM_USAGE, "model");
  CHECK_FAILS(tdm_tensor_zeros(TDM_F32, 17, x_shape, &tensor), TDM_USAGE,
              "rank");
  CHECK_FAILS(tdm_tensor_zeros((tdm_dtype)99, 1, y_shape, &tensor), TDM_USAGE,
              "tdm_dtype");
  CHECK_FAILS(tdm_tensor_wrap(NULL, TDM_F32, 1, y_shape, NULL, &tensor),
              TDM_USAGE, "null");
  /* C7: a negative stride was taken, and read what lies before the data. */
  const int64_t back[] = {-1}, far[] = {INT64_MAX}, back_far[] = {INT64_MIN};
  CHECK_FAILS(tdm_tensor_wrap(ys, TDM_F32, 1, y_shape, back, &tensor),
              TDM_USAGE, "strides of at least 0 but got [-1]");
  CHECK_FAILS(tdm_tensor_wrap(ys, TDM_F32, 1, y_shape, far, &tensor), TDM_USAGE,
              "2^48 bytes");
  CHECK_FAILS(
      tdm_tensor_wrap_on("cpu", ys, TDM_F32, 1, y_shape, back_far, &tensor),
      TDM_USAGE, "strides of at least 0");
  const int64_t negative[] = {-8}, huge[] = {INT64_MAX};
  CHECK_FAILS(tdm_tensor_wrap(ys, TDM_F32, 1, negative, NULL, &tensor),
              TDM_USAGE, "at least 0");
  CHECK_FAILS(tdm_tensor_wrap(ys, TDM_F32, 1, huge, NULL, &tensor), TDM_USAGE,
              "2^48 bytes");
  CHECK_FAILS(tdm_tensor_wrap(ys, TDM_F32, -1, y_shape, NULL, &tensor),
              TDM_USAGE, "rank");
  CHECK_FAILS(tdm_tensor_wrap(ys, TDM_F32, 1, NULL, NULL, &tensor), TDM_USAGE,
              "shape");
  CHECK_FAILS(tdm_tensor_wrap(ys, (tdm_dtype)-1, 1, y_shape, NULL, &tensor),
              TDM_USAGE, "tdm_dtype");
  CHECK_FAILS(tdm_tensor_wrap_on("gpu", ys, TDM_F32, 1, y_shape, NULL, &tensor),
              TDM_USAGE, "gpu");
  CHECK_FAILS(tdm_tensor_from_dlpack(NULL, &tensor), TDM_USAGE, "null");
  CHECK(tensor == NULL);
  CHECK(tdm_value_count(NULL) == 0 && tdm_tensor_rank(NULL) == -1);
  tdm_model_free(NULL);
  tdm_tensor_free(NULL);
  tdm_context_free(NULL);
}

static void test_description(tdm_model *model) {
  CHECK(tdm_value_count(model) == 8);
  tdm_value value = TDM_VALUE_INIT;
  CHECK(tdm_value_at(model, 2, &value) == TDM_OK);
  CHECK(strcmp(value.name, "w") == 0 && value.role == TDM_PARAM);
  CHECK(value.dtype == TDM_F32 && value.rank == 1 && value.shape[0] == 3);
  CHECK(value.requires_grad == 1);
  CHECK_FAILS(tdm_value_at(model, 8, &value), TDM_USAGE, "below 8");
  CHECK(tdm_program_count(model) == 5);
  CHECK(strcmp(tdm_program_at(model, 1), "forward") == 0);
  /* The message was one of an earlier call: "expected a model". */
  CHECK(tdm_program_at(NULL, 0) == NULL);
  CHECK(strstr(tdm_last_error(), "expected a model but got null") != NULL);
  CHECK(tdm_program_at(model, 99) == NULL);
  CHECK(strcmp(tdm_last_error(),
               "expected a number of a program, 0 to 4, but got 99") == 0);
  CHECK(tdm_program_at(model, 5) == NULL);
  /* One size has no name. */
  CHECK(tdm_size_count(model) == 0 && tdm_size_count(NULL) == 0);
  CHECK(tdm_size_at(model, 0) == NULL);
  CHECK(strcmp(tdm_last_error(), "expected a size below 0 but got 0") == 0);
  CHECK_FAILS(tdm_size_value_at(model, 0, 0, &value), TDM_USAGE,
              "expected a size below 0 but got 0");
}

/* Trains one model by steps and one by parts; both give the same bits. */
static void test_training(tdm_model *stepped, tdm_model *parts) {
  tdm_tensor *x = NULL, *y = NULL, *one = NULL, *gw = NULL, *gb = NULL;
  tdm_tensor *loss = NULL, *loss2 = NULL;
  float one_value = 1, loss_value = 0, loss2_value = 0;
  CHECK(tdm_tensor_wrap(xs, TDM_F32, 2, x_shape, NULL, &x) == TDM_OK);
  CHECK(tdm_tensor_wrap(ys, TDM_F32, 1, y_shape, NULL, &y) == TDM_OK);
  CHECK(tdm_tensor_zeros(TDM_F32, 0, NULL, &one) == TDM_OK);
  CHECK(tdm_tensor_write(one, &one_value, sizeof one_value) == TDM_OK);
  CHECK(tdm_tensor_empty(&loss) == TDM_OK);
  CHECK(tdm_tensor_zeros(TDM_F32, 0, NULL, &loss2) == TDM_OK);
  CHECK(tdm_tensor_empty(&gw) == TDM_OK && tdm_tensor_empty(&gb) == TDM_OK);
  tdm_argument in[] = {{"x", x}, {"y", y}}, out[] = {{"loss", loss}};
  tdm_argument out2[] = {{"loss", loss2}}, ct[] = {{"loss", one}};
  tdm_argument grads[] = {{"w", gw}, {"b", gb}};
  tdm_context *context = NULL;
  for (int i = 0; i < 300; ++i) {
    CHECK(tdm_step(stepped, in, 2, out, 1) == TDM_OK);
    CHECK(tdm_forward(parts, in, 2, out2, 1, &context) == TDM_OK);
    CHECK(tdm_backward(parts, context, ct, 1, grads, 2, 0) == TDM_OK);
    CHECK(tdm_update(parts, grads, 2) == TDM_OK);
  }
  CHECK(tdm_tensor_read(loss, &loss_value, sizeof loss_value) == TDM_OK);
  CHECK(tdm_tensor_read(loss2, &loss2_value, sizeof loss2_value) == TDM_OK);
  CHECK(loss_value == loss2_value && loss_value < 1e-3f);
  CHECK_FAILS(tdm_backward(parts, context, ct, 1, grads, 2, 0), TDM_USAGE,
              "already used");
  CHECK_FAILS(tdm_backward(parts, context, ct, 1, grads, 2, 8), TDM_USAGE,
              "flags");
  CHECK_FAILS(tdm_tensor_read(loss, &loss_value, 3), TDM_USAGE,
              "expected 4 bytes");

  /* A write to what the backward reads is noticed once it is reported. */
  CHECK(tdm_forward(parts, in, 2, NULL, 0, &context) == TDM_OK);
  tdm_tensor_mark_written(x);
  CHECK_FAILS(tdm_backward(parts, context, ct, 1, grads, 2, 0), TDM_USAGE,
              "was written after the forward");
  CHECK(tdm_forward(parts, in, 2, out2, 1, NULL) == TDM_OK);

  tdm_argument wrong[] = {{"x", y}, {"z", y}};
  CHECK_FAILS(tdm_step(stepped, wrong, 2, out, 1), TDM_USAGE,
              "unknown argument 'z'");
  CHECK(strstr(tdm_last_error(), "missing input 'y'") != NULL);
  CHECK(strstr(tdm_last_error(), "expected f32 [8, 3] but got f32 [8]"));
  tdm_argument holes[] = {{"x", NULL}};
  CHECK_FAILS(tdm_step(stepped, holes, 1, NULL, 0), TDM_USAGE, "'x'");
  CHECK_FAILS(tdm_run(stepped, "fly", NULL, 0, NULL, 0), TDM_USAGE,
              "no program 'fly'");
  /* Escape sequences of names stood in messages as they are. */
  tdm_tensor *none = NULL;
  CHECK_FAILS(tdm_get(stepped, "a\x1b[1mb", &none), TDM_USAGE, "'a\\x1b[1mb'");

  tdm_tensor *all[] = {x, y, one, gw, gb, loss, loss2};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    tdm_tensor_free(all[i]);
  tdm_context_free(context);
}

/* tdm_save replaced the artifact, and any other file, without a word. */
static void test_what_saving_replaces(tdm_model *model, const char *artifact,
                                      const char *folder) {
  char path[4096];
  char text[] = "some notes";
  CHECK_FAILS(tdm_save(model, artifact), TDM_USAGE, artifact);
  CHECK(strstr(tdm_last_error(),
               "expected tensors (safetensors) but got an artifact") != NULL);
  tdm_model *again = NULL;
  CHECK(tdm_model_load(artifact, NULL, &again) == TDM_OK);
  tdm_model_free(again);

  snprintf(path, sizeof path, "%s/capi-notes.txt", folder);
  FILE *file = fopen(path, "w");
  CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
  CHECK_FAILS(tdm_save(model, path), TDM_USAGE, "a file of another kind");
  file = fopen(path, "r");
  CHECK(file && fgets(text, sizeof text, file) && fclose(file) == 0);
  CHECK(strcmp(text, "some notes") == 0);
  file = fopen(path, "w"); /* an empty file is nobody's */
  CHECK(file && fclose(file) == 0);
  CHECK(tdm_save(model, path) == TDM_OK);
  CHECK(tdm_save(model, path) == TDM_OK);
  CHECK(remove(path) == 0);
}

static void test_parameters(tdm_model *model, const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/capi.safetensors", folder);
  tdm_tensor *w = NULL;
  float trained[3], values[3] = {1, 2, 3};
  const int64_t shape[] = {3};
  CHECK(tdm_get(model, "w", &w) == TDM_OK);
  CHECK(tdm_tensor_read(w, trained, sizeof trained) == TDM_OK);
  CHECK(tdm_save(model, path) == TDM_OK);
  tdm_tensor *other = NULL;
  CHECK(tdm_tensor_wrap(values, TDM_F32, 1, shape, NULL, &other) == TDM_OK);
  CHECK(tdm_set(model, "w", other) == TDM_OK);
  CHECK(((float *)tdm_tensor_data(w))[2] == 3);
  CHECK_FAILS(tdm_set(model, "b", other), TDM_USAGE, "'b': expected f32 []");
  CHECK_FAILS(tdm_set(model, "x", other), TDM_USAGE, "no param or state 'x'");
  CHECK(tdm_load(model, path) == TDM_OK);
  CHECK(memcmp(tdm_tensor_data(w), trained, sizeof trained) == 0);
  CHECK_FAILS(tdm_load(model, "/nowhere/f"), TDM_FAILED, "/nowhere/f");
  CHECK_FAILS(tdm_save(model, "/nowhere/f"), TDM_FAILED, "/nowhere/f");
  CHECK(tdm_initialize(model, 0) == TDM_OK);
  CHECK(memcmp(tdm_tensor_data(w), trained, sizeof trained) != 0);
  tdm_tensor_free(w);
  tdm_tensor_free(other);
}

static void test_dlpack(void) {
  float values[4] = {1, 2, 3, 4};
  const int64_t shape[] = {2, 2};
  tdm_tensor *tensor = NULL, *back = NULL;
  struct DLManagedTensor *managed = NULL;
  CHECK(tdm_tensor_wrap(values, TDM_F32, 2, shape, NULL, &tensor) == TDM_OK);
  CHECK(tdm_tensor_to_dlpack(tensor, &managed) == TDM_OK);
  CHECK(managed->dl_tensor.data == values && managed->dl_tensor.ndim == 2);
  tdm_tensor_free(tensor);
  CHECK(tdm_tensor_from_dlpack(managed, &back) == TDM_OK);
  CHECK(tdm_tensor_data(back) == values && tdm_tensor_elements(back) == 4);
  tdm_tensor_free(back);
}

/* Handles of one storage, and what grad mode knows of a handle. */
static void test_storage(void) {
  const int64_t shape[] = {2, 3}, turned[] = {3, 2}, steps[] = {1, 3};
  tdm_tensor *x = NULL, *view = NULL, *detached = NULL;
  CHECK(tdm_tensor_zeros(TDM_F32, 2, shape, &x) == TDM_OK);
  CHECK(tdm_tensor_view(x, 2, turned, steps, 0, &view) == TDM_OK);
  /* The message was "expected a strides". */
  CHECK_FAILS(tdm_tensor_view(x, 2, turned, NULL, 0, &detached), TDM_USAGE,
              "expected a list of strides but got null");
  CHECK_FAILS(tdm_tensor_view(x, 2, turned, steps, 99, &detached), TDM_USAGE,
              "within the storage");
  ((float *)tdm_tensor_data(x))[1] = 7;
  CHECK(((float *)tdm_tensor_data(view))[1] == 7);
  CHECK(tdm_tensor_version(view) == tdm_tensor_version(x));
  tdm_tensor_mark_written(view);
  CHECK(tdm_tensor_version(x) == 1);
  CHECK(!tdm_tensor_requires_grad(x) && tdm_tensor_is_leaf(x));
  CHECK(tdm_tensor_set_requires_grad(x, 1) == TDM_OK);
  CHECK(tdm_tensor_requires_grad(x) && !tdm_tensor_requires_grad(view));
  CHECK(tdm_tensor_detach(x, &detached) == TDM_OK);
  CHECK(!tdm_tensor_requires_grad(detached));
  CHECK(tdm_tensor_data(detached) == tdm_tensor_data(x));
  CHECK(tdm_tensor_part_of(x) == NULL);
  CHECK(tdm_tensor_resize_storage(view, 0) == TDM_OK);
  CHECK(tdm_tensor_data(x) == NULL && tdm_tensor_rank(x) == 2);
  float values[6];
  CHECK_FAILS(tdm_tensor_read(x, values, sizeof values), TDM_USAGE, "0 bytes");
  CHECK_FAILS(tdm_tensor_write(x, values, sizeof values), TDM_USAGE, "0 bytes");
  CHECK(tdm_tensor_resize_storage(view, 6) == TDM_OK);
  CHECK(tdm_tensor_data(x) != NULL);
  CHECK_FAILS(tdm_tensor_resize_storage(NULL, 6), TDM_USAGE, "tensor");
  CHECK(tdm_tensor_assign(detached, view) == TDM_OK);
  CHECK(tdm_tensor_shape(detached)[0] == 3);
  CHECK_FAILS(tdm_tensor_set_requires_grad(NULL, 1), TDM_USAGE, "tensor");
  CHECK(!tdm_tensor_requires_grad(NULL) && !tdm_tensor_is_leaf(NULL));
  CHECK(tdm_tensor_version(NULL) == 0 && tdm_tensor_part_of(NULL) == NULL);
  /* Types whose numbers are above that of f64 were taken, too. */
  const tdm_dtype none[] = {TDM_I64, TDM_U16, TDM_U32, TDM_U64, TDM_F8E5M2};
  for (size_t i = 0; i < sizeof none / sizeof *none; ++i) {
    tdm_tensor *count = NULL;
    CHECK(tdm_tensor_zeros(none[i], 1, y_shape, &count) == TDM_OK);
    CHECK_FAILS(tdm_tensor_set_requires_grad(count, 1), TDM_USAGE,
                "expected a floating point type");
    tdm_tensor_free(count);
  }
  tdm_tensor_free(x);
  tdm_tensor_free(view);
  tdm_tensor_free(detached);
}

/* C12: saved values go through these. */
struct packs {
  int packed, unpacked, released, fails;
};

static tdm_status pack(void *user, const char *name, const tdm_tensor *value,
                       void **packed) {
  tdm_tensor *kept = NULL;
  if (strcmp(name, "r") != 0 && strcmp(name, "x") != 0)
    return TDM_FAILED;
  ++((struct packs *)user)->packed;
  if (tdm_tensor_detach(value, &kept) != TDM_OK)
    return TDM_FAILED;
  *packed = kept;
  return TDM_OK;
}

static tdm_status unpack(void *user, const char *name, void *packed,
                         tdm_tensor *value) {
  struct packs *packs = user;
  (void)name;
  ++packs->unpacked;
  if (packs->fails == 1)
    return TDM_FAILED;
  return tdm_tensor_assign(value, packs->fails ? NULL : packed);
}

static void release(void *user, void *packed) {
  ++((struct packs *)user)->released;
  tdm_tensor_free(packed);
}

static void test_contexts(tdm_model *model) {
  tdm_tensor *x = NULL, *y = NULL, *one = NULL, *g = NULL;
  float one_value = 1, plain[3], hooked[3];
  CHECK(tdm_tensor_wrap(xs, TDM_F32, 2, x_shape, NULL, &x) == TDM_OK);
  CHECK(tdm_tensor_wrap(ys, TDM_F32, 1, y_shape, NULL, &y) == TDM_OK);
  CHECK(tdm_tensor_zeros(TDM_F32, 0, NULL, &one) == TDM_OK);
  CHECK(tdm_tensor_write(one, &one_value, sizeof one_value) == TDM_OK);
  CHECK(tdm_tensor_empty(&g) == TDM_OK);
  tdm_argument in[] = {{"x", x}, {"y", y}}, ct[] = {{"loss", one}};
  tdm_argument none[] = {{"loss", NULL}}, grads[] = {{"w", g}};
  tdm_context *context = NULL, *graph = NULL;

  /* J04: nothing is defined, so no gradient is. */
  CHECK(tdm_forward(model, in, 2, NULL, 0, &context) == TDM_OK);
  CHECK(tdm_backward(model, context, ct, 1, grads, 1, TDM_RETAIN_GRAPH) ==
        TDM_OK);
  CHECK(tdm_tensor_read(g, plain, sizeof plain) == TDM_OK);
  CHECK(!tdm_tensor_requires_grad(g));
  CHECK(tdm_backward(model, context, none, 1, grads, 1, TDM_RETAIN_GRAPH) ==
        TDM_OK);
  CHECK(tdm_tensor_rank(g) == -1);
  CHECK(tdm_backward(model, context, NULL, 0, grads, 1, TDM_RETAIN_GRAPH) ==
        TDM_OK);
  CHECK_FAILS(tdm_backward_graph(model, context, ct, 1, grads, 1, 0, &graph),
              TDM_UNSUPPORTED, "--order=2");
  CHECK_FAILS(tdm_backward_graph(model, context, ct, 1, grads, 1, 0, NULL),
              TDM_USAGE, "graph");
  CHECK(graph == NULL);

  struct packs packs = {0, 0, 0, 0};
  tdm_saved_hooks hooks = {sizeof hooks, &packs, pack, unpack, release};
  tdm_saved_hooks half = {sizeof half, &packs, pack, NULL, NULL};
  CHECK_FAILS(tdm_forward_with_hooks(model, in, 2, NULL, 0, &half, &context),
              TDM_USAGE, "expected a hook 'unpack' but got null");
  CHECK(tdm_forward_with_hooks(model, in, 2, NULL, 0, &hooks, &context) ==
        TDM_OK);
  CHECK(packs.packed == 2 && packs.unpacked == 0);
  CHECK(tdm_backward(model, context, ct, 1, grads, 1, 0) == TDM_OK);
  CHECK(packs.unpacked == 2 && packs.released == 2);
  CHECK(tdm_tensor_read(g, hooked, sizeof hooked) == TDM_OK);
  CHECK(memcmp(plain, hooked, sizeof plain) == 0);
  packs.fails = 1;
  CHECK(tdm_forward_with_hooks(model, in, 2, NULL, 0, &hooks, &context) ==
        TDM_OK);
  CHECK_FAILS(tdm_backward(model, context, ct, 1, grads, 1, TDM_RETAIN_GRAPH),
              TDM_FAILED, "gave status 1");
  CHECK_FAILS(tdm_backward(model, context, ct, 1, grads, 1, 0), TDM_USAGE,
              "an earlier backward failed");
  CHECK(packs.released == 4);
  /* What a call in a hook said was lost. */
  packs.fails = 2;
  CHECK(tdm_forward_with_hooks(model, in, 2, NULL, 0, &hooks, &context) ==
        TDM_OK);
  CHECK_FAILS(tdm_backward(model, context, ct, 1, grads, 1, 0), TDM_USAGE,
              "expected a tensor but got null");
  CHECK(strstr(tdm_last_error(), "expected") == tdm_last_error());
  CHECK(packs.released == 6);

  /* J18: the artifact has no gradient of x. */
  CHECK(tdm_tensor_set_requires_grad(x, 1) == TDM_OK);
  CHECK_FAILS(tdm_forward(model, in, 2, NULL, 0, &context), TDM_USAGE,
              "input 'x' (index 0) requires grad");
  CHECK(tdm_forward(model, in, 2, NULL, 0, NULL) == TDM_OK);
  tdm_context_free(context);
  tdm_tensor_free(x);
  tdm_tensor_free(y);
  tdm_tensor_free(one);
  tdm_tensor_free(g);
}

/* Predictions for rows that fill no batch, without the y of the loss. */
static void test_predicting(tdm_model *model) {
  tdm_tensor *x = NULL, *pred = NULL;
  const int64_t some[] = {5, 3};
  CHECK(tdm_tensor_wrap(xs, TDM_F32, 2, some, NULL, &x) == TDM_OK);
  CHECK(tdm_tensor_empty(&pred) == TDM_OK);
  tdm_argument in = {"x", x}, out = {"pred", pred}, loss = {"loss", pred};
  CHECK(tdm_predict(model, &in, 1, &out, 1) == TDM_OK);
  CHECK(tdm_tensor_rank(pred) == 1 && tdm_tensor_shape(pred)[0] == 5);
  CHECK_FAILS(tdm_predict(model, &in, 1, &loss, 1), TDM_USAGE,
              "has no output 'loss'; those with rows are 'pred'");
  CHECK_FAILS(tdm_predict(NULL, &in, 1, &out, 1), TDM_USAGE, "model");
  tdm_tensor_free(x);
  tdm_tensor_free(pred);
}

static void test_device_names(const char *path) {
  tdm_model *model = NULL;
  tdm_tensor *tensor = NULL;
  tdm_options options = TDM_OPTIONS_INIT;
  options.threads = 1;
  options.device = "gpu";
  CHECK_FAILS(tdm_model_load(path, &options, &model), TDM_USAGE, "'gpu'");
  options.device = "cuda-emu";
  CHECK_FAILS(tdm_model_load(path, &options, &model), TDM_NO_DEVICE,
              "has no code for device 'cuda-emu:0'; it has the targets 'cpu'");
  CHECK_FAILS(tdm_tensor_zeros_on("gpu", TDM_F32, 1, y_shape, &tensor),
              TDM_USAGE, "'gpu'");
  CHECK_FAILS(tdm_tensor_zeros_on("cuda-emu:99", TDM_F32, 1, y_shape, &tensor),
              TDM_NO_DEVICE, "device 'cuda-emu:99'");
  CHECK_FAILS(tdm_tensor_zeros_on(NULL, TDM_F32, 1, y_shape, &tensor),
              TDM_USAGE, "null");
  CHECK_FAILS(tdm_stream_set_current("gpu", NULL), TDM_USAGE, "'gpu'");
  /* A pointer was taken for the cpu, and nothing came of it. */
  int other;
  CHECK_FAILS(tdm_stream_set_current("cpu", &other), TDM_USAGE,
              "expected a null stream of 'cpu'");
  CHECK_FAILS(tdm_synchronize(NULL), TDM_USAGE, "null");
  CHECK_FAILS(tdm_tensor_copy_to(NULL, "cpu", &tensor), TDM_USAGE, "tensor");
  CHECK_FAILS(tdm_tensor_use_on(NULL, NULL), TDM_USAGE, "tensor");
  CHECK(tensor == NULL && model == NULL && tdm_tensor_device(NULL) == NULL);
}

/* What holds of tensors on any device. */
static void test_tensors_on(const char *device, const char *name) {
  tdm_tensor *there = NULL, *back = NULL, *wrapped = NULL;
  float values[8] = {0};
  CHECK(tdm_tensor_zeros_on(device, TDM_F32, 1, y_shape, &there) == TDM_OK);
  CHECK(there != NULL && strcmp(tdm_tensor_device(there), name) == 0);
  CHECK(tdm_tensor_write(there, ys, sizeof ys) == TDM_OK);
  CHECK(tdm_tensor_read(there, values, sizeof values) == TDM_OK);
  CHECK(memcmp(values, ys, sizeof ys) == 0);
  CHECK(tdm_tensor_copy_to(there, "cpu", &back) == TDM_OK);
  CHECK(strcmp(tdm_tensor_device(back), "cpu") == 0);
  CHECK(memcmp(tdm_tensor_data(back), ys, sizeof ys) == 0);
  CHECK(tdm_tensor_wrap_on(device, tdm_tensor_data(there), TDM_F32, 1, y_shape,
                           NULL, &wrapped) == TDM_OK);
  CHECK(tdm_tensor_read(wrapped, values, sizeof values) == TDM_OK);
  CHECK(tdm_tensor_use_on(there, NULL) == TDM_OK);
  struct DLManagedTensor *managed = NULL;
  CHECK(tdm_tensor_to_dlpack_on(there, NULL, &managed) == TDM_OK);
  CHECK(managed->dl_tensor.data == tdm_tensor_data(there));
  managed->deleter(managed);
  CHECK(tdm_stream_set_current(device, NULL) == TDM_OK);
  CHECK(tdm_synchronize(device) == TDM_OK);
  tdm_tensor_free(wrapped);
  if (strcmp(name, "cpu") != 0) {
    wrapped = NULL;
    CHECK_FAILS(
        tdm_tensor_wrap_on(device, ys, TDM_F32, 1, y_shape, NULL, &wrapped),
        TDM_USAGE, "a pointer that this device does not know");
    CHECK(wrapped == NULL);
  }
  tdm_tensor_free(there);
  tdm_tensor_free(back);
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  make_data();
  test_null_and_bad_arguments(argv[1]);
  tdm_model *a = NULL, *b = NULL;
  tdm_options options = TDM_OPTIONS_INIT;
  options.threads = 2;
  options.seed = 7;
  CHECK(tdm_model_load(argv[1], &options, &a) == TDM_OK);
  CHECK(tdm_model_load(argv[1], &options, &b) == TDM_OK);
  if (!a || !b)
    return 1;
  test_description(a);
  test_training(a, b);
  test_parameters(a, argv[2]);
  test_what_saving_replaces(a, argv[1], argv[2]);
  test_predicting(a);
  test_dlpack();
  test_device_names(argv[1]);
  test_tensors_on("cpu", "cpu");
  test_tensors_on("cuda-emu", "cuda-emu:0");
  test_storage();
  test_contexts(a);
  tdm_memory memory = TDM_MEMORY_INIT;
  CHECK(tdm_memory_use(a, &memory) == TDM_OK);
  CHECK(memory.planned_bytes == 512 && memory.peak_bytes > 0);
  tdm_model_free(a);
  tdm_model_free(b);
  CHECK(strcmp(tdm_version(), "") != 0);
  return failures != 0;
}
