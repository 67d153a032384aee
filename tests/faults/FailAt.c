/*===- FailAt.c - the n-th call that can fail fails -------------------------===
 *
 * Preloaded. Counts, from main on, the calls that can fail, in three kinds:
 * memory, files and threads. TANDEM_FAULT is KIND:N, and the N-th call of that
 * kind (from 1) fails as it would where memory is out, a disk is full or
 * broken, or there are no more threads; KIND:N:on, and all after it fail, too.
 * TANDEM_FAULT_COUNTS names a file that exists: a Counts is written into it
 * while the process runs, so that it is there however the process ends.
 * TANDEM_FAULT_TRACE prints where the call came from. Linked into a program
 * it does what FailAt.h says.
 *
 * What libc calls inside of itself is not seen (the buffers of a FILE), nor is
 * a call by number (syscall).
 *
 *===----------------------------------------------------------------------===*/
#define _GNU_SOURCE
#include "tests/faults/FailAt.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[fault_kinds] = {"memory", "files", "threads"};

struct Counts {
  _Atomic uint64_t calls[fault_kinds];
  _Atomic uint64_t failed;
  /* The first that failed, and the descriptor that it was called with. */
  char call[16];
  int64_t descriptor;
};

static struct Counts own, *counts = &own;
static atomic_int isCounting;
static enum fault_kind failing = fault_kinds;
static uint64_t failAt;
static int goesOn;
static _Atomic int64_t blocks;

static int fails(enum fault_kind kind, const char *call, int descriptor) {
  if (!atomic_load_explicit(&isCounting, memory_order_acquire))
    return 0;
  uint64_t n = atomic_fetch_add(&counts->calls[kind], 1) + 1;
  if (kind != failing || n < failAt || (n > failAt && !goesOn))
    return 0;
  if (atomic_fetch_add(&counts->failed, 1) == 0) {
    strncpy(counts->call, call, sizeof counts->call - 1);
    counts->descriptor = descriptor;
    if (getenv("TANDEM_FAULT_TRACE")) {
      void *frames[64];
      backtrace_symbols_fd(frames, backtrace(frames, 64), 2);
    }
  }
  return 1;
}

static void begin(void) {
  const char *file = getenv("TANDEM_FAULT_COUNTS");
  int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
  if (fd >= 0 && ftruncate(fd, sizeof own) == 0) {
    void *shared =
        mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED)
      counts = shared;
  }
  if (fd >= 0)
    close(fd);
  const char *fault = getenv("TANDEM_FAULT");
  for (int kind = 0; fault && kind < fault_kinds; ++kind) {
    size_t length = strlen(names[kind]);
    if (strncmp(fault, names[kind], length) == 0 && fault[length] == ':') {
      char *end;
      failing = (enum fault_kind)kind;
      failAt = strtoull(fault + length + 1, &end, 10);
      goesOn = strcmp(end, ":on") == 0;
    }
  }
  if (fault && failing == fault_kinds)
    abort(); /* a wrong word must not be a test that finds nothing */
  atomic_store_explicit(&isCounting, 1, memory_order_release);
}

void fault_at(enum fault_kind kind, uint64_t n) {
  failing = n ? kind : fault_kinds;
  failAt = n;
  for (int i = 0; i < fault_kinds; ++i)
    counts->calls[i] = 0;
  counts->failed = 0;
}
uint64_t fault_failed(void) { return counts->failed; }
int64_t fault_blocks(void) { return blocks; }

typedef int Main(int, char **, char **);
static Main *realMain;
static int countedMain(int argc, char **argv, char **environment) {
  begin();
  return realMain(argc, argv, environment);
}
int __libc_start_main(Main *main, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*loaderFini)(void),
                      void *stackEnd) {
  typedef int Start(Main *, int, char **, void (*)(void), void (*)(void),
                    void (*)(void), void *);
  realMain = main;
  return ((Start *)dlsym(RTLD_NEXT, "__libc_start_main"))(
      countedMain, argc, argv, init, fini, loaderFini, stackEnd);
}

