//===- RankMemory.cpp - what the ranks of an emulated NCCL share ----------===//
#include "cuda/emulator/RankMemory.h"

#include <cerrno>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace tandem::emulator;

/// A file that was just made is zeros.
struct RankMemory::Header {
  std::atomic<int> ranks, joined;
  std::atomic<int> process[mostRanks];
  std::atomic<bool> hasGivenUp[mostRanks], hasLeft[mostRanks];
  std::atomic<uint64_t> put[mostRanks], taken[mostRanks];
  RankCall calls[mostRanks][2];
  std::atomic<uint64_t> sent[mostRanks][mostRanks],
      received[mostRanks][mostRanks];
  uint64_t messageBytes[mostRanks][mostRanks];
};

std::string RankCall::text() const {
  static const char *const ops[] = {"all-reduce", "reduce-scatter",
                                    "all-gather", "broadcast"};
  static const char *const reduces[] = {"sum", "product", "maximum", "minimum"};
  return std::string(ops[op]) + " of " + std::to_string(count) +
         " elements of type " + std::to_string(type) +
         (op < 2 ? std::string(", ") + reduces[reduce] : "") +
         (op == 3 ? ", from rank " + std::to_string(root) : "") +
         (together > 1 ? ", one of " + std::to_string(together) + " in a group"
                       : "");
}

std::shared_ptr<RankMemory> RankMemory::open(const std::string &name, int ranks,
                                             int rank) {
  int file = ::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0)
    return nullptr;
  std::shared_ptr<RankMemory> made(new RankMemory);
  constexpr size_t front = (sizeof(Header) + 4095) / 4096 * 4096;
  auto all = static_cast<size_t>(ranks);
  // Only what is used takes memory.
  made->bytes = front + (2 * all + all * all) * mostBytes;
  void *memory = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(made->bytes)) == 0)
    memory = ::mmap(nullptr, made->bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, file, 0);
  ::close(file);
  if (memory == MAP_FAILED)
    return nullptr;
  made->header = static_cast<Header *>(memory);
  made->places = static_cast<std::byte *>(memory) + front;
  made->own = rank;
  made->count = ranks;
  made->name = name;
  int before = 0;
  if (!made->header->ranks.compare_exchange_strong(before, ranks) &&
      before != ranks)
    return nullptr;
  int nobody = 0;
  if (!made->header->process[rank].compare_exchange_strong(nobody, ::getpid()))
    return nullptr; // two ranks of one number
  if (++made->header->joined == ranks)
    ::shm_unlink(name.c_str()); // nobody opens it any more
  return made;
}

RankMemory::~RankMemory() {
  if (!header)
    return;
  if (!isComplete())
    ::shm_unlink(name.c_str());
  header->hasLeft[own] = true;
  ::munmap(header, bytes);
}

bool RankMemory::isComplete() const { return header->joined == count; }

bool RankMemory::hasLost() const {
  for (int i = 0; i < count; ++i) {
    if (header->hasGivenUp[i])
      return true;
    int process = header->process[i];
    if (process && process != ::getpid() && !header->hasLeft[i] &&
        ::kill(process, 0) < 0 && errno == ESRCH)
      return true;
  }
  return false;
}

void RankMemory::giveUp() { header->hasGivenUp[own] = true; }

bool RankMemory::isEverybody(std::atomic<uint64_t> (&counters)[mostRanks],
                             uint64_t number) const {
  for (int i = 0; i < count; ++i)
    if (counters[i] < number)
      return false;
  return true;
}

bool RankMemory::canPut(uint64_t number) const {
  return number <= 2 || isEverybody(header->taken, number - 2);
}
std::byte *RankMemory::put(uint64_t number) {
  return const_cast<std::byte *>(part(number, own));
}
void RankMemory::hasPut(uint64_t number, const RankCall &call) {
  header->calls[own][number % 2] = call;
  header->put[own] = number;
}
bool RankMemory::canTake(uint64_t number) const {
  return isEverybody(header->put, number);
}
const std::byte *RankMemory::part(uint64_t number, int rank) const {
  return places +
         (2 * static_cast<size_t>(rank) + static_cast<size_t>(number % 2)) *
             mostBytes;
}
const RankCall &RankMemory::call(uint64_t number, int rank) const {
  return header->calls[rank][number % 2];
}
void RankMemory::hasTaken(uint64_t number) { header->taken[own] = number; }

bool RankMemory::canSend(uint64_t number, int to) const {
  return header->received[own][to] + 1 >= number;
}
std::byte *RankMemory::message(int from, int to) const {
  return places +
         static_cast<size_t>(2 * count + from * count + to) * mostBytes;
}
void RankMemory::hasSent(uint64_t number, int to, uint64_t size) {
  header->messageBytes[own][to] = size;
  header->sent[own][to] = number;
}
bool RankMemory::canReceive(uint64_t number, int from) const {
  return header->sent[from][own] >= number;
}
uint64_t RankMemory::bytesOf(int from) const {
  return header->messageBytes[from][own];
}
void RankMemory::hasReceived(uint64_t number, int from) {
  header->received[from][own] = number;
}
