/*===- graph.h - the run-time graph of the C API ----------------------------===
 *
 * Chains compiled programs, functions of the caller and a few ops on tensors,
 * and differentiates through all of them: docs/GRAPH.md. What tandem.h says of
 * errors, ownership and structs holds here, too.
 *
 * History. A tensor handle that requires grad is a leaf
 * (tdm_tensor_set_requires_grad), or it has an edge to the node that made it:
 * one of the calls below. A node has inputs, one for each gradient that it
 * takes, and edges to what its forward was computed of. Handles share history
 * where they were copied (tdm_tensor_assign); a view or a detached handle has
 * none. A node lives as long as a handle or an edge that leads to it.
 *
 * Backward. A node runs when all its gradients have come; of those of a thread
 * that are ready, leaves first, then the node with the largest number.
 * Order at a node: tensor hooks as they were added, retained gradients,
 * pre-hooks, the node, checks of what it gives, hooks after accumulation,
 * post-hooks. Where a gradient is asked for and the node needs not run, only
 * the first two do, and what they made of it is given; where the node runs,
 * too, the gradient is given as it came.
 *
 * Hooks and functions return a status; TDM_OK, or the first error, which ends
 * the backward and reaches its caller as it is: the message is that of
 * tdm_fail, or of the call of this API that failed last in the hook. What a
 * callback throws in C++ (std::exception) is such an error, too. Handles that a
 * callback is given end with it. A callback may call everything here, a
 * backward too, and may remove itself. During a backward grad mode is off,
 * unless TDM_CREATE_GRAPH was asked for.
 *
 * Threads. Each thread has its own modes (grad mode, anomaly mode, ...), and
 * runs its own backwards. Threads may share leaves and other nodes in backwards
 * at the same time: sums are exact, and of two backwards through saved values
 * that are not retained one fails. The backward of a function's node runs on
 * one thread at a time, but while it runs a backward of its own others may
 * enter. Saved values last as long as somebody runs the node. Hooks may be
 * added and removed at any time. Edges and inputs are not locked: nobody
 * changes them while another thread runs the node.
 *
 * Nodes of the host run on the calling thread; so do all, if all are of one
 * device. Else those of each device (that of a node's first input on one) run
 * on a thread of the device, hooks too, under the modes and current streams of
 * the calling thread, and at the same time as those of others. What comes to an
 * input is added in the order in which one thread would add it. Callbacks of
 * tdm_graph_when_done run on the calling thread.
 *
 * Allocation. A backward of the same shape as the thread's one before allocates
 * nothing itself; what nodes make is theirs.
 *
 *===----------------------------------------------------------------------===*/
#ifndef TANDEM_GRAPH_H
#define TANDEM_GRAPH_H

#include "runtime/tandem.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_node tdm_node;
typedef struct tdm_hook tdm_hook;

/* Sets the message of an error of a callback; returns `status`. */
TDM_EXPORT tdm_status tdm_fail(tdm_status status, const char *message);

/*--- Calls that make nodes -------------------------------------------------*/

/* Runs "forward" of a model, as tdm_forward, and gives outputs that have a
 * gradient their history. `params` names the leaves that gradients of params
 * go to: handles of tdm_get. An input that the program writes visibly is no
 * leaf, and its handle gets the history of what was written. With grad mode
 * off, nothing is kept. The model may be freed before its node. */
TDM_EXPORT tdm_status tdm_graph_forward(
    tdm_model *model, const tdm_argument *inputs, size_t input_count,
    const tdm_argument *params, size_t param_count, const tdm_argument *outputs,
    size_t output_count);

/* Ops. Each sets `result`, a handle. Operands of add and mul have one type,
 * shape and device. On a device, the ops but add wait for the host. add, mul,
 * scale and sum are of floats, and compute in f64 (add in the type itself):
 * integers and bools are refused, since f64 has not all of them. Those have no
 * gradient. */
TDM_EXPORT tdm_status tdm_op_add(const tdm_tensor *x, const tdm_tensor *y,
                                 tdm_tensor *result);
TDM_EXPORT tdm_status tdm_op_mul(const tdm_tensor *x, const tdm_tensor *y,
                                 tdm_tensor *result);
