//! `connect`, `bind` and `listen`. The handler copies the address and makes the call on a duplicate of the caller's socket,
//! so that a change of the address in memory has no effect.

use super::caller_thread::CallerThread;
use super::syscall_path::{FinalSymlink, SyscallPath};
use super::{DeferredResponse, SeccompNotification, SeccompNotifyContext, SeccompResponse};
use crate::sandbox::SandboxNetworkAccess;
use crate::sandbox::denials::SandboxAccess;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// The longest address of any socket family.
const MAX_ADDRESS_BYTES: u64 = 128;

/// `None` if the call is none of these.
pub(super) fn decide_network_call(
    context: &SeccompNotifyContext,
    caller: &CallerThread,
    notification: SeccompNotification,
    deferred: DeferredResponse,
) -> Option<SeccompResponse> {
    let result = match notification.call {
        libc::SYS_connect => connect(context, caller, notification, deferred),
        libc::SYS_bind => bind(context, caller, notification),
        libc::SYS_listen => listen(context, caller, notification),
        _ => return None,
    };
    Some(result.unwrap_or_else(SeccompResponse::Fail))
}

/// `connect`, on another thread, because it may block.
fn connect(
    context: &SeccompNotifyContext,
    caller: &CallerThread,
    notification: SeccompNotification,
    deferred: DeferredResponse,
) -> Result<SeccompResponse, Errno> {
    let address = read_address(caller, notification)?;
    // Kept open until `connect` has returned: the address then refers to it.
    let mut socket_path_fd = None;
    let address = match address_family(&address) {
        libc::AF_UNIX => {
            let fd = open_unix_socket(context, caller, &address)?;
            let mut proc_address = libc::AF_UNIX.to_ne_bytes().get(..2).unwrap_or_default().to_vec();
            proc_address.extend(format!("/proc/thread-self/fd/{}\0", fd.as_raw_fd()).into_bytes());
            socket_path_fd = Some(fd);
            proc_address
        }
        libc::AF_INET | libc::AF_INET6 => {
            let (ip, port) = parse_internet_address(&address).ok_or(Errno::INVAL)?;
            let allowed = match context.net {
                SandboxNetworkAccess::None => false,
                SandboxNetworkAccess::Loopback(only) => {
                    ip.is_loopback() && only.is_none_or(|only| only == port)
                }
                SandboxNetworkAccess::Full => true,
            };
            if !allowed {
                context.record_denial(caller, SandboxAccess::Connect, std::net::SocketAddr::new(ip, port));
                return Err(Errno::ACCESS);
            }
            address
        }
        // AF_UNSPEC disconnects; netlink sockets read interfaces.
        libc::AF_UNSPEC | libc::AF_NETLINK => address,
        _ => return Err(Errno::AFNOSUPPORT),
    };
    let socket = dup_caller_socket(caller, notification)?;
    deferred.respond_on_thread(move |_| {
        let response = match call_with_address(libc::connect, &socket, &address) {
            Ok(()) => SeccompResponse::Done(0),
            Err(errno) => SeccompResponse::Fail(errno),
        };
        drop(socket_path_fd);
        response
    })
}

/// Opens the socket file of a Unix address, if the caller may connect to it.
fn open_unix_socket(
    context: &SeccompNotifyContext,
    caller: &CallerThread,
    address: &[u8],
) -> Result<OwnedFd, Errno> {
    let path = address.get(2..).unwrap_or_default();
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    // An abstract socket has no path, so that no rule can tell whose it is.
    if path.is_empty() {
        context.record_denial(caller, SandboxAccess::UnixSocket, "an abstract socket");
        return Err(Errno::ACCESS);
    }
    let path = caller.base_directory(libc::AT_FDCWD)?.join(std::ffi::OsStr::from_bytes(path));
    let place = SyscallPath::of(&path, FinalSymlink::Follow).ok_or(Errno::ACCESS)?;
    if place.kind == toolgate_proto::EntryKind::Missing {
        return Err(Errno::NOENT);
    }
    if !context.bounds.may_connect(&place.real) {
        context.record_denial(caller, SandboxAccess::UnixSocket, &place.real);
        return Err(Errno::ACCESS);
    }
    place.open_entry()
}

