/*===- GraphCTest.c - the run-time graph from C -----------------------------===
 *
 * runtime-graph-c ARTIFACT FOLDER: a C11 program that links libtandem.so only.
 * It differentiates the regression of TestModel.h as a node between leaves, ops
 * and a function of its own, with hooks.
 *
 *===----------------------------------------------------------------------===*/
#include "runtime/graph.h"
#include "tests/runtime/CApiCheck.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static float xs[24], ys[8];
static const int64_t x_shape[] = {8, 3}, y_shape[] = {8};

static tdm_tensor *empty(void) {
  tdm_tensor *made = NULL;
  CHECK(tdm_tensor_empty(&made) == TDM_OK);
  return made;
}

static float first(const tdm_tensor *tensor) {
  return tdm_tensor_elements(tensor) ? *(float *)tdm_tensor_data(tensor)
                                     : (float)NAN;
}

/* What a plain backward gives for w. */
static void expected(tdm_model *model, tdm_tensor *x, tdm_tensor *y,
                     float *gw) {
  tdm_context *context = NULL;
  tdm_tensor *one = NULL, *g = empty(), *loss = empty();
  float value = 1;
  CHECK(tdm_tensor_zeros(TDM_F32, 0, NULL, &one) == TDM_OK);
  CHECK(tdm_tensor_write(one, &value, sizeof value) == TDM_OK);
  tdm_argument in[] = {{"x", x}, {"y", y}}, out[] = {{"loss", loss}};
  tdm_argument ct[] = {{"loss", one}}, gr[] = {{"w", g}};
  CHECK(tdm_forward(model, in, 2, out, 1, &context) == TDM_OK);
  CHECK(tdm_backward(model, context, ct, 1, gr, 1, 0) == TDM_OK);
  CHECK(tdm_tensor_read(g, gw, 3 * sizeof(float)) == TDM_OK);
  tdm_context_free(context);
  tdm_tensor_free(one);
  tdm_tensor_free(g);
  tdm_tensor_free(loss);
}

static tdm_status double_it(void *user, tdm_tensor *gradient) {
  ++*(int *)user;
  return tdm_op_scale(gradient, 2, gradient);
}

static tdm_status refuse(void *user, tdm_tensor *gradient) {
  (void)user, (void)gradient;
  return tdm_fail(TDM_UNSUPPORTED, "the text of the hook");
}

static void count(void *user) { ++*(int *)user; }

/* The whole path: an artifact, a leaf, a forward as a node, a hook, a backward,
 * a gradient. */
