/*===- tandem.h - the C API of Tandem's runtime -----------------------------===
 *
 * Loads compiled artifacts (.tdm), runs them and trains them. C11 and C++.
 *
 * Errors. A function that can fail returns a tdm_status. Unless it is TDM_OK,
 * tdm_last_error() gives one complete message, for the calling thread, until
 * its next call. A call that fails in its checks has changed nothing. Null
 * handles are reported, not followed; the `free` functions ignore them. No C++
 * exception leaves this API, nothing is printed, and nothing ends the process.
 *
 * Ownership. What a function gives through a `**` parameter is the caller's to
 * free. Handles keep alive what they need: tensors and contexts may outlive
 * their model, and may be freed in any order. Strings and shapes of
 * descriptions live as long as the model.
 *
 * Threads. Calls may come from any thread; those of one model run one after the
 * other. A handle must not be freed while another call uses it. Reading a
 * tensor's data while a call writes it is the caller's race.
 *
 * Shapes and strides are counted in elements, row-major unless strides say
 * otherwise; sizes of memory in bytes. A bool element is a byte, 0 or 1.
 *
 * Versions (docs/rationale/versions.md). A struct that may grow begins with its
 * size, as the caller was compiled; TDM_..._INIT sets it. A shorter struct of
 * an earlier header is read and filled as far as it goes. A longer one is taken
 * where all that this library does not know is zero, and refused by its name
 * else (TDM_UNSUPPORTED). tdm_argument has no size and never changes.
 *
 * Allocation. Once a model has run a program with the same tensor handles, a
 * call allocates no memory.
 *
 *===----------------------------------------------------------------------===*/
#ifndef TANDEM_H
#define TANDEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TDM_EXPORT __attribute__((visibility("default")))
#else
#define TDM_EXPORT
#endif

/* In C++, an enumeration holds any int that a C program may pass. */
#ifdef __cplusplus
#define TDM_AS_INT : int
#else
#define TDM_AS_INT
#endif

struct DLManagedTensor; /* DLPack's; runtime/dlpack.h or dlpack/dlpack.h */

typedef struct tdm_model tdm_model;
typedef struct tdm_tensor tdm_tensor;
typedef struct tdm_context tdm_context;

typedef enum tdm_status TDM_AS_INT {
  TDM_OK = 0,
  TDM_FAILED = 1,      /* files, memory, a file that is not what it should be */
  TDM_USAGE = 2,       /* wrong name, shape, type; missing or null argument */
  TDM_UNSUPPORTED = 3, /* right, but this build or artifact cannot do it */
  TDM_DIFFERS = 4,     /* numbers differ */
  TDM_NO_DEVICE = 5    /* device, driver or processor feature not available */
} tdm_status;

typedef enum tdm_dtype TDM_AS_INT {
  TDM_BOOL,
  TDM_I8,
  TDM_U8,
  TDM_I16,
  TDM_I32,
  TDM_I64,
  TDM_F16,
  TDM_BF16,
  TDM_F32,
  TDM_F64,
  TDM_U16,
  TDM_U32,
  TDM_U64,
  TDM_F8E4M3FN,
  TDM_F8E5M2
} tdm_dtype;

typedef enum tdm_role TDM_AS_INT {
  TDM_INPUT,
  TDM_PARAM,
  TDM_STATE,
  TDM_OUTPUT
} tdm_role;

/* Returns the message of this thread's last call; "" after one that succeeded.
 * Valid until the thread's next call. */
TDM_EXPORT const char *tdm_last_error(void);

/* Returns the version of the library, as "0.2.0". */
TDM_EXPORT const char *tdm_version(void);

/*--- Models ----------------------------------------------------------------*/

typedef struct tdm_options {
  size_t struct_size; /* sizeof(tdm_options) */
  int threads;        /* 0: one for each processor this process may use */
  uint64_t seed;      /* of the initial parameters and states */
  /* "cpu", "cuda", "cuda:1", ...: where the model lives and runs. Null: "cpu"
   * if the artifact has code for it, else "cuda". */
  const char *device;
  int no_graphs;    /* 1: a device launches kernels one by one */
  int no_libraries; /* 1: cuBLASLt and cuDNN are not used */
  /* A file with a public key (Ed25519 in PEM), or null: an artifact that has no
   * signature by it beside itself, PATH.sig, is not loaded. Needs
   * libtandem-signatures.so. */
  const char *require_signature;
  /* The most bytes that this process may have of the memory of the model's GPU
   * from now on, other models and tensors included; what the driver takes for
   * itself and for code comes on top. What is beyond it is refused: TDM_FAILED,
   * with what was asked for, what is in use, and the limit. 0: as it was. */
  int64_t memory_limit;
} tdm_options;
#define TDM_OPTIONS_INIT                                                       \
  { sizeof(tdm_options), 0, 0, 0, 0, 0, 0, 0 }

