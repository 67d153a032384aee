//===- comm.hpp - ranks for C++ programs ----------------------------------===//
//
// A header-only wrapper over comm.h. Errors are those of tandem.hpp; what the
// calls do, and from which threads, is in comm.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMM_HPP
#define TANDEM_COMM_HPP

#include "runtime/comm.h"
#include "runtime/tandem.hpp"

namespace tdm::comm {

/// What ranks do together. Copies share it; the last one ends it.
class Communicator {
public:
  Communicator() = default;
  /// Takes the handle over.
  explicit Communicator(tdm_comm *made) : handle(made, tdm_comm_free) {}

  explicit operator bool() const { return handle != nullptr; }
  uint32_t rank() const { return tdm_comm_rank(get()); }
  uint32_t ranks() const { return tdm_comm_ranks(get()); }
  void barrier() { check(tdm_comm_barrier(get())); }
  void fail(const char *reason) { check(tdm_comm_fail(get(), reason)); }
  tdm_comm *get() const { return handle.get(); }

private:
  std::shared_ptr<tdm_comm> handle;
};

/// Gives a model the ranks that it computes with.
inline void use(Model &model, const Communicator &ranks) {
  check(tdm_model_set_communicator(model.get(), ranks.get()));
}

/// The communicator that a library has: "mpi".
inline Communicator open(const char *name, void *argument = nullptr,
                         const tdm_comm_options *options = nullptr) {
  tdm_comm *made = nullptr;
  check(tdm_comm_open(name, argument, options, &made));
  return Communicator(made);
}

/// Communicators for threads of this process.
inline std::vector<Communicator>
loopback(uint32_t ranks, const tdm_comm_options *options = nullptr) {
  std::vector<tdm_comm *> made(ranks);
  check(tdm_comm_loopback(ranks, options, made.data()));
  return {made.begin(), made.end()};
}

} // namespace tdm::comm

#endif
