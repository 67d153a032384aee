//===- CallsFuzz.cpp - any bytes as calls of tandem.h ---------------------===//
//
// The bytes say which calls are made, of which handles, names, shapes and
// sizes, right ones and wrong ones, by one thread or by two that share models.
// Each call gives a status that there is, and a message exactly where it
// failed. Whatever was called, a model that is initialized again trains as one
// that nobody disturbed.
//
//===----------------------------------------------------------------------===//
#include "runtime/dlpack.h"
#include "tests/fuzz/CalledApi.h"
#include "tests/fuzz/CalledModels.h"

#include <array>
#include <climits>

using namespace tandem;
using namespace tandem::fuzz;

namespace {

constexpr const char *kNames[] = {
    "x",      "y",      "w",     "b",     "loss",        "pred",
    "scaled", "rate",   "steps", "scale", "update of x", "grad of w",
    "p",      "q",      "f",     "xt",    "rows",        "",
    nullptr,  "\xff\n", "nobody"};
constexpr const char *kPrograms[] = {"evaluate", "step",  "forward", "update",
                                     "backward", nullptr, "",        "fly"};

/// What one thread has. Its handles are nobody else's.
class Caller {
public:
  Caller(CalledModels &models, Decisions next)
      : models(models), next(next), rights(models.all().size()) {
    std::memset(memory, 0, sizeof memory);
  }
  Caller(const Caller &) = delete;
  ~Caller();

  void run() {
    static constexpr void (Caller::*all[])() = {
        &Caller::runProgram, &Caller::forward,  &Caller::backward,
        &Caller::update,     &Caller::make,     &Caller::wrap,
        &Caller::view,       &Caller::change,   &Caller::copyBytes,
        &Caller::look,       &Caller::values,   &Caller::files,
        &Caller::exchange,   &Caller::describe, &Caller::feed,
        &Caller::load,       &Caller::drop,     &Caller::predict};
    makeCalls(*this, next, all);
  }

private:
  using Arguments = std::vector<tdm_argument>;

  tdm_tensor *&slot() { return tensors[next.below(tensors.size())]; }
  /// Any tensor: an own one, one of those that a call takes, or none.
  tdm_tensor *tensor() {
    if (next.seldom(4))
      return rightsOf(model()).any(next);
    return slot();
  }
  size_t model() { return next.below(models.all().size()); }
  tdm_model *handle(size_t which) {
    if (next.seldom(32))
      return nullptr;
    return own && next.seldom(4) ? own : models.all()[which];
  }
  Rights &rightsOf(size_t which) {
    if (!rights[which])
      rights[which] = std::make_unique<Rights>(models.all()[which]);
    return *rights[which];
  }
  /// The arguments of a call, of which some may be made wrong.
  Arguments given(const Arguments &right) {
    Arguments all = right;
    while (next.seldom(4)) {
      tdm_argument one = {next.oneOf(kNames), tensor()};
      size_t at = next.below(all.size() + 1);
      switch (next.below(4)) {
      case 0:
        all.insert(all.begin() + ptrdiff_t(at), one);
        break;
      case 1:
        if (at < all.size())
          all.erase(all.begin() + ptrdiff_t(at));
        break;
      case 2:
        if (at < all.size())
          all[at].tensor = one.tensor;
        break;
      default:
        if (at < all.size())
          all[at].name = one.name;
      }
    }
    return all;
  }
  /// A null list is right where it has no elements.
  static const tdm_argument *listOf(const Arguments &all) {
    return all.empty() ? nullptr : all.data();
  }
  /// Puts a handle that a call gave, or did not give, where one was.
  void keep(tdm_tensor *made, bool went) {
    require(went == (made != nullptr));
    tdm_tensor *&place = slot();
    tdm_tensor_free(place);
    place = made;
  }

  void runProgram();
  void forward();
  void backward();
  void update();
  void predict();
  void make();
  void wrap();
  void view();
  void change();
  void copyBytes();
  void look();
  void values();
  void files();
  void exchange();
  void describe();
  void feed();
  void load();
  void drop();

