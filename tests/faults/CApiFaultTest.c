/*===- CApiFaultTest.c - the C API where memory, files or threads fail ------===
 *
 * faults-capi ARTIFACT FOLDER [EVERY]: trains the regression of TestModel.h,
 * saves and loads it, again and again; each time one more call for memory, for
 * files or for threads goes well before one fails. What fails of the C API says
 * why, and goes well when it is called again: the numbers at the end are always
 * those of an undisturbed run. No block of memory and no open file is left.
 *
 *===----------------------------------------------------------------------===*/
#define _GNU_SOURCE /* F_ADD_SEALS */
#include "tests/faults/FailAt.h"
#include "tests/runtime/CApiCheck.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static float xs[24], ys[8];
static const int64_t x_shape[] = {8, 3}, y_shape[] = {8};
static const char *const kind_names[] = {"memory", "files", "threads"};
static int kind, number;

/* True if a call went well; one that did not is told why, and called again. */
static int went_well(tdm_status status, const char *call) {
  if (status == TDM_OK)
    return 1;
  if (fault_failed() == 0 || tdm_last_error()[0] == 0) {
    fprintf(stderr, "%s %d: %s: %d, %s\n", kind_names[kind], number, call,
            (int)status, tdm_last_error());
    ++failures;
  }
  return 0;
}

