//! Programs that print facts about the machine, its processes and the user, as far as they are no secret.

use super::{EMPTY_OPTION_TABLE, OperandKind, OptionTable};
use crate::word_list::WordList;

/// `hostname`: `-F` and `-b` set the name of the machine, as does an operand.
const HOSTNAME: OptionTable = OptionTable {
    names: &["hostname"],
    flags: "sV",
    long: "short version help",
    operands: OperandKind::Nothing,
    hazards: WordList("-F -b --file --boot"),
    ..EMPTY_OPTION_TABLE
};

/// `lscpu` and `lsmem`: `--sysroot` reads another directory instead of the system.
const LSCPU: OptionTable = OptionTable {
    names: &["lscpu", "lsmem"],
    flags: "abBcCJrxynV",
    attached: "ep",
    long: "all bytes online offline caches? extended? json hex parse? physical noheadings raw summary? help version",
    operands: OperandKind::Nothing,
    hazards: WordList("-s --sysroot"),
    ..EMPTY_OPTION_TABLE
};

/// `ss`: `-K` closes sockets, `-D` writes a dump, `-F` reads a file, `-N` enters a network namespace, and `-r` asks
/// name
/// servers.
const SS: OptionTable = OptionTable {
    names: &["ss"],
    flags: "talnpu46xsHOmeiowdSVh",
    long: "tcp udp listening numeric all processes ipv4 ipv6 unix summary no-header oneline memory extended \
        info options raw dccp sctp packet help version",
    operands: OperandKind::Text,
    looks_in: &["/proc/net"],
    hazards: WordList(
        "-K --kill -D --diag -F --filter -N --net -r --resolve -E --events -Z -z -b --bpf -f \
         --family -A --query --socket",
    ),
    ..EMPTY_OPTION_TABLE
};

/// `dpkg`: only the options that query its database are listed; all others install, remove or configure packages, and
/// some run hooks.
const DPKG: OptionTable = OptionTable {
    names: &["dpkg"],
    flags: "lLsS",
    long: "list listfiles status search no-pager help version",
    operands: OperandKind::Text,
    helpers: &["dpkg-query"],
    looks_in: &["/var/lib/dpkg", "/etc/dpkg"],
    hazards: WordList(
        "-i --install -r -P --admindir --root --instdir --pre-invoke --post-invoke --unpack \
         --configure --force-all",
    ),
    ..EMPTY_OPTION_TABLE
};

/// `dpkg-query`: it only queries; `--admindir` and `--root` name another database.
const DPKG_QUERY: OptionTable = OptionTable {
    names: &["dpkg-query"],
    flags: "lLsSW",
    valued: "f",
    long: "list listfiles status search show showformat= no-pager help version",
    hazards: WordList("--admindir --root"),
    ..DPKG
};

/// `pgrep`: `--signal` belongs to `pkill`, which is the same program, and `-F` reads a file that no operand names.
const PGREP: OptionTable = OptionTable {
    names: &["pgrep"],
    flags: "acflLinovxw",
    valued: "dgGPstuU",
    long: "list-name list-full full count newest oldest exact inverse parent= euid= uid= help version",
    operands: OperandKind::Text,
    hazards: WordList("-F --pidfile --signal"),
    ..EMPTY_OPTION_TABLE
};

/// The programs of this family. Those that print environments of processes or send requests are left out.
pub(crate) const SYSTEM_TABLES: &[OptionTable] = &[
    OptionTable {
        names: &["uname", "arch", "nproc", "whoami", "logname", "tty", "groups", "users", "uptime", "hostid"],
        flags: "asnrvmpiohVq",
        long: "all kernel-name nodename kernel-release kernel-version machine processor operating-system \
            pretty since silent quiet help version ignore=",
        operands: OperandKind::Nothing,
        ..EMPTY_OPTION_TABLE
    },
    HOSTNAME,
    OptionTable {
        names: &["id"],
        flags: "agGnruzZ",
        long: "group groups name real user zero context help version",
        operands: OperandKind::Text,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["who"],
        flags: "abdHlmpqrstTuw",
        long: "all boot heading count users help version",
        operands: OperandKind::Nothing,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["free"],
        flags: "bkmghtlwvV",
        valued: "sc",
        long: "bytes kibi mebi gibi human total wide help version",
        operands: OperandKind::Nothing,
        ..EMPTY_OPTION_TABLE
    },
    LSCPU,
    OptionTable {
        names: &["lsblk"],
        flags: "abdDfilmMnpPrStvVJ",
        valued: "oexI",
        attached: "T",
        long: "all bytes nodeps discard fs ascii list perms noheadings paths pairs raw scsi inverse tree? topology \
            json output= exclude= include= sort= help version",
        operands: OperandKind::Nothing,
        hazards: WordList("--sysroot"),
        ..EMPTY_OPTION_TABLE
    },
    SS,
    DPKG,
    DPKG_QUERY,
    OptionTable {
        names: &["getconf"],
        flags: "a",
        long: "help version",
        operands: OperandKind::Text,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["locale"],
        // `-m` starts a program for each compressed table of characters.
        flags: "ack",
        long: "all-locales category-name keyword-name help version",
        operands: OperandKind::Text,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["cal", "ncal"],
        flags: "13jmsywMSYN",
        operands: OperandKind::Text,
        ..EMPTY_OPTION_TABLE
    },
    PGREP,
    OptionTable { names: &["pidof"], flags: "sqx", operands: OperandKind::Text, ..EMPTY_OPTION_TABLE },
    OptionTable {
        // `-t` may ask a daemon and write the state of its clock.
        names: &["uuidgen"],
        flags: "rhV",
        long: "random help version",
        operands: OperandKind::Nothing,
        ..EMPTY_OPTION_TABLE
    },
    OptionTable {
        names: &["sleep"],
        operands: OperandKind::Text,
        long: "help version",
        ..EMPTY_OPTION_TABLE
    },
];
