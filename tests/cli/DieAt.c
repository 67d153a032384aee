/*===- DieAt.c - a process that dies at a chosen moment of a save ----------===
 *
 * Preloaded. DIE_AT is CALL:PART:WHEN: the process ends at its first CALL
 * (write, fsync, rename, unlink) on a file whose path has PART: before it,
 *after it, or, of a write, at half of it; fsync:PART:fail fails. Under a
 *launcher only rank DIE_RANK does.
 *
 *===----------------------------------------------------------------------===*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int isMoment(const char *call, const char *path, const char *when) {
  const char *at = getenv("DIE_AT"), *rank = getenv("DIE_RANK");
  const char *own = getenv("OMPI_COMM_WORLD_RANK");
  size_t length = strlen(call);
  char part[256];
  if (!at || !rank || !own || strcmp(rank, own) != 0 ||
      strncmp(at, call, length) != 0 || at[length] != ':')
    return 0;
  snprintf(part, sizeof part, "%s", at + length + 1);
  char *colon = strrchr(part, ':');
  if (!colon || strcmp(colon + 1, when) != 0)
    return 0;
  *colon = 0;
  return strstr(path, part) != NULL;
}

static void dieIf(const char *call, const char *path, const char *when) {
  if (isMoment(call, path, when))
    kill(getpid(), SIGKILL);
}

static const char *pathOf(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  path[length < 0 ? 0 : length] = 0;
  return path;
}

ssize_t write(int fd, const void *data, size_t size) {
  static ssize_t (*real)(int, const void *, size_t);
  char path[PATH_MAX];
  if (!real)
    real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  dieIf("write", pathOf(fd, path), "before");
  if (isMoment("write", path, "half")) {
    ssize_t done = real(fd, data, size / 2);
    (void)done;
    kill(getpid(), SIGKILL);
  }
  ssize_t done = real(fd, data, size);
  dieIf("write", path, "after");
  return done;
}

int fsync(int fd) {
  static int (*real)(int);
  char path[PATH_MAX];
  if (!real)
    real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  dieIf("fsync", pathOf(fd, path), "before");
  if (isMoment("fsync", path, "fail")) {
    errno = EIO;
    return -1;
  }
  int done = real(fd);
  dieIf("fsync", path, "after");
  return done;
}

int rename(const char *from, const char *to) {
  static int (*real)(const char *, const char *);
  if (!real)
    real = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
  dieIf("rename", to, "before");
  int done = real(from, to);
  dieIf("rename", to, "after");
  return done;
}

int unlink(const char *path) {
  static int (*real)(const char *);
  if (!real)
    real = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
  dieIf("unlink", path, "before");
  int done = real(path);
  dieIf("unlink", path, "after");
  return done;
}
