/*===- dist.h - distributed autograd of the C API ---------------------------===
 *
 * Several workers compute one gradient: docs/DISTRIBUTED.md. A worker is a
 * process, or a thread of a test; workers are numbered from 0. Each serves
 * functions by name, and calls those of others within a context. The backward
 * of the context follows the calls back over all workers; its gradients lie in
 * the context of each worker, and not in the tensors. What tandem.h and graph.h
 * say of errors, ownership, callbacks and structs holds here, too.
 *
 * Threads. All calls may come from any thread, those of one worker at the same
 * time. Each call of a function of this worker, and its part of a backward,
 * runs on a thread of the worker's own. A context is current on the thread that
 * began or entered it.
 *
 * Errors. What fails on another worker fails here with its text, after
 * "worker N: ", the worker that failed. A worker that gives no sign of life for
 * `silence_ms` while something is awaited from it is such an error, too.
 *
 *===----------------------------------------------------------------------===*/
#ifndef TANDEM_DIST_H
#define TANDEM_DIST_H

#include "runtime/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_dist_worker tdm_dist_worker;

/*--- Transports ------------------------------------------------------------*/

/* How messages get to other workers. `send` comes from any thread, copies the
 * bytes and does not wait for the receiver; a worker may send to itself.
 * `receive` comes from one thread; it waits at most `wait_ms` and sets `bytes`
 * to what came, until its next call, or to null. Messages may overtake each
 * other. With `loses_messages` they may be lost or come twice. A worker that is
 * gone is no error. An error is for good; `error` (may be null) gives its text.
 * `close` comes when no other call runs, and none comes after it. */