/* Loads the artifact at `path`. `options` may be null: TDM_OPTIONS_INIT. A
 * stage of a model (`--parallel=pp`) is TDM_UNSUPPORTED: tandem-run runs those.
 */
TDM_EXPORT tdm_status tdm_model_load(const char *path,
                                     const tdm_options *options,
                                     tdm_model **model);
TDM_EXPORT void tdm_model_free(tdm_model *model);

/* An input, param, state or output of a model. */
typedef struct tdm_value {
  size_t struct_size; /* sizeof(tdm_value), set before the call */
  const char *name;
  tdm_role role;
  tdm_dtype dtype;
  int rank;
  int requires_grad;    /* 1 if backward gives a gradient of that name */
  const int64_t *shape; /* `rank` sizes */
} tdm_value;
#define TDM_VALUE_INIT                                                         \
  { sizeof(tdm_value), 0, TDM_INPUT, TDM_BOOL, 0, 0, 0 }

/* Returns the number of values; 0 for null. */
TDM_EXPORT size_t tdm_value_count(const tdm_model *model);
/* Describes value number `index`. */
TDM_EXPORT tdm_status tdm_value_at(const tdm_model *model, size_t index,
                                   tdm_value *value);

/* An artifact may be compiled for several sizes of its inputs (tandem compile
 * --variant). A call takes the programs of the first size that its inputs fit,
 * and all sizes share parameters and states; what is said elsewhere of a value
 * is of the first size. Returns the number of sizes; 0 where there is one. */
TDM_EXPORT size_t tdm_size_count(const tdm_model *model);
/* Returns the name of size number `size` ("batch=64"); null, and
 * tdm_last_error() says why, if there is none. */
TDM_EXPORT const char *tdm_size_at(const tdm_model *model, size_t size);
/* Describes value number `index` as it is in size number `size`. */
TDM_EXPORT tdm_status tdm_size_value_at(const tdm_model *model, size_t size,
                                        size_t index, tdm_value *value);

/* Returns the number of programs; 0 for null. */
TDM_EXPORT size_t tdm_program_count(const tdm_model *model);
/* Returns the name of program number `index`; null, and tdm_last_error() says
 * why, if there is none. */
TDM_EXPORT const char *tdm_program_at(const tdm_model *model, size_t index);

typedef struct tdm_memory {
  size_t struct_size;    /* sizeof(tdm_memory), set before the call */
  int64_t planned_bytes; /* the compiler's plan: the largest of the programs */
  int64_t current_bytes; /* allocated by the model now */
  int64_t peak_bytes;    /* the largest so far */
} tdm_memory;
#define TDM_MEMORY_INIT                                                        \
  { sizeof(tdm_memory), 0, 0, 0 }

TDM_EXPORT tdm_status tdm_memory_use(const tdm_model *model,
                                     tdm_memory *memory);

/*--- Tensors ---------------------------------------------------------------*/

/* Makes an empty handle: given as an output, it is set to a new tensor. */
TDM_EXPORT tdm_status tdm_tensor_empty(tdm_tensor **tensor);
/* Makes a tensor of zeros. */
TDM_EXPORT tdm_status tdm_tensor_zeros(tdm_dtype dtype, int rank,
                                       const int64_t *shape,
                                       tdm_tensor **tensor);
/* The same on a device, for use on its current stream. */
TDM_EXPORT tdm_status tdm_tensor_zeros_on(const char *device, tdm_dtype dtype,
                                          int rank, const int64_t *shape,
                                          tdm_tensor **tensor);