static void test_model(tdm_model *model) {
  tdm_tensor *x = NULL, *y = NULL, *w = NULL, *loss = empty(), *g = empty();
  float gw[3], got[3];
  CHECK(tdm_tensor_wrap(xs, TDM_F32, 2, x_shape, NULL, &x) == TDM_OK);
  CHECK(tdm_tensor_wrap(ys, TDM_F32, 1, y_shape, NULL, &y) == TDM_OK);
  expected(model, x, y, gw);
  CHECK(tdm_get(model, "w", &w) == TDM_OK);
  CHECK(tdm_tensor_set_requires_grad(w, 1) == TDM_OK);
  tdm_argument in[] = {{"x", x}, {"y", y}}, params[] = {{"w", w}};
  tdm_argument out[] = {{"loss", loss}};
  CHECK(tdm_graph_forward(model, in, 2, params, 1, out, 1) == TDM_OK);
  CHECK(tdm_tensor_requires_grad(loss) && !tdm_tensor_is_leaf(loss));

  tdm_node *node = NULL;
  int input = -1;
  CHECK(tdm_tensor_node(loss, &node, &input) == TDM_OK && input == 0);
  CHECK(strcmp(tdm_node_name(node), "regression") == 0);
  CHECK(tdm_node_edge_count(node) == 1);
  CHECK(tdm_node_topological_number(node) == 1);
  tdm_node_free(node);

  int calls = 0, released = 0;
  tdm_hook *hook = NULL, *other = NULL;
  CHECK(tdm_tensor_add_hook(w, double_it, &calls, NULL, &hook) == TDM_OK);
  CHECK(tdm_graph_backward(&loss, NULL, 1, NULL, 0, TDM_RETAIN_GRAPH) ==
        TDM_OK);
  CHECK(tdm_tensor_grad(w, g) == TDM_OK);
  CHECK(tdm_tensor_read(g, got, sizeof got) == TDM_OK);
  for (int i = 0; i < 3; ++i)
    CHECK(got[i] == 2 * gw[i]);
  CHECK(calls == 1);

  /* An error of a hook is the backward's; nothing is accumulated. */
  CHECK(tdm_tensor_add_hook(w, refuse, &released, count, &other) == TDM_OK);
  CHECK(tdm_graph_backward(&loss, NULL, 1, NULL, 0, TDM_RETAIN_GRAPH) ==
        TDM_UNSUPPORTED);
  CHECK(strcmp(tdm_last_error(), "the text of the hook") == 0);
  CHECK(tdm_hook_remove(other) == 1 && released == 1);
  CHECK(tdm_hook_remove(other) == 0);
  tdm_hook_free(other);
  CHECK(tdm_hook_remove(hook) == 1);
  tdm_hook_free(hook);

  /* Later gradients are added at the same place. */
  const void *place = tdm_tensor_data(g);
  CHECK(tdm_graph_backward(&loss, NULL, 1, NULL, 0, 0) == TDM_OK);
  CHECK(tdm_tensor_grad(w, g) == TDM_OK && tdm_tensor_data(g) == place);
  CHECK(tdm_tensor_read(g, got, sizeof got) == TDM_OK);
  for (int i = 0; i < 3; ++i)
    CHECK(got[i] == 3 * gw[i]);
  CHECK(tdm_tensor_set_grad(w, NULL) == TDM_OK);
  CHECK(tdm_tensor_grad(w, g) == TDM_OK && tdm_tensor_rank(g) == -1);
  /* N30, C01: the context was used. */
  CHECK_FAILS(tdm_graph_backward(&loss, NULL, 1, NULL, 0, 0), TDM_USAGE,
              "regression");

  /* A param is that of the model. */
  tdm_tensor *copy = NULL;
  CHECK(tdm_tensor_copy_to(w, "cpu", &copy) == TDM_OK);
  CHECK(tdm_tensor_set_requires_grad(copy, 1) == TDM_OK);
  tdm_argument wrong[] = {{"w", copy}};
  CHECK_FAILS(tdm_graph_forward(model, in, 2, wrong, 1, out, 1), TDM_USAGE,
              "param 'w'");
  tdm_tensor_free(copy);

  /* A param has one leaf. */
  tdm_argument twice[] = {{"w", w}, {"w", w}};
  CHECK_FAILS(tdm_graph_forward(model, in, 2, twice, 2, out, 1), TDM_USAGE,
              "param 'w': expected it once but got it twice");

  /* G01: with grad mode off, the same outputs and no history. */
  float before = first(loss);
  CHECK(tdm_set_grad_mode(0) == 1 && tdm_grad_mode() == 0);
  CHECK(tdm_graph_forward(model, in, 2, params, 1, out, 1) == TDM_OK);
  CHECK(tdm_set_grad_mode(1) == 0);
  CHECK(first(loss) == before && !tdm_tensor_requires_grad(loss));
  CHECK_FAILS(tdm_graph_backward(&loss, NULL, 1, NULL, 0, 0), TDM_USAGE,
              "does not require grad");

  tdm_tensor_free(x);
  tdm_tensor_free(y);
  tdm_tensor_free(w);
  tdm_tensor_free(loss);
  tdm_tensor_free(g);
}

/* y = x * x by hand, with its derivative. */
static tdm_status square_forward(void *user, tdm_node *node,
                                 tdm_tensor *const *in, size_t ins,
                                 tdm_tensor *const *out, size_t outs) {
  (void)user, (void)ins, (void)outs;
  tdm_status status = tdm_node_save(node, in[0]);
  return status ? status : tdm_op_mul(in[0], in[0], out[0]);
}

static tdm_status square_backward(void *user, tdm_node *node,
                                  tdm_tensor *const *gradients, size_t count,
                                  tdm_tensor *const *results,
                                  size_t results_n) {
  (void)user, (void)count, (void)results_n;
  tdm_tensor *x = NULL;
  tdm_status status = tdm_tensor_empty(&x);
  if (!status)
    status = tdm_node_saved(node, 0, x);
  if (!status)
    status = tdm_op_mul(gradients[0], x, results[0]);
  if (!status)
    status = tdm_op_scale(results[0], 2, results[0]);
  tdm_tensor_free(x);
  return status;
}

