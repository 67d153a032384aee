//===- SandboxCalls.cpp - the system calls that are left (seccomp) --------===//
//
// A list of what computing, reading and writing takes. What is not in it ends
// the process with a message, but for calls that a C library tries first and
// does without: they are said not to exist.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Text.h"
#include "tools/commands/Sandbox.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <span>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tandem::commands {
namespace {

#if defined(__x86_64__)
constexpr uint32_t ownProcessor = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t ownProcessor = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t ownProcessor = 0;
#endif

// What a step does comes first.
constexpr int allowedCalls[] = {
    SYS_futex,
    SYS_sched_yield,
    SYS_clock_gettime,
    SYS_read,
    SYS_write,
    SYS_madvise,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_brk,
    SYS_msync,
    SYS_mincore,
    SYS_membarrier,
    SYS_memfd_create,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_preadv,
    SYS_pwritev,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_dup,
    SYS_dup3,
    SYS_pipe2,
    SYS_ppoll,
    SYS_pselect6,
    SYS_flock,
    SYS_fsync,
    SYS_fdatasync,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fadvise64,
    SYS_copy_file_range,
    SYS_sendfile,
    SYS_renameat,
    SYS_linkat, // Landlock leaves it within a folder of outputs
    SYS_unlinkat,
    SYS_mkdirat,
    SYS_umask,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigpending,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_times,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_uname,
    SYS_getcpu,
    SYS_getrandom,
    SYS_gettid,
    SYS_getpid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getpgid,
    SYS_getsid,
    SYS_sched_getaffinity,

    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_exit,
    SYS_exit_group,
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
#ifdef SYS_open // older names, which an older C library calls
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_dup2,
    SYS_pipe,
    SYS_poll,
    SYS_select,
    SYS_rename,
    SYS_link,
    SYS_unlink,
    SYS_mkdir,
    SYS_getpgrp,
    SYS_time,
    SYS_getrlimit,
#endif
};

// A C library tries these, and does without.
constexpr int absentCalls[] = {
    435, // clone3, whose flags lie in memory that others may write
    437, // openat2, as well
    449, // futex_waitv
    452, // fchmodat2
    453, // map_shadow_stack
    462, // mseal
};

struct Named {
  int call;
  const char *name;
};
constexpr Named namedCalls[] = {
    {SYS_socket, "socket"},
    {SYS_socketpair, "socketpair"},
    {SYS_connect, "connect"},
    {SYS_bind, "bind"},
    {SYS_sendto, "sendto"},
    {SYS_execve, "execve"},
    {SYS_execveat, "execveat"},
    {SYS_clone, "clone"},
#ifdef SYS_fork
    {SYS_fork, "fork"},
    {SYS_vfork, "vfork"},
    {SYS_chmod, "chmod"},
    {SYS_chown, "chown"},
#endif
    {SYS_ptrace, "ptrace"},
    {SYS_kill, "kill"},
    {SYS_tgkill, "tgkill"},
    {SYS_tkill, "tkill"},
    {SYS_ioctl, "ioctl"},
    {SYS_fcntl, "fcntl"},
    {SYS_fchmodat, "fchmodat"},
    {SYS_rt_sigaction, "rt_sigaction"},
    {SYS_fchownat, "fchownat"},
    {SYS_setxattr, "setxattr"},
    {SYS_mount, "mount"},
    {SYS_unshare, "unshare"},
    {SYS_setns, "setns"},
    {SYS_chroot, "chroot"},
    {SYS_bpf, "bpf"},
    {SYS_prctl, "prctl"},
    {SYS_prlimit64, "prlimit64"},
    {SYS_shmget, "shmget"},
    {SYS_symlinkat, "symlinkat"},
    {SYS_utimensat, "utimensat"},
    {SYS_openat, "openat"},
    {SYS_truncate, "truncate"},
    {SYS_perf_event_open, "perf_event_open"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
    {425, "io_uring_setup"},
    {434, "pidfd_open"},
};

constexpr uint32_t allow = SECCOMP_RET_ALLOW, refuse = SECCOMP_RET_TRAP;
/// Of a file's mode: who runs it has the rights of its owner or group.
constexpr uint32_t asOwner = 06000;

/// The filter, instruction by instruction. The accumulator has the number of
/// the call where a call's rule begins.
class Filter {
public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, ownProcessor, 1, 0);
    end(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
#ifdef __x86_64__ // the x32 ABI has the same calls under other numbers
    add(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
    end(SECCOMP_RET_KILL_PROCESS);
#endif
  }

  void always(int call, uint32_t then) {
    add(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(call), 0, 1);
    end(then);
  }

  /// `call` is allowed if its argument, and `mask`, is one of `values`; or,
  /// with `unless`, if it is none of them.
  void where(int call, unsigned argument, uint32_t mask,
             std::span<const uint32_t> values, bool unless = false) {
    // Over the load, the mask, a jump and an end for each value, and the last
    // end.
    auto count = uint8_t(3 + 2 * values.size());
    add(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(call), 0, count);
    argumentOf(argument, mask);
    for (uint32_t value : values) {
      add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
      end(unless ? refuse : allow);
    }
    end(unless ? allow : refuse);
  }

  /// `call` opens a file, by the flags in this argument and the mode behind it:
  /// not one that is emptied and not written, since Landlock learned late that
  /// this is a change; not one that is neither read nor written, of which
  /// Landlock says nothing; and no file is made that runs with its owner's
  /// rights.
  void opens(int call, unsigned flags) {
    auto test = [&](unsigned argument, uint32_t mask, uint32_t value,
                    uint32_t then) {
      argumentOf(argument, mask);
      add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
      end(then);
    };
    add(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(call), 0, 4 * 4 + 1);
    test(flags, O_ACCMODE | O_TRUNC, O_RDONLY | O_TRUNC, refuse);
    test(flags, O_ACCMODE, O_ACCMODE, refuse);
    test(flags, O_CREAT | (O_TMPFILE & ~O_DIRECTORY), 0, allow);
    test(flags + 1, asOwner, 0, allow);
    end(refuse);
  }

  void end(uint32_t how) { add(BPF_RET | BPF_K, how, 0, 0); }
  std::vector<sock_filter> &code() { return code_; }

private:
  /// Its lower half: what the kernel takes of it has 32 bits.
  void argumentOf(unsigned argument, uint32_t mask) {
    load(uint32_t(offsetof(seccomp_data, args) + 8 * argument));
    add(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
  }
  void load(uint32_t at) { add(BPF_LD | BPF_W | BPF_ABS, at, 0, 0); }
  void add(unsigned what, uint32_t k, uint8_t yes, uint8_t no) {
    code_.push_back({uint16_t(what), yes, no, k});
  }

  std::vector<sock_filter> code_;
};

Filter filterOf(uint32_t process) {
  Filter filter;
  for (int call : allowedCalls)
    filter.always(call, allow);
  for (int call : absentCalls)
    filter.always(call, SECCOMP_RET_ERRNO | ENOSYS);
  filter.opens(SYS_openat, 2);
#ifdef SYS_open
  filter.opens(SYS_open, 1);
#endif
  const uint32_t thread[] = {CLONE_THREAD}, own[] = {process}, itself[] = {0};
  filter.where(SYS_clone, 0, CLONE_THREAD, thread);
  filter.where(SYS_kill, 0, ~0u, own);
  filter.where(SYS_tgkill, 0, ~0u, own);
  filter.where(SYS_prlimit64, 0, ~0u, itself);
  filter.where(SYS_sched_setaffinity, 0, ~0u, itself);
  // Of any file that can be opened, also to read it alone: who writes a file
  // makes it with the permissions that it is to have.
  filter.always(SYS_fchmod, SECCOMP_RET_ERRNO | EPERM);
  // What is said of a call that was refused is said by this process.
  const uint32_t refusals[] = {SIGSYS};
  filter.where(SYS_rt_sigaction, 0, ~0u, refusals, /*unless=*/true);
#ifdef SYS_renameat2
  filter.where(SYS_renameat2, 4, 4 /*RENAME_WHITEOUT: makes a device*/, itself);
#endif
  // The width of a terminal, and whether it is one; not what is typed in it.
  const uint32_t asked[] = {TCGETS, TIOCGWINSZ, TIOCGPGRP, FIONREAD, FIOCLEX};
  filter.where(SYS_ioctl, 1, ~0u, asked);
  // Signals to the owner of a file, who may be another process, and what makes
  // others wait.
  const uint32_t owners[] = {F_SETOWN, 10 /*F_SETSIG*/, 15 /*F_SETOWN_EX*/,
                             1024 /*F_SETLEASE*/, 1026 /*F_NOTIFY*/};
  filter.where(SYS_fcntl, 1, ~0u, owners, /*unless=*/true);
  const uint32_t names[] = {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE,
                            0x53564d41 /*PR_SET_VMA*/};
  filter.where(SYS_prctl, 0, ~0u, names);
  filter.end(refuse);
  return filter;
}

/// For the message of a call that was refused.
char artifactName[256];

void onRefused(int, siginfo_t *about, void *) {
  const char *name = "number";
  char number[16] = "";
  for (const Named &one : namedCalls)
    if (one.call == about->si_syscall)
      name = one.name;
  if (std::strcmp(name, "number") == 0)
    std::snprintf(number, sizeof number, " %d", about->si_syscall);
  // The artifact's code is mapped from a file without a name.
  Dl_info place = {};
  const char *object = "code without a file";
  if (::dladdr(about->si_call_addr, &place) != 0 && place.dli_fname)
    object = std::strncmp(place.dli_fname, "/proc/self/fd/", 14) == 0
                 ? "the artifact's code"
                 : place.dli_fname;
  char text[1024];
  int length = std::snprintf(
      text, sizeof text,
      "error: --sandbox: the process ends at system call %s%s of %s, which "
      "running %s does not need\n",
      name, number, object, artifactName);
  if (length > 0)
    (void)!::write(2, text, std::min(size_t(length), sizeof text - 1));
  ::_exit(int(Code::Failed));
}

} // namespace

Status restrictCalls(const std::string &artifact) {
  if (!ownProcessor)
    return Status::unsupported(
        "--sandbox is there for x86-64 and aarch64 alone");
  std::snprintf(artifactName, sizeof artifactName, "%s",
                artifact::forScreen(artifact::inQuotes(artifact)).c_str());
  struct sigaction action = {};
  action.sa_sigaction = onRefused;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSYS, &action, nullptr);
  Filter filter = filterOf(uint32_t(::getpid()));
  sock_fprog program = {static_cast<unsigned short>(filter.code().size()),
                        filter.code().data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                &program) == 0)
    return Status::success();
  if (errno == ENOSYS || errno == EINVAL)
    return Status::unsupported("--sandbox needs filters of system calls "
                               "(seccomp), which this system does not have");
  return Status::failed(
      std::string("--sandbox: cannot restrict system calls: ") +
      std::strerror(errno));
}

} // namespace tandem::commands
