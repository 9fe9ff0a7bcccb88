//! The table: which system calls a sandboxed command may not make, and which the warden decides.

use super::Net;
use super::filter::{Act, Check, Rule};
use libc::c_long;

/// What the table depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) net: Net,
    /// Somebody is there to decide.
    pub(super) warden: bool,
    /// Reading must be decided as well.
    pub(super) reads: bool,
    /// Only some programs may be executed.
    pub(super) programs: bool,
}

/// Calls that no command needs and that reach beyond it: other processes' memory, the kernel's own tables, mounts,
/// keys, clocks, and ways to files and sockets that go around the checks.
const NEVER: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
];

/// Extended attributes change files that Landlock does not guard. Programs take "not supported" as an answer.
const ATTRIBUTES: &[c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // setxattrat, removexattrat and file_setattr: too new for a name.
    463,
    466,
    469,
];

/// Changes of names and contents: Landlock decides, the warden fills in and reports.
const CHANGES: &[c_long] = &[
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mknodat,
    libc::SYS_truncate,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_renameat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
];

/// Changes of owner, mode and times: Landlock does not guard them at all, so the warden makes them itself.
const METADATA: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// Everything that makes an open a change.
pub(super) const OPENS_TO_CHANGE: i32 = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;

const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Requests to devices and files that push input into a terminal or change a file's flags.
const REQUESTS: &[u32] = &[
    0x5412,      // TIOCSTI
    0x541c,      // TIOCLINUX
    0x4008_6602, // FS_IOC_SETFLAGS
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4004_7602, // FS_IOC_SETVERSION
];

const TYPE: u32 = 0xf;

fn rule(call: c_long, checks: &[Check], act: Act) -> Rule {
    Rule { call, checks: checks.to_vec(), act }
}

fn bits(value: i32) -> u32 {
    value.cast_unsigned()
}

/// The rules for a setting, in the order in which they are tried.
pub(super) fn rules(setting: Setting) -> Vec<Rule> {
    let no = Act::Fail(libc::EPERM);
    let mut out = Vec::new();
    out.extend(NEVER.iter().map(|call| rule(*call, &[], no)));
    out.extend(ATTRIBUTES.iter().map(|call| rule(*call, &[], Act::Fail(libc::EOPNOTSUPP))));
    out.push(rule(libc::SYS_unshare, &[Check::Any(0, bits(NAMESPACES))], no));
    out.push(rule(libc::SYS_clone, &[Check::Any(0, bits(NAMESPACES))], no));
    // Its flags are out of sight; the C library then takes the older call.
    out.push(rule(libc::SYS_clone3, &[], Act::Fail(libc::ENOSYS)));
    out.push(rule(libc::SYS_prlimit64, &[Check::Not(0, 0)], no));
    out.extend(REQUESTS.iter().map(|request| rule(libc::SYS_ioctl, &[Check::Is(1, *request)], no)));
    programs(setting, &mut out);
    files(setting, &mut out);
    sockets(setting, &mut out);
    out
}

fn programs(setting: Setting, out: &mut Vec<Rule>) {
    if !setting.programs {
        return;
    }
    // A program in memory has no path that Landlock could refuse.
    out.push(rule(libc::SYS_memfd_create, &[], Act::Fail(libc::ENOSYS)));
    out.push(rule(libc::SYS_memfd_secret, &[], Act::Fail(libc::ENOSYS)));
    if setting.warden {
        out.extend([libc::SYS_execve, libc::SYS_execveat].map(|call| rule(call, &[], Act::Ask)));
    } else {
        out.push(rule(libc::SYS_execveat, &[], Act::Fail(libc::ENOSYS)));
    }
}