#define MUST(call)                                                             \
  do {                                                                         \
    if (!went_well((call), #call) && !went_well((call), #call " again")) {     \
      fprintf(stderr, "%s %d: %s fails twice: %s\n", kind_names[kind], number, \
              #call, tdm_last_error());                                        \
      ++failures;                                                              \
      goto end;                                                                \
    }                                                                          \
  } while (0)

/* How often seals are refused from now on, as where the system looks at the
 * file's memory itself. */
static int busy_seals;

int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  long argument = va_arg(more, long);
  va_end(more);
  if (command == F_ADD_SEALS && busy_seals > 0) {
    --busy_seals;
    errno = EBUSY;
    return -1;
  }
  return (int)syscall(SYS_fcntl, fd, command, argument);
}

/* Code that cannot be sealed at once is, and what never can is not run. */
static void load_while_seals_are_busy(const char *artifact) {
  for (int times = 3; times <= 1000; times += 997) {
    tdm_model *model = NULL;
    busy_seals = times;
    tdm_status status = tdm_model_load(artifact, NULL, &model);
    int expected = times == 3 ? status == TDM_OK
                              : status != TDM_OK && tdm_last_error()[0] != 0;
    if (!expected || busy_seals == times) {
      fprintf(stderr, "seals that are busy %d times: status %d, %s\n", times,
              (int)status, tdm_last_error());
      ++failures;
    }
    busy_seals = 0;
    tdm_model_free(model);
  }
}

/* The lowest descriptor that is free: higher where one was left open. */
static int free_descriptor(void) {
  int fd = dup(0);
  close(fd);
  return fd;
}

/* The same calls each time; fills `trained`. */
static void use(const char *artifact, const char *file, float trained[12]) {
  tdm_model *model = NULL, *other = NULL;
  tdm_tensor *x = NULL, *y = NULL, *one = NULL, *loss = NULL, *gw = NULL,
             *gb = NULL, *w = NULL, *b = NULL, *pred = NULL;
  tdm_context *context = NULL;
  float one_value = 1;
  tdm_options options = TDM_OPTIONS_INIT;
  options.threads = 2;
  MUST(tdm_model_load(artifact, &options, &model));
  MUST(tdm_initialize(model, 3));
  MUST(tdm_tensor_wrap(xs, TDM_F32, 2, x_shape, NULL, &x));
  MUST(tdm_tensor_wrap(ys, TDM_F32, 1, y_shape, NULL, &y));
  MUST(tdm_tensor_zeros(TDM_F32, 0, NULL, &one));
  MUST(tdm_tensor_write(one, &one_value, sizeof one_value));
  MUST(tdm_tensor_empty(&loss));
  MUST(tdm_tensor_empty(&pred));
  MUST(tdm_tensor_empty(&gw));
  MUST(tdm_tensor_empty(&gb));
  tdm_argument in[] = {{"x", x}, {"y", y}}, out[] = {{"loss", loss}};
  tdm_argument predicted[] = {{"pred", pred}};
  tdm_argument ct[] = {{"loss", one}}, grads[] = {{"w", gw}, {"b", gb}};
  for (int i = 0; i < 2; ++i) {
    MUST(tdm_step(model, in, 2, out, 1));
    MUST(tdm_forward(model, in, 2, out, 1, &context));
    MUST(tdm_backward(model, context, ct, 1, grads, 2, 0));
    MUST(tdm_update(model, grads, 2));
  }
  MUST(tdm_save(model, file));
  MUST(tdm_model_load(artifact, &options, &other));
  MUST(tdm_load(other, file));
  MUST(tdm_run(other, "evaluate", in, 1, predicted, 1));
  MUST(tdm_get(other, "w", &w));
  MUST(tdm_get(other, "b", &b));
  MUST(tdm_tensor_read(pred, trained + 4, 8 * sizeof *trained));
  MUST(tdm_tensor_read(w, trained, 3 * sizeof *trained));
  MUST(tdm_tensor_read(b, trained + 3, sizeof *trained));
end:;
  tdm_tensor *all[] = {x, y, one, loss, gw, gb, pred, w, b};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    tdm_tensor_free(all[i]);
  tdm_context_free(context);
  tdm_model_free(model);
  tdm_model_free(other);
}

/* True if a call of `kind` was the one with the number. */
static int fails(const char *artifact, const char *file,
                 const float undisturbed[12]) {
  float trained[12] = {0};
  fault_at((enum fault_kind)kind, (uint64_t)number);
  use(artifact, file, trained);
  int failed = fault_failed() != 0;
  fault_at((enum fault_kind)kind, 0);
  if (memcmp(trained, undisturbed, sizeof trained) != 0) {
    fprintf(stderr, "%s %d: other numbers\n", kind_names[kind], number);
    ++failures;
  }
  return failed;
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4)
    return 2;
  char file[4096];
  snprintf(file, sizeof file, "%s/faults.safetensors", argv[2]);
  for (int i = 0; i < 24; ++i)
    xs[i] = (float)sin(1.7 * i);
  for (int i = 0; i < 8; ++i)
    ys[i] = xs[3 * i] - 2 * xs[3 * i + 1] + 3 * xs[3 * i + 2] + 0.5f;
  float undisturbed[12] = {0};
  for (int i = 0; i < 3; ++i) /* what is made once is there after it */
    use(argv[1], file, undisturbed);
  load_while_seals_are_busy(argv[1]);
  int64_t blocks = fault_blocks();
  int descriptor = free_descriptor();
  for (kind = 0; kind < fault_kinds; ++kind) {
    /* Of the many calls for memory some are enough for a test. */
    int every = argc == 4 && kind == fault_memory ? atoi(argv[3]) : 1;
    int disturbed = 1;
    for (number = 1; disturbed && failures < 20; number += every) {
      disturbed = fails(argv[1], file, undisturbed);
      if (free_descriptor() != descriptor) {
        fprintf(stderr, "%s %d: a file is left open\n", kind_names[kind],
                number);
        descriptor = free_descriptor();
        ++failures;
      }
      if (fault_blocks() == blocks)
        continue;
      /* The place of a longer message stays; a leak is there each time. */
      blocks = fault_blocks();
      fails(argv[1], file, undisturbed);
      if (fault_blocks() != blocks) {
        fprintf(stderr, "%s %d: %d blocks are left\n", kind_names[kind], number,
                (int)(fault_blocks() - blocks));
        blocks = fault_blocks();
        ++failures;
      }
    }
    printf("%s: up to call %d\n", kind_names[kind], number);
  }
  unlink(file);
  return failures != 0;
}