TDM_EXPORT tdm_status tdm_op_scale(const tdm_tensor *x, double factor,
                                   tdm_tensor *result);
/* The sum of all elements, of shape []. */
TDM_EXPORT tdm_status tdm_op_sum(const tdm_tensor *x, tdm_tensor *result);
TDM_EXPORT tdm_status tdm_op_expand(const tdm_tensor *x, int rank,
                                    const int64_t *shape, tdm_tensor *result);
/* Of a dense tensor, a view. */
TDM_EXPORT tdm_status tdm_op_reshape(const tdm_tensor *x, int rank,
                                     const int64_t *shape, tdm_tensor *result);
/* The nearest element of the type. Of what the integers of a type do not reach,
 * they have the smallest or the largest (-1 and 300 are 0 and 255 in u8), also
 * of other integers; of NaN 0. A fraction is cut off. A bool is whether the
 * element is not 0. To integers no gradient flows. */
TDM_EXPORT tdm_status tdm_op_cast(const tdm_tensor *x, tdm_dtype dtype,
                                  tdm_tensor *result);

/*--- Backward --------------------------------------------------------------*/

/* Runs the nodes that `roots` reach. `gradients` may be null, and so may each
 * of them, or be empty: 1, of a root of one element. A root that stands twice
 * counts twice. The caller's gradients are never written.
 *
 * `inputs` null: all leaves collect their gradients. Else, only what leads to
 * these `input_count` tensors runs, at least one; leaves among them collect,
 * others keep their gradients as with tdm_tensor_retain_grad.
 *
 * Under TDM_CREATE_GRAPH what a leaf collects has history that leads back to
 * the leaf: neither is freed before tdm_tensor_set_grad clears it. */
TDM_EXPORT tdm_status tdm_graph_backward(tdm_tensor *const *roots,
                                         tdm_tensor *const *gradients,
                                         size_t root_count,
                                         tdm_tensor *const *inputs,
                                         size_t input_count, unsigned flags);

/* Sets `results` to the gradients that arrive at `inputs`, and collects none. A
 * result may share memory with another one, or with a gradient that was given.
 * With TDM_CREATE_GRAPH they have history: then functions and programs of the
 * graph must have second derivatives. Where no gradient arrives it is an error,
 * or what TDM_UNUSED_EMPTY or TDM_UNUSED_ZEROS says. */
TDM_EXPORT tdm_status
tdm_graph_grad(tdm_tensor *const *roots, tdm_tensor *const *gradients,
               size_t root_count, tdm_tensor *const *inputs, size_t input_count,
               tdm_tensor *const *results, unsigned flags);

/* Calls `callback` when the backward that runs on this thread is done, after
 * the caller's streams wait for it; `release` (may be null) gets `user` once,
 * also when the backward fails. */
TDM_EXPORT tdm_status tdm_graph_when_done(tdm_status (*callback)(void *user),
                                          void *user,
                                          void (*release)(void *user));

/*--- Gradients of tensors --------------------------------------------------*/

/* Sets `gradient` to what a leaf collected, or what was retained; an empty
 * handle if there is none. It shows the memory that later gradients are added
 * to. */
TDM_EXPORT tdm_status tdm_tensor_grad(tdm_tensor *tensor, tdm_tensor *gradient);
/* Sets it; null or empty: clears it. */
TDM_EXPORT tdm_status tdm_tensor_set_grad(tdm_tensor *tensor,
                                          const tdm_tensor *gradient);
/* Keeps the gradients of a tensor that is no leaf; nothing for leaves. When the
 * tensor is written visibly, the new value's are kept instead. */
TDM_EXPORT tdm_status tdm_tensor_retain_grad(tdm_tensor *tensor);

/* Gives the node that the tensor's gradient goes to (a leaf's own), and which
 * of its inputs; `input` may be null. An error if it requires no grad. */
TDM_EXPORT tdm_status tdm_tensor_node(tdm_tensor *tensor, tdm_node **node,
                                      int *input);
/* Makes `tensor` a handle without elements that stands for an input of a node:
 * a root, or a place to differentiate for. What was taken before a visible
 * write leads to the old value. */
TDM_EXPORT tdm_status tdm_tensor_from_edge(const tdm_node *node, int input,
                                           tdm_tensor *tensor);

