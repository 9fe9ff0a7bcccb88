//! Programs that tell about the machine and the person, as far as that is no secret.

use super::{ENTRY, Entry, Operands};

/// The family. What prints environments or asks the network is missing on purpose.
pub(in super::super) const ENTRIES: &[Entry] = &[
    Entry {
        names: &["uname", "arch", "nproc", "whoami", "logname", "tty", "groups", "users", "uptime", "hostid"],
        flags: "asnrvmpiohVq",
        long: "all kernel-name nodename kernel-release kernel-version machine processor operating-system \
            pretty since silent quiet help version ignore=",
        operands: Operands::Nothing,
        ..ENTRY
    },
    Entry {
        names: &["hostname"],
        flags: "sV",
        long: "short version help",
        operands: Operands::Nothing,
        hazards: &["-F", "-b", "--file", "--boot"],
        ..ENTRY
    },
    Entry {
        names: &["id"],
        flags: "agGnruzZ",
        long: "group groups name real user zero context help version",
        operands: Operands::Text,
        ..ENTRY
    },
    Entry {
        names: &["who"],
        flags: "abdHlmpqrstTuw",
        long: "all boot heading count users help version",
        operands: Operands::Nothing,
        ..ENTRY
    },
    Entry {
        names: &["free", "lscpu", "lsblk", "lsmem"],
        flags: "bkmghtlwaepyJnopriS",
        valued: "sc",
        long: "bytes kibi mebi gibi human total wide json help version",
        operands: Operands::Nothing,
        ..ENTRY
    },
    Entry {
        names: &["getconf", "locale"],
        flags: "ackm",
        long: "all-locales charmaps help version",
        operands: Operands::Text,
        ..ENTRY
    },
    Entry { names: &["cal", "ncal"], flags: "13jmsywMSYN", operands: Operands::Text, ..ENTRY },
    Entry {
        names: &["pgrep"],
        flags: "acflLinovxw",
        valued: "dgGPstuU",
        long: "list-name list-full full count newest oldest exact inverse parent= euid= uid= help version",
        operands: Operands::Text,
        hazards: &["-F", "--pidfile", "--signal"],
        ..ENTRY
    },
    Entry { names: &["pidof"], flags: "sqx", operands: Operands::Text, ..ENTRY },
    Entry { names: &["sleep"], operands: Operands::Text, long: "help version", ..ENTRY },
];
