//===- Dist.cpp - the C API: workers and their contexts -------------------===//
#include "runtime/c_api/DistCApi.h"

#include <cstddef>

using namespace tandem;
using namespace tandem::capi;
using namespace tandem::graph;
using namespace tandem::graph::distributed;

static_assert(sizeof(tdm_dist_options) ==
              offsetof(tdm_dist_options, limit_ms) + sizeof(int64_t));
static_assert(sizeof(tdm_dist_counts) ==
              offsetof(tdm_dist_counts, threads) + sizeof(size_t));

struct tdm_dist_worker {
  std::unique_ptr<Worker> worker;
};

namespace {

/// Calls `fn` with the worker.
template <typename Fn> tdm_status with(tdm_dist_worker *worker, Fn fn) {
  return call([&]() -> Status {
    return worker ? fn(*worker->worker) : null("worker");
  });
}

/// Handles of what a callback gets, and the values that it left in them.
class Shown {
public:
  explicit Shown(std::span<Value> values) : handles(values.size()) {
    for (size_t i = 0; i < values.size(); ++i) {
      show(handles[i], std::move(values[i]));
      places.push_back(&handles[i]);
    }
  }
  tdm_tensor *const *list() const { return places.data(); }
  size_t size() const { return places.size(); }
  Result<std::vector<Value>> values() {
    return valuesOf("output", places.data(), places.size());
  }

private:
  std::vector<tdm_tensor> handles;
  std::vector<tdm_tensor *> places;
};

Status readOptions(const tdm_dist_options *options, WorkerOptions &made) {
  if (!options)
    return Status::success();
  tdm_dist_options known = TDM_DIST_OPTIONS_INIT;
  if (Status status = takeStruct("tdm_dist_options", *options, known); !status)
    return status;
  constexpr int64_t least = 100, most = 1'000'000'000;
  if (known.silence_ms && (known.silence_ms < least || known.silence_ms > most))
    return Status::usage("expected 'silence_ms' of " + std::to_string(least) +
                         " to " + std::to_string(most) + " but got " +
                         std::to_string(known.silence_ms));
  if (known.limit_ms < -1 || known.limit_ms > most)
    return Status::usage("expected 'limit_ms' of -1 to " +
                         std::to_string(most) + " but got " +
                         std::to_string(known.limit_ms));
  if (known.silence_ms)
    made.silence = Milliseconds(known.silence_ms);
  if (known.limit_ms)
    made.limit = Milliseconds(std::max<int64_t>(known.limit_ms, 0));
  return Status::success();
}

} // namespace

tdm_status tdm_dist_start(const tdm_dist_transport *transport,
                          const tdm_dist_options *options,
                          tdm_dist_worker **worker) {
  return call([&]() -> Status {
    Result<std::unique_ptr<Transport>> taken = transportOf(transport);
    if (!taken)
      return std::move(taken).status();
    if (!worker)
      return null("place for the worker");
    WorkerOptions known;
    if (Status status = readOptions(options, known); !status)
      return status;
    auto made = std::make_unique<Worker>(std::move(*taken), known);
    *worker = new tdm_dist_worker{std::move(made)};
    return Status::success();
  });
}

tdm_status tdm_dist_meet(tdm_dist_worker *worker, const char *place) {
  return with(worker, [&](Worker &own) -> Status {
    return place ? own.meet(place) : null("place");
  });
}

tdm_status tdm_dist_leave(tdm_dist_worker *worker) {
  return with(worker, [](Worker &own) { return own.leave(); });
}

void tdm_dist_free(tdm_dist_worker *worker) { delete worker; }

uint32_t tdm_dist_number(const tdm_dist_worker *worker) {
  return worker ? worker->worker->number() : 0;
}

uint32_t tdm_dist_count(const tdm_dist_worker *worker) {
  return worker ? worker->worker->count() : 0;
}

tdm_status tdm_dist_serve(tdm_dist_worker *worker, const char *name,
                          tdm_dist_function function, void *user,
                          void (*release)(void *)) {
  return with(worker, [&](Worker &own) -> Status {
    auto kept = ownedUser(user, release);
    if (!name || !function)
      return null(name ? "function" : "name");
    return own.serve(name, [function, kept](std::vector<Value> &inputs,
                                            std::vector<Value> &outputs) {
      Shown given(inputs), made(outputs);
      if (Status status = callUser("the function", nullptr,
                                   [&] {
                                     return function(kept.get(), given.list(),
                                                     given.size(), made.list(),
                                                     made.size());
                                   });
          !status)
        return status;
      Result<std::vector<Value>> values = made.values();
      if (!values)
        return std::move(values).status();
      outputs = std::move(*values);
      return Status::success();
    });
  });
}