/*--- Hooks -----------------------------------------------------------------
 *
 * `release` (may be null) gets `user` once, when the hook is removed and does
 * not run, its node ends, or the hook cannot be added. `hook` (may be null) is
 * set to a handle by which it can be removed; freeing the handle does not
 * remove it. */

/* `gradient` may be empty; tdm_tensor_assign to it replaces it. */
typedef tdm_status (*tdm_tensor_hook)(void *user, tdm_tensor *gradient);
/* The same of all inputs of a node. */
typedef tdm_status (*tdm_pre_hook)(void *user, tdm_tensor *const *gradients,
                                   size_t count);
/* `outputs` are what the node gave, for each of its edges, and may be replaced;
 * `inputs` what it took. Of leaves there are no outputs. */
typedef tdm_status (*tdm_post_hook)(void *user, tdm_tensor *const *outputs,
                                    size_t output_count,
                                    tdm_tensor *const *inputs,
                                    size_t input_count);

TDM_EXPORT tdm_status tdm_tensor_add_hook(tdm_tensor *tensor,
                                          tdm_tensor_hook call, void *user,
                                          void (*release)(void *user),
                                          tdm_hook **hook);
/* After a gradient was added to a leaf's; gets the sum. An error if the tensor
 * is no leaf. */
TDM_EXPORT tdm_status tdm_tensor_add_accumulated_hook(
    tdm_tensor *tensor, tdm_tensor_hook call, void *user,
    void (*release)(void *user), tdm_hook **hook);
TDM_EXPORT tdm_status tdm_node_add_pre_hook(tdm_node *node, tdm_pre_hook call,
                                            void *user,
                                            void (*release)(void *user),
                                            tdm_hook **hook);
TDM_EXPORT tdm_status tdm_node_add_post_hook(tdm_node *node, tdm_post_hook call,
                                             void *user,
                                             void (*release)(void *user),
                                             tdm_hook **hook);
/* Returns 1 if the hook was there, and 0 if it was removed before or its node
 * has ended. */
TDM_EXPORT int tdm_hook_remove(tdm_hook *hook);
TDM_EXPORT void tdm_hook_free(tdm_hook *hook);

/*--- Nodes -----------------------------------------------------------------*/

TDM_EXPORT void tdm_node_free(tdm_node *node);
/* Returns its name, until the thread's next call of this function. */
TDM_EXPORT const char *tdm_node_name(const tdm_node *node);
/* Returns 1 if both handles are of one node. */
TDM_EXPORT int tdm_node_is_same(const tdm_node *node, const tdm_node *other);
/* Rises from 0 with each node that a thread makes. A node with a larger number
 * runs earlier: one that is set starts a backward at another place. */
TDM_EXPORT uint64_t tdm_node_number(const tdm_node *node);
TDM_EXPORT void tdm_node_set_number(tdm_node *node, uint64_t number);
/* The thread that made the node: 0 for the first that made one. */
TDM_EXPORT uint32_t tdm_node_thread(const tdm_node *node);
/* The length of the longest path to a node without edges. */
TDM_EXPORT uint32_t tdm_node_topological_number(const tdm_node *node);
TDM_EXPORT size_t tdm_node_input_count(const tdm_node *node);
TDM_EXPORT size_t tdm_node_edge_count(const tdm_node *node);
/* Gives the node that edge `index` leads to, or null, and which of its inputs.
 */
TDM_EXPORT tdm_status tdm_node_edge(const tdm_node *node, size_t index,
                                    tdm_node **to, int *input);
/* The bytes that the node keeps for its backward, as far as it knows. */
TDM_EXPORT int64_t tdm_node_saved_bytes(const tdm_node *node);
/* Sets `wanted` to 1 if the edge leads somewhere, and, with `for_task`, the
 * backward that runs the node now wants it. */
TDM_EXPORT tdm_status tdm_node_should_compute(const tdm_node *node,
                                              size_t index, int for_task,
                                              int *wanted);
/* The same of any edge of `count` ranges: from begins[i] up to, not with,
 * ends[i]. */
TDM_EXPORT tdm_status tdm_node_should_compute_any(const tdm_node *node,
                                                  const size_t *begins,
                                                  const size_t *ends,
                                                  size_t count, int for_task,
                                                  int *wanted);