/* Makes a tensor over the caller's memory, which must outlive every use of it:
 * also by a context, when a backward reads the tensor. Nothing is copied where
 * the memory is dense and aligned to 64 bytes. `strides` may be null, and is
 * nowhere negative: `data` is the lowest address. The caller reports its own
 * later writes with tdm_tensor_mark_written. */
TDM_EXPORT tdm_status tdm_tensor_wrap(void *data, tdm_dtype dtype, int rank,
                                      const int64_t *shape,
                                      const int64_t *strides,
                                      tdm_tensor **tensor);
/* The same over memory of a device, for use on its current stream; a pointer
 * that the device does not know is refused. */
TDM_EXPORT tdm_status tdm_tensor_wrap_on(const char *device, void *data,
                                         tdm_dtype dtype, int rank,
                                         const int64_t *shape,
                                         const int64_t *strides,
                                         tdm_tensor **tensor);
/* As tdm_tensor_wrap, over memory of the host that is registered with the
 * driver of `device` (pinned) until the last tensor that shares it is freed,
 * which waits for copies of it; a device copies from there and to there itself.
 * A copy of it to a device (tdm_tensor_copy_to, tdm_tensor_assign in tdm_train)
 * may read it after the call: until tdm_synchronize, and in tdm_train until the
 * batch two behind is asked for, it must not be written. For data sets in
 * memory, also in files that were mapped: wrap all of it once, and give views.
 * Memory that is registered already is refused, and so is all where a device
 * cannot do it (TDM_FAILED). Of "cpu": tdm_tensor_wrap. */
TDM_EXPORT tdm_status tdm_tensor_wrap_registered(const char *device, void *data,
                                                 tdm_dtype dtype, int rank,
                                                 const int64_t *shape,
                                                 const int64_t *strides,
                                                 tdm_tensor **tensor);
/* Makes a dense copy on a device or on the host ("cpu"). */
TDM_EXPORT tdm_status tdm_tensor_copy_to(const tdm_tensor *tensor,
                                         const char *device, tdm_tensor **copy);
/* Takes over a DLPack tensor without copying; on failure the caller keeps it.
 * Of a device: for use on its current stream, which the producer was told. */
TDM_EXPORT tdm_status tdm_tensor_from_dlpack(struct DLManagedTensor *managed,
                                             tdm_tensor **tensor);
/* Exports a tensor without copying; the receiver calls the deleter. */
TDM_EXPORT tdm_status tdm_tensor_to_dlpack(const tdm_tensor *tensor,
                                           struct DLManagedTensor **managed);
/* The same for use on `stream` of the tensor's device, which then waits for the
 * current one. */
TDM_EXPORT tdm_status tdm_tensor_to_dlpack_on(const tdm_tensor *tensor,
                                              void *stream,
                                              struct DLManagedTensor **managed);
TDM_EXPORT void tdm_tensor_free(tdm_tensor *tensor);

/* Returns where the tensor is ("cpu", "cuda:0"), until the thread's next call
 * of this function; null for an empty handle. */
TDM_EXPORT const char *tdm_tensor_device(const tdm_tensor *tensor);
/* Notes that the caller's own work on a stream of the tensor's device uses its
 * memory: that is not used anew before. */
TDM_EXPORT tdm_status tdm_tensor_use_on(const tdm_tensor *tensor, void *stream);

/* Of a null or empty handle: rank -1, null pointers, no elements. */
TDM_EXPORT tdm_dtype tdm_tensor_dtype(const tdm_tensor *tensor);
TDM_EXPORT int tdm_tensor_rank(const tdm_tensor *tensor);
TDM_EXPORT const int64_t *tdm_tensor_shape(const tdm_tensor *tensor);
TDM_EXPORT const int64_t *tdm_tensor_strides(const tdm_tensor *tensor);
TDM_EXPORT int64_t tdm_tensor_elements(const tdm_tensor *tensor);
/* Returns the address of the first element, in the memory of the tensor's
 * device; null if the storage is freed. A resize of the storage ends its use.
 */
TDM_EXPORT void *tdm_tensor_data(const tdm_tensor *tensor);
/* Makes a tensor over the same storage: `offset` elements after this one's
 * first. It requires no grad. */
TDM_EXPORT tdm_status tdm_tensor_view(const tdm_tensor *tensor, int rank,
                                      const int64_t *shape,
                                      const int64_t *strides, int64_t offset,
                                      tdm_tensor **view);
