//===- Ranks.cpp - the processes that run one command together ------------===//
#include "tools/commands/Ranks.h"

#include "runtime/artifact/FormatVersion.h"
#include "runtime/comm/PeerCommunicator.h"
#include "runtime/comm/PluginPeers.h"
#include "runtime/comm/Texts.h"
#include "runtime/device/Processors.h"
#include "runtime/io/TensorFiles.h"
#include "tools/commands/CommandName.h"
#include "tools/commands/Inputs.h"
#include "tools/commands/Interrupt.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <zlib.h>

namespace tandem::commands {
namespace {

/// This process as a rank; there is one command in a process.
struct Own {
  std::shared_ptr<comm::Communicator> world;
  std::string command;
  std::FILE *log = nullptr;
  bool isTogether = false; ///< all ranks end here, for the same reason
};
Own &own() {
  static Own one;
  return one;
}

/// Returns the first of these variables of a launcher that is a number.
std::optional<int64_t> launched(std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (const char *text = std::getenv(name); text && *text)
      return std::strtoll(text, nullptr, 10);
  return std::nullopt;
}

/// Returns the CRC32 of a file, in digits; empty if it cannot be read.
std::string digestOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes(size_t(1) << 20);
  unsigned long crc = 0;
  while (file.read(bytes.data(), std::streamsize(bytes.size())),
         file.gcount() > 0)
    crc = crc32_z(crc, reinterpret_cast<const Bytef *>(bytes.data()),
                  size_t(file.gcount()));
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08lx", crc);
  return file.eof() ? digits : "";
}

Status openLog(const std::string &folder, int rank) {
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return Status::failed("--rank-logs: cannot make the folder " +
                          io::inQuotes(folder) + ": " + std::strerror(errno));
  std::string path = folder + "/rank-" + std::to_string(rank) + ".log";
  own().log = std::fopen(path.c_str(), "w");
  if (!own().log)
    return Status::failed("--rank-logs: cannot write " + io::inQuotes(path) +
                          ": " + std::strerror(errno));
  std::setvbuf(own().log, nullptr, _IOLBF, 0);
  return Status::success();
}

/// True for a message that says why another rank has failed.
bool isOfAnother(const std::string &text, int rank) {
  for (size_t at = text.find("rank "); at != std::string::npos;
       at = text.find("rank ", at + 1)) {
    char *end = nullptr;
    long number = std::strtol(text.c_str() + at + 5, &end, 10);
    if (std::string_view(end).starts_with(" failed: ") && number != rank)
      return true;
  }
  return false;
}

/// How many processes a launcher says that it started, and the number of this
/// one.
int64_t launchedCount() {
  return launched({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS",
                   "WORLD_SIZE"})
      .value_or(1);
}
int64_t launchedRank() {
  return launched({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"})
      .value_or(0);
}

/// A launcher that starts several processes with an artifact for one.
void warnOfCopies() {
  int64_t count = launchedCount();
  if (count > 1 && launchedRank() == 0)
    warn("the artifact is for one process, and a launcher started " +
         std::to_string(count) +
         ": each does all of it by itself; an artifact for all of them is "
         "compiled with --mesh");
}

/// The library that connects ranks: "mpi", unless a launcher that knows nothing
/// of it started this one.
const char *libraryOfRanks(bool isOnHost) {
  // Slurm may have started torchrun.
  bool hasMpi = launched({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}).has_value();
  return !isOnHost && !hasMpi && launched({"WORLD_SIZE"}) ? "nccl" : "mpi";
}

/// Ends this process where MPI does not connect it to the others in time. The
/// begin of MPI waits until all processes have come, also for one that has
/// ended, and cannot be given up.
class StartWatch {
public:
  explicit StartWatch(comm::Milliseconds limit)
      : thread([this, limit] { watch(limit); }) {}
  ~StartWatch() {
    {
      std::lock_guard lock(mutex);
      isOver = true;
    }
    changed.notify_one();
    thread.join();
  }
  StartWatch(const StartWatch &) = delete;
  StartWatch &operator=(const StartWatch &) = delete;

private:
  void watch(comm::Milliseconds limit) {
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, limit, [this] { return isOver; }))
      return;
    std::fprintf(stderr,
                 "%s: error: rank %lld: MPI has not connected the %lld "
                 "processes within %lld ms: one of them has ended, or has not "
                 "come so far\n",
                 program_invocation_short_name,
                 static_cast<long long>(launchedRank()),
                 static_cast<long long>(launchedCount()),
                 static_cast<long long>(limit.count()));
    ::_exit(static_cast<int>(Code::Failed));
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false;
  std::thread thread; ///< the last: it uses the others
};

/// Fails unless all ranks have the same artifact and program.
Status agreeOnModel(const runtime::Model &model, const std::string &artifact) {
  return agree({{"Tandem", TANDEM_VERSION},
                {"the artifact", model.manifest().model + " with digest " +
                                     digestOf(artifact)}});
}

} // namespace

void RankOptions::declare(OptionTable &options) {
  options.group("ranks");
  options
      .integer("timeout", "SECONDS", timeout, 1, 1000000,
               "of an artifact for a mesh: how long a rank waits for another "
               "before it gives up")
      .byDefault("300");
  options.flag("no-overlap", noOverlap,
               "of an artifact for a mesh: never communicate while computing, "
               "to compare");
  options.text("rank-logs", "DIR", logs,
               "of an artifact for a mesh: the folder in which each rank "
               "writes its progress and notes, to rank-N.log");
}

Status openRanks(runtime::Model &model, const std::string &artifact,
                 const RankOptions &options) {
  int64_t ranks = comm::ranksOf(model.manifest().mesh);
  if (ranks == 1) {
    const char *unused = options.timeout         ? "--timeout"
                         : options.noOverlap     ? "--no-overlap"
                         : !options.logs.empty() ? "--rank-logs"
                                                 : nullptr;
    if (unused)
      return Status::usage(std::string(unused) +
                           " has no effect: the artifact is for one process");
    warnOfCopies();
    return Status::success();
  }
  // The thread that communicates needs a processor: one that computes would
  // wait for it.
  bool hasSpare = model.threads() < threadsOfRank();
  auto world = connectRanks(model.manifest().mesh, hasSpare, options,
                            model.device().isHost());
  if (!world)
    return std::move(world).status();
  if (Status status = agreeOnModel(model, artifact); !status)
    return status;
  return model.setCommunicator(*std::move(world));
}

Result<std::shared_ptr<comm::Communicator>>
connectRanks(const comm::Mesh &mesh, bool hasSpare, const RankOptions &options,
             bool isOnHost) {
  int64_t ranks = comm::ranksOf(mesh);
  std::string advice = "; the artifact is for " + std::to_string(ranks) +
                       " processes (mesh " + comm::toString(mesh) +
                       "): start them with 'mpirun -n " +
                       std::to_string(ranks) + "' before the command";
  comm::Milliseconds limit =
      std::chrono::seconds(options.timeout.value_or(300));
  const char *library = libraryOfRanks(isOnHost);
  std::optional<StartWatch> watch;
  // What the library waits for by itself has its own limit and message; and
  // on a machine that is busy, processes take seconds to begin.
  if (launchedCount() > 1 && library == std::string_view("mpi"))
    watch.emplace(std::max<comm::Milliseconds>(limit + std::chrono::seconds(1),
                                               std::chrono::seconds(30)));
  auto peers = comm::openPeers(library, nullptr, limit);
  watch.reset();
  if (!peers)
    return Status(peers.status().code(), peers.status().message() + advice);
  own().world = comm::makePeerCommunicator(*std::move(peers), limit,
                                           hasSpare && !options.noOverlap);
  if (own().world->ranks() != ranks)
    return Status::usage("expected " + std::to_string(ranks) +
                         " processes but got " +
                         std::to_string(own().world->ranks()) + advice);
  if (!options.logs.empty())
    if (Status status = openLog(options.logs, own().world->rank()); !status)
      return status;
  return own().world;
}

void beginCommand(std::string_view name) { own().command = name; }

bool isFirstRank() { return !own().world || own().world->rank() == 0; }

int64_t rankCount() { return own().world ? own().world->ranks() : 1; }

Status agree(const Facts &facts) {
  comm::Communicator *world = own().world.get();
  if (!world)
    return Status::success();
  // One text a rank: name, value, name, ... each ended by a zero.
  Facts given{{"the command", own().command}};
  given.insert(given.end(), facts.begin(), facts.end());
  std::string text;
  for (const auto &[name, value] : given)
    text.append(name).append(1, '\0').append(value).append(1, '\0');
  auto all = comm::textsOfAll(world, text);
  if (!all)
    return std::move(all).status();
  auto partsOf = [&](int rank) {
    std::vector<std::string> parts;
    std::string_view rest = (*all)[size_t(rank)];
    for (size_t end; (end = rest.find('\0')) != std::string_view::npos;
         rest.remove_prefix(end + 1))
      parts.emplace_back(rest.substr(0, end));
    return parts;
  };
  std::vector<std::string> first = partsOf(0);
  Problems problems;
  for (int rank = 1; rank < world->ranks(); ++rank) {
    std::vector<std::string> parts = partsOf(rank);
    for (size_t i = 0; i + 1 < std::min(first.size(), parts.size()); i += 2)
      if (first[i] == parts[i] && first[i + 1] != parts[i + 1])
        problems.add("of " + first[i] + " rank 0 has " +
                     io::inQuotes(first[i + 1]) + ", and rank " +
                     std::to_string(rank) + " has " +
                     io::inQuotes(parts[i + 1]));
      else if (first[i] != parts[i])
        problems.add("ranks 0 and " + std::to_string(rank) +
                     " were given other options");
  }
  own().isTogether = !problems.none();
  return problems.none() ? Status::success()
                         : problems.status().in("the ranks do not agree");
}

std::string digestForRanks(const std::string &path) {
  if (path.empty() || rankCount() == 1)
    return "";
  auto file = io::TensorFiles::fileOf(path);
  return file ? "a file with digest " + digestOf(*file) : "no file";
}

Result<bool> onAnyRank(bool here) {
  if (!own().world)
    return here;
  uint8_t flag = here;
  if (Status status = own().world->allReduce(
          artifact::DType::U8, comm::Reduce::Max, &flag, &flag, 1);
      !status)
    return status;
  return flag != 0;
}

Result<std::vector<std::string>> textsOfRanks(const std::string &text) {
  return comm::textsOfAll(own().world.get(), text);
}

Result<std::string> textOfRanks(const std::string &text) {
  if (!own().world)
    return text;
  auto all = textsOfRanks(text);
  if (!all)
    return std::move(all).status();
  if (std::ranges::all_of(*all, [&](auto &one) { return one == text; }))
    return text.empty() ? text : "all ranks: " + text;
  std::string together;
  for (size_t rank = 0; rank < all->size(); ++rank)
    if (!(*all)[rank].empty())
      together += (together.empty() ? "rank " : "; rank ") +
                  std::to_string(rank) + ": " + (*all)[rank];
  return together;
}

Result<Stop> whyStop(bool isTimeUp) {
  Stop why = Interrupt::asked() ? Stop::Signal
             : isTimeUp         ? Stop::Time
                                : Stop::No;
  if (own().world)
    if (Status status = own().world->allReduce(
            artifact::DType::U8, comm::Reduce::Max, &why, &why, 1);
        !status)
      return status;
  if (why == Stop::Signal) {
    Interrupt::ask();
    own().isTogether = true;
  }
  return why;
}

Result<bool> isInterrupted() {
  auto why = whyStop(false);
  if (!why)
    return std::move(why).status();
  return *why == Stop::Signal;
}

int threadsOfRank() {
  int available = runtime::availableThreads();
  int64_t local = launched({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                            "SLURM_STEP_TASKS_PER_NODE", "LOCAL_WORLD_SIZE"})
                      .value_or(1);
  // A launcher that binds its processes has divided the processors already.
  int64_t all = std::thread::hardware_concurrency();
  if (local <= 1 || available * local <= all)
    return available;
  return int(std::max<int64_t>(1, available / local));
}

int deviceOfRank() {
  const char *shown = std::getenv("CUDA_VISIBLE_DEVICES");
  if (shown && *shown && !std::strchr(shown, ','))
    return 0;
  return int(launched({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                       "SLURM_LOCALID", "LOCAL_RANK"})
                 .value_or(0));
}

std::FILE *sayings() {
  if (own().log)
    return own().log;
  return isFirstRank() ? stderr : nullptr;
}

std::string messageOfRank(const Status &status) {
  const comm::Communicator *world = own().world.get();
  if (status.ok())
    return status.message();
  if (!world) // another one may not fail
    return (launchedCount() > 1
                ? "rank " + std::to_string(launchedRank()) + ": "
                : "") +
           status.message();
  if (own().isTogether)
    return world->rank() == 0 ? status.message() : "";
  return "rank " + std::to_string(world->rank()) + ": " + status.message();
}

void endRanks(const Status &status) {
  std::shared_ptr<comm::Communicator> world = std::move(own().world);
  own().world = nullptr;
  if (!world || status.ok() || own().isTogether)
    return;
  // Of several that fail, the one with the reason ends first, so that the
  // launcher has its exit code; but the launcher ends the others with it, who
  // have files to remove.
  using std::chrono::milliseconds;
  bool isOfOther = isOfAnother(status.message(), world->rank());
  if (!isOfOther)
    world->fail(status.message());
  std::this_thread::sleep_for(milliseconds(isOfOther ? 500 : 200));
}

} // namespace tandem::commands