/* Sets `node` to the node that runs on this thread, or null. */
TDM_EXPORT tdm_status tdm_node_current(tdm_node **node);

/* Changes a node's edges. `to` null: an edge to nothing. An error that names
 * both nodes if another one has an edge to the node. The number of edges, and
 * the inputs below, can change of a function's node alone. */
TDM_EXPORT tdm_status tdm_node_add_edge(tdm_node *node, const tdm_node *to,
                                        int input);
TDM_EXPORT tdm_status tdm_node_set_edge(tdm_node *node, size_t index,
                                        const tdm_node *to, int input);
/* Replaces all: those of the tensors, to nothing where one requires no grad. */
TDM_EXPORT tdm_status tdm_node_set_edges(tdm_node *node,
                                         tdm_tensor *const *tensors,
                                         size_t count);
/* Adds an input; `index` may be null. */
TDM_EXPORT tdm_status tdm_node_add_input(tdm_node *node, tdm_dtype dtype,
                                         int rank, const int64_t *shape,
                                         const char *device, int *index);
/* Adds an input that no gradient goes to. */
TDM_EXPORT tdm_status tdm_node_add_placeholder(tdm_node *node, int *index);
/* An error if another node has an edge to the node. Handles that lead to an
 * input which is not there any more cannot be used. */
TDM_EXPORT tdm_status tdm_node_clear_inputs(tdm_node *node);
/* Adds an input like the tensor, and leads the tensor's gradient there. */
TDM_EXPORT tdm_status tdm_tensor_set_node(tdm_tensor *tensor, tdm_node *node);

/*--- Functions -------------------------------------------------------------*/

enum {
  TDM_ONCE_DIFFERENTIABLE = 1, /* its gradients have none */
  TDM_MATERIALIZE = 2,         /* gradients that did not come are zeros */
  TDM_NOT_DETERMINISTIC = 4,   /* refused in deterministic mode */
  TDM_TRACEABLE = 8,           /* computes with ops of the graph alone */
  TDM_STATE_TRANSPARENT = 16   /* depends on its saved values alone */
};

typedef struct tdm_function {
  size_t struct_size; /* sizeof(tdm_function) */
  const char *name;
  void *user;
  /* Sets or writes the outputs, with grad mode off. May save values with `node`
   * and declare inputs that it writes. Null for tdm_node_make. */
  tdm_status (*forward)(void *user, tdm_node *node, tdm_tensor *const *inputs,
                        size_t input_count, tdm_tensor *const *outputs,
                        size_t output_count);
  /* Gets a gradient, perhaps empty, for each output, then for each input that
   * the forward declared to write, which it must not write: others may have
   * them, too. Sets one, or leaves it empty, for each input of the forward.
   * Grad mode is on under TDM_CREATE_GRAPH. */
  tdm_status (*backward)(void *user, tdm_node *node,
                         tdm_tensor *const *gradients, size_t gradient_count,
                         tdm_tensor *const *results, size_t result_count);
  /* Says that the next backward is the last; may be null. */
  void (*announce)(void *user, tdm_node *node);
  /* Gets `user` once for each call: when the node ends, or if none was made,
   * because of an error too, unless this struct has a wrong size; may be null.
   */
  void (*release)(void *user);
  size_t flags;
} tdm_function;
#define TDM_FUNCTION_INIT                                                      \
  { sizeof(tdm_function), 0, 0, 0, 0, 0, 0, 0 }

/* Calls the forward, and makes a node if grad mode is on and an input requires
 * grad. `inputs` that are written get the history of what was written. */
TDM_EXPORT tdm_status tdm_function_apply(const tdm_function *function,
                                         tdm_tensor *const *inputs,
                                         size_t input_count,
                                         tdm_tensor *const *outputs,
                                         size_t output_count);
/* Makes a node by itself: its inputs and edges are added by hand. */
TDM_EXPORT tdm_status tdm_node_make(const tdm_function *function,
                                    tdm_node **node);
/* In a forward: keeps an input, an output or another value for the backward;
 * they are numbered from 0. */