/* Makes a handle of the same elements that requires no grad. */
TDM_EXPORT tdm_status tdm_tensor_detach(const tdm_tensor *tensor,
                                        tdm_tensor **detached);
/* Frees the tensor's storage (0) or makes it hold `elements` elements of the
 * tensor's type; the elements that fit are kept. All tensors of the storage see
 * it. Only storage that the runtime allocated, that is no model's and was not
 * exported, can be resized. */
TDM_EXPORT tdm_status tdm_tensor_resize_storage(tdm_tensor *tensor,
                                                int64_t elements);
/* Makes a handle show what another one shows. */
TDM_EXPORT tdm_status tdm_tensor_assign(tdm_tensor *tensor,
                                        const tdm_tensor *other);
/* Returns the number of writes to the tensor's storage so far. */
TDM_EXPORT uint64_t tdm_tensor_version(const tdm_tensor *tensor);

/* Makes a tensor of floating point numbers a leaf that requires grad (1) or not
 * (0). What programs make of tensors that require grad requires grad and is no
 * leaf: that can only be detached. */
TDM_EXPORT tdm_status tdm_tensor_set_requires_grad(tdm_tensor *tensor,
                                                   int requires_grad);
TDM_EXPORT int tdm_tensor_requires_grad(const tdm_tensor *tensor);
TDM_EXPORT int tdm_tensor_is_leaf(const tdm_tensor *tensor);
/* Returns the op that made the tensor together with other pieces of one value,
 * or null. */
TDM_EXPORT const char *tdm_tensor_part_of(const tdm_tensor *tensor);
/* Reports that the caller wrote to the tensor's memory: a context that saved it
 * refuses to be used. */
TDM_EXPORT void tdm_tensor_mark_written(tdm_tensor *tensor);
/* Copies all elements, row-major, from or to `bytes` bytes of the host's
 * memory, which must be exactly the tensor's elements, and returns when that is
 * done. */
TDM_EXPORT tdm_status tdm_tensor_write(tdm_tensor *tensor, const void *data,
                                       size_t bytes);
TDM_EXPORT tdm_status tdm_tensor_read(const tdm_tensor *tensor, void *data,
                                      size_t bytes);

/*--- Devices and streams ---------------------------------------------------
 *
 * Calls on a device queue their work on the current stream of the calling
 * thread, and return when what goes to the host is there. A backward runs on
 * the stream of its forward; the current stream waits for it, and it for the
 * current stream. While a stream is captured, nothing may be on the host, and
 * no memory may be needed that an earlier call did not leave: such a call fails
 * and ends the capture, which gives no graph; the next step is right. */

/* Makes `stream` (a CUstream; null: the default one) the current one of
 * `device` for this thread. It must live as long as models and tensors that
 * were used on it. Of "cpu", which has no streams, null alone is taken. */
TDM_EXPORT tdm_status tdm_stream_set_current(const char *device, void *stream);
/* Returns when all work on the current stream of `device` is done. */
TDM_EXPORT tdm_status tdm_synchronize(const char *device);

/*--- Parameters and states -------------------------------------------------*/

/* Gives the parameter or state `name`; the tensor shares its memory. */
TDM_EXPORT tdm_status tdm_get(const tdm_model *model, const char *name,
                              tdm_tensor **tensor);
/* Overwrites the parameter or state `name`: same type and shape, any strides.
 */
TDM_EXPORT tdm_status tdm_set(tdm_model *model, const char *name,
                              const tdm_tensor *tensor);
/* Draws every parameter and state that has an initial value anew. */
TDM_EXPORT tdm_status tdm_initialize(tdm_model *model, uint64_t seed);

/* Writes all parameters and states, as they are at one moment, to a safetensors
 * file; an earlier file stays until the new one is complete. A file of another
 * kind, as the artifact, is not replaced: TDM_USAGE. A path that ends in
 * ".safetensors.index.json" is that of an index, whose files lie beside it: one
 * for each rank (comm.h). */
TDM_EXPORT tdm_status tdm_save(const tdm_model *model, const char *path);
/* Reads them, of a file, an index or a folder with one index: it must have
 * every parameter, with its shape and its type, or one all of whose numbers the
 * type holds (bf16 for f32); a state that it lacks keeps its value; other
 * tensors in it are ignored. */
