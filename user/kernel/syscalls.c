// SPDX-License-Identifier: MIT
#include "kernel/syscalls.h"

#include <stddef.h>
#include <sys/syscall.h>

#define OF_FILE(name)	 [SYS_##name] = {SYSCALL_PREFIX #name, true}
#define OF_NO_FILE(name) [SYS_##name] = {SYSCALL_PREFIX #name, false}

static const struct known {
	const char *selector;
	bool is_of_file;
} known[] = {
	OF_FILE(read),
	OF_FILE(write),
	OF_FILE(pread64),
	OF_FILE(pwrite64),
	OF_FILE(readv),
	OF_FILE(writev),
	OF_FILE(preadv),
	OF_FILE(pwritev),
	OF_FILE(preadv2),
	OF_FILE(pwritev2),
	OF_FILE(recvfrom),
	OF_FILE(sendto),
	OF_FILE(recvmsg),
	OF_FILE(sendmsg),
	OF_FILE(recvmmsg),
	OF_FILE(sendmmsg),
	OF_FILE(accept),
	OF_FILE(accept4),
	OF_FILE(connect),
	OF_FILE(shutdown),
	OF_FILE(close),
	OF_FILE(ioctl),
	OF_FILE(fcntl),
	OF_FILE(flock),
	OF_FILE(fsync),
	OF_FILE(fdatasync),
	OF_FILE(sync_file_range),
	OF_FILE(syncfs),
	OF_FILE(ftruncate),
	OF_FILE(fallocate),
	OF_FILE(fstat),
	OF_FILE(lseek),
	OF_FILE(getdents64),
	OF_FILE(sendfile),
	OF_FILE(splice),
	OF_FILE(tee),
	OF_FILE(vmsplice),
	OF_FILE(copy_file_range),
	OF_FILE(epoll_wait),
	OF_FILE(epoll_pwait),
	OF_FILE(epoll_pwait2),
	OF_FILE(epoll_ctl),
	OF_FILE(timerfd_settime),
	OF_FILE(io_uring_enter),
	OF_FILE(readahead),
	OF_FILE(fadvise64),
	OF_FILE(getsockopt),
	OF_FILE(setsockopt),
	OF_FILE(getsockname),
	OF_FILE(getpeername),
	OF_FILE(fchmod),
	OF_FILE(fchown),
	OF_FILE(fchdir),
	OF_FILE(timerfd_gettime),
	OF_FILE(inotify_add_watch),
	OF_FILE(getdents),
	OF_NO_FILE(execveat),
	OF_NO_FILE(kill),
	OF_NO_FILE(tgkill),
	OF_NO_FILE(tkill),
	OF_NO_FILE(socket),
	OF_NO_FILE(socketpair),
	OF_NO_FILE(bind),
	OF_NO_FILE(listen),
	OF_NO_FILE(dup),
	OF_NO_FILE(dup2),
	OF_NO_FILE(dup3),
	OF_NO_FILE(pipe),
	OF_NO_FILE(pipe2),
	OF_NO_FILE(eventfd2),
	OF_NO_FILE(timerfd_create),
	OF_NO_FILE(epoll_create1),
	OF_NO_FILE(inotify_init1),
	OF_NO_FILE(memfd_create),
	OF_NO_FILE(getpid),
	OF_NO_FILE(getppid),
	OF_NO_FILE(gettid),
	OF_NO_FILE(prctl),
	OF_NO_FILE(rt_sigaction),
	OF_NO_FILE(rt_sigprocmask),
	OF_NO_FILE(rt_sigreturn),
	OF_NO_FILE(sched_setaffinity),
	OF_NO_FILE(io_submit),
	OF_NO_FILE(io_uring_setup),
	OF_NO_FILE(link),
	OF_NO_FILE(linkat),
	OF_NO_FILE(symlink),
	OF_NO_FILE(symlinkat),
	OF_NO_FILE(chmod),
	OF_NO_FILE(fchmodat),
	OF_NO_FILE(chdir),
	OF_NO_FILE(mkdirat),
	OF_NO_FILE(utimensat),
	OF_NO_FILE(mlockall),
	OF_NO_FILE(munlock),
	OF_NO_FILE(setpriority),
	OF_NO_FILE(ioprio_set),
	OF_NO_FILE(futex),
	OF_NO_FILE(futex_waitv),
	OF_NO_FILE(poll),
	OF_NO_FILE(ppoll),
	OF_NO_FILE(select),
	OF_NO_FILE(pselect6),
	OF_NO_FILE(nanosleep),
	OF_NO_FILE(clock_nanosleep),
	OF_NO_FILE(pause),
	OF_NO_FILE(sched_yield),
	OF_NO_FILE(wait4),
	OF_NO_FILE(waitid),
	OF_NO_FILE(rt_sigsuspend),
	OF_NO_FILE(rt_sigtimedwait),
	OF_NO_FILE(restart_syscall),
	OF_NO_FILE(msgrcv),
	OF_NO_FILE(msgsnd),
	OF_NO_FILE(mq_timedreceive),
	OF_NO_FILE(mq_timedsend),
	OF_NO_FILE(semop),
	OF_NO_FILE(semtimedop),
	OF_NO_FILE(io_getevents),
	OF_NO_FILE(open),
	OF_NO_FILE(openat),
	OF_NO_FILE(openat2),
	OF_NO_FILE(creat),
	OF_NO_FILE(stat),
	OF_NO_FILE(lstat),
	OF_NO_FILE(newfstatat),
	OF_NO_FILE(statx),
	OF_NO_FILE(access),
	OF_NO_FILE(faccessat),
	OF_NO_FILE(readlink),
	OF_NO_FILE(rename),
	OF_NO_FILE(renameat2),
	OF_NO_FILE(unlink),
	OF_NO_FILE(unlinkat),
	OF_NO_FILE(mkdir),
	OF_NO_FILE(rmdir),
	OF_NO_FILE(truncate),
	OF_NO_FILE(sync),
	OF_NO_FILE(mmap),
	OF_NO_FILE(munmap),
	OF_NO_FILE(mremap),
	OF_NO_FILE(mprotect),
	OF_NO_FILE(madvise),
	OF_NO_FILE(msync),
	OF_NO_FILE(mlock),
	OF_NO_FILE(mincore),
	OF_NO_FILE(brk),
	OF_NO_FILE(membarrier),
	OF_NO_FILE(getrandom),
	OF_NO_FILE(process_vm_readv),
	OF_NO_FILE(clone),
	OF_NO_FILE(clone3),
	OF_NO_FILE(fork),
	OF_NO_FILE(vfork),
	OF_NO_FILE(execve),
	OF_NO_FILE(exit),
	OF_NO_FILE(exit_group),
	OF_NO_FILE(ptrace),
	OF_NO_FILE(perf_event_open),
	OF_NO_FILE(bpf),
};

static const struct known *find(int number)
{
	static const struct known none;

	return number >= 0 && (size_t)number < sizeof(known) / sizeof(known[0]) ? &known[number]
										: &none;
}

const char *syscall__name(int number)
{
	const char *selector = find(number)->selector;

	return selector ? selector + sizeof(SYSCALL_PREFIX) - 1 : NULL;
}

const char *syscall__selector(int number)
{
	return find(number)->selector;
}

bool syscall__is_of_file(int number)
{
	return find(number)->is_of_file;
}
