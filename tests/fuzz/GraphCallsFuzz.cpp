//===- GraphCallsFuzz.cpp - any bytes as calls of graph.h -----------------===//
//
// The bytes say which nodes, edges, hooks and functions are made, of which
// tensors, and which backwards run, on one thread or on two that share leaves.
// Functions and hooks do what their own bytes say (GraphBehaviors.h): compute,
// save, write, fail, or leave things empty. A gradient has the type and shape
// of its tensor; what is given to the runtime comes back once; and at the end a
// product has the gradient that it had before.
//
//===----------------------------------------------------------------------===//
#include "tests/fuzz/CalledModels.h"
#include "tests/fuzz/GraphBehaviors.h"

#include <array>

using namespace tandem;
using namespace tandem::fuzz;

namespace {

/// The models, and leaves that both threads read.
struct Shared {
  Shared() {
    for (tdm_tensor *&leaf : leaves) {
      leaf = leafOf(4);
      require(tdm_tensor_set_requires_grad(leaf, 1) == TDM_OK);
    }
  }
  ~Shared() {
    for (tdm_tensor *leaf : leaves)
      tdm_tensor_free(leaf);
  }
  void clear() {
    for (tdm_tensor *leaf : leaves)
      require(tdm_tensor_set_grad(leaf, nullptr) == TDM_OK);
  }

  CalledModels models;
  std::array<tdm_tensor *, 2> leaves = {};
};

class Player {
public:
  Player(Shared &shared, Decisions next) : shared(shared), next(next) {}
  Player(const Player &) = delete;
  ~Player() {
    restoreModes();
    for (tdm_tensor *one : tensors)
      if (one)
        (void)tdm_tensor_set_grad(one, nullptr);
    for (tdm_hook *hook : hooks)
      tdm_hook_free(hook);
    for (tdm_node *node : nodes)
      tdm_node_free(node);
    for (tdm_tensor *one : tensors)
      tdm_tensor_free(one);
  }

  void run() {
    static constexpr void (Player::*all[])() = {
        &Player::leaf,     &Player::arithmetic, &Player::arithmetic,
        &Player::shaped,   &Player::function,   &Player::function,
        &Player::backward, &Player::backward,   &Player::grad,
        &Player::hook,     &Player::node,       &Player::edges,
        &Player::inputs,   &Player::ask,        &Player::modes,
        &Player::tensor,   &Player::model,      &Player::gradient,
        &Player::drop};
    makeCalls(*this, next, all);
  }

private:
  tdm_tensor *&slot() { return tensors[next.below(tensors.size())]; }
  /// A handle to set: an own one, which is there.
  tdm_tensor *result() {
    tdm_tensor *&one = slot();
    if (!one)
      require(tdm_tensor_empty(&one) == TDM_OK);
    return one;
  }
  /// An operand: an own tensor, one that both threads read, or none.
  tdm_tensor *operand() {
    return next.seldom(8) ? shared.leaves[next.below(2)] : slot();
  }
  std::vector<tdm_tensor *> operands(size_t most) {
    std::vector<tdm_tensor *> all(next.below(most + 1));
    for (tdm_tensor *&one : all)
      one = operand();
    return all;
  }
  tdm_node *&nodeSlot() { return nodes[next.below(nodes.size())]; }
  tdm_hook **hookPlace() {
    tdm_hook *&place = hooks[next.below(hooks.size())];
    tdm_hook_free(place);
    place = nullptr;
    return next.seldom(4) ? nullptr : &place;
  }
  void keep(tdm_node *made) {
    tdm_node *&place = nodeSlot();
    tdm_node_free(place);
    place = made;
  }
  static void restoreModes() {
    tdm_set_grad_mode(1);
    tdm_set_deterministic(0);
    tdm_set_anomaly_mode(TDM_ANOMALY_OFF);
    require(tdm_set_saved_hooks(nullptr) == TDM_OK);
    require(tdm_set_profiler(nullptr) == TDM_OK);
  }

  void leaf();
  void arithmetic();
  void shaped();
  void function();
  void backward();
  void grad();
  void hook();
  void node();
  void edges();
  void inputs();
  void ask();
  void modes();
  void tensor();
  void model();
  void gradient();
  void drop();