TDM_EXPORT tdm_status tdm_load(tdm_model *model, const char *path);

/*--- Running ---------------------------------------------------------------*/

/* A named tensor of a call. As an input, it must have the type and shape of the
 * program's argument, and may have any strides. As an output, it is either an
 * empty handle, which is set to a new tensor (or to a view, where the output is
 * an alias of an input or of another output), or a tensor of the result's type
 * and shape, which is written to. Outputs that are not asked for are dropped.
 */
typedef struct tdm_argument {
  const char *name;
  tdm_tensor *tensor;
} tdm_argument;

/* Labels and indices have ranges that the artifact knows (tandem inspect shows
 * them). On the host a call whose inputs leave them is refused with
 * TDM_USAGE, and the message names input, row and value. On a GPU
 * the values are not looked at, since the call would have to wait for them: one
 * outside of its range makes NaN of what is computed from it (of a loss, and of
 * elements that an index takes; 0 of integers). Gradients do not see that NaN
 * and are finite, so a step goes through and changes parameters: check labels
 * before, or look at the loss.
 *
 * Runs a program that needs nothing but inputs, parameters and states:
 * "evaluate", "step", "forward". */
TDM_EXPORT tdm_status tdm_run(tdm_model *model, const char *program,
                              const tdm_argument *inputs, size_t input_count,
                              const tdm_argument *outputs, size_t output_count);

/* Runs "evaluate" for these outputs alone, over any number of rows: inputs that
 * have a batch as their first dimension are given with N rows there, and so are
 * outputs (or empty handles, which are set to new tensors on the host). The
 * rows that do not fill a batch are filled up with themselves; only real rows
 * are given out. Inputs that no output follows from, as labels, may be left
 * out, and what the outputs do not need is not computed. An output without
 * rows, as a mean, is refused. */
TDM_EXPORT tdm_status tdm_predict(tdm_model *model, const tdm_argument *inputs,
                                  size_t input_count,
                                  const tdm_argument *outputs,
                                  size_t output_count);

/* Runs "step": forward, backward and update. Of an artifact that was compiled
 * to accumulate, tdm_run of "accumulate" adds the gradients of a batch, and the
 * next step updates by the mean of these and its own. */
TDM_EXPORT tdm_status tdm_step(tdm_model *model, const tdm_argument *inputs,
                               size_t input_count, const tdm_argument *outputs,
                               size_t output_count);

/* What gives the batches of tdm_train. */
typedef struct tdm_feed {
  size_t struct_size; /* sizeof(tdm_feed) */
  void *user;         /* the callbacks' first argument */
  /* Writes batch number `batch`, from 0, to the inputs of the program, in its
   * order: dense tensors of its types and shapes in the host's memory, whose
   * data is what the batch two before it left there. Or makes a handle show a
   * tensor of the caller's (tdm_tensor_assign), which is copied; one over
   * registered memory (tdm_tensor_wrap_registered) by the device itself. Where
   * there is no such batch it sets *is_end to 1. It is called on a thread of
   * the runtime's, one batch after the other, while the step of the batch
   * before runs, and must not call the model; what it returns beside TDM_OK
   * ends tdm_train, with the message of tdm_fail (graph.h). */
  tdm_status (*next)(void *user, int64_t batch, const tdm_argument *inputs,
                     size_t input_count, int *is_end);
  /* May be null. Called behind each step, on the thread of tdm_train: the
   * outputs are those of this batch, and the model may be called (saved, its
   * rate be set). Sets *is_end to 1 to stop; a batch that was made is dropped.
   */
  tdm_status (*stepped)(void *user, int64_t batch, int *is_end);
  int64_t steps; /* the most steps; 0: until there is no batch */
} tdm_feed;
#define TDM_FEED_INIT                                                          \
  { sizeof(tdm_feed), 0, 0, 0, 0 }

/* Runs `program` (null: "step"; one that tdm_run could run) on one batch of
 * `feed` after the other. There are two batches by turns: the next one is made,
 * and copied to the model's device beside its work, while a step runs. Outputs
 * on the host are waited for in each step. Of a model of several sizes it is
 * the first one that runs. *steps (may be null) is the number of steps that
 * were done, also where it fails. It returns when a `next` that is being called
 * has returned, also where it fails or stops. */