typedef struct tdm_dist_transport {
  size_t struct_size; /* sizeof(tdm_dist_transport) */
  void *user;
  uint32_t worker;  /* the number of this worker */
  uint32_t workers; /* how many there are */
  size_t loses_messages;
  size_t most_bytes; /* of a message; 0: no limit */
  tdm_status (*send)(void *user, uint32_t to, const void *bytes, size_t size);
  tdm_status (*receive)(void *user, int64_t wait_ms, uint32_t *from,
                        const void **bytes, size_t *size);
  const char *(*error)(void *user);
  void (*close)(void *user);
} tdm_dist_transport;
#define TDM_DIST_TRANSPORT_INIT                                                \
  { sizeof(tdm_dist_transport), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct tdm_dist_loopback_options {
  size_t struct_size; /* sizeof(tdm_dist_loopback_options) */
  uint64_t seed;
  double loss;    /* part of the messages that never comes, 0 to 1 */
  double repeat;  /* part that comes twice */
  double reorder; /* part that overtakes what was sent before */
} tdm_dist_loopback_options;
#define TDM_DIST_LOOPBACK_OPTIONS_INIT                                         \
  { sizeof(tdm_dist_loopback_options), 0, 0, 0, 0 }

/* Fills `workers` transports between workers that are threads of this process,
 * for tests. `options` may be null. */
TDM_EXPORT tdm_status
tdm_dist_loopback(uint32_t workers, const tdm_dist_loopback_options *options,
                  tdm_dist_transport *transports);

/* Opens a transport that a library has: `name` "mpi" is libtandem-mpi.so beside
 * libtandem.so or where the system looks for libraries; a name with '/' is a
 * path. Every process of the job calls it. `argument` is the library's: of
 * "mpi" an MPI_Comm * to be duplicated, or null for all processes of the job;
 * then MPI is started and ended if nobody did. A library that cannot be opened
 * is TDM_UNSUPPORTED. */
TDM_EXPORT tdm_status tdm_dist_open(const char *name, void *argument,
                                    tdm_dist_transport *transport);

/* What such a library exports: fills `transport`, or gives a message of at most
 * `size` bytes. `transport` has the size that libtandem.so knows. */
#define TDM_DIST_OPENER "tandem_dist_open"
typedef tdm_status (*tdm_dist_opener)(void *argument,
                                      tdm_dist_transport *transport,
                                      char *message, size_t size);

/*--- Workers ---------------------------------------------------------------*/

typedef struct tdm_dist_options {
  size_t struct_size; /* sizeof(tdm_dist_options) */
  /* After which a worker that is awaited counts as gone; 0: 30 s. */
  int64_t silence_ms;
  /* Of a call, a backward or a step as a whole; 0: 10 minutes, -1: none. */
  int64_t limit_ms;
} tdm_dist_options;
#define TDM_DIST_OPTIONS_INIT                                                  \
  { sizeof(tdm_dist_options), 0, 0 }

/* Starts this process' worker. The transport is taken over, and closed with the
 * worker, or at once if the call fails. `options` may be null. */
TDM_EXPORT tdm_status tdm_dist_start(const tdm_dist_transport *transport,
                                     const tdm_dist_options *options,
                                     tdm_dist_worker **worker);
/* Waits until all workers have come to the same `place`: all serve what others
 * will call, say. */
TDM_EXPORT tdm_status tdm_dist_meet(tdm_dist_worker *worker, const char *place);
/* Waits until all workers have called it or are gone, so that none ends while
 * another needs it; an error names those that are gone. The worker serves on.
 */
TDM_EXPORT tdm_status tdm_dist_leave(tdm_dist_worker *worker);
/* Ends the worker, and waits for its threads: not in a function that it serves.
 * Without tdm_dist_leave before it, others find it gone. */
TDM_EXPORT void tdm_dist_free(tdm_dist_worker *worker);
TDM_EXPORT uint32_t tdm_dist_number(const tdm_dist_worker *worker);
TDM_EXPORT uint32_t tdm_dist_count(const tdm_dist_worker *worker);

/* Sets `outputs` from `inputs`, in the context of the caller. Both end with the
 * call. */
typedef tdm_status (*tdm_dist_function)(void *user, tdm_tensor *const *inputs,
                                        size_t input_count,
                                        tdm_tensor *const *outputs,
                                        size_t output_count);
/* Lets all workers call a function by its name, at the same time. `release`
 * (may be null) gets `user` when the worker ends, or the call fails. */
TDM_EXPORT tdm_status tdm_dist_serve(tdm_dist_worker *worker, const char *name,
                                     tdm_dist_function function, void *user,
                                     void (*release)(void *user));
/* Calls a function of worker `to`, perhaps this one, and sets `outputs`. Inputs
 * are copied; they arrive on the host. In the thread's context, with grad mode
 * on, tensors that require grad keep their history, there and back. */
TDM_EXPORT tdm_status tdm_dist_call(tdm_dist_worker *worker, uint32_t to,
                                    const char *name, tdm_tensor *const *inputs,
                                    size_t input_count,
                                    tdm_tensor *const *outputs,
                                    size_t output_count);

/*--- Contexts --------------------------------------------------------------*/

/* Begins a context, and makes it the thread's; an error if it has one. The
 * number is unique over all workers: 16 bits of the worker, 48 of a counter. */
TDM_EXPORT tdm_status tdm_dist_begin(tdm_dist_worker *worker,
                                     uint64_t *context);
/* Makes a context the thread's, or none (0); an error if it has another. */
TDM_EXPORT tdm_status tdm_dist_enter(tdm_dist_worker *worker, uint64_t context);
/* Returns the thread's context, or 0. */
TDM_EXPORT uint64_t tdm_dist_current(void);
/* Ends a context on all workers that took part: its gradients and graph go.
 * Others are told in the background. A context that is not there is no error. A
 * backward of it fails. */
TDM_EXPORT tdm_status tdm_dist_release(tdm_dist_worker *worker,
                                       uint64_t context);

enum {
  TDM_DIST_STRICT =
      256 /* a message that the backward does not use is an error */
};
/* Runs the backward of a context from roots, scalars that other nodes made, on
 * all workers, and returns when all are done. `flags`: TDM_RETAIN_GRAPH,
 * TDM_DIST_STRICT. Every worker may call it, one at a time. Hooks after
 * accumulation are not called: nothing is added to leaves. After an error
 * nothing more is collected; what was, stays. */
TDM_EXPORT tdm_status tdm_dist_backward(tdm_dist_worker *worker,
                                        uint64_t context,
                                        tdm_tensor *const *roots,
                                        size_t root_count, unsigned flags);
/* Sets `gradient` to what the context has for a leaf of this worker; an empty
 * handle if nothing. */
TDM_EXPORT tdm_status tdm_dist_grad(tdm_dist_worker *worker, uint64_t context,
                                    tdm_tensor *tensor, tdm_tensor *gradient);

/* Updates parameters from the gradients of a context; an empty handle where
 * there is none. */
typedef tdm_status (*tdm_dist_step_function)(void *user, uint64_t context,
                                             tdm_tensor *const *params,
                                             tdm_tensor *const *gradients,
                                             size_t count);
/* Adds parameters of this worker, leaves, with what updates them. */
TDM_EXPORT tdm_status tdm_dist_optimize(tdm_dist_worker *worker,
                                        tdm_tensor *const *params, size_t count,
                                        tdm_dist_step_function step, void *user,
                                        void (*release)(void *user));
/* Has all workers that took part in the context update their parameters, those
 * that it has gradients for. Steps of a worker run one after the other. */
TDM_EXPORT tdm_status tdm_dist_step(tdm_dist_worker *worker, uint64_t context);

typedef struct tdm_dist_counts {
  size_t struct_size; /* sizeof(tdm_dist_counts) */
  size_t contexts;    /* that are not released */
  size_t backwards;   /* that run */
  size_t requests;    /* to other workers, without answers */
  size_t threads;     /* of functions and backwards, idle ones too */
} tdm_dist_counts;
#define TDM_DIST_COUNTS_INIT                                                   \
  { sizeof(tdm_dist_counts), 0, 0, 0, 0 }
/* What this worker has at the moment. */
TDM_EXPORT tdm_status tdm_dist_get_counts(const tdm_dist_worker *worker,
                                          tdm_dist_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