  Shared &shared;
  Decisions next;
  std::array<tdm_tensor *, 10> tensors = {};
  std::array<tdm_node *, 5> nodes = {};
  std::array<tdm_hook *, 5> hooks = {};
};

void Player::leaf() {
  static constexpr int64_t sizes[] = {4, 4, 4, 1, 0, 6};
  tdm_tensor *&place = slot();
  tdm_tensor_free(place);
  place = leafOf(next.oneOf(sizes));
  if (!next.seldom(4))
    wentWell(tdm_tensor_set_requires_grad(place, 1));
}

void Player::arithmetic() {
  static constexpr double factors[] = {2,     -0.5, 0, 1e308, __builtin_nan(""),
                                       1e-320};
  tdm_tensor *x = operand(), *y = operand(), *to = result();
  switch (next.below(4)) {
  case 0:
    wentWell(tdm_op_add(x, y, to));
    return;
  case 1:
    wentWell(tdm_op_mul(x, y, to));
    return;
  case 2:
    wentWell(tdm_op_scale(x, next.oneOf(factors), to));
    return;
  default:
    wentWell(tdm_op_sum(x, to));
  }
}

void Player::shaped() {
  tdm_tensor *x = operand(), *to = result();
  HostileShape shape(next);
  if (shape.isLarge(1 << 12))
    return;
  switch (next.below(3)) {
  case 0:
    wentWell(tdm_op_expand(x, shape.rank, shape.shape, to));
    return;
  case 1:
    wentWell(tdm_op_reshape(x, shape.rank, shape.shape, to));
    return;
  default:
    wentWell(tdm_op_cast(x, hostileType(next), to));
  }
}

void Player::function() {
  std::vector<tdm_tensor *> in = operands(3), out(next.below(3));
  for (tdm_tensor *&one : out)
    one = next.seldom(16) ? nullptr : result();
  tdm_function made = Behavior::function(next);
  if (next.seldom(4)) {
    made.backward = nullptr;
    wentWell(tdm_graph_checkpoint(&made, in.data(), in.size(), out.data(),
                                  out.size()));
  } else {
    wentWell(tdm_function_apply(&made, in.data(), in.size(), out.data(),
                                out.size()));
  }
}

void Player::backward() {
  static constexpr unsigned flags[] = {TDM_RETAIN_GRAPH, 0,  TDM_RETAIN_GRAPH,
                                       TDM_CREATE_GRAPH, 64, TDM_UNUSED_EMPTY};
  std::vector<tdm_tensor *> roots = operands(3), at = operands(2),
                            gradients(roots.size());
  for (tdm_tensor *&one : gradients)
    one = next.seldom(2) ? operand() : nullptr;
  unsigned flag = next.oneOf(flags);
  // What leaves collect with history keeps these alive until it is cleared.
  bool isKept = flag & TDM_CREATE_GRAPH;
  bool all = !isKept && next.seldom(2);
  wentWell(tdm_graph_backward(
      roots.data(), next.seldom(2) ? gradients.data() : nullptr, roots.size(),
      all ? nullptr : at.data(), all ? 0 : at.size(), flag));
  for (tdm_tensor *one : at)
    if (isKept && one)
      (void)tdm_tensor_set_grad(one, nullptr);
}

void Player::grad() {
  static constexpr unsigned flags[] = {
      TDM_UNUSED_EMPTY | TDM_RETAIN_GRAPH, TDM_UNUSED_ZEROS, 0,
      TDM_CREATE_GRAPH | TDM_UNUSED_ZEROS, TDM_RETAIN_GRAPH, ~0u};
  std::vector<tdm_tensor *> roots = operands(2), at = operands(2),
                            results(at.size());
  for (tdm_tensor *&one : results)
    one = result();
  wentWell(tdm_graph_grad(roots.data(), nullptr, roots.size(), at.data(),
                          at.size(), results.data(), next.oneOf(flags)));
}

void Player::hook() {
  // Those of leaves that are shared would run on the other thread.
  tdm_tensor *at = slot();
  tdm_node *node = nodeSlot();
  tdm_hook **place = hookPlace();
  auto *behavior = new Behavior(next);
  switch (next.below(5)) {
  case 0:
    wentWell(tdm_tensor_add_hook(at, Behavior::hook, behavior,
                                 Behavior::release, place));
    return;
  case 1:
    wentWell(tdm_tensor_add_accumulated_hook(at, Behavior::hook, behavior,
                                             Behavior::release, place));
    return;
  case 2:
    wentWell(tdm_node_add_pre_hook(node, Behavior::preHook, behavior,
                                   Behavior::release, place));
    return;
  case 3:
    wentWell(tdm_node_add_post_hook(node, Behavior::postHook, behavior,
                                    Behavior::release, place));
    return;
  default:
    delete behavior;
    (void)tdm_hook_remove(hooks[next.below(hooks.size())]);
  }
}

void Player::node() {
  tdm_node *made = nullptr;
  int input = -1;
  switch (next.below(4)) {
  case 0:
    if (wentWell(
            tdm_tensor_node(slot(), &made, next.seldom(4) ? nullptr : &input)))
      require(made != nullptr);
    keep(made);
    return;
  case 1: {
    tdm_function function = Behavior::function(next);
    function.forward = nullptr;
    bool went = wentWell(tdm_node_make(&function, &made));
    require(went == (made != nullptr));
    keep(made);
    return;
  }
  case 2:
    wentWell(
        tdm_tensor_from_edge(nodeSlot(), int(next.below(4)) - 1, result()));
    return;
  default:
    wentWell(tdm_node_edge(nodeSlot(), next.below(4), &made, &input));
    keep(made);
  }
}

void Player::edges() {
  tdm_node *node = nodeSlot(), *to = nodeSlot();
  int input = int(next.below(4)) - 1;
  std::vector<tdm_tensor *> ends = operands(3);
  switch (next.below(3)) {
  case 0:
    wentWell(tdm_node_add_edge(node, to, input));
    return;
  case 1:
    wentWell(tdm_node_set_edge(node, next.below(4), to, input));
    return;
  default:
    wentWell(tdm_node_set_edges(node, ends.data(), ends.size()));
  }
}

void Player::inputs() {
  tdm_node *node = nodeSlot();
  HostileShape shape(next);
  int index = -1;
  switch (next.below(4)) {
  case 0:
    if (!shape.isLarge(1 << 12))
      wentWell(tdm_node_add_input(node, hostileType(next), shape.rank,
                                  shape.shape, hostileDevice(next),
                                  next.seldom(4) ? nullptr : &index));
    return;
  case 1:
    wentWell(tdm_node_add_placeholder(node, &index));
    return;
  case 2:
    wentWell(tdm_node_clear_inputs(node));
    return;
  default:
    wentWell(tdm_tensor_set_node(slot(), node));
  }
}

void Player::ask() {
  tdm_node *node = nodeSlot(), *made = nullptr;
  size_t begins[] = {next.below(4), next.below(4)},
         ends[] = {next.below(6), next.seldom(4) ? SIZE_MAX : 1};
  int wanted = 0;
  switch (next.below(5)) {
  case 0:
    wentWell(tdm_node_should_compute(node, next.below(5), int(next.below(2)),
                                     &wanted));
    return;
  case 1:
    wentWell(tdm_node_should_compute_any(node, begins, ends, next.below(3),
                                         int(next.below(2)), &wanted));
    return;
  case 2:
    wentWell(tdm_node_current(&made));
    require(made == nullptr); // outside of a backward
    return;
  case 3: {
    std::vector<tdm_tensor *> roots = operands(2);
    std::string path = shared.models.path(9);
    wentWell(
        next.seldom(2)
            ? tdm_graph_write_dot(roots.data(), roots.size(), path.c_str())
            : tdm_graph_write_json(roots.data(), roots.size(), path.c_str()));
    return;
  }
  default:
    (void)tdm_node_name(node);
    (void)tdm_node_is_same(node, nodeSlot());
    (void)tdm_node_thread(node);
    (void)tdm_node_topological_number(node);
    (void)tdm_node_saved_bytes(node);
    if (node && next.seldom(4))
      tdm_node_set_number(node, next.seldom(2) ? UINT64_MAX : next.below(9));
    require(tdm_node_input_count(node) < 1000);
    require(tdm_node_edge_count(node) < 1000);
  }
}

void Player::modes() {
  static constexpr int kinds[] = {TDM_ANOMALY_OFF, TDM_ANOMALY_TRACE,
                                  TDM_ANOMALY_NAN, TDM_ANOMALY_INFINITY, 99};
  switch (next.below(6)) {
  case 0:
    tdm_set_grad_mode(!next.seldom(2));
    return;
  case 1:
    tdm_set_deterministic(next.seldom(2));
    return;
  case 2:
    tdm_set_anomaly_mode(next.oneOf(kinds));
    TDM_HERE();
    return;
  case 3: {
    tdm_saved_hooks hooks = Behavior::savedHooks(next);
    wentWell(tdm_set_saved_hooks(next.seldom(2) ? nullptr : &hooks));
    return;
  }
  case 4: {
    tdm_profiler profiler = {sizeof profiler, nullptr,
                             [](void *, const tdm_node *node,
                                const tdm_tensor *const *,
                                size_t) { (void)tdm_node_name(node); },
                             nullptr, next.below(2)};
    wentWell(tdm_set_profiler(next.seldom(2) ? nullptr : &profiler));
    return;
  }
  default:
    restoreModes();
  }
}

void Player::tensor() {
  static constexpr int64_t sizes[] = {0, 1, 4, 100, -1, INT64_MAX};
  tdm_tensor *one = slot(), *made = nullptr;
  HostileShape shape(next);
  float numbers[4] = {1, 2, 3, 4};
  switch (next.below(6)) {
  case 0:
    wentWell(tdm_tensor_assign(one, operand()));
    return;
  case 1:
    wentWell(tdm_tensor_view(operand(), shape.rank, shape.shape,
                             shape.stridesOrNull(), int64_t(next.below(4)),
                             &made));
    break;
  case 2:
    wentWell(tdm_tensor_detach(operand(), &made));
    break;
  case 3:
    wentWell(tdm_tensor_resize_storage(one, next.oneOf(sizes)));
    return;
  case 4:
    tdm_tensor_mark_written(one);
    return;
  default:
    wentWell(tdm_tensor_write(one, numbers, sizeof numbers));
    return;
  }
  tdm_tensor *&place = slot();
  tdm_tensor_free(place);
  place = made;
}

void Player::model() {
  tdm_model *called = shared.models.all()[next.below(2)];
  Rights right(called);
  std::vector<tdm_argument> params;
  for (const tdm_argument &grad : right.grads)
    if (!next.seldom(4))
      params.push_back({grad.name, operand()});
  // A param of the model, as it should be.
  tdm_tensor *w = nullptr;
  if (next.seldom(2) && tdm_get(called, "w", &w) == TDM_OK) {
    wentWell(tdm_tensor_set_requires_grad(w, 1));
    params.assign(1, {"w", w});
  }
  right.outputs[0].tensor = (tdm_tensor_free(right.outputs[0].tensor), nullptr);
  std::vector<tdm_argument> outputs = {{right.outputs[0].name, result()}};
  if (next.seldom(4))
    right.inputs.front().name = "nobody";
  wentWell(tdm_graph_forward(called, right.inputs.data(), right.inputs.size(),
                             params.data(), params.size(), outputs.data(),
                             outputs.size()));
  tdm_tensor *&place = slot();
  tdm_tensor_free(place);
  place = w;
}

void Player::gradient() {
  tdm_tensor *one = slot(), *to = result();
  switch (next.below(3)) {
  case 0:
    if (one == to || !wentWell(tdm_tensor_grad(one, to)))
      return;
    if (tdm_tensor_rank(to) < 0)
      return;
    require(tdm_tensor_rank(to) == tdm_tensor_rank(one));
    require(tdm_tensor_dtype(to) == tdm_tensor_dtype(one));
    for (int d = 0; d < tdm_tensor_rank(to); ++d)
      require(tdm_tensor_shape(to)[d] == tdm_tensor_shape(one)[d]);
    return;
  case 1:
    wentWell(tdm_tensor_set_grad(one, next.seldom(2) ? nullptr : operand()));
    return;
  default:
    wentWell(tdm_tensor_retain_grad(one));
  }
}

void Player::drop() {
  if (next.seldom(2)) {
    keep(nullptr);
    return;
  }
  tdm_tensor *&one = slot();
  // What it collected could have history that leads back to it.
  if (one)
    (void)tdm_tensor_set_grad(one, nullptr);
  tdm_tensor_free(one);
  one = nullptr;
}

/// The gradient of sum(x * y) for x is y.
void requireProduct() {
  tdm_tensor *x = leafOf(4), *y = leafOf(4), *z = nullptr, *g = nullptr;
  require(tdm_tensor_empty(&z) == TDM_OK && tdm_tensor_empty(&g) == TDM_OK);
  require(tdm_tensor_set_requires_grad(x, 1) == TDM_OK);
  require(tdm_op_mul(x, y, z) == TDM_OK && tdm_op_sum(z, z) == TDM_OK);
  require(tdm_graph_backward(&z, nullptr, 1, nullptr, 0, 0) == TDM_OK);
  require(tdm_tensor_grad(x, g) == TDM_OK);
  require(std::memcmp(tdm_tensor_data(g), tdm_tensor_data(y),
                      4 * sizeof(float)) == 0);
  for (tdm_tensor *one : {x, y, z, g})
    tdm_tensor_free(one);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Shared shared;
  onOneThreadOrTwo({data, size},
                   [&](Decisions next) { Player(shared, next).run(); });
  shared.clear();
  require(Behavior::alive == 0);
  requireProduct();
  return 0;
}