TDM_EXPORT tdm_status tdm_train(tdm_model *model, const char *program,
                                const tdm_feed *feed,
                                const tdm_argument *outputs,
                                size_t output_count, int64_t *steps);

/* Runs "forward". Grad mode: with `context` null, nothing is kept for a
 * backward. Else *context must be null, and is set to a new context, or a
 * context of an earlier forward, which is used again and loses what it held. */
TDM_EXPORT tdm_status tdm_forward(tdm_model *model, const tdm_argument *inputs,
                                  size_t input_count,
                                  const tdm_argument *outputs,
                                  size_t output_count, tdm_context **context);

/* What a forward does with each value that it saves, instead of holding it. The
 * handles end with the call of a hook; hooks must not call the model. Where one
 * fails, the message is that of the call that failed in it, if one did. */
typedef struct tdm_saved_hooks {
  size_t struct_size; /* sizeof(tdm_saved_hooks) */
  void *user;
  /* Gets each value after the forward ran; must not write it. */
  tdm_status (*pack)(void *user, const char *name, const tdm_tensor *value,
                     void **packed);
  /* Sets `value`, an empty handle, before each use (tdm_tensor_assign). */
  tdm_status (*unpack)(void *user, const char *name, void *packed,
                       tdm_tensor *value);
  /* Gets each packed value when its context is done with it; may be null. */
  void (*release)(void *user, void *packed);
} tdm_saved_hooks;
#define TDM_SAVED_HOOKS_INIT                                                   \
  { sizeof(tdm_saved_hooks), 0, 0, 0, 0 }

/* As tdm_forward. `hooks` may be null; its `pack` and `unpack` may not. Where
 * `context` is null, nothing is saved, and none is called. */
TDM_EXPORT tdm_status tdm_forward_with_hooks(
    tdm_model *model, const tdm_argument *inputs, size_t input_count,
    const tdm_argument *outputs, size_t output_count,
    const tdm_saved_hooks *hooks, tdm_context **context);

enum {
  TDM_RETAIN_GRAPH = 1, /* the context can be used again */
  TDM_CREATE_GRAPH = 2, /* grad mode on: refused if the backward writes a value
                           that requires grad */
  /* Of tdm_graph_grad (graph.h): where no gradient arrives, it gives ... */
  TDM_UNUSED_EMPTY = 4, /* an empty handle */
  TDM_UNUSED_ZEROS = 8  /* zeros */
};

/* Runs "backward". Cotangents have the names of their outputs ("update of x"
 * for what an input was visibly overwritten with), gradients those of their
 * parameters and inputs. A context is used once. It is an error, and no
 * gradient is given, if a value that the backward reads was written since. An
 * empty handle gets a new tensor: row-major, or with the strides of the input
 * whose gradient it is, if that is a leaf and dense in any order.
 *
 * A cotangent may be left out, null or empty: undefined. What only it needs
 * does not run, and the handle of a gradient that only it feeds is empty
 * afterwards; memory that it showed is left as it is. */
TDM_EXPORT tdm_status tdm_backward(tdm_model *model, tdm_context *context,
                                   const tdm_argument *cotangents,
                                   size_t cotangent_count,
                                   const tdm_argument *grads, size_t grad_count,
                                   unsigned flags);
/* Runs "backward" so that the gradients have gradients: artifacts compiled with
 * second derivatives only. *graph is null or a context, as for tdm_forward; a
 * backward of it takes cotangents named "grad of w" and gives gradients of
 * parameters, inputs and "cotangent of loss". */
TDM_EXPORT tdm_status tdm_backward_graph(tdm_model *model, tdm_context *context,
                                         const tdm_argument *cotangents,
                                         size_t cotangent_count,
                                         const tdm_argument *grads,
                                         size_t grad_count, unsigned flags,
                                         tdm_context **graph);
TDM_EXPORT void tdm_context_free(tdm_context *context);

/* Runs "update" with the gradients that the optimizer wants, each named as its
 * parameter; changes parameters and states in place. Where a gradient is empty,
 * the parameter and what the optimizer keeps for it stay as they are. */
TDM_EXPORT tdm_status tdm_update(tdm_model *model, const tdm_argument *grads,
                                 size_t grad_count);

#ifdef __cplusplus
}
#endif

#endif