static void test_function(void) {
  float values[] = {1, 2, 3}, got[3];
  const int64_t shape[] = {3};
  int released = 0;
  tdm_tensor *x = NULL, *y = empty(), *s = empty(), *g = empty(), *gg = empty();
  CHECK(tdm_tensor_wrap(values, TDM_F32, 1, shape, NULL, &x) == TDM_OK);
  CHECK(tdm_tensor_set_requires_grad(x, 1) == TDM_OK);
  tdm_function square = TDM_FUNCTION_INIT;
  square.name = "square";
  square.user = &released;
  square.forward = square_forward;
  square.backward = square_backward;
  square.release = count;
  CHECK(tdm_function_apply(&square, &x, 1, &y, 1) == TDM_OK);
  CHECK(tdm_op_sum(y, s) == TDM_OK && first(s) == 14);
  /* Twice differentiable, as it is made of ops: 2 x, then 2. */
  CHECK(tdm_graph_grad(&s, NULL, 1, &x, 1, &g, TDM_CREATE_GRAPH) == TDM_OK);
  CHECK(tdm_tensor_read(g, got, sizeof got) == TDM_OK);
  CHECK(got[0] == 2 && got[1] == 4 && got[2] == 6);
  CHECK(tdm_op_sum(g, s) == TDM_OK);
  CHECK(tdm_graph_grad(&s, NULL, 1, &x, 1, &gg, 0) == TDM_OK);
  CHECK(tdm_tensor_read(gg, got, sizeof got) == TDM_OK);
  CHECK(got[0] == 2 && got[1] == 2 && got[2] == 2);
  CHECK(tdm_tensor_grad(x, g) == TDM_OK && tdm_tensor_rank(g) == -1);

  square.flags = 64;
  CHECK_FAILS(tdm_function_apply(&square, &x, 1, &y, 1), TDM_USAGE, "flags");
  square.flags = 0;
  square.struct_size = 1;
  CHECK_FAILS(tdm_function_apply(&square, &x, 1, &y, 1), TDM_USAGE,
              "struct_size");
  square.struct_size = 20; /* would cut an address in two */
  CHECK_FAILS(tdm_function_apply(&square, &x, 1, &y, 1), TDM_USAGE,
              "struct_size");
  tdm_tensor_free(x);
  tdm_tensor_free(y);
  tdm_tensor_free(s);
  tdm_tensor_free(g);
  tdm_tensor_free(gg);
  /* The node, and the call with wrong flags: it made none. */
  CHECK(released == 2);
}

/* A sum read and wrote beyond a storage that had been cut. */
static void test_cut_storage(void) {
  const int64_t shape[] = {1000};
  tdm_tensor *x = NULL, *cut = NULL, *y = empty(), *sum = empty(), *g = empty();
  CHECK(tdm_tensor_zeros(TDM_F32, 1, shape, &x) == TDM_OK);
  CHECK(tdm_tensor_zeros(TDM_F32, 1, shape, &cut) == TDM_OK);
  CHECK(tdm_tensor_resize_storage(cut, 2) == TDM_OK);
  CHECK_FAILS(tdm_op_add(x, cut, sum), TDM_USAGE, "storage has 8 bytes");
  CHECK_FAILS(tdm_op_add(cut, x, sum), TDM_USAGE, "storage has 8 bytes");
  CHECK(tdm_tensor_set_requires_grad(x, 1) == TDM_OK);
  /* A gradient that is added to was cut between two backwards. */
  for (int cuts = 0; cuts < 2; ++cuts) {
    CHECK(tdm_op_sum(x, y) == TDM_OK);
    if (cuts) {
      CHECK(tdm_tensor_grad(x, g) == TDM_OK);
      CHECK(tdm_tensor_resize_storage(g, 2) == TDM_OK);
      CHECK_FAILS(tdm_graph_backward(&y, NULL, 1, NULL, 0, 0), TDM_USAGE,
                  "storage has 8 bytes");
    } else {
      CHECK(tdm_graph_backward(&y, NULL, 1, NULL, 0, 0) == TDM_OK);
    }
  }
  tdm_tensor_free(x);
  tdm_tensor_free(cut);
  tdm_tensor_free(y);
  tdm_tensor_free(sum);
  tdm_tensor_free(g);
}

/* A picture replaced an artifact without a word. */
static void test_pictures(const char *artifact, const char *folder) {
  const int64_t shape[] = {3};
  char path[4096];
  tdm_tensor *x = NULL, *y = empty();
  CHECK(tdm_tensor_zeros(TDM_F32, 1, shape, &x) == TDM_OK);
  CHECK(tdm_tensor_set_requires_grad(x, 1) == TDM_OK);
  CHECK(tdm_op_sum(x, y) == TDM_OK);
  snprintf(path, sizeof path, "%s/graph-picture", folder);
  for (int times = 0; times < 2; ++times) {
    CHECK(tdm_graph_write_dot(&y, 1, path) == TDM_OK);
    CHECK(tdm_graph_write_json(&y, 1, path) == TDM_OK);
  }
  CHECK_FAILS(tdm_graph_write_json(&y, 1, artifact), TDM_USAGE,
              "but got an artifact");
  tdm_tensor_free(x);
  tdm_tensor_free(y);
}

