//! Which system calls a sandboxed command may make, and which the seccomp notification handler decides.
//!
//! A system call without a rule fails with `ENOSYS`. Rules with another error exist where programs handle that error
//! better.

mod allowed;
mod calls;

pub(super) use calls::WRITE_OPEN_FLAGS;

use super::SandboxNetworkAccess;
use super::seccomp_filter::{
    BpfProgram, SeccompAction, SeccompArgCheck, SeccompRule, assemble_seccomp_filter,
};
use calls::{
    ALLOWED_UNSHARE_FLAGS, CLONE_IOCTLS, FCHMODAT2, FILE_CHANGE_CALLS, FORBIDDEN_CALLS,
    FORBIDDEN_IOCTL_TYPES, FORBIDDEN_IOCTLS, IOCTL_TYPE_MASK, IOPRIO_USER_CODE, METADATA_CALLS,
    NAMESPACE_FLAGS, PRIO_USER_CODE, SOCKET_TYPE_MASK, XATTR_CALLS,
};
use libc::c_long;
use std::sync::{Mutex, PoisonError};

/// What the rules depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyscallRuleOptions {
    /// Which sockets are allowed.
    pub(super) net: SandboxNetworkAccess,
    /// A seccomp notification handler runs.
    pub(super) notify: bool,
    /// The handler decides about opening files for reading as well.
    pub(super) reads: bool,
    /// Only some programs may be executed.
    pub(super) programs: bool,
}

fn make_rule(call: c_long, checks: &[SeccompArgCheck], act: SeccompAction) -> SeccompRule {
    SeccompRule { call, checks: checks.to_vec(), action: act }
}

fn bits(value: i32) -> u32 {
    value.cast_unsigned()
}

/// The assembled filter for some options. Cached, because assembling it takes longer than copying it.
pub(super) fn build_program(options: SyscallRuleOptions) -> BpfProgram {
    static CACHE: Mutex<Vec<(SyscallRuleOptions, BpfProgram)>> = Mutex::new(Vec::new());
    // The filter does not depend on the port.
    let net = match options.net {
        SandboxNetworkAccess::Loopback(Some(_)) => SandboxNetworkAccess::Loopback(Some(0)),
        net @ (SandboxNetworkAccess::None
        | SandboxNetworkAccess::Loopback(None)
        | SandboxNetworkAccess::Full) => net,
    };
    let options = SyscallRuleOptions { net, ..options };
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, program)) = cache.iter().find(|(known, _)| *known == options) {
        return program.clone();
    }
    let program = assemble_seccomp_filter(&build_rules(options));
    cache.push((options, program.clone()));
    program
}

/// The rules for some options, in the order in which they are tried.
pub(super) fn build_rules(options: SyscallRuleOptions) -> Vec<SeccompRule> {
    let no = SeccompAction::FailWith(libc::EPERM);
    let mut out = Vec::new();
    out.extend(FORBIDDEN_CALLS.iter().map(|call| make_rule(*call, &[], no)));
    out.extend(
        XATTR_CALLS.iter().map(|call| make_rule(*call, &[], SeccompAction::FailWith(libc::EOPNOTSUPP))),
    );
    out.push(make_rule(libc::SYS_unshare, &[SeccompArgCheck::Any(0, bits(!ALLOWED_UNSHARE_FLAGS))], no));
    out.push(make_rule(libc::SYS_clone, &[SeccompArgCheck::Any(0, bits(NAMESPACE_FLAGS))], no));
    // The filter cannot see its flags, which are in memory; the C library then falls back to `clone`.
    out.push(make_rule(libc::SYS_clone3, &[], SeccompAction::FailWith(libc::ENOSYS)));
    out.push(make_rule(libc::SYS_prlimit64, &[SeccompArgCheck::Not(0, 0)], no));
    out.push(make_rule(libc::SYS_setpriority, &[SeccompArgCheck::Is(0, PRIO_USER_CODE)], no));
    out.push(make_rule(libc::SYS_ioprio_set, &[SeccompArgCheck::Is(0, IOPRIO_USER_CODE)], no));
    add_ioctl_rules(&mut out);
    add_program_rules(options, &mut out);
    add_file_rules(options, &mut out);
    add_socket_rules(options, &mut out);
    // The first match decides, so these do not allow what a rule above passes to the seccomp notification handler.
    let rest =
        allowed::ALLOWED.iter().chain(allowed::ALLOWED_HERE).chain(FILE_CHANGE_CALLS).chain(METADATA_CALLS);
    out.extend(rest.map(|call| make_rule(*call, &[], SeccompAction::Allow)));
    out
}