tdm_status tdm_dist_call(tdm_dist_worker *worker, uint32_t to, const char *name,
                         tdm_tensor *const *inputs, size_t input_count,
                         tdm_tensor *const *outputs, size_t output_count) {
  return with(worker, [&](Worker &own) -> Status {
    if (!name)
      return null("name");
    auto given = valuesOf("input", inputs, input_count);
    if (!given)
      return std::move(given).status();
    if (Status status = checkHandles("output", outputs, output_count); !status)
      return status;
    auto made = own.call(to, name, *given, output_count);
    if (!made)
      return std::move(made).status();
    for (size_t i = 0; i < output_count; ++i)
      show(*outputs[i], std::move((*made)[i]));
    return Status::success();
  });
}

tdm_status tdm_dist_begin(tdm_dist_worker *worker, uint64_t *context) {
  return with(worker, [&](Worker &own) -> Status {
    if (!context)
      return null("place for the context");
    Result<uint64_t> made = own.begin();
    if (!made)
      return std::move(made).status();
    *context = *made;
    return Status::success();
  });
}

tdm_status tdm_dist_enter(tdm_dist_worker *worker, uint64_t context) {
  return with(worker, [&](Worker &own) { return own.enter(context); });
}

uint64_t tdm_dist_current(void) {
  const std::shared_ptr<Context> &context = currentContext();
  return context ? context->id : 0;
}

tdm_status tdm_dist_release(tdm_dist_worker *worker, uint64_t context) {
  return with(worker, [&](Worker &own) {
    own.release(context);
    return Status::success();
  });
}

tdm_status tdm_dist_backward(tdm_dist_worker *worker, uint64_t context,
                             tdm_tensor *const *roots, size_t root_count,
                             unsigned flags) {
  return with(worker, [&](Worker &own) -> Status {
    if (flags & TDM_CREATE_GRAPH)
      return Status::unsupported("gradients of a context have no history: "
                                 "TDM_CREATE_GRAPH is not for it");
    constexpr unsigned all =
        unsigned(TDM_RETAIN_GRAPH) | unsigned(TDM_DIST_STRICT);
    if (flags & ~all)
      return Status::usage("expected flags among " + std::to_string(all) +
                           " but got " + std::to_string(flags));
    auto from = valuesOf("root", roots, root_count);
    if (!from)
      return std::move(from).status();
    SessionOptions how;
    how.retainGraph = (flags & TDM_RETAIN_GRAPH) != 0;
    how.isStrict = (flags & TDM_DIST_STRICT) != 0;
    return own.backward(context, *from, how);
  });
}

tdm_status tdm_dist_grad(tdm_dist_worker *worker, uint64_t context,
                         tdm_tensor *tensor, tdm_tensor *gradient) {
  return with(worker, [&](Worker &own) -> Status {
    if (!tensor || !gradient)
      return null(tensor ? "place for the gradient" : "tensor");
    Result<Edge> edge = edgeOf(*tensor);
    if (!edge)
      return std::move(edge).status();
    if (!*edge || !edge->node->isLeaf())
      return Status::usage("expected a leaf that requires grad");
    Result<Value> found = own.gradient(context, *edge->node);
    if (!found)
      return std::move(found).status();
    show(*gradient, std::move(*found));
    return Status::success();
  });
}

tdm_status tdm_dist_optimize(tdm_dist_worker *worker, tdm_tensor *const *params,
                             size_t count, tdm_dist_step_function step,
                             void *user, void (*release)(void *)) {
  return with(worker, [&](Worker &own) -> Status {
    auto kept = ownedUser(user, release);
    if (!step)
      return null("step");
    auto values = valuesOf("param", params, count);
    if (!values)
      return std::move(values).status();
    for (size_t i = 0; i < count; ++i)
      if (!(*values)[i].edge || !(*values)[i].edge.node->isLeaf())
        return Status::usage("param number " + std::to_string(i) +
                             ": expected a leaf that requires grad");
    own.optimize(std::move(*values),
                 [step, kept](uint64_t context, std::span<Value> leaves,
                              std::span<Value> gradients) {
                   std::vector<Value> copies(leaves.begin(), leaves.end());
                   Shown shown(copies), given(gradients);
                   return callUser("a step", nullptr, [&] {
                     return step(kept.get(), context, shown.list(),
                                 given.list(), shown.size());
                   });
                 });
    return Status::success();
  });
}

tdm_status tdm_dist_step(tdm_dist_worker *worker, uint64_t context) {
  return with(worker, [&](Worker &own) { return own.step(context); });
}

tdm_status tdm_dist_get_counts(const tdm_dist_worker *worker,
                               tdm_dist_counts *counts) {
  return call([&]() -> Status {
    if (!worker || !counts)
      return null(worker ? "place for the counts" : "worker");
    WorkerCounts now = worker->worker->counts();
    tdm_dist_counts known = TDM_DIST_COUNTS_INIT;
    known.contexts = now.contexts;
    known.backwards = now.backwards;
    known.requests = now.requests;
    known.threads = now.threads;
    return giveStruct("tdm_dist_counts", known, *counts);
  });
}