TDM_EXPORT tdm_status tdm_node_save(tdm_node *node, const tdm_tensor *value);
/* In a forward, before it writes: declares that input `index` is written. An
 * error if that is a leaf that requires grad. */
TDM_EXPORT tdm_status tdm_node_mutates(tdm_node *node, size_t index);
/* In a forward: output `index` gets no history. */
TDM_EXPORT tdm_status tdm_node_not_differentiable(tdm_node *node, size_t index);
/* Sets `value` to saved value `index`; an error if it was written since, or was
 * freed by a backward. */
TDM_EXPORT tdm_status tdm_node_saved(const tdm_node *node, size_t index,
                                     tdm_tensor *value);

/* Calls `forward` with grad mode off, keeps nothing of it but the inputs, and
 * calls it again in the backward. `forward` makes outputs of the inputs with
 * calls of this header; leaves that it uses beside them collect their gradients
 * in the backward. What it gives then must have the type, shape and device that
 * it had at first, and history where a gradient comes. Not for tdm_graph_grad.
 * `function` has no backward. */
TDM_EXPORT tdm_status tdm_graph_checkpoint(const tdm_function *function,
                                           tdm_tensor *const *inputs,
                                           size_t input_count,
                                           tdm_tensor *const *outputs,
                                           size_t output_count);

/*--- Modes of a thread -----------------------------------------------------*/

/* Each sets a mode to on (1) or off (0) and returns what it was. Grad mode is
 * on at first. In deterministic mode, functions that are not deterministic
 * neither run nor have their backward run. */
TDM_EXPORT int tdm_grad_mode(void);
TDM_EXPORT int tdm_set_grad_mode(int on);
TDM_EXPORT int tdm_set_deterministic(int on);

/* On at first: in a backward that this thread asks for, whose nodes are of
 * several devices, those of each device run on a thread of that device. Off:
 * all run on this thread. */
TDM_EXPORT int tdm_set_device_threads(int on);

enum {
  TDM_ANOMALY_OFF = 0,
  TDM_ANOMALY_TRACE = 1,   /* nodes note where they are made */
  TDM_ANOMALY_NAN = 3,     /* and what they give may have no NaN */
  TDM_ANOMALY_INFINITY = 7 /* and no infinity */
};
/* A backward in which a node gives a NaN fails: the message has the node, the
 * number of the output, and where its forward was, with the node that ran then.
 * Returns the mode before. */
TDM_EXPORT int tdm_set_anomaly_mode(int mode);
/* Says where the thread's program is, for nodes that are made from now on under
 * anomaly mode; it is copied. */
TDM_EXPORT void tdm_set_location(const char *location);
#define TDM_TEXT_OF(x) #x
#define TDM_LINE_TEXT(line) TDM_TEXT_OF(line)
#define TDM_HERE() tdm_set_location(__FILE__ ":" TDM_LINE_TEXT(__LINE__))

/* What calls and functions of the thread do with each value that they save from
 * now on; null: they hold it. */
TDM_EXPORT tdm_status tdm_set_saved_hooks(const tdm_saved_hooks *hooks);

typedef struct tdm_profiler {
  size_t struct_size; /* sizeof(tdm_profiler) */
  void *user;
  /* Before a node runs. `inputs` is null unless `wants_inputs`. */
  void (*begin)(void *user, const tdm_node *node,
                const tdm_tensor *const *inputs, size_t input_count);
  void (*end)(void *user, const tdm_node *node); /* may be null */
  size_t wants_inputs;
} tdm_profiler;
#define TDM_PROFILER_INIT                                                      \
  { sizeof(tdm_profiler), 0, 0, 0, 0 }
/* Null: none. */
TDM_EXPORT tdm_status tdm_set_profiler(const tdm_profiler *profiler);

/*--- Pictures --------------------------------------------------------------*/

/* Writes the graph that the tensors' history makes, with numbers, saved bytes
 * and hooks, to a file: for Graphviz, or as JSON. */
TDM_EXPORT tdm_status tdm_graph_write_dot(tdm_tensor *const *roots,
                                          size_t root_count, const char *path);
TDM_EXPORT tdm_status tdm_graph_write_json(tdm_tensor *const *roots,
                                           size_t root_count, const char *path);

#ifdef __cplusplus
}
#endif

#endif
