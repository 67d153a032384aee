//===- Start.h - MPI in this process --------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_DISTRIBUTED_MPI_START_H
#define TANDEM_RUNTIME_GRAPH_DISTRIBUTED_MPI_START_H

#include "runtime/tandem.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tandem::mpi {

inline tdm_status give(tdm_status status, const std::string &text,
                       char *message, size_t size) {
  if (message && size)
    std::snprintf(message, size, "%s", text.c_str());
  return status;
}

/// Returns `what` with MPI's text for `code`.
inline std::string textOf(const char *what, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(what) + ": " + text;
}

/// Returns how many processes a launcher says that it started with this one; 0
/// where none says it.
inline long launched() {
  for (const char *name :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char *text = std::getenv(name); text && *text)
      return std::strtol(text, nullptr, 10);
  return 0;
}

/// Where launcher and MPI do not know each other, MPI starts in each process as
/// if it were the only one. Returns what to do then, else nothing.
inline std::string whyAlone() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  long count = launched();
  if (ranks != 1 || count <= 1)
    return "";
  return "the launcher started " + std::to_string(count) +
         " processes, but MPI knows this one alone: start them with the mpirun "
         "of this MPI or, under Slurm, with 'srun --mpi=pmix' ('srun "
         "--mpi=list' says whether it is there)";
}

/// Starts MPI if nobody did; in `text` what is missing. One that runs already
/// has the level `needed`, or this fails.
inline bool start(int needed, bool &isStarted, std::string &text) {
  int isRunning = 0, isOver = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&isRunning);
  MPI_Finalized(&isOver);
  if (isOver) {
    text = "MPI has ended in this process, and cannot start again";
    return false;
  }
  if (isRunning) {
    MPI_Query_thread(&level);
  } else if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level) !=
             MPI_SUCCESS) {
    text = "MPI_Init_thread failed";
    return false;
  }
  isStarted = !isRunning;
  if (isStarted && !(text = whyAlone()).empty())
    return false;
  if (level >= (isRunning ? needed : MPI_THREAD_SERIALIZED))
    return true;
  text = isRunning ? "expected MPI to be started with MPI_THREAD_MULTIPLE"
                   : "this MPI has no threads (MPI_THREAD_SERIALIZED)";
  return false;
}

} // namespace tandem::mpi

#endif
