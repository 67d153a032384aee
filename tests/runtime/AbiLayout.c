/*===- AbiLayout.c - what tandem.h fixes for compiled programs --------------===
 *
 * runtime-abi-layout: prints the structs and numbers of the C API, a line each,
 * for tests/runtime/abi.sh.
 *
 *===----------------------------------------------------------------------===*/
#include "runtime/comm.h"
#include "runtime/dist.h"

#include <stdio.h>

#define SIZE(type) printf("struct %s: %zu bytes\n", #type, sizeof(type))
#define MEMBER(type, member)                                                   \
  printf("struct %s: %s at %zu, %zu bytes\n", #type, #member,                  \
         offsetof(type, member), sizeof(((type *)0)->member))
#define NUMBER(name) printf("number %s: %d\n", #name, (int)name)

int main(void) {
  MEMBER(tdm_options, struct_size);
  MEMBER(tdm_options, threads);
  MEMBER(tdm_options, seed);
  MEMBER(tdm_options, device);
  MEMBER(tdm_options, no_graphs);
  MEMBER(tdm_options, no_libraries);
  MEMBER(tdm_options, require_signature);
  MEMBER(tdm_options, memory_limit);
  SIZE(tdm_options);
  MEMBER(tdm_value, struct_size);
  MEMBER(tdm_value, name);
  MEMBER(tdm_value, role);
  MEMBER(tdm_value, dtype);
  MEMBER(tdm_value, rank);
  MEMBER(tdm_value, requires_grad);
  MEMBER(tdm_value, shape);
  SIZE(tdm_value);
  MEMBER(tdm_memory, struct_size);
  MEMBER(tdm_memory, planned_bytes);
  MEMBER(tdm_memory, current_bytes);
  MEMBER(tdm_memory, peak_bytes);
  SIZE(tdm_memory);
  MEMBER(tdm_argument, name);
  MEMBER(tdm_argument, tensor);
  SIZE(tdm_argument);
  MEMBER(tdm_feed, struct_size);
  MEMBER(tdm_feed, user);
  MEMBER(tdm_feed, next);
  MEMBER(tdm_feed, stepped);
  MEMBER(tdm_feed, steps);
  SIZE(tdm_feed);
  MEMBER(tdm_saved_hooks, struct_size);
  MEMBER(tdm_saved_hooks, user);
  MEMBER(tdm_saved_hooks, pack);
  MEMBER(tdm_saved_hooks, unpack);
  MEMBER(tdm_saved_hooks, release);
  SIZE(tdm_saved_hooks);
  MEMBER(tdm_function, struct_size);
  MEMBER(tdm_function, name);
  MEMBER(tdm_function, user);
  MEMBER(tdm_function, forward);
  MEMBER(tdm_function, backward);
  MEMBER(tdm_function, announce);
  MEMBER(tdm_function, release);
  MEMBER(tdm_function, flags);
  SIZE(tdm_function);
  MEMBER(tdm_profiler, struct_size);
  MEMBER(tdm_profiler, user);
  MEMBER(tdm_profiler, begin);
  MEMBER(tdm_profiler, end);
  MEMBER(tdm_profiler, wants_inputs);
  SIZE(tdm_profiler);
  MEMBER(tdm_dist_transport, struct_size);
  MEMBER(tdm_dist_transport, user);
  MEMBER(tdm_dist_transport, worker);
  MEMBER(tdm_dist_transport, workers);
  MEMBER(tdm_dist_transport, loses_messages);
  MEMBER(tdm_dist_transport, most_bytes);
  MEMBER(tdm_dist_transport, send);
  MEMBER(tdm_dist_transport, receive);
  MEMBER(tdm_dist_transport, error);
  MEMBER(tdm_dist_transport, close);
  SIZE(tdm_dist_transport);
  MEMBER(tdm_dist_loopback_options, struct_size);
  MEMBER(tdm_dist_loopback_options, seed);
  MEMBER(tdm_dist_loopback_options, loss);
  MEMBER(tdm_dist_loopback_options, repeat);
  MEMBER(tdm_dist_loopback_options, reorder);
  SIZE(tdm_dist_loopback_options);
  MEMBER(tdm_dist_options, struct_size);
  MEMBER(tdm_dist_options, silence_ms);
  MEMBER(tdm_dist_options, limit_ms);
  SIZE(tdm_dist_options);
  MEMBER(tdm_dist_counts, struct_size);
  MEMBER(tdm_dist_counts, contexts);
  MEMBER(tdm_dist_counts, backwards);
  MEMBER(tdm_dist_counts, requests);
  MEMBER(tdm_dist_counts, threads);
  SIZE(tdm_dist_counts);
  MEMBER(tdm_comm_options, struct_size);
  MEMBER(tdm_comm_options, limit_ms);
  MEMBER(tdm_comm_options, no_overlap);
  SIZE(tdm_comm_options);
  MEMBER(tdm_comm_message, data);
  MEMBER(tdm_comm_message, size);
  MEMBER(tdm_comm_message, rank);
  SIZE(tdm_comm_message);
  MEMBER(tdm_comm_peers, struct_size);
  MEMBER(tdm_comm_peers, user);
  MEMBER(tdm_comm_peers, rank);
  MEMBER(tdm_comm_peers, ranks);
  MEMBER(tdm_comm_peers, exchange);
  MEMBER(tdm_comm_peers, fail);
  MEMBER(tdm_comm_peers, error);
  MEMBER(tdm_comm_peers, close);
  MEMBER(tdm_comm_peers, serves_any_thread);
  SIZE(tdm_comm_peers);
  NUMBER(TDM_OK);
  NUMBER(TDM_FAILED);
  NUMBER(TDM_USAGE);
  NUMBER(TDM_UNSUPPORTED);
  NUMBER(TDM_DIFFERS);
  NUMBER(TDM_NO_DEVICE);
  NUMBER(TDM_BOOL);
  NUMBER(TDM_I8);
  NUMBER(TDM_U8);
  NUMBER(TDM_I16);
  NUMBER(TDM_I32);
  NUMBER(TDM_I64);
  NUMBER(TDM_F16);
  NUMBER(TDM_BF16);
  NUMBER(TDM_F32);
  NUMBER(TDM_F64);
  NUMBER(TDM_U16);
  NUMBER(TDM_U32);
  NUMBER(TDM_U64);
  NUMBER(TDM_F8E4M3FN);
  NUMBER(TDM_F8E5M2);
  NUMBER(TDM_INPUT);
  NUMBER(TDM_PARAM);
  NUMBER(TDM_STATE);
  NUMBER(TDM_OUTPUT);
  NUMBER(TDM_RETAIN_GRAPH);
  NUMBER(TDM_CREATE_GRAPH);
  NUMBER(TDM_UNUSED_EMPTY);
  NUMBER(TDM_UNUSED_ZEROS);
  NUMBER(TDM_ONCE_DIFFERENTIABLE);
  NUMBER(TDM_MATERIALIZE);
  NUMBER(TDM_NOT_DETERMINISTIC);
  NUMBER(TDM_TRACEABLE);
  NUMBER(TDM_STATE_TRANSPARENT);
  NUMBER(TDM_ANOMALY_OFF);
  NUMBER(TDM_ANOMALY_TRACE);
  NUMBER(TDM_ANOMALY_NAN);
  NUMBER(TDM_ANOMALY_INFINITY);
  NUMBER(TDM_DIST_STRICT);
  return 0;
}