fn files(setting: Setting, out: &mut Vec<Rule>) {
    // A new program that takes on its owner's rights would carry them out of the box.
    let setuid = |flags: u8| [Check::Any(flags, bits(libc::O_CREAT)), Check::Any(flags + 1, 0o4000)];
    out.push(rule(libc::SYS_openat, &setuid(2), Act::Fail(libc::EPERM)));
    out.push(rule(libc::SYS_mknodat, &[Check::Any(2, 0o4000)], Act::Fail(libc::EPERM)));
    #[cfg(target_arch = "x86_64")]
    out.extend([
        rule(libc::SYS_open, &setuid(1), Act::Fail(libc::EPERM)),
        rule(libc::SYS_creat, &[Check::Any(1, 0o4000)], Act::Fail(libc::EPERM)),
        rule(libc::SYS_mknod, &[Check::Any(1, 0o4000)], Act::Fail(libc::EPERM)),
    ]);
    if !setting.warden {
        // With a warden these are its business.
        for (call, mode) in [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2)] {
            out.push(rule(call, &[Check::Any(mode, 0o4000)], Act::Fail(libc::EPERM)));
        }
        #[cfg(target_arch = "x86_64")]
        out.push(rule(libc::SYS_chmod, &[Check::Any(1, 0o4000)], Act::Fail(libc::EPERM)));
        return;
    }
    out.extend(CHANGES.iter().chain(METADATA).map(|call| rule(*call, &[], Act::Ask)));
    let change = bits(OPENS_TO_CHANGE);
    let mut opening = |call: c_long, flags: u8| {
        // A handle that cannot be read is no reading.
        out.push(rule(call, &[Check::Any(flags, bits(libc::O_PATH))], Act::Pass));
        let checks = [Check::Any(flags, change)];
        out.push(rule(call, if setting.reads { &[] } else { &checks }, Act::Ask));
    };
    opening(libc::SYS_openat, 2);
    #[cfg(target_arch = "x86_64")]
    opening(libc::SYS_open, 1);
    // Its flags are out of sight as well.
    out.push(rule(libc::SYS_openat2, &[], Act::Fail(libc::ENOSYS)));
}

fn sockets(setting: Setting, out: &mut Vec<Rule>) {
    let family = |family: i32| Check::Is(0, bits(family));
    let kind = |kind: i32| Check::Masked(1, TYPE, bits(kind));
    let denied = if setting.warden { Act::Ask } else { Act::Fail(libc::EACCES) };
    let socket = libc::SYS_socket;
    // A datagram can name any receiver without a connect.
    out.push(rule(socket, &[family(libc::AF_UNIX), kind(libc::SOCK_DGRAM)], Act::Fail(libc::EACCES)));
    out.push(rule(libc::SYS_socketpair, &[kind(libc::SOCK_DGRAM)], Act::Fail(libc::EACCES)));
    out.push(rule(socket, &[family(libc::AF_UNIX)], Act::Pass));
    // Looking at interfaces and routes; changing them needs a privilege that was dropped.
    let route = Check::Is(2, bits(libc::NETLINK_ROUTE));
    out.push(rule(socket, &[family(libc::AF_NETLINK), route], Act::Pass));
    for internet in [libc::AF_INET, libc::AF_INET6] {
        match setting.net {
            Net::None => out.push(rule(socket, &[family(internet)], denied)),
            Net::Loopback(_) => {
                for protocol in [0, libc::IPPROTO_TCP] {
                    let checks = [family(internet), kind(libc::SOCK_STREAM), Check::Is(2, bits(protocol))];
                    out.push(rule(socket, &checks, Act::Pass));
                }
                out.push(rule(socket, &[family(internet)], denied));
            }
            Net::Full => {
                out.push(rule(socket, &[family(internet), kind(libc::SOCK_RAW)], Act::Fail(libc::EPERM)));
                out.push(rule(socket, &[family(internet)], Act::Pass));
            }
        }
    }
    out.push(rule(socket, &[], Act::Fail(libc::EAFNOSUPPORT)));
    out.push(rule(libc::SYS_connect, &[], denied));
    match setting.net {
        Net::None | Net::Full => {}
        Net::Loopback(_) => {
            out.push(rule(libc::SYS_bind, &[], denied));
            // Sending that connects on the way.
            let fast = bits(libc::MSG_FASTOPEN);
            for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
                out.push(rule(call, &[Check::Any(flags, fast)], Act::Fail(libc::EOPNOTSUPP)));
            }
        }
    }
}