/// Rules for commands that may execute only some programs.
fn add_program_rules(options: SyscallRuleOptions, out: &mut Vec<SeccompRule>) {
    if !options.programs {
        return;
    }
    // A program in a memfd has no path that Landlock could refuse.
    out.push(make_rule(libc::SYS_memfd_create, &[], SeccompAction::FailWith(libc::ENOSYS)));
    out.push(make_rule(libc::SYS_memfd_secret, &[], SeccompAction::FailWith(libc::ENOSYS)));
    if options.notify {
        out.extend(
            [libc::SYS_execve, libc::SYS_execveat].map(|call| make_rule(call, &[], SeccompAction::Notify)),
        );
    } else {
        out.push(make_rule(libc::SYS_execveat, &[], SeccompAction::FailWith(libc::ENOSYS)));
    }
}

/// Rules by the request of `ioctl`.
fn add_ioctl_rules(out: &mut Vec<SeccompRule>) {
    let request = |request: u32| SeccompArgCheck::Is(1, request);
    out.extend(
        CLONE_IOCTLS.iter().map(|clone| make_rule(libc::SYS_ioctl, &[request(*clone)], SeccompAction::Allow)),
    );
    out.extend(
        FORBIDDEN_IOCTLS
            .iter()
            .map(|call| make_rule(libc::SYS_ioctl, &[request(*call)], SeccompAction::FailWith(libc::EPERM))),
    );
    let kinds = FORBIDDEN_IOCTL_TYPES.iter().map(|kind| SeccompArgCheck::Masked(1, IOCTL_TYPE_MASK, *kind));
    out.extend(kinds.map(|kind| make_rule(libc::SYS_ioctl, &[kind], SeccompAction::FailWith(libc::ENOTTY))));
}

/// Rules for opening and changing files. Without a seccomp notification handler, Landlock alone decides.
fn add_file_rules(options: SyscallRuleOptions, out: &mut Vec<SeccompRule>) {
    // A new set-user-ID program would take the user's rights outside the sandbox.
    let setuid = |flags: u8| {
        [SeccompArgCheck::Any(flags, bits(libc::O_CREAT)), SeccompArgCheck::Any(flags + 1, 0o4000)]
    };
    out.push(make_rule(libc::SYS_openat, &setuid(2), SeccompAction::FailWith(libc::EPERM)));
    out.push(make_rule(
        libc::SYS_mknodat,
        &[SeccompArgCheck::Any(2, 0o4000)],
        SeccompAction::FailWith(libc::EPERM),
    ));
    #[cfg(target_arch = "x86_64")]
    out.extend([
        make_rule(libc::SYS_open, &setuid(1), SeccompAction::FailWith(libc::EPERM)),
        make_rule(libc::SYS_creat, &[SeccompArgCheck::Any(1, 0o4000)], SeccompAction::FailWith(libc::EPERM)),
        make_rule(libc::SYS_mknod, &[SeccompArgCheck::Any(1, 0o4000)], SeccompAction::FailWith(libc::EPERM)),
    ]);
    // The filter cannot see its flags either; the C library then falls back to `openat`.
    out.push(make_rule(libc::SYS_openat2, &[], SeccompAction::FailWith(libc::ENOSYS)));
    if !options.notify {
        // With a handler, the handler refuses the set-user-ID bit.
        for (call, mode) in [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)] {
            out.push(make_rule(
                call,
                &[SeccompArgCheck::Any(mode, 0o4000)],
                SeccompAction::FailWith(libc::EPERM),
            ));
        }
        #[cfg(target_arch = "x86_64")]
        out.push(make_rule(
            libc::SYS_chmod,
            &[SeccompArgCheck::Any(1, 0o4000)],
            SeccompAction::FailWith(libc::EPERM),
        ));
        return;
    }
    out.extend(
        FILE_CHANGE_CALLS
            .iter()
            .chain(METADATA_CALLS)
            .map(|call| make_rule(*call, &[], SeccompAction::Notify)),
    );
    let change = bits(WRITE_OPEN_FLAGS);
    let mut opening = |call: c_long, flags: u8| {
        // A file descriptor with O_PATH cannot be read.
        out.push(make_rule(call, &[SeccompArgCheck::Any(flags, bits(libc::O_PATH))], SeccompAction::Allow));
        let checks = [SeccompArgCheck::Any(flags, change)];
        out.push(make_rule(call, if options.reads { &[] } else { &checks }, SeccompAction::Notify));
    };
    opening(libc::SYS_openat, 2);
    #[cfg(target_arch = "x86_64")]
    opening(libc::SYS_open, 1);
}

