//===- GraphModes.cpp - the C API: modes of a thread
//-----------------------===//
#include "runtime/c_api/GraphCApi.h"

#include <cstddef>
#include <utility>

using namespace tandem;
using namespace tandem::capi;
using namespace tandem::graph;

static_assert(sizeof(tdm_profiler) ==
              offsetof(tdm_profiler, wants_inputs) + sizeof(size_t));

int tdm_grad_mode(void) { return modes().grad; }

int tdm_set_grad_mode(int on) { return std::exchange(modes().grad, on != 0); }

int tdm_set_deterministic(int on) {
  return std::exchange(modes().deterministic, on != 0);
}

int tdm_set_device_threads(int on) {
  return std::exchange(modes().deviceThreads, on != 0);
}

int tdm_set_anomaly_mode(int mode) {
  Anomaly &now = modes().anomaly;
  int before = (now.isOn ? TDM_ANOMALY_TRACE : 0) |
               (now.isOn && now.findsNan ? 2 : 0) |
               (now.isOn && now.findsInfinity ? 4 : 0);
  now = {mode != TDM_ANOMALY_OFF, (mode & 2) != 0, (mode & 4) != 0};
  return before;
}

void tdm_set_location(const char *location) {
  modes().location = location ? location : "";
}

tdm_status tdm_set_saved_hooks(const tdm_saved_hooks *hooks) {
  return call([&]() -> Status {
    if (!hooks) {
      modes().savedHooks = nullptr;
      return Status::success();
    }
    tdm_saved_hooks known = TDM_SAVED_HOOKS_INIT;
    if (Status status = takeStruct("tdm_saved_hooks", *hooks, known); !status)
      return status;
    if (!known.pack || !known.unpack)
      return null(known.pack ? "hook 'unpack'" : "hook 'pack'");
    modes().savedHooks = hooksFrom(known);
    return Status::success();
  });
}

tdm_status tdm_set_profiler(const tdm_profiler *profiler) {
  return call([&]() -> Status {
    if (!profiler) {
      modes().profiler = nullptr;
      return Status::success();
    }
    tdm_profiler known = TDM_PROFILER_INIT;
    if (Status status = takeStruct("tdm_profiler", *profiler, known); !status)
      return status;
    auto made = std::make_shared<Profiler>();
    made->wantsInputs = known.wants_inputs != 0;
    if (known.begin)
      made->begin = [known](const Node &node, const Gradients *inputs) {
        tdm_node handle{const_cast<Node &>(node).shared_from_this()};
        std::vector<tdm_tensor> shown(inputs ? inputs->size() : 0);
        std::vector<const tdm_tensor *> pointers;
        for (size_t i = 0; i < shown.size(); ++i) {
          show(shown[i], (*inputs)[i]);
          pointers.push_back(&shown[i]);
        }
        known.begin(known.user, &handle, inputs ? pointers.data() : nullptr,
                    pointers.size());
      };
    if (known.end)
      made->end = [known](const Node &node) {
        tdm_node handle{const_cast<Node &>(node).shared_from_this()};
        known.end(known.user, &handle);
      };
    modes().profiler = std::move(made);
    return Status::success();
  });
}
