/*===- RecordFiles.c - what a process does to files, in order ---------------===
 *
 * Preloaded. TANDEM_RECORD names a file that exists: each call that changes a
 * regular file or the names in a folder, and each that makes such changes
 * durable, is appended to it as a Record, its name and its data. From them
 * tools/faults makes what a disk may hold after a loss of power.
 *
 * Only changes by these calls are seen: none by a mapping, a FILE of libc or a
 * call by number (syscall).
 *
 *===----------------------------------------------------------------------===*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The names of tools/faults. */
enum kind { made, written, resized, synced, renamed, removed };

struct Record {
  uint64_t kind;
  uint64_t file;       /* inode; of a folder that is synced its own */
  uint64_t at;         /* where data is written, or the new size */
  uint64_t nameBytes;  /* its absolute path, made and removed; or a folder's */
  uint64_t otherBytes; /* where it is renamed to */
  uint64_t dataBytes;
};

#define REAL(call) ((__typeof__(&call))dlsym(RTLD_NEXT, #call))

/* A change and its record are one step for all threads. */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static int output = -1;

__attribute__((constructor)) static void begin(void) {
  const char *file = getenv("TANDEM_RECORD");
  if (!file)
    return;
  output = REAL(open)(file, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (output < 0)
    abort(); /* what is not recorded must not be found whole */
}

static void append(struct Record record, const char *name, const char *other,
                   const void *data) {
  record.nameBytes = name ? strlen(name) : 0;
  record.otherBytes = other ? strlen(other) : 0;
  struct iovec parts[] = {{&record, sizeof record},
                          {(void *)name, record.nameBytes},
                          {(void *)other, record.otherBytes},
                          {(void *)data, record.dataBytes}};
  size_t size =
      sizeof record + record.nameBytes + record.otherBytes + record.dataBytes;
  if (writev(output, parts, 4) != (ssize_t)size)
    abort();
}

/* The path of a name in the folder of a descriptor. */
static const char *pathIn(int folder, const char *name, char *path) {
  if (name[0] == '/')
    return name;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  ssize_t length = readlink(folder == AT_FDCWD ? "/proc/self/cwd" : link, path,
                            PATH_MAX - 1);
  if (length < 0)
    abort();
  snprintf(path + length, PATH_MAX - (size_t)length, "/%s", name);
  return path;
}

static int isFile(int fd, struct stat *facts) {
  return output >= 0 && fd != output && fstat(fd, facts) == 0 &&
         S_ISREG(facts->st_mode);
}

static void opened(int fd, int folder, const char *name, int wasThere,
                   int flags) {
  struct stat facts;
  char path[PATH_MAX];
  if (fd < 0 || !isFile(fd, &facts))
    return;
  struct Record record = {.kind = made, .file = facts.st_ino};
  if (!wasThere)
    append(record, pathIn(folder, name, path), NULL, NULL);
  record.kind = resized;
  if (wasThere && flags & O_TRUNC)
    append(record, NULL, NULL, NULL);
}

static int openIn(int folder, const char *name, int flags, mode_t mode) {
  __typeof__(&openat) real = REAL(openat);
  if (output < 0 || !(flags & (O_CREAT | O_TRUNC)) ||
      (flags & O_TMPFILE) == O_TMPFILE)
    return real(folder, name, flags, mode);
  pthread_mutex_lock(&order);
  int wasThere = faccessat(folder, name, F_OK, 0) == 0;
  int fd = real(folder, name, flags, mode), error = errno;
  opened(fd, folder, name, wasThere, flags);
  pthread_mutex_unlock(&order);
  errno = error;
  return fd;
}

#define MODE(flags, mode)                                                      \
  mode_t mode = 0;                                                             \
  if (flags & (O_CREAT | O_TMPFILE)) {                                         \
    va_list more;                                                              \
    va_start(more, flags);                                                     \
    mode = va_arg(more, mode_t);                                               \
    va_end(more);                                                              \
  }

int open(const char *name, int flags, ...) {
  MODE(flags, mode)
  return openIn(AT_FDCWD, name, flags, mode);
}
int open64(const char *name, int flags, ...) {
  MODE(flags, mode)
  return openIn(AT_FDCWD, name, flags, mode);
}
int openat(int folder, const char *name, int flags, ...) {
  MODE(flags, mode)
  return openIn(folder, name, flags, mode);
}
int mkostemp(char *name, int flags) {
  pthread_mutex_lock(&order);
  int fd = REAL(mkostemp)(name, flags), error = errno;
  opened(fd, AT_FDCWD, name, 0, 0);
  pthread_mutex_unlock(&order);
  errno = error;
  return fd;
}

static void wrote(int fd, const void *data, ssize_t size, off_t at) {
  struct stat facts;
  if (size > 0 && isFile(fd, &facts)) {
    struct Record record = {.kind = written,
                            .file = facts.st_ino,
                            .at = (uint64_t)at,
                            .dataBytes = (uint64_t)size};
    append(record, NULL, NULL, data);
  }
}

ssize_t write(int fd, const void *data, size_t size) {
  if (output < 0)
    return REAL(write)(fd, data, size);
  pthread_mutex_lock(&order);
  ssize_t done = REAL(write)(fd, data, size);
  int error = errno;
  wrote(fd, data, done, lseek(fd, 0, SEEK_CUR) - done);
  pthread_mutex_unlock(&order);
  errno = error;
  return done;
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  pthread_mutex_lock(&order);
  ssize_t done = REAL(pwrite)(fd, data, size, at);
  int error = errno;
  wrote(fd, data, done, at);
  pthread_mutex_unlock(&order);
  errno = error;
  return done;
}

int ftruncate(int fd, off_t size) {
  struct stat facts;
  pthread_mutex_lock(&order);
  int result = REAL(ftruncate)(fd, size), error = errno;
  if (result == 0 && isFile(fd, &facts)) {
    struct Record record = {
        .kind = resized, .file = facts.st_ino, .at = (uint64_t)size};
    append(record, NULL, NULL, NULL);
  }
  pthread_mutex_unlock(&order);
  errno = error;
  return result;
}

int posix_fallocate(int fd, off_t at, off_t size) {
  struct stat before, facts;
  pthread_mutex_lock(&order);
  int wasFile = isFile(fd, &before);
  int result = REAL(posix_fallocate)(fd, at, size);
  if (wasFile && isFile(fd, &facts) && facts.st_size != before.st_size) {
    struct Record record = {
        .kind = resized, .file = facts.st_ino, .at = (uint64_t)facts.st_size};
    append(record, NULL, NULL, NULL);
  }
  pthread_mutex_unlock(&order);
  return result;
}

int truncate(const char *name, off_t size) {
  int fd = REAL(open)(name, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return -1;
  int result = ftruncate(fd, size), error = errno;
  close(fd);
  errno = error;
  return result;
}

static int sync_(int fd, int (*real)(int)) {
  struct stat facts;
  char path[PATH_MAX];
  pthread_mutex_lock(&order);
  int result = real(fd), error = errno;
  if (result == 0 && output >= 0 && fstat(fd, &facts) == 0) {
    int isFolder = S_ISDIR(facts.st_mode);
    struct Record record = {.kind = synced, .file = facts.st_ino};
    if (isFolder || S_ISREG(facts.st_mode))
      append(record, isFolder ? pathIn(fd, "", path) : NULL, NULL, NULL);
  }
  pthread_mutex_unlock(&order);
  errno = error;
  return result;
}
int fsync(int fd) { return sync_(fd, REAL(fsync)); }
int fdatasync(int fd) { return sync_(fd, REAL(fdatasync)); }

int rename(const char *from, const char *to) {
  char path[PATH_MAX], other[PATH_MAX];
  pthread_mutex_lock(&order);
  int result = REAL(rename)(from, to), error = errno;
  if (result == 0 && output >= 0)
    append((struct Record){.kind = renamed}, pathIn(AT_FDCWD, from, path),
           pathIn(AT_FDCWD, to, other), NULL);
  pthread_mutex_unlock(&order);
  errno = error;
  return result;
}

int link(const char *from, const char *to) {
  struct stat facts;
  char path[PATH_MAX];
  pthread_mutex_lock(&order);
  int result = REAL(link)(from, to), error = errno;
  if (result == 0 && output >= 0 && lstat(to, &facts) == 0) {
    struct Record record = {.kind = made, .file = facts.st_ino};
    append(record, pathIn(AT_FDCWD, to, path), NULL, NULL);
  }
  pthread_mutex_unlock(&order);
  errno = error;
  return result;
}

static int unlinked(int folder, const char *name, int flags) {
  char path[PATH_MAX];
  pthread_mutex_lock(&order);
  int result = REAL(unlinkat)(folder, name, flags), error = errno;
  if (result == 0 && output >= 0)
    append((struct Record){.kind = removed}, pathIn(folder, name, path), NULL,
           NULL);
  pthread_mutex_unlock(&order);
  errno = error;
  return result;
}
int unlink(const char *name) { return unlinked(AT_FDCWD, name, 0); }
int unlinkat(int folder, const char *name, int flags) {
  return unlinked(folder, name, flags);
}
int remove(const char *name) { return unlinked(AT_FDCWD, name, 0); }