/// A condition on the first argument of `socket`.
fn socket_family(family: i32) -> SeccompArgCheck {
    SeccompArgCheck::Is(0, bits(family))
}

/// A condition on the second argument of `socket`, without its flags.
fn socket_type(kind: i32) -> SeccompArgCheck {
    SeccompArgCheck::Masked(1, SOCKET_TYPE_MASK, bits(kind))
}

/// A condition on the third argument of `socket`.
fn socket_protocol(protocol: i32) -> SeccompArgCheck {
    SeccompArgCheck::Is(2, bits(protocol))
}

/// Rules for sockets. Everything that is not allowed here fails with an error that programs expect.
fn add_socket_rules(options: SyscallRuleOptions, out: &mut Vec<SeccompRule>) {
    let denied = if options.notify { SeccompAction::Notify } else { SeccompAction::FailWith(libc::EACCES) };
    let socket = libc::SYS_socket;
    // Only types that must connect before they send: a datagram can name any receiver, and the kernel makes a datagram
    // socket of a raw one of this family.
    for call in [socket, libc::SYS_socketpair] {
        for connected in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
            let checks = [socket_family(libc::AF_UNIX), socket_type(connected)];
            out.push(make_rule(call, &checks, SeccompAction::Allow));
        }
        out.push(make_rule(call, &[socket_family(libc::AF_UNIX)], SeccompAction::FailWith(libc::EACCES)));
    }
    // Reading interfaces and routes; changing them needs a capability that was dropped.
    for kind in [libc::SOCK_RAW, libc::SOCK_DGRAM] {
        let checks =
            [socket_family(libc::AF_NETLINK), socket_type(kind), socket_protocol(libc::NETLINK_ROUTE)];
        out.push(make_rule(socket, &checks, SeccompAction::Allow));
    }
    add_internet_rules(options.net, (libc::AF_INET, libc::IPPROTO_ICMP), denied, out);
    add_internet_rules(options.net, (libc::AF_INET6, libc::IPPROTO_ICMPV6), denied, out);
    out.push(make_rule(socket, &[], SeccompAction::FailWith(libc::EAFNOSUPPORT)));
    out.push(make_rule(libc::SYS_socketpair, &[], SeccompAction::FailWith(libc::EAFNOSUPPORT)));
    out.push(make_rule(libc::SYS_connect, &[], denied));
    match options.net {
        SandboxNetworkAccess::None | SandboxNetworkAccess::Full => {}
        SandboxNetworkAccess::Loopback(_) => {
            out.push(make_rule(libc::SYS_bind, &[], denied));
            // `listen` on a socket that was never bound gets a port on every interface.
            out.push(make_rule(libc::SYS_listen, &[], denied));
            // TCP Fast Open connects while it sends.
            for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
                let checks = [SeccompArgCheck::Any(flags, bits(libc::MSG_FASTOPEN))];
                out.push(make_rule(call, &checks, SeccompAction::FailWith(libc::EOPNOTSUPP)));
            }
        }
    }
}