static void test_null(void) {
  tdm_tensor *none = NULL, *t = empty();
  CHECK_FAILS(tdm_graph_backward(NULL, NULL, 1, NULL, 0, 0), TDM_USAGE, "root");
  CHECK_FAILS(tdm_graph_backward(&none, NULL, 1, NULL, 0, 0), TDM_USAGE,
              "root number 0");
  CHECK_FAILS(tdm_graph_backward(NULL, NULL, 0, NULL, 0, 0), TDM_USAGE,
              "at least one root");
  CHECK_FAILS(tdm_graph_backward(&t, NULL, 1, NULL, 0, 64), TDM_USAGE, "flags");
  CHECK_FAILS(tdm_tensor_add_hook(t, double_it, NULL, NULL, NULL), TDM_USAGE,
              "does not require grad");
  CHECK_FAILS(tdm_tensor_add_hook(t, NULL, NULL, NULL, NULL), TDM_USAGE,
              "hook");
  CHECK_FAILS(tdm_op_sum(t, t), TDM_USAGE, "undefined");
  CHECK_FAILS(tdm_node_add_edge(NULL, NULL, 0), TDM_USAGE, "node");
  CHECK(tdm_hook_remove(NULL) == 0 && tdm_node_number(NULL) == 0);
  tdm_node_free(NULL);
  tdm_hook_free(NULL);
  tdm_tensor_free(t);
}

/* Integers went through f64: sums and products of large ones were others, and
 * sums of narrow ones the largest of their type, with TDM_OK. */
static void test_integers(void) {
  static const tdm_dtype types[] = {TDM_BOOL, TDM_I8,  TDM_U8,
                                    TDM_I16,  TDM_U16, TDM_I32,
                                    TDM_U32,  TDM_I64, TDM_U64};
  int64_t size = 2;
  tdm_tensor *made;
  CHECK(tdm_tensor_empty(&made) == TDM_OK);
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
    tdm_tensor *x;
    CHECK(tdm_tensor_zeros(types[i], 1, &size, &x) == TDM_OK);
    CHECK_FAILS(tdm_op_add(x, x, made), TDM_USAGE, "expected floats");
    CHECK_FAILS(tdm_op_mul(x, x, made), TDM_USAGE, "expected floats");
    CHECK_FAILS(tdm_op_scale(x, 1, made), TDM_USAGE,
                "'scale': expected floats");
    CHECK_FAILS(tdm_op_sum(x, made), TDM_USAGE, "'sum': expected floats");
    /* What does not compute takes all. */
    CHECK(tdm_op_reshape(x, 1, &size, made) == TDM_OK);
    CHECK(tdm_op_expand(x, 1, &size, made) == TDM_OK);
    CHECK(tdm_op_cast(x, TDM_F64, made) == TDM_OK);
    CHECK(tdm_op_sum(made, made) == TDM_OK);
    tdm_tensor_free(x);
  }
  /* The nearest element that a type has. */
  const int64_t given[] = {-1, 300};
  uint8_t bytes[2] = {1, 1};
  tdm_tensor *x;
  CHECK(tdm_tensor_zeros(TDM_I64, 1, &size, &x) == TDM_OK);
  CHECK(tdm_tensor_write(x, given, sizeof given) == TDM_OK);
  CHECK(tdm_op_cast(x, TDM_U8, made) == TDM_OK);
  CHECK(tdm_tensor_read(made, bytes, sizeof bytes) == TDM_OK);
  CHECK(bytes[0] == 0 && bytes[1] == 255);
  /* To its own type it was the same memory. */
  CHECK(tdm_op_cast(x, TDM_I64, made) == TDM_OK);
  CHECK(tdm_tensor_data(made) != tdm_tensor_data(x));
  CHECK(memcmp(tdm_tensor_data(made), given, sizeof given) == 0);
  tdm_tensor_free(x);
  tdm_tensor_free(made);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: runtime-graph-c ARTIFACT FOLDER\n");
    return 2;
  }
  for (int i = 0; i < 24; ++i)
    xs[i] = (float)sin(1.7 * i);
  for (int i = 0; i < 8; ++i)
    ys[i] = xs[3 * i] - 2 * xs[3 * i + 1] + 3 * xs[3 * i + 2] + 0.5f;
  tdm_model *model = NULL;
  tdm_options options = TDM_OPTIONS_INIT;
  options.threads = 1;
  CHECK(tdm_model_load(argv[1], &options, &model) == TDM_OK);
  if (model) {
    test_model(model);
    test_function();
    test_cut_storage();
    test_pictures(argv[1], argv[2]);
    test_integers();
    test_null();
  }
  tdm_model_free(model);
  if (failures)
    fprintf(stderr, "%d failures\n", failures);
  return failures ? 1 : 0;
}
