/* Attempts to leave the sandbox, one a name. Exit 0: it worked. Exit 1: it was refused. Exit 2: wrong usage.
 * usage: escape NAME OUTSIDE PID PORT
 * OUTSIDE is a directory outside the sandbox with `victim` (a file), `dir/` (empty), `stream.sock` and `dgram.sock`;
 * PID is a process outside; PORT is a TCP port with a listener. The working directory is writable. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static char victim[512], fresh[512], dir[512], stream_sock[512], dgram_sock[512];
static int pid, port;

struct how { unsigned long long flags, mode, resolve; };

static int is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static int unix_to(int type, const char *path, int abstract) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    memcpy(a.sun_path + abstract, path, n);
    socklen_t len = offsetof(struct sockaddr_un, sun_path) + n + abstract;
    int s = socket(AF_UNIX, type, 0);
    if (s < 0) return 1;
    if (type == SOCK_DGRAM) return sendto(s, "x", 1, 0, (void *)&a, len) < 0;
    return connect(s, (void *)&a, len) != 0;
}

static int tcp(int protocol, int six) {
    int s = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM, protocol);
    if (s < 0) return 1;
    if (six) {
        struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        inet_pton(AF_INET6, "::ffff:127.0.0.1", &a.sin6_addr);
        return connect(s, (void *)&a, sizeof a) != 0;
    }
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return connect(s, (void *)&a, sizeof a) != 0;
}

static int socket_of(int family, int type, int protocol) { return socket(family, type, protocol) < 0; }

static int unix_raw(const char *path, int abstract) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    memcpy(a.sun_path + abstract, path, n);
    int s = socket(AF_UNIX, SOCK_RAW, 0);
    if (s < 0) return 1;
    return sendto(s, "x", 1, 0, (void *)&a, offsetof(struct sockaddr_un, sun_path) + n + abstract) < 0;
}

/* Sends by each of the three calls that take an address. */
static int datagram_by(int way, int type) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strncpy(a.sun_path, dgram_sock, sizeof a.sun_path - 1);
    struct iovec v = {"x", 1};
    struct mmsghdr m = {.msg_hdr = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &v, .msg_iovlen = 1}};
    int s = socket(AF_UNIX, type, 0);
    if (s < 0) return 1;
    if (way == 0) return sendmsg(s, &m.msg_hdr, 0) < 0;
    return sendmmsg(s, &m, 1, 0) < 1;
}

/* Whether a queue or a segment can be had by a number that any other process may know. */
static int by_key(int call) { return syscall(call, 0x746f6f6c, 1, 0600 | 01000) < 0; }

/* A call that the kernel has, and the filter does not know: it exists if it fails with anything else than ENOSYS. */
static int exists(long number) {
    errno = 0;
    return syscall(number, -1, -1, -1, -1, -1, -1) < 0 && errno == ENOSYS;
}