  CalledModels &models;
  Decisions next;
  std::vector<std::unique_ptr<Rights>> rights; ///< of each model
  std::array<tdm_tensor *, 10> tensors = {};
  std::array<tdm_context *, 4> contexts = {};
  std::array<DLManagedTensor *, 2> exported = {};
  tdm_model *own = nullptr;
  alignas(64) float memory[1024]; ///< that wrapped tensors show
};

Caller::~Caller() {
  bool contextsFirst = next.seldom(2);
  auto freeContexts = [&] {
    for (tdm_context *context : contexts)
      tdm_context_free(context);
  };
  if (contextsFirst)
    freeContexts();
  tdm_model_free(own);
  for (tdm_tensor *one : tensors)
    tdm_tensor_free(one);
  rights.clear();
  if (!contextsFirst)
    freeContexts();
  for (DLManagedTensor *managed : exported)
    if (managed)
      managed->deleter(managed);
}

void Caller::runProgram() {
  size_t which = model();
  Rights &right = rightsOf(which);
  Arguments inputs = given(right.inputs), outputs = given(right.outputs);
  if (next.seldom(2))
    wentWell(tdm_step(handle(which), listOf(inputs), inputs.size(),
                      listOf(outputs), outputs.size()));
  else
    wentWell(tdm_run(handle(which), next.oneOf(kPrograms), listOf(inputs),
                     inputs.size(), listOf(outputs), outputs.size()));
}

void Caller::predict() {
  size_t which = model();
  Arguments inputs = given(rightsOf(which).inputs);
  Arguments outputs = given({{next.oneOf(kNames), tensor()}});
  wentWell(tdm_predict(handle(which), listOf(inputs), inputs.size(),
                       listOf(outputs), outputs.size()));
}

tdm_status pack(void *user, const char *, const tdm_tensor *value,
                void **packed) {
  tdm_tensor *copy = nullptr;
  if (*static_cast<bool *>(user))
    return tdm_fail(TDM_UNSUPPORTED, "a hook that fails");
  tdm_status status = tdm_tensor_copy_to(value, "cpu", &copy);
  *packed = copy;
  return status;
}

tdm_status unpack(void *user, const char *, void *packed, tdm_tensor *value) {
  if (*static_cast<bool *>(user))
    return tdm_fail(TDM_FAILED, "a hook that fails");
  return tdm_tensor_assign(value, static_cast<tdm_tensor *>(packed));
}

void release(void *, void *packed) {
  tdm_tensor_free(static_cast<tdm_tensor *>(packed));
}

void Caller::forward() {
  static bool never = false, always = true;
  size_t which = model();
  Rights &right = rightsOf(which);
  Arguments inputs = given(right.inputs), outputs = given(right.outputs);
  tdm_context **context =
      next.seldom(8) ? nullptr : &contexts[next.below(contexts.size())];
  if (!next.seldom(4)) {
    wentWell(tdm_forward(handle(which), listOf(inputs), inputs.size(),
                         listOf(outputs), outputs.size(), context));
    return;
  }
  tdm_saved_hooks hooks = {sizeof hooks, next.seldom(4) ? &always : &never,
                           pack, unpack, release};
  if (next.seldom(8))
    hooks.unpack = nullptr;
  wentWell(tdm_forward_with_hooks(handle(which), listOf(inputs), inputs.size(),
                                  listOf(outputs), outputs.size(),
                                  next.seldom(8) ? nullptr : &hooks, context));
}

void Caller::backward() {
  static constexpr unsigned flags[] = {0,
                                       TDM_RETAIN_GRAPH,
                                       TDM_RETAIN_GRAPH,
                                       TDM_CREATE_GRAPH,
                                       TDM_UNUSED_ZEROS,
                                       UINT_MAX};
  size_t which = model();
  Rights &right = rightsOf(which);
  Arguments cotangents = given(right.cotangents), grads = given(right.grads);
  tdm_context *context = contexts[next.below(contexts.size())];
  unsigned flag = next.oneOf(flags);
  if (next.seldom(8))
    wentWell(tdm_backward_graph(handle(which), context, listOf(cotangents),
                                cotangents.size(), listOf(grads), grads.size(),
                                flag, &contexts[next.below(contexts.size())]));
  else
    wentWell(tdm_backward(handle(which), context, listOf(cotangents),
                          cotangents.size(), listOf(grads), grads.size(),
                          flag));
}

void Caller::update() {
  size_t which = model();
  Arguments grads = given(rightsOf(which).grads);
  wentWell(tdm_update(handle(which), listOf(grads), grads.size()));
}

void Caller::make() {
  tdm_tensor *made = nullptr;
  HostileShape shape(next);
  if (shape.isLarge())
    return;
  tdm_dtype type = hostileType(next);
  bool went = false;
  switch (next.below(4)) {
  case 0:
    went = wentWell(tdm_tensor_empty(&made));
    break;
  case 1:
    went = wentWell(tdm_tensor_zeros(type, shape.rank, shape.shape, &made));
    break;
  case 2:
    went = wentWell(tdm_tensor_zeros_on(hostileDevice(next), type, shape.rank,
                                        shape.shape, &made));
    break;
  default:
    went = wentWell(tdm_tensor_copy_to(tensor(), hostileDevice(next), &made));
  }
  keep(made, went);
}

void Caller::wrap() {
  HostileShape shape(next);
  tdm_dtype type = hostileType(next);
  constexpr int64_t widest = 8;
  if (shape.isLie(sizeof memory, widest))
    return;
  tdm_tensor *made = nullptr;
  void *data = next.seldom(16) ? nullptr : memory;
  // Not aligned to 64 bytes, and still all of it inside.
  if (data && next.seldom(4) && !shape.isLie(sizeof memory - 8, widest))
    data = memory + 2;
  bool went = false;
  switch (next.below(3)) {
  case 0:
    went = wentWell(tdm_tensor_wrap(data, type, shape.rank, shape.shape,
                                    shape.stridesOrNull(), &made));
    break;
  case 1:
    went =
        wentWell(tdm_tensor_wrap_on(hostileDevice(next), data, type, shape.rank,
                                    shape.shape, shape.stridesOrNull(), &made));
    break;
  default:
    went = wentWell(tdm_tensor_wrap_registered(hostileDevice(next), data, type,
                                               shape.rank, shape.shape,
                                               shape.stridesOrNull(), &made));
  }
  keep(made, went);
}

void Caller::view() {
  static constexpr int64_t offsets[] = {0,  1, 2,         5,         23,
                                        -1, 7, INT64_MAX, INT64_MIN, 1 << 20};
  HostileShape shape(next);
  tdm_tensor *made = nullptr;
  bool went = wentWell(tdm_tensor_view(tensor(), shape.rank, shape.shape,
                                       shape.stridesOrNull(),
                                       next.oneOf(offsets), &made));
  keep(made, went);
}

void Caller::change() {
  static constexpr int64_t sizes[] = {0,    1,  3,         24,        8,
                                      4096, -1, INT64_MAX, INT64_MIN, 2};
  tdm_tensor *made = nullptr;
  switch (next.below(6)) {
  case 0:
    wentWell(tdm_tensor_resize_storage(tensor(), next.oneOf(sizes)));
    return;
  case 1:
    wentWell(tdm_tensor_assign(slot(), tensor()));
    return;
  case 2:
    wentWell(tdm_tensor_set_requires_grad(tensor(), int(next.below(3)) - 1));
    return;
  case 3:
    tdm_tensor_mark_written(tensor());
    return;
  case 4:
    wentWell(tdm_tensor_use_on(tensor(), next.seldom(2) ? memory : nullptr));
    return;
  default: {
    bool went = wentWell(tdm_tensor_detach(tensor(), &made));
    keep(made, went);
  }
  }
}

/// Reads and writes all elements, or as many as there are not.
void Caller::copyBytes() {
  tdm_tensor *one = tensor();
  int64_t elements = tdm_tensor_elements(one);
  if (elements < 0 || elements > 4096)
    return;
  std::vector<std::byte> bytes(size_t(elements) * 8 + 8);
  static constexpr size_t wrong[] = {0, 1, 3, SIZE_MAX, SIZE_MAX / 2};
  static constexpr size_t widths[] = {4, 4, 4, 8, 2, 1};
  size_t count = next.seldom(8) ? next.oneOf(wrong)
                                : size_t(elements) * next.oneOf(widths);
  // A caller that says more than there is lies; all others are refused.
  if (count > bytes.size() && tdm_tensor_rank(one) < 0)
    return;
  void *data = next.seldom(16) ? nullptr : bytes.data();
  if (next.seldom(2))
    wentWell(tdm_tensor_write(one, data, count));
  else
    wentWell(tdm_tensor_read(one, data, count));
}

void Caller::look() {
  tdm_tensor *one = tensor();
  int rank = tdm_tensor_rank(one);
  int64_t elements = 1;
  require(rank >= -1 && rank <= 16);
  if (rank < 0) {
    require(tdm_tensor_elements(one) == 0);
    require(!tdm_tensor_shape(one) && !tdm_tensor_data(one));
    return;
  }
  for (int d = 0; d < rank; ++d) {
    require(tdm_tensor_shape(one)[d] >= 0);
    elements *= tdm_tensor_shape(one)[d];
  }
  require(elements == tdm_tensor_elements(one));
  require(tdm_tensor_strides(one) != nullptr || rank == 0);
  require(std::string_view(tdm_tensor_device(one)) == "cpu");
  (void)tdm_tensor_version(one);
  (void)tdm_tensor_part_of(one);
  require(tdm_tensor_dtype(one) >= 0 && tdm_tensor_dtype(one) <= TDM_F8E5M2);
  require((tdm_tensor_is_leaf(one) | tdm_tensor_requires_grad(one) | 1) == 1);
}

void Caller::values() {
  size_t which = model();
  tdm_tensor *made = nullptr;
  switch (next.below(3)) {
  case 0: {
    bool went = wentWell(tdm_get(handle(which), next.oneOf(kNames), &made));
    // Another thread may be writing to it: its elements are left alone.
    require(went == (made != nullptr));
    tdm_tensor_free(made);
    return;
  }
  case 1:
    wentWell(tdm_set(handle(which), next.oneOf(kNames), tensor()));
    return;
  default:
    wentWell(tdm_initialize(handle(which), next.below(1 << 16)));
  }
}

void Caller::files() {
  size_t which = model();
  std::string path = models.path(next.below(4));
  const char *names[] = {path.c_str(), path.c_str(), "/nowhere/a",
                         "",           nullptr,      models.artifact(which)};
  const char *name = names[next.below(std::size(names))];
  if (next.seldom(2))
    wentWell(tdm_load(handle(which), name));
  // Nobody's artifact is replaced, which is why this is tried.
  else if (wentWell(tdm_save(handle(which), name)))
    require(name != models.artifact(which));
}

void Caller::exchange() {
  DLManagedTensor *&place = exported[next.below(exported.size())];
  if (!place) {
    bool went = wentWell(
        next.seldom(2)
            ? tdm_tensor_to_dlpack(tensor(), &place)
            : tdm_tensor_to_dlpack_on(
                  tensor(), next.seldom(8) ? memory : nullptr, &place));
    require(went == (place != nullptr));
    return;
  }
  tdm_tensor *made = nullptr;
  bool went = wentWell(tdm_tensor_from_dlpack(place, &made));
  if (went)
    place = nullptr;
  keep(made, went);
}

void Caller::describe() {
  static constexpr size_t numbers[] = {0, 1, 2, 7, 8, 99, SIZE_MAX};
  size_t which = model(), index = next.oneOf(numbers);
  tdm_model *asked = handle(which);
  // A caller of another version, whose struct has another size.
  union {
    tdm_value value;
    tdm_memory memory;
    unsigned char bytes[256];
  } place = {};
  static constexpr size_t sizes[] = {
      sizeof(tdm_value), sizeof(tdm_memory), 8, 16, 256, 0, 7, SIZE_MAX};
  place.value.struct_size = next.oneOf(sizes);
  if (next.seldom(4))
    place.bytes[200] = 1;
  switch (next.below(6)) {
  case 0:
    wentWell(
        tdm_value_at(asked, index, next.seldom(16) ? nullptr : &place.value));
    return;
  case 1:
    wentWell(tdm_memory_use(asked, &place.memory));
    return;
  case 2:
    wentWell(tdm_size_value_at(asked, index, index, &place.value));
    return;
  case 3:
    require(tdm_program_at(asked, index) || *tdm_last_error());
    return;
  case 4:
    require(tdm_size_at(asked, index) || *tdm_last_error());
    return;
  default:
    wentWell(tdm_synchronize(hostileDevice(next)));
    wentWell(tdm_stream_set_current(hostileDevice(next),
                                    next.seldom(4) ? memory : nullptr));
  }
}

/// What the callbacks of one training do.
struct Fed {
  int batches = 0, failsAt = 0;
  bool assigns = false, isStopped = false;
  tdm_tensor *rows = nullptr;
};

tdm_status nextBatch(void *user, int64_t batch, const tdm_argument *inputs,
                     size_t count, int *isEnd) {
  Fed &fed = *static_cast<Fed *>(user);
  if (batch == fed.failsAt)
    return tdm_fail(TDM_UNSUPPORTED, "a feed that fails");
  *isEnd = batch >= fed.batches;
  if (count && fed.assigns && fed.rows)
    return tdm_tensor_assign(inputs[0].tensor, fed.rows);
  return TDM_OK;
}

tdm_status afterStep(void *user, int64_t, int *isEnd) {
  *isEnd = static_cast<Fed *>(user)->isStopped;
  return TDM_OK;
}

void Caller::feed() {
  size_t which = model();
  Arguments outputs = given(rightsOf(which).outputs);
  Fed fed = {int(next.below(4)), int(next.below(6)) - 1, next.seldom(2),
             next.seldom(4), tensor()};
  tdm_feed how = {sizeof how, &fed, nextBatch, afterStep,
                  int64_t(next.below(4)) - 1};
  if (next.seldom(8))
    how.next = nullptr;
  if (next.seldom(2))
    how.stepped = nullptr;
  int64_t steps = 0;
  wentWell(tdm_train(handle(which),
                     next.seldom(4) ? next.oneOf(kPrograms) : nullptr, &how,
                     listOf(outputs), outputs.size(), &steps));
  require(steps >= 0 && steps <= 4);
}

void Caller::load() {
  // Of a later version it would have as many bytes.
  union {
    tdm_options options;
    unsigned char bytes[256];
  } place = {};
  tdm_options &options = place.options;
  options = TDM_OPTIONS_INIT;
  static constexpr int threads[] = {1, 2, 0, -1, INT_MAX};
  options.threads = next.oneOf(threads);
  if (next.seldom(4)) {
    options.device = hostileDevice(next);
    options.memory_limit = next.seldom(2) ? -1 : 4096;
    options.struct_size = next.seldom(2) ? sizeof options : next.below(256);
  }
  std::string wrong = models.path(next.below(4));
  const char *path = next.seldom(4) ? wrong.c_str() : models.artifact(model());
  tdm_model *made = nullptr;
  bool went = wentWell(
      tdm_model_load(path, next.seldom(4) ? nullptr : &options, &made));
  require(went == (made != nullptr));
  tdm_model_free(own);
  own = made;
}

void Caller::drop() {
  tdm_tensor *&one = slot();
  tdm_tensor_free(one);
  one = nullptr;
  if (!next.seldom(2))
    return;
  tdm_context *&context = contexts[next.below(contexts.size())];
  tdm_context_free(context);
  context = nullptr;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static CalledModels models;
  onOneThreadOrTwo({data, size},
                   [&](Decisions next) { Caller(models, next).run(); });
  models.requireUndisturbed();
  return 0;
}