/// The rules for sockets of one internet family, of which `echo` is the protocol of `ping`.
fn add_internet_rules(
    net: SandboxNetworkAccess,
    (family, echo): (i32, i32),
    denied: SeccompAction,
    out: &mut Vec<SeccompRule>,
) {
    let socket = libc::SYS_socket;
    let mut allow = |kind: i32, protocols: &[i32]| {
        let checks = |protocol: &i32| [socket_family(family), socket_type(kind), socket_protocol(*protocol)];
        let rules =
            protocols.iter().map(|protocol| make_rule(socket, &checks(protocol), SeccompAction::Allow));
        out.extend(rules);
    };
    // Landlock and the handler know TCP. Other stream protocols (MPTCP, SCTP, SMC) would bypass them, and programs that
    // try one fall back to TCP.
    match net {
        SandboxNetworkAccess::None => {}
        SandboxNetworkAccess::Loopback(_) => allow(libc::SOCK_STREAM, &[0, libc::IPPROTO_TCP]),
        SandboxNetworkAccess::Full => {
            allow(libc::SOCK_STREAM, &[0, libc::IPPROTO_TCP]);
            allow(libc::SOCK_DGRAM, &[0, libc::IPPROTO_UDP, echo]);
        }
    }
    let mut refuse = |kind: Option<i32>, action: SeccompAction| {
        let checks: Vec<SeccompArgCheck> =
            [socket_family(family)].into_iter().chain(kind.map(socket_type)).collect();
        out.push(make_rule(socket, &checks, action));
    };
    match net {
        SandboxNetworkAccess::None => refuse(None, denied),
        SandboxNetworkAccess::Loopback(_) => {
            refuse(Some(libc::SOCK_STREAM), SeccompAction::FailWith(libc::EPROTONOSUPPORT));
            refuse(None, denied);
        }
        SandboxNetworkAccess::Full => {
            refuse(Some(libc::SOCK_RAW), SeccompAction::FailWith(libc::EPERM));
            refuse(None, SeccompAction::FailWith(libc::EPROTONOSUPPORT));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::seccomp_filter::ARCH_CODE;
    use super::super::seccomp_filter::tests::{oracle, run};
    use super::*;
    use proptest::prelude::*;

    const NETS: [SandboxNetworkAccess; 4] = [
        SandboxNetworkAccess::None,
        SandboxNetworkAccess::Loopback(None),
        SandboxNetworkAccess::Loopback(Some(8080)),
        SandboxNetworkAccess::Full,
    ];

    fn all_options() -> Vec<SyscallRuleOptions> {
        let flags = [(false, false), (true, false), (true, true)];
        let each =
            |net| flags.map(|(notify, reads)| SyscallRuleOptions { net, notify, reads, programs: false });
        NETS.into_iter().flat_map(each).collect()
    }

    fn fails(errno: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
    }

    /// The result for a system call by its number alone, computed without the rules; `None` if its arguments matter.
    fn by_number(number: c_long, options: SyscallRuleOptions) -> Option<u32> {
        let unsupported = [libc::SYS_clone3, libc::SYS_openat2];
        let depends = [
            libc::SYS_unshare,
            libc::SYS_clone,
            libc::SYS_prlimit64,
            libc::SYS_setpriority,
            libc::SYS_ioprio_set,
            libc::SYS_ioctl,
            libc::SYS_openat,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod,
            libc::SYS_mknodat,
            libc::SYS_fchmod,
            libc::SYS_fchmodat,
            FCHMODAT2,
            libc::SYS_socket,
            libc::SYS_socketpair,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_listen,
            libc::SYS_sendto,
            libc::SYS_sendmsg,
            libc::SYS_sendmmsg,
        ];
        let within = |list: &[c_long]| list.contains(&number);
        if within(&depends) {
            None
        } else if within(FORBIDDEN_CALLS) {
            Some(fails(libc::EPERM))
        } else if within(XATTR_CALLS) {
            Some(fails(libc::EOPNOTSUPP))
        } else if options.notify && (within(FILE_CHANGE_CALLS) || within(METADATA_CALLS)) {
            Some(libc::SECCOMP_RET_USER_NOTIF)
        } else if !within(&unsupported)
            && [allowed::ALLOWED, allowed::ALLOWED_HERE, FILE_CHANGE_CALLS, METADATA_CALLS]
                .into_iter()
                .any(within)
        {
            Some(libc::SECCOMP_RET_ALLOW)
        } else {
            Some(fails(libc::ENOSYS))
        }
    }

    #[test]
    fn every_number_has_the_answer_of_the_lists() {
        for options in all_options() {
            let rules = build_rules(options);
            let program = assemble_seccomp_filter(&rules);
            for number in 0..=1024u32 {
                for arguments in [[0; 6], [u32::MAX; 6]] {
                    let answer = run(&program, ARCH_CODE, number, arguments);
                    assert_eq!(answer, oracle(&rules, number, arguments), "{number} {options:?}");
                    if let Some(expected) = by_number(c_long::from(number), options) {
                        assert_eq!(answer, expected, "{number} {options:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_call_is_on_two_lists_and_none_beyond_the_last_known_passes() {
        let lists = [
            FORBIDDEN_CALLS,
            XATTR_CALLS,
            allowed::ALLOWED,
            allowed::ALLOWED_HERE,
            FILE_CHANGE_CALLS,
            METADATA_CALLS,
        ];
        let mut all: Vec<c_long> = lists.into_iter().flatten().copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        let program = assemble_seccomp_filter(&build_rules(SyscallRuleOptions {
            net: SandboxNetworkAccess::Full,
            notify: true,
            reads: false,
            programs: false,
        }));
        for number in [470, 471, 500, 512, 547, 1000, 4096, 0x3fff_ffff] {
            assert_eq!(run(&program, ARCH_CODE, number, [0; 6]), fails(libc::ENOSYS), "{number}");
        }
        // Well below the kernel's limit of 4096 instructions.
        assert!(program.len() < 400, "{}", program.len());
    }

    /// Which sockets are allowed, computed without the rules.
    fn may_be_made(net: SandboxNetworkAccess, family: i32, kind: i32, protocol: i32) -> bool {
        match (family, kind) {
            (libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_SEQPACKET) => true,
            (libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_DGRAM) => protocol == libc::NETLINK_ROUTE,
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) => {
                net != SandboxNetworkAccess::None && [0, libc::IPPROTO_TCP].contains(&protocol)
            }
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) => {
                let echo = if family == libc::AF_INET { libc::IPPROTO_ICMP } else { libc::IPPROTO_ICMPV6 };
                net == SandboxNetworkAccess::Full && [0, libc::IPPROTO_UDP, echo].contains(&protocol)
            }
            _ => false,
        }
    }

    #[test]
    fn sockets_are_known_by_family_type_and_protocol() {
        for options in all_options() {
            let program = assemble_seccomp_filter(&build_rules(options));
            let number = u32::try_from(libc::SYS_socket).unwrap();
            for (family, kind) in (0..48).flat_map(|family| (0..11).map(move |kind| (family, kind))) {
                for protocol in [0, 1, 2, 6, 16, 17, 58, 132, 136, 255, 256, 262] {
                    let flags = if protocol % 3 == 0 { libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK } else { 0 };
                    let arguments = [family, kind | flags, protocol, 0, 0, 0].map(bits);
                    let passes = run(&program, ARCH_CODE, number, arguments) == libc::SECCOMP_RET_ALLOW;
                    let expected = may_be_made(options.net, family, kind, protocol);
                    assert_eq!(passes, expected, "{family} {kind} {protocol} {options:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn pairs_are_of_connected_sockets_only(family in 0i32..4, kind in 0i32..8, protocol in 0i32..300) {
            let options = SyscallRuleOptions { net: SandboxNetworkAccess::Full, notify: true, reads: false, programs: false };
            let number = u32::try_from(libc::SYS_socketpair).unwrap();
            let arguments = [family, kind, protocol, 0, 0, 0].map(bits);
            let answer = oracle(&build_rules(options), number, arguments);
            let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].contains(&kind);
            prop_assert_eq!(answer == libc::SECCOMP_RET_ALLOW, family == libc::AF_UNIX && connected);
        }
    }
}