static int copy_exec(void) {
    int in = open("/bin/touch", O_RDONLY), out = memfd_create("t", 0);
    if (in < 0 || out < 0) return 1;
    while (sendfile(out, in, NULL, 1 << 20) > 0) {}
    if (fork() == 0) {
        char *argv[] = {"touch", fresh, NULL}, *envp[] = {NULL};
        fexecve(out, argv, envp);
        _exit(9);
    }
    int status;
    wait(&status);
    return access(fresh, F_OK) != 0;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* A path that another thread changes all the time. */
static char racing[512];
static volatile int racing_on = 1;
static void *flip(void *arg) {
    (void)arg;
    while (racing_on) {
        strcpy(racing, "inside");
        strcpy(racing, victim);
    }
    return NULL;
}

static int race(int (*attempt)(const char *)) {
    struct stat before, after;
    close(open("inside", O_CREAT | O_WRONLY, 0644));
    if (stat(victim, &before)) return 1;
    pthread_t t;
    pthread_create(&t, NULL, flip, NULL);
    for (double end = seconds() + 0.4; seconds() < end;) attempt(racing);
    racing_on = 0;
    pthread_join(t, NULL);
    stat(victim, &after);
    return before.st_mode == after.st_mode && before.st_size == after.st_size && before.st_mtime == after.st_mtime;
}
static int race_chmod(const char *p) { return chmod(p, 0777); }
static int race_open(const char *p) {
    int fd = open(p, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0) close(fd);
    return fd;
}
static int race_utime(const char *p) {
    struct timeval t[2] = {{1, 0}, {1, 0}};
    return utimes(p, t);
}

/* A link that is swapped all the time. */
static void *swap(void *arg) {
    (void)arg;
    while (racing_on) {
        unlink("swapped");
        symlink("inside", "swapped");
        unlink("swapped");
        symlink(victim, "swapped");
    }
    return NULL;
}
static int race_link(void) {
    struct stat before, after;
    close(open("inside", O_CREAT | O_WRONLY, 0644));
    stat(victim, &before);
    pthread_t t;
    pthread_create(&t, NULL, swap, NULL);
    for (double end = seconds() + 0.4; seconds() < end;) {
        chmod("swapped", 0777);
        race_open("swapped");
    }
    racing_on = 0;
    pthread_join(t, NULL);
    stat(victim, &after);
    return before.st_mode == after.st_mode && before.st_size == after.st_size;
}

static int clone_child(void *arg) { (void)arg; return 0; }

static int handle(void) {
    struct { struct file_handle h; unsigned char space[128]; } f;
    int mount_id;
    f.h.handle_bytes = 128;
    if (name_to_handle_at(AT_FDCWD, victim, &f.h, &mount_id, 0)) return 1;
    int root = open("/", O_RDONLY);
    int fd = open_by_handle_at(root, &f.h, O_WRONLY);
    return fd < 0 || write(fd, "x", 1) != 1;
}

static int attempt(const char *name) {
    char text[512];
    int fd;
    struct how how = {O_WRONLY, 0, 0};
    if (is(name, "open")) return open(victim, O_WRONLY) < 0;
    if (is(name, "open-create")) return open(fresh, O_WRONLY | O_CREAT, 0644) < 0;
    if (is(name, "creat")) return creat(fresh, 0644) < 0;
    if (is(name, "open-trunc")) return open(victim, O_RDONLY | O_TRUNC) < 0;
    if (is(name, "openat2")) return syscall(SYS_openat2, AT_FDCWD, victim, &how, sizeof how) < 0;
    if (is(name, "open-dirfd")) {
        sprintf(text, "%s/..", dir);
        return openat(open(text, O_RDONLY), "victim", O_WRONLY) < 0;
    }
    if (is(name, "reopen-path-handle")) {
        fd = open(victim, O_PATH);
        sprintf(text, "/proc/self/fd/%d", fd);
        return open(text, O_WRONLY) < 0;
    }
    if (is(name, "reopen-read-handle")) {
        fd = open(victim, O_RDONLY);
        sprintf(text, "/proc/self/fd/%d", fd);
        return open(text, O_WRONLY) < 0;
    }
    if (is(name, "tmpfile")) return open(dir, O_TMPFILE | O_RDWR, 0600) < 0;
    if (is(name, "by-handle")) return handle();
    if (is(name, "rename-out")) { close(open("x", O_CREAT | O_WRONLY, 0644)); return rename("x", fresh); }
    if (is(name, "rename-in")) return rename(victim, "stolen");
    if (is(name, "exchange")) {
        close(open("x", O_CREAT | O_WRONLY, 0644));
        return syscall(SYS_renameat2, AT_FDCWD, "x", AT_FDCWD, victim, 2) != 0;
    }
    if (is(name, "link-in")) return link(victim, "twin");
    if (is(name, "link-in-follow")) {
        fd = open(victim, O_RDONLY);
        sprintf(text, "/proc/self/fd/%d", fd);
        return linkat(AT_FDCWD, text, AT_FDCWD, "twin2", AT_SYMLINK_FOLLOW);
    }
    if (is(name, "link-out")) { close(open("x", O_CREAT | O_WRONLY, 0644)); return link("x", fresh); }
    if (is(name, "symlink-out")) return symlink("x", fresh);
    if (is(name, "mkdir")) return mkdir(fresh, 0755);
    if (is(name, "rmdir")) return rmdir(dir);
    if (is(name, "unlink")) return unlink(victim);
    if (is(name, "mkfifo")) return mkfifo(fresh, 0600);
    if (is(name, "mknod-device")) return mknod("device", S_IFBLK | 0600, 0x700);
    if (is(name, "mknod-char")) return mknod("device", S_IFCHR | 0600, 0x103);
    if (is(name, "bind-out")) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        strncpy(a.sun_path, fresh, sizeof a.sun_path - 1);
        return bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&a, sizeof a);
    }
    if (is(name, "truncate")) return truncate(victim, 0);
    if (is(name, "chmod")) return chmod(victim, 0777);
    if (is(name, "fchmod")) return fchmod(open(victim, O_RDONLY), 0777);
    if (is(name, "fchmodat2")) return syscall(452, AT_FDCWD, victim, 0777, 0) != 0;
    if (is(name, "chmod-proc-fd")) {
        fd = open(victim, O_RDONLY);
        sprintf(text, "/proc/self/fd/%d", fd);
        return chmod(text, 0777);
    }
    if (is(name, "chown")) return chown(victim, 12345, 12345);
    if (is(name, "lchown")) return lchown(victim, 12345, 12345);
    if (is(name, "fchown")) return fchown(open(victim, O_RDONLY), 12345, 12345);
    if (is(name, "utimes")) { struct timeval t[2] = {{1, 0}, {1, 0}}; return utimes(victim, t); }
    if (is(name, "futimens")) { struct timespec t[2] = {{1, 0}, {1, 0}}; return futimens(open(victim, O_RDONLY), t); }
    if (is(name, "setxattr")) return setxattr(victim, "user.x", "x", 1, 0);
    if (is(name, "setflags")) { long f = FS_NODUMP_FL; return ioctl(open(victim, O_RDONLY), FS_IOC_SETFLAGS, &f); }
    if (is(name, "setuid-file")) return open("su", O_CREAT | O_WRONLY, 04755) < 0;
    if (is(name, "setuid-chmod")) { close(open("su", O_CREAT | O_WRONLY, 0755)); return chmod("su", 04755); }
    if (is(name, "race-chmod")) return race(race_chmod);
    if (is(name, "race-open")) return race(race_open);
    if (is(name, "race-utime")) return race(race_utime);
    if (is(name, "race-link")) return race_link();
    if (is(name, "kill")) return kill(pid, SIGCONT);
    if (is(name, "pidfd-signal")) return syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, pid, 0), SIGCONT, NULL, 0) != 0;
    if (is(name, "ptrace")) return ptrace(PTRACE_SEIZE, pid, 0, 0) != 0;
    if (is(name, "vm-read")) {
        char b[8];
        struct iovec l = {b, 8}, r = {(void *)0x400000, 8};
        return process_vm_readv(pid, &l, 1, &r, 1, 0) != 8 && errno != EFAULT;
    }
    if (is(name, "pidfd-getfd")) return syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, pid, 0), 0, 0) < 0;
    if (is(name, "proc-mem")) { sprintf(text, "/proc/%d/mem", pid); return open(text, O_RDWR) < 0; }
    if (is(name, "proc-environ")) { sprintf(text, "/proc/%d/environ", pid); fd = open(text, O_RDONLY); return fd < 0 || read(fd, text, 8) <= 0; }
    if (is(name, "proc-root")) { sprintf(text, "/proc/%d/root%s", pid, victim); return open(text, O_WRONLY) < 0; }
    if (is(name, "proc-fd")) { char to[64]; sprintf(text, "/proc/%d/fd/0", pid); return readlink(text, to, sizeof to) < 0; }
    if (is(name, "prlimit")) { struct rlimit l = {0, 0}; return prlimit(pid, RLIMIT_CORE, &l, NULL); }
    if (is(name, "kcmp")) return syscall(SYS_kcmp, getpid(), pid, 1, 0, 0) < 0;
    if (is(name, "mount")) return mount("none", "m", "tmpfs", 0, "") && (mkdir("m", 0755), mount("none", "m", "tmpfs", 0, ""));
    if (is(name, "bind-mount")) { mkdir("m", 0755); return mount(dir, "m", NULL, MS_BIND, NULL); }
    if (is(name, "umount")) return umount2("/proc", MNT_EXPIRE) && errno != EAGAIN;
    if (is(name, "chroot")) return chroot(".");
    if (is(name, "fsopen")) return syscall(SYS_fsopen, "tmpfs", 0) < 0;
    if (is(name, "open-tree")) return syscall(SYS_open_tree, AT_FDCWD, "/", 1) < 0;
    if (is(name, "unshare-user")) return unshare(CLONE_NEWUSER);
    if (is(name, "unshare-mount")) return unshare(CLONE_NEWNS);
    if (is(name, "unshare-net")) return unshare(CLONE_NEWNET);
    if (is(name, "clone-user")) {
        static char stack[65536];
        return clone(clone_child, stack + sizeof stack, CLONE_NEWUSER | SIGCHLD, NULL) < 0;
    }
    if (is(name, "clone3-user")) {
        unsigned long long args[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
        long child = syscall(SYS_clone3, args, sizeof args);
        if (child == 0) _exit(0);
        return child < 0;
    }
    if (is(name, "setns")) { sprintf(text, "/proc/%d/ns/mnt", getpid()); return setns(open(text, O_RDONLY), 0); }
    if (is(name, "io-uring")) { char params[256] = {0}; return syscall(SYS_io_uring_setup, 4, params) < 0; }
    if (is(name, "tcp")) return tcp(0, 0);
    if (is(name, "tcp6")) return tcp(0, 1);
    if (is(name, "mptcp")) return tcp(262, 0);
    if (is(name, "tcp-fastopen")) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        return sendto(socket(AF_INET, SOCK_STREAM, 0), "x", 1, MSG_FASTOPEN, (void *)&a, sizeof a) < 0;
    }
    if (is(name, "tcp-listen-unbound")) {
        struct sockaddr_in a = {0};
        socklen_t n = sizeof a;
        int s = socket(AF_INET, SOCK_STREAM, 0);
        if (listen(s, 1) || getsockname(s, (void *)&a, &n)) return 1;
        return a.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    }
    if (is(name, "tcp6-listen-unbound")) {
        struct sockaddr_in6 a = {0};
        socklen_t n = sizeof a;
        int s = socket(AF_INET6, SOCK_STREAM, 0);
        if (listen(s, 1) || getsockname(s, (void *)&a, &n)) return 1;
        return IN6_IS_ADDR_LOOPBACK(&a.sin6_addr);
    }
    if (is(name, "tcp-listen-dissolved")) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct sockaddr none = {.sa_family = AF_UNSPEC};
        struct sockaddr_in a = {0};
        socklen_t n = sizeof a;
        int s = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(s, (void *)&to, sizeof to) || connect(s, &none, sizeof none)) return 1;
        if (listen(s, 1) || getsockname(s, (void *)&a, &n)) return 1;
        return a.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    }
    if (is(name, "tcp-listen")) return listen(socket(AF_INET, SOCK_STREAM, 0), 1);
    if (is(name, "udp")) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        return sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (void *)&a, sizeof a) != 1;
    }
    if (is(name, "udp6")) return socket_of(AF_INET6, SOCK_DGRAM, 0);
    if (is(name, "raw")) return socket_of(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    if (is(name, "ping")) return socket_of(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
    if (is(name, "packet")) return socket_of(AF_PACKET, SOCK_RAW, 0);
    if (is(name, "netlink-uevent")) return socket_of(AF_NETLINK, SOCK_RAW, 15);
    if (is(name, "netlink-audit")) return socket_of(AF_NETLINK, SOCK_RAW, 9);
    if (is(name, "udplite")) return socket_of(AF_INET, SOCK_DGRAM, 136);
    if (is(name, "sctp")) return socket_of(AF_INET, SOCK_STREAM, 132);
    if (is(name, "sctp-packet")) return socket_of(AF_INET, SOCK_SEQPACKET, 132);
    if (is(name, "smc")) return socket_of(43, SOCK_STREAM, 0);
    if (is(name, "smc-inet")) return socket_of(AF_INET, SOCK_STREAM, 256);
    if (is(name, "mptcp6")) return socket_of(AF_INET6, SOCK_STREAM, 262);
    if (is(name, "raw6")) return socket_of(AF_INET6, SOCK_RAW, 58);
    if (is(name, "ping6")) return socket_of(AF_INET6, SOCK_DGRAM, 58);
    if (is(name, "packet-dgram")) return socket_of(AF_PACKET, SOCK_DGRAM, 0);
    if (is(name, "netlink-generic")) return socket_of(AF_NETLINK, SOCK_RAW, 16);
    if (is(name, "netlink-netfilter")) return socket_of(AF_NETLINK, SOCK_RAW, 12);
    if (is(name, "netlink-diag")) return socket_of(AF_NETLINK, SOCK_DGRAM, 4);
    if (is(name, "netlink-connector")) return socket_of(AF_NETLINK, SOCK_DGRAM, 11);
    if (is(name, "netlink-selinux")) return socket_of(AF_NETLINK, SOCK_RAW, 7);
    if (is(name, "tipc")) return socket_of(30, SOCK_SEQPACKET, 0);
    if (is(name, "bluetooth")) return socket_of(31, SOCK_RAW, 1);
    if (is(name, "can")) return socket_of(29, SOCK_RAW, 1);
    if (is(name, "xdp")) return socket_of(44, SOCK_RAW, 0);
    if (is(name, "kcm")) return socket_of(41, SOCK_DGRAM, 0);
    if (is(name, "qipcrtr")) return socket_of(42, SOCK_DGRAM, 0);
    if (is(name, "vsock-dgram")) return socket_of(40, SOCK_DGRAM, 0);
    if (is(name, "unix-raw")) return unix_raw(dgram_sock, 0);
    if (is(name, "unix-raw-flags")) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        strncpy(a.sun_path, dgram_sock, sizeof a.sun_path - 1);
        return sendto(socket(AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 1), "x", 1, 0, (void *)&a, sizeof a) < 0;
    }
    if (is(name, "unix-raw-pair")) {
        int pair[2];
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        strncpy(a.sun_path, dgram_sock, sizeof a.sun_path - 1);
        if (socketpair(AF_UNIX, SOCK_RAW, 0, pair)) return 1;
        return sendto(pair[0], "x", 1, 0, (void *)&a, sizeof a) < 0;
    }
    if (is(name, "unix-raw-sendmsg")) return datagram_by(0, SOCK_RAW);
    if (is(name, "unix-dgram-sendmsg")) return datagram_by(0, SOCK_DGRAM);
    if (is(name, "unix-dgram-sendmmsg")) return datagram_by(1, SOCK_DGRAM);
    if (is(name, "unix-seqpacket")) { strcat(stream_sock, ".seq"); return unix_to(SOCK_SEQPACKET, stream_sock, 0); }
    if (is(name, "unix-dgram-abstract")) { sprintf(text, "toolgate-test-dgram-%d", pid); return unix_to(SOCK_DGRAM, text, 1); }
    if (is(name, "unix-raw-abstract")) { sprintf(text, "toolgate-test-dgram-%d", pid); return unix_raw(text, 1); }
    if (is(name, "sysv-memory")) return by_key(SYS_shmget);
    if (is(name, "sysv-semaphore")) return by_key(SYS_semget);
    if (is(name, "sysv-queue")) return syscall(SYS_msgget, 0x746f6f6c, 0600 | 01000) < 0;
    if (is(name, "posix-queue")) return syscall(SYS_mq_open, "toolgate-test", O_CREAT | O_RDWR, 0600, NULL) < 0;
    if (is(name, "memfd-secret")) return exists(447) ;
    if (is(name, "statmount")) return exists(457);
    if (is(name, "listmount")) return exists(458);
    if (is(name, "open-tree-attr")) return syscall(467, AT_FDCWD, "/", 1, NULL, 0) < 0;
    if (is(name, "file-setattr")) { struct { long a[3]; } f = {{0}}; return syscall(469, AT_FDCWD, victim, &f, sizeof f, 0) != 0; }
    if (is(name, "setxattrat")) return syscall(463, AT_FDCWD, victim, 0, "user.x", "x", 16) != 0 && errno != EINVAL;
    if (is(name, "quotactl-fd")) return syscall(443, open("/", O_RDONLY), -1, 0, 0) < 0 && errno != EINVAL;
    if (is(name, "future-470")) return exists(470);
    if (is(name, "future-500")) return exists(500);
    if (is(name, "future-1000")) return exists(1000);
    if (is(name, "unshare-time")) return unshare(0x80);
    // Of a user who has no process, so that none is changed outside the sandbox: the kernel looks for one in vain.
    if (is(name, "priority-user")) return setpriority(PRIO_USER, 4000000001u, 0) != 0 && errno != ESRCH;
    if (is(name, "ioprio-user")) return syscall(SYS_ioprio_set, 3, 4000000001u, 2 << 13 | 4) != 0 && errno != ESRCH;
    if (is(name, "setversion")) { int v = 7; return ioctl(open(victim, O_RDONLY), _IOW('v', 2, long), &v); }
    if (is(name, "vsock")) return socket_of(40, SOCK_STREAM, 0);
    if (is(name, "alg")) return socket_of(38, SOCK_SEQPACKET, 0);
    if (is(name, "unix-stream")) return unix_to(SOCK_STREAM, stream_sock, 0);
    if (is(name, "unix-dgram")) return unix_to(SOCK_DGRAM, dgram_sock, 0);
    if (is(name, "unix-dgram-pair")) {
        int pair[2];
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        strncpy(a.sun_path, dgram_sock, sizeof a.sun_path - 1);
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)) return 1;
        return sendto(pair[0], "x", 1, 0, (void *)&a, sizeof a) < 0;
    }
    if (is(name, "unix-abstract")) { sprintf(text, "toolgate-test-%d", pid); return unix_to(SOCK_STREAM, text, 1); }
    if (is(name, "unix-link")) { unlink("s"); symlink(stream_sock, "s"); return unix_to(SOCK_STREAM, "s", 0); }
    if (is(name, "memfd-exec")) return copy_exec();
    if (is(name, "add-key")) return syscall(SYS_add_key, "user", "x", "x", 1, -3) < 0;
    if (is(name, "keyctl")) return syscall(SYS_keyctl, 0, -3, 0) < 0;
    if (is(name, "bpf")) { char attr[128] = {2, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1}; return syscall(SYS_bpf, 0, attr, sizeof attr) < 0; }
    if (is(name, "perf")) { unsigned attr[32] = {1, 128, 0}; return syscall(SYS_perf_event_open, attr, 0, -1, -1, 0) < 0; }
    if (is(name, "userfaultfd")) return syscall(SYS_userfaultfd, 0) < 0;
    if (is(name, "module")) return syscall(SYS_init_module, "", 0, "") != 0 && errno != ENOEXEC;
    if (is(name, "fanotify")) return syscall(SYS_fanotify_init, 0, O_RDONLY) < 0;
    if (is(name, "syslog")) return syscall(SYS_syslog, 10, 0, 0) < 0;
    if (is(name, "hostname")) { gethostname(text, sizeof text); return sethostname(text, strlen(text)); }
    if (is(name, "new-privs")) return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
#ifdef __x86_64__
    if (is(name, "iopl")) return syscall(SYS_iopl, 3) != 0;
    if (is(name, "x32")) return syscall(0x40000000 + SYS_open, victim, O_WRONLY) < 0;
    if (is(name, "int80")) {
        long r;
        /* i386 open: the path must lie below 4 GiB */
        char *low = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        strcpy(low, victim);
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(5), "b"(low), "c"(O_WRONLY), "d"(0) : "memory");
        return r < 0;
    }
#endif
    return -1;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    sprintf(victim, "%s/victim", argv[2]);
    sprintf(fresh, "%s/fresh", argv[2]);
    sprintf(dir, "%s/dir", argv[2]);
    sprintf(stream_sock, "%s/stream.sock", argv[2]);
    sprintf(dgram_sock, "%s/dgram.sock", argv[2]);
    pid = atoi(argv[3]);
    port = atoi(argv[4]);
    int r = attempt(argv[1]);
    if (r == -1 && errno == 0) return 2;
    return r ? 1 : 0;
}