/// `bind`: an internet socket is bound to loopback only.
fn bind(
    context: &SeccompNotifyContext,
    caller: &CallerThread,
    notification: SeccompNotification,
) -> Result<SeccompResponse, Errno> {
    let mut address = read_address(caller, notification)?;
    let (offset, all, loopback): (usize, &[u8], &[u8]) = match address_family(&address) {
        libc::AF_INET => (4, &[0; 4], &[127, 0, 0, 1]),
        libc::AF_INET6 => (8, &[0; 16], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        // Landlock decides about the socket file; it also refuses an internet address that replaced this one.
        _ => {
            return Ok(if context.landlock {
                SeccompResponse::Continue
            } else {
                SeccompResponse::Fail(Errno::ACCESS)
            });
        }
    };
    // Binding to every interface becomes binding to loopback.
    if let Some(ip) = address.get_mut(offset..offset + all.len())
        && ip == all
    {
        ip.copy_from_slice(loopback);
    }
    let (ip, port) = parse_internet_address(&address).ok_or(Errno::INVAL)?;
    if context.net != SandboxNetworkAccess::Loopback(None) || !ip.is_loopback() {
        context.record_denial(caller, SandboxAccess::Listen, std::net::SocketAddr::new(ip, port));
        return Err(Errno::ACCESS);
    }
    call_with_address(libc::bind, &dup_caller_socket(caller, notification)?, &address)?;
    Ok(SeccompResponse::Done(0))
}

/// The kernel gives a socket that was never bound a port on every interface, without a Landlock check.
fn listen(
    context: &SeccompNotifyContext,
    caller: &CallerThread,
    notification: SeccompNotification,
) -> Result<SeccompResponse, Errno> {
    let socket = dup_caller_socket(caller, notification)?;
    let local = local_address(&socket)?;
    let loopback: &[u8] = match address_family(&local) {
        libc::AF_INET => &[127, 0, 0, 1],
        libc::AF_INET6 => &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        // Not an internet socket.
        _ => {
            rustix::net::listen(&socket, notification.int_argument(1))?;
            return Ok(SeccompResponse::Done(0));
        }
    };
    let (ip, port) = parse_internet_address(&local).ok_or(Errno::INVAL)?;
    if context.net != SandboxNetworkAccess::Loopback(None) || !(ip.is_loopback() || ip.is_unspecified()) {
        context.record_denial(caller, SandboxAccess::Listen, std::net::SocketAddr::new(ip, port));
        return Err(Errno::ACCESS);
    }
    if !ip.is_loopback() {
        let offset = if loopback.len() == 4 { 4 } else { 8 };
        let mut address = local;
        if let Some(place) = address.get_mut(offset..offset + loopback.len()) {
            place.copy_from_slice(loopback);
        }
        call_with_address(libc::bind, &socket, &address).map_err(|_| Errno::ACCESS)?;
    }
    rustix::net::listen(&socket, notification.int_argument(1))?;
    // Another thread may have disconnected the socket in between, which removes its address.
    let still = local_address(&socket).ok().and_then(|local| parse_internet_address(&local));
    if !still.is_some_and(|(ip, _)| ip.is_loopback()) {
        let _ = rustix::net::shutdown(&socket, rustix::net::Shutdown::Both);
        context.record_denial(caller, SandboxAccess::Listen, std::net::SocketAddr::new(ip, port));
        return Err(Errno::ACCESS);
    }
    Ok(SeccompResponse::Done(0))
}

/// The local address of a socket, as the kernel's bytes.
#[expect(unsafe_code, reason = "an address of any family, as bytes")]
fn local_address(socket: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let mut address = vec![0u8; usize::try_from(MAX_ADDRESS_BYTES).unwrap_or(0)];
    let mut length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel writes at most `length` bytes, the size of the buffer.
    let done = unsafe { libc::getsockname(socket.as_raw_fd(), address.as_mut_ptr().cast(), &raw mut length) };
    if done != 0 {
        return Err(Errno::from_raw_os_error(crate::process::last_errno()));
    }
    address.truncate(usize::try_from(length).unwrap_or(0));
    Ok(address)
}

/// Copies the socket address of the call.
fn read_address(caller: &CallerThread, notification: SeccompNotification) -> Result<Vec<u8>, Errno> {
    let length = notification.argument(2) & 0xffff_ffff;
    if !(2..=MAX_ADDRESS_BYTES).contains(&length) {
        return Err(Errno::INVAL);
    }
    caller.read_bytes(notification.argument(1), usize::try_from(length).unwrap_or(0))
}

/// Duplicates the caller's socket into toolgate.
fn dup_caller_socket(caller: &CallerThread, notification: SeccompNotification) -> Result<OwnedFd, Errno> {
    let process = caller.process_id().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let process = pidfd_open(process, PidfdFlags::empty())?;
    pidfd_getfd(&process, notification.int_argument(0), PidfdGetfdFlags::empty())
}

/// The first two bytes of a socket address.
fn address_family(address: &[u8]) -> i32 {
    let bytes: [u8; 2] = address.get(..2).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; 2]);
    i32::from(u16::from_ne_bytes(bytes))
}

/// Address and port of an IPv4 or IPv6 socket address; an IPv4-mapped address counts as IPv4.
fn parse_internet_address(address: &[u8]) -> Option<(IpAddr, u16)> {
    let port = u16::from_be_bytes(address.get(2..4)?.try_into().ok()?);
    let ip = match address_family(address) {
        libc::AF_INET => {
            let bytes: [u8; 4] = address.get(4..8)?.try_into().ok()?;
            IpAddr::V4(Ipv4Addr::from(bytes))
        }
        _ => {
            let bytes: [u8; 16] = address.get(8..24)?.try_into().ok()?;
            Ipv6Addr::from(bytes).to_canonical()
        }
    };
    Some((ip, port))
}

/// `connect` or `bind`.
type SocketCall = unsafe extern "C" fn(libc::c_int, *const libc::sockaddr, libc::socklen_t) -> libc::c_int;

/// Calls `connect` or `bind` with a copied address.
#[expect(unsafe_code, reason = "an address of any family, as bytes")]
fn call_with_address(function: SocketCall, socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel reads `length` bytes, the size of the buffer.
    let done = unsafe { function(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    if done == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(crate::process::last_errno())) }
}
