/*===- comm.h - ranks of the C API -----------------------------------------===
 *
 * Several ranks run one model together: docs/DISTRIBUTED.md. A rank is a
 * process, or a thread of a test; ranks are numbered from 0. An artifact that
 * was compiled for a mesh needs a communicator with as many ranks as its mesh
 * has; each rank loads it, gives its model the communicator, and makes the same
 * calls in the same order. What tandem.h says of errors, ownership and structs
 * holds here, too.
 *
 * Threads. A communicator is used by one thread at a time: that which calls a
 * model that has it, and during the call a thread of the runtime, so that ranks
 * communicate while they compute. Over "mpi" the first is one that may call
 * MPI, and the second is there if MPI was started with MPI_THREAD_SERIALIZED or
 * MPI_THREAD_MULTIPLE, as the runtime does itself.
 *
 * Errors. What a rank waits for ends within `limit_ms`. A rank that is gone or
 * late is an error with its number, and then the communicator is of no use any
 * more: later calls give the same error.
 *
 *===----------------------------------------------------------------------===*/
#ifndef TANDEM_COMM_H
#define TANDEM_COMM_H

#include "runtime/tandem.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_comm tdm_comm;

typedef struct tdm_comm_options {
  size_t struct_size; /* sizeof(tdm_comm_options) */
  int64_t limit_ms;   /* of each wait for another rank, up to 10^9;
                       * 0: 5 minutes */
  size_t no_overlap;  /* 1: ranks never communicate while they compute,
                       * which is faster where no processor is free for it */
} tdm_comm_options;
#define TDM_COMM_OPTIONS_INIT                                                  \
  { sizeof(tdm_comm_options), 0, 0 }

/* Fills `comms` with one for each of `ranks` threads of this process.
 * `options` may be null. */
TDM_EXPORT tdm_status tdm_comm_loopback(uint32_t ranks,
                                        const tdm_comm_options *options,
                                        tdm_comm **comms);
/* Opens the communicator that a library has: `name` "mpi" is libtandem-mpi.so
 * beside libtandem.so or where the system looks for libraries; a name with '/'
 * is a path. Every rank calls it. `argument` is the library's: of "mpi" an
 * MPI_Comm * to be duplicated, or null for all processes of the job; then MPI
 * is started, and ended with the communicator, if nobody did. Of "nccl" an
 * ncclComm_t *, which nobody else uses meanwhile and which is not ended, or
 * null for the processes that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
 * speak of. A library that cannot be opened is TDM_UNSUPPORTED. `options` may
 * be null. */
TDM_EXPORT tdm_status tdm_comm_open(const char *name, void *argument,
                                    const tdm_comm_options *options,
                                    tdm_comm **comm);
/* Ends it, when no model has it any more. Of "mpi", every rank calls it. */
TDM_EXPORT void tdm_comm_free(tdm_comm *comm);
/* Of null: 0. */
TDM_EXPORT uint32_t tdm_comm_rank(const tdm_comm *comm);
TDM_EXPORT uint32_t tdm_comm_ranks(const tdm_comm *comm);
/* Returns when all ranks have called it. */
TDM_EXPORT tdm_status tdm_comm_barrier(tdm_comm *comm);
/* Tells the other ranks that this one cannot go on: what they wait for fails
 * with "rank N failed: " and `reason`. */
TDM_EXPORT tdm_status tdm_comm_fail(tdm_comm *comm, const char *reason);

/* Gives a model the ranks that it computes with, before its first call; all
 * ranks call it. There are as many as the artifact's mesh has. Parameters and
 * states begin as those of one process would: each rank has its piece of the
 * same values. Tensors of later calls are pieces, too, of the sizes that
 * tdm_value_at gives, on every rank: where a size does not divide, the last
 * pieces reach beyond the end of the value, and what is there makes no
 * difference (docs/DISTRIBUTED.md); tdm_save, tdm_load and tdm_predict are
 * called by all ranks with whole values, and the first rank alone writes the
 * file; of an index each rank writes its own, and none has more than its pieces
 * in memory. tdm_load reads this rank's pieces alone. Does nothing for an
 * artifact that is for one process. */
TDM_EXPORT tdm_status tdm_model_set_communicator(tdm_model *model,
                                                 tdm_comm *comm);

/*--- Libraries -------------------------------------------------------------*/

/* A message of known size to or from a rank. */
typedef struct tdm_comm_message {
  void *data; /* of one that is sent, only read */
  size_t size;
  size_t rank;
} tdm_comm_message;

/* What a library gives. `exchange` sends and receives all of these, at most one
 * to and from each other rank, and returns when their memory is free again;
 * messages between two ranks with one tag (0 to 32,000) arrive in order. It
 * fails when a rank does not come within `limit_ms`. An error is for good:
 * `close` alone comes after it. `fail` tells the others that this rank cannot
 * go on. `error` is the text of the last error, with the number of the rank.
 * `close` waits no longer than the last `limit_ms`. */
typedef struct tdm_comm_peers {
  size_t struct_size; /* sizeof(tdm_comm_peers) */
  void *user;
  size_t rank;  /* the number of this rank */
  size_t ranks; /* how many there are */
  tdm_status (*exchange)(void *user, uint32_t tag,
                         const tdm_comm_message *outgoing,
                         size_t outgoing_count,
                         const tdm_comm_message *incoming,
                         size_t incoming_count, int64_t limit_ms);
  void (*fail)(void *user, const char *reason);
  const char *(*error)(void *user);
  void (*close)(void *user);
  /* 1: any thread may call these, one at a time. 0: only that which opened it;
   * then nothing is communicated beside computation. */
  size_t serves_any_thread;
} tdm_comm_peers;
#define TDM_COMM_PEERS_INIT                                                    \
  { sizeof(tdm_comm_peers), 0, 0, 0, 0, 0, 0, 0, 0 }

/* What such a library exports: fills `peers` within `limit_ms`, or gives a
 * message of at most `size` bytes. `peers` has the size that libtandem.so
 * knows. */
#define TDM_COMM_OPENER "tandem_comm_open"
typedef tdm_status (*tdm_comm_opener)(void *argument, int64_t limit_ms,
                                      tdm_comm_peers *peers, char *message,
                                      size_t size);

#ifdef __cplusplus
}
#endif

#endif
