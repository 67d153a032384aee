/*===- CApiStructsTest.c - structs of other versions of the C API -----------===
 *
 * runtime-capi-structs ARTIFACT: what a program that was compiled with an
 * earlier or a later tandem.h gives to this library. A struct of another size
 *is refused, or means what its caller knows of it; nothing beyond it is
 *touched.
 *
 *===----------------------------------------------------------------------===*/
#include "runtime/tandem.h"
#include "tests/runtime/CApiCheck.h"

#include <stdio.h>
#include <string.h>

/* The structs of a header that ended earlier, each followed by what the library
 * must neither read nor write. */
typedef struct {
  size_t struct_size;
  int threads;
  uint64_t seed;
} short_options;

typedef struct {
  size_t struct_size;
  const char *name;
  tdm_role role;
  tdm_dtype dtype;
} short_value;

typedef struct {
  size_t struct_size;
  int64_t planned_bytes;
} short_memory;

/* Those of a header that went on. */
typedef struct {
  tdm_options known;
  void *novelty;
} long_options;

typedef struct {
  tdm_memory known;
  int64_t novelty;
} long_memory;

typedef struct {
  tdm_saved_hooks known;
  void *novelty;
} long_hooks;

static tdm_status load(const char *path, const void *options,
                       tdm_model **model) {
  return tdm_model_load(path, (const tdm_options *)options, model);
}

/* The first parameter's first number, which follows from the seed. */
static float first_number(tdm_model *model) {
  tdm_tensor *tensor = NULL;
  float value = 0;
  CHECK(tdm_get(model, "w", &tensor) == TDM_OK);
  if (tensor)
    value = *(float *)tdm_tensor_data(tensor);
  tdm_tensor_free(tensor);
  return value;
}

static void test_options(const char *path) {
  tdm_model *all = NULL, *few = NULL, *other = NULL;
  tdm_options options = TDM_OPTIONS_INIT;
  options.threads = 1;
  options.seed = 7;
  CHECK(tdm_model_load(path, &options, &all) == TDM_OK);
  /* Where the device would be stands a name that is none. */
  struct {
    short_options given;
    const char *beyond;
  } earlier = {{sizeof(short_options), 1, 7}, "no device"};
  CHECK(load(path, &earlier, &few) == TDM_OK);
  options.seed = 8;
  CHECK(tdm_model_load(path, &options, &other) == TDM_OK);
  if (!all || !few || !other) {
    ++failures;
    return;
  }
  CHECK(first_number(all) == first_number(few));
  CHECK(first_number(all) != first_number(other));
  tdm_model_free(all);
  tdm_model_free(few);
  tdm_model_free(other);

  tdm_model *model = NULL;
  long_options later = {TDM_OPTIONS_INIT, NULL};
  later.known.struct_size = sizeof later;
  later.known.threads = 1;
  CHECK(load(path, &later, &model) == TDM_OK);
  tdm_model_free(model);
  model = NULL;
  later.novelty = &later;
  CHECK_FAILS(load(path, &later, &model), TDM_UNSUPPORTED,
              "'tdm_options' has 64 bytes, of which this library (");
  CHECK(strstr(tdm_last_error(), ") knows 56, and what follows is set") !=
        NULL);

  /* Who sets no size is told how. */
  tdm_options none = {0};
  CHECK_FAILS(tdm_model_load(path, &none, &model), TDM_USAGE,
              "expected 'struct_size' of 'tdm_options' to be its size, 56, but "
              "got 0 (begin with TDM_..._INIT)");
  none.struct_size = (size_t)-1;
  CHECK_FAILS(tdm_model_load(path, &none, &model), TDM_USAGE, "struct_size");
  CHECK(model == NULL);
}

static void test_what_is_filled(tdm_model *model) {
  struct {
    short_value value;
    unsigned char beyond[64];
  } value;
  memset(&value, 0xab, sizeof value);
  value.value.struct_size = sizeof value.value;
  CHECK(tdm_value_at(model, 2, (tdm_value *)&value) == TDM_OK);
  CHECK(strcmp(value.value.name, "w") == 0 && value.value.role == TDM_PARAM);
  CHECK(value.value.dtype == TDM_F32);
  CHECK(value.value.struct_size == sizeof value.value);
  for (size_t i = 0; i < sizeof value.beyond; ++i)
    CHECK(value.beyond[i] == 0xab);

  struct {
    short_memory memory;
    int64_t beyond;
  } memory = {{sizeof(short_memory), 0}, -1};
  CHECK(tdm_memory_use(model, (tdm_memory *)&memory) == TDM_OK);
  CHECK(memory.memory.planned_bytes == 512 && memory.beyond == -1);

  long_memory later = {TDM_MEMORY_INIT, -1};
  later.known.struct_size = sizeof later;
  CHECK(tdm_memory_use(model, &later.known) == TDM_OK);
  CHECK(later.known.planned_bytes == 512 && later.known.peak_bytes > 0);
  CHECK(later.known.struct_size == sizeof later && later.novelty == -1);

  tdm_value unset;
  memset(&unset, 0, sizeof unset);
  CHECK_FAILS(tdm_value_at(model, 0, &unset), TDM_USAGE, "'tdm_value'");
  tdm_memory none = {0};
  CHECK_FAILS(tdm_memory_use(model, &none), TDM_USAGE, "'tdm_memory'");
}

static tdm_status pack(void *user, const char *name, const tdm_tensor *value,
                       void **packed) {
  (void)user, (void)name, (void)value, (void)packed;
  return TDM_FAILED;
}

static tdm_status unpack(void *user, const char *name, void *packed,
                         tdm_tensor *value) {
  (void)user, (void)name, (void)packed, (void)value;
  return TDM_FAILED;
}

static void test_hooks(tdm_model *model) {
  static const int64_t x_shape[] = {8, 3}, y_shape[] = {8};
  tdm_tensor *x = NULL, *y = NULL;
  tdm_context *context = NULL;
  CHECK(tdm_tensor_zeros(TDM_F32, 2, x_shape, &x) == TDM_OK);
  CHECK(tdm_tensor_zeros(TDM_F32, 1, y_shape, &y) == TDM_OK);
  tdm_argument in[] = {{"x", x}, {"y", y}};
  long_hooks later = {{sizeof later, NULL, pack, unpack, NULL}, in};
  CHECK_FAILS(
      tdm_forward_with_hooks(model, in, 2, NULL, 0, &later.known, &context),
      TDM_UNSUPPORTED, "'tdm_saved_hooks'");
  tdm_saved_hooks none = {0, NULL, pack, unpack, NULL};
  CHECK_FAILS(tdm_forward_with_hooks(model, in, 2, NULL, 0, &none, &context),
              TDM_USAGE, "'tdm_saved_hooks'");
  CHECK(context == NULL);
  tdm_tensor_free(x);
  tdm_tensor_free(y);
}

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  test_options(argv[1]);
  tdm_model *model = NULL;
  tdm_options options = TDM_OPTIONS_INIT;
  options.threads = 1;
  CHECK(tdm_model_load(argv[1], &options, &model) == TDM_OK);
  if (!model)
    return 1;
  test_what_is_filled(model);
  test_hooks(model);
  tdm_model_free(model);
  return failures != 0;
}