/* Memory: glibc has its own functions under these names, too. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t),
    *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

#define OUT_OF_MEMORY(call)                                                    \
  if (fails(fault_memory, call, -1)) {                                         \
    errno = ENOMEM;                                                            \
    return NULL;                                                               \
  }

static void *counted(void *made) {
  blocks += made != NULL;
  return made;
}

void *malloc(size_t size) {
  OUT_OF_MEMORY("malloc")
  return counted(__libc_malloc(size));
}
void *calloc(size_t count, size_t size) {
  OUT_OF_MEMORY("calloc")
  return counted(__libc_calloc(count, size));
}
void *realloc(void *old, size_t size) {
  OUT_OF_MEMORY("realloc")
  return old ? __libc_realloc(old, size) : counted(__libc_realloc(old, size));
}
void free(void *block) {
  blocks -= block != NULL;
  __libc_free(block);
}
void *memalign(size_t alignment, size_t size) {
  OUT_OF_MEMORY("memalign")
  return counted(__libc_memalign(alignment, size));
}
void *aligned_alloc(size_t alignment, size_t size) {
  OUT_OF_MEMORY("aligned_alloc")
  return counted(__libc_memalign(alignment, size));
}
int posix_memalign(void **place, size_t alignment, size_t size) {
  if (fails(fault_memory, "posix_memalign", -1))
    return ENOMEM;
  void *made = counted(__libc_memalign(alignment, size));
  if (!made)
    return ENOMEM;
  *place = made;
  return 0;
}

#define REAL(call) ((__typeof__(&call))dlsym(RTLD_NEXT, #call))

void *mmap(void *at, size_t size, int protection, int flags, int fd,
           off_t offset) {
  static __typeof__(&mmap) real;
  if (!real)
    real = REAL(mmap);
  if (fails(fd < 0 ? fault_memory : fault_files, "mmap", fd)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return real(at, size, protection, flags, fd, offset);
}

/* Files: a function of the same signature that fails with an error. */
#define FAILING(kind, error, failure, descriptor, type, call, parameters,      \
                arguments)                                                     \
  type call parameters {                                                       \
    static __typeof__(&call) real;                                             \
    if (!real)                                                                 \
      real = REAL(call);                                                       \
    if (fails(kind, #call, descriptor)) {                                      \
      errno = error;                                                           \
      return failure;                                                          \
    }                                                                          \
    return real arguments;                                                     \
  }

FAILING(fault_files, EIO, -1, fd, ssize_t, read,
        (int fd, void *to, size_t size), (fd, to, size))
FAILING(fault_files, EIO, -1, fd, ssize_t, pread,
        (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
FAILING(fault_files, ENOSPC, -1, fd, ssize_t, write,
        (int fd, const void *from, size_t size), (fd, from, size))
FAILING(fault_files, ENOSPC, -1, fd, ssize_t, pwrite,
        (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
FAILING(fault_files, EIO, -1, fd, int, fsync, (int fd), (fd))
FAILING(fault_files, ENOSPC, -1, fd, int, ftruncate, (int fd, off_t size),
        (fd, size))
FAILING(fault_files, EIO, -1, fd, int, fstat, (int fd, struct stat *facts),
        (fd, facts))
FAILING(fault_files, EIO, -1, -1, int, stat,
        (const char *path, struct stat *facts), (path, facts))
FAILING(fault_files, EPERM, -1, fd, int, fchmod, (int fd, mode_t mode),
        (fd, mode))
FAILING(fault_files, ENOLCK, -1, fd, int, flock, (int fd, int what), (fd, what))
FAILING(fault_files, EIO, -1, fd, off_t, lseek, (int fd, off_t at, int from),
        (fd, at, from))
FAILING(fault_files, EIO, -1, -1, int, rename,
        (const char *from, const char *to), (from, to))
FAILING(fault_files, ENOMEM, -1, -1, int, memfd_create,
        (const char *name, unsigned flags), (name, flags))
FAILING(fault_files, EMFILE, NULL, -1, FILE *, fopen,
        (const char *path, const char *mode), (path, mode))
FAILING(fault_files, EMFILE, NULL, -1, DIR *, opendir, (const char *path),
        (path))
FAILING(fault_files, EMFILE, -1, -1, int, mkostemp, (char *path, int flags),
        (path, flags))
FAILING(fault_files, EACCES, NULL, -1, char *, realpath,
        (const char *path, char *to), (path, to))

/* A descriptor is closed, whatever close says. */
int close(int fd) {
  static __typeof__(&close) real;
  if (!real)
    real = REAL(close);
  int failed = fails(fault_files, "close", fd), result = real(fd);
  if (failed)
    errno = EIO;
  return failed ? -1 : result;
}

static mode_t modeOf(int flags, va_list more) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
}
int open(const char *path, int flags, ...) {
  static __typeof__(&open) real;
  va_list more;
  va_start(more, flags);
  mode_t mode = modeOf(flags, more);
  va_end(more);
  if (!real)
    real = REAL(open);
  if (fails(fault_files, "open", -1)) {
    errno = EMFILE;
    return -1;
  }
  return real(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
  static __typeof__(&openat) real;
  va_list more;
  va_start(more, flags);
  mode_t mode = modeOf(flags, more);
  va_end(more);
  if (!real)
    real = REAL(openat);
  if (fails(fault_files, "openat", -1)) {
    errno = EMFILE;
    return -1;
  }
  return real(folder, path, flags, mode);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*body)(void *), void *argument) {
  static __typeof__(&pthread_create) real;
  if (!real)
    real = REAL(pthread_create);
  if (fails(fault_threads, "pthread_create", -1))
    return EAGAIN;
  return real(thread, attributes, body, argument);
}
