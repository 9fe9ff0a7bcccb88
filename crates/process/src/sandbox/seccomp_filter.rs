//! The seccomp filter: rules about system calls, assembled to the BPF program that the kernel runs before each of them.
//!
//! Rules are tried in order and the first match decides; a system call without a matching rule fails with `ENOSYS`, as on
//! a kernel that is older than the call. A deny-list would be shorter, and would allow every system call that newer
//! kernels add.

use std::collections::BTreeMap;
use std::mem::offset_of;

/// What the filter does with a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeccompAction {
    /// The kernel executes it.
    Allow,
    /// It fails with this error number.
    FailWith(i32),
    /// The seccomp notification handler decides (seccomp user notification).
    Notify,
}

/// A condition on an argument, by its index. Only the lower 32 bits are compared, as the kernel does for an `int`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeccompArgCheck {
    /// The argument has this value.
    Is(u8, u32),
    /// The argument does not have this value.
    Not(u8, u32),
    /// Some of these bits are set.
    Any(u8, u32),
    /// The bits under the mask have this value.
    Masked(u8, u32, u32),
}

/// One rule: it matches if the call number and all conditions do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeccompRule {
    /// The system call number.
    pub(super) call: i64,
    /// Conditions on its arguments.
    pub(super) checks: Vec<SeccompArgCheck>,
    /// What happens to a call that matches.
    pub(super) action: SeccompAction,
}

/// An assembled filter.
pub(super) type BpfProgram = Vec<libc::sock_filter>;

#[cfg(target_arch = "x86_64")]
pub(super) const ARCH_CODE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
pub(super) const ARCH_CODE: u32 = 0xc000_00b7;

/// System calls of the x32 ABI have this bit set: other numbers for the same calls.
#[cfg(target_arch = "x86_64")]
const X32_SYSCALL_MASK: u32 = 0x4000_0000;

/// A program that allows everything, for detecting whether filters can be installed: the thread that tries must be able
/// to exit.
pub(super) fn allow_all_filter() -> BpfProgram {
    vec![bpf_return(libc::SECCOMP_RET_ALLOW)]
}

/// Assembles the BPF program of some rules.
pub(super) fn assemble_seccomp_filter(rules: &[SeccompRule]) -> BpfProgram {
    let mut program = vec![
        bpf_load(offset_of!(libc::seccomp_data, arch)),
        bpf_jump(libc::BPF_JEQ, ARCH_CODE, 1, 0),
        // The numbers of another architecture, such as those of 32-bit programs, would bypass every rule.
        bpf_return(libc::SECCOMP_RET_KILL_PROCESS),
    ];
    #[cfg(target_arch = "x86_64")]
    program.extend([
        bpf_load(offset_of!(libc::seccomp_data, nr)),
        bpf_jump(libc::BPF_JGE, X32_SYSCALL_MASK, 0, 1),
        bpf_return(DEFAULT_ACTION),
    ]);
    program.push(bpf_load(offset_of!(libc::seccomp_data, nr)));
    let mut by_call: BTreeMap<u32, Vec<&SeccompRule>> = BTreeMap::new();
    for rule in rules {
        if let Ok(number) = u32::try_from(rule.call) {
            by_call.entry(number).or_default().push(rule);
        }
    }
    program.append(&mut emit_binary_search(&split_ranges(&by_call)));
    program
}

/// The system calls from one number up to the start of the next range, and the instructions for all of them.
type SyscallRange = (u32, BpfProgram);

/// Splits the system calls into ranges; neighbours with the same instructions share one.
fn split_ranges(by_call: &BTreeMap<u32, Vec<&SeccompRule>>) -> Vec<SyscallRange> {
    let unknown = || vec![bpf_return(DEFAULT_ACTION)];
    let mut out: Vec<SyscallRange> = vec![(0, unknown())];
    let mut add = |from: u32, what: BpfProgram| match out.last_mut() {
        Some((_, last)) if is_same_program(last, &what) => {}
        Some((start, last)) if *start == from => *last = what,
        _ => out.push((from, what)),
    };
    for (number, rules) in by_call {
        add(*number, emit_rules(rules));
        if !by_call.contains_key(&(number + 1)) {
            add(number + 1, unknown());
        }
    }
    out
}

/// The most instructions of one block of the search: a conditional jump reaches 255 instructions.
const MAX_BLOCK_INSTRUCTIONS: usize = 120;

/// A binary search over the ranges. When a filter is installed, the kernel emulates it for every system call and compiles
/// it; with a linear list of comparisons that would take a millisecond.
fn emit_binary_search(segments: &[SyscallRange]) -> BpfProgram {
    let weight: usize = segments.iter().map(|(_, what)| what.len()).sum();
    if weight <= MAX_BLOCK_INSTRUCTIONS || segments.len() < 2 {
        return emit_block(segments);
    }
    let (lower, upper) = segments.split_at(segments.len() / 2);
    let mut left = emit_binary_search(lower);
    // An unconditional jump, because a conditional one reaches only 255 instructions.
    let over = bpf_statement(libc::BPF_JMP | libc::BPF_JA, u32::try_from(left.len()).unwrap_or(u32::MAX));
    let mut out = vec![bpf_jump(libc::BPF_JGE, range_start(upper), 0, 1), over];
    out.append(&mut left);
    out.append(&mut emit_binary_search(upper));
    out
}

/// The first system call number of some ranges.
fn range_start(segments: &[SyscallRange]) -> u32 {
    segments.first().map_or(0, |(start, _)| *start)
}

/// The target of a comparison in a block.
#[derive(Clone, Copy)]
enum BpfJumpTarget {
    /// Another comparison, by index.
    Comparison(usize),
    /// The instructions of a range, by index.
    Answer(usize),
}

/// One block: its comparisons, then the instructions of each range once.
fn emit_block(segments: &[SyscallRange]) -> BpfProgram {
    let mut answers: Vec<&BpfProgram> = Vec::new();
    let mut comparisons: Vec<(u32, BpfJumpTarget, BpfJumpTarget)> = Vec::new();
    build_comparisons(segments, &mut answers, &mut comparisons);
    let mut places = Vec::new();
    let mut place = comparisons.len();
    for answer in &answers {
        places.push(place);
        place += answer.len();
    }
    let distance = |from: usize, to: BpfJumpTarget| {
        let to = match to {
            BpfJumpTarget::Comparison(index) => index,
            BpfJumpTarget::Answer(index) => places.get(index).copied().unwrap_or(usize::MAX),
        };
        u8::try_from(to.saturating_sub(from + 1)).unwrap_or(u8::MAX)
    };
    let tests = comparisons.iter().enumerate().map(|(at, (pivot, above, below))| {
        bpf_jump(libc::BPF_JGE, *pivot, distance(at, *above), distance(at, *below))
    });
    tests.chain(answers.into_iter().flatten().copied()).collect()
}

/// Builds the comparisons of a binary search; returns the target of the first one.
fn build_comparisons<'s>(
    segments: &'s [SyscallRange],
    answers: &mut Vec<&'s BpfProgram>,
    comparisons: &mut Vec<(u32, BpfJumpTarget, BpfJumpTarget)>,
) -> BpfJumpTarget {
    if let [(_, what)] = segments {
        let known = answers.iter().position(|answer| is_same_program(answer, what));
        return BpfJumpTarget::Answer(known.unwrap_or_else(|| {
            answers.push(what);
            answers.len() - 1
        }));
    }
    let (lower, upper) = segments.split_at(segments.len() / 2);
    let place = comparisons.len();
    comparisons.push((range_start(upper), BpfJumpTarget::Answer(0), BpfJumpTarget::Answer(0)));
    let below = build_comparisons(lower, answers, comparisons);
    let above = build_comparisons(upper, answers, comparisons);
    if let Some(comparison) = comparisons.get_mut(place) {
        *comparison = (range_start(upper), above, below);
    }
    BpfJumpTarget::Comparison(place)
}

/// `libc::sock_filter` has no `PartialEq`.
fn is_same_program(one: &[libc::sock_filter], other: &[libc::sock_filter]) -> bool {
    let parts = |step: &libc::sock_filter| (step.code, step.jt, step.jf, step.k);
    one.iter().map(parts).eq(other.iter().map(parts))
}

/// Where a jump in the rules of one system call goes.
#[derive(Clone, Copy)]
enum RuleJumpTarget {
    /// The next condition of the same rule.
    NextInstruction,
    /// The rule with this index, or the default action after the last rule.
    Rule(usize),
    /// The instruction that returns this value.
    Return(u32),
}

/// One instruction of the rules of a system call, whose jumps have no distances yet.
enum RuleStep {
    /// An instruction without a jump.
    Plain(libc::sock_filter),
    /// A comparison: its operation, its operand, where it goes if it holds and where if not.
    Jump(u32, u32, RuleJumpTarget, RuleJumpTarget),
}

/// The instructions for the rules of one system call, in order. An argument is loaded once for rules that follow each
/// other, and each value has one return, because the time of installing a filter grows with its length.
fn emit_rules(rules: &[&SeccompRule]) -> BpfProgram {
    let mut steps = Vec::new();
    let mut rule_starts = Vec::new();
    let mut loaded = None;
    let mut default = DEFAULT_ACTION;
    for (index, rule) in rules.iter().enumerate() {
        rule_starts.push(steps.len());
        if rule.checks.is_empty() {
            default = rule.action.to_return_value();
            break;
        }
        for (place, check) in rule.checks.iter().enumerate() {
            let is_last = place + 1 == rule.checks.len();
            let matched = match is_last {
                true => RuleJumpTarget::Return(rule.action.to_return_value()),
                false => RuleJumpTarget::NextInstruction,
            };
            check.emit(&mut steps, &mut loaded, matched, RuleJumpTarget::Rule(index + 1));
        }
        // The next rule is reached from each of the conditions.
        let operand = |check: &SeccompArgCheck| check.operand();
        if rule.checks.iter().map(operand).any(|other| Some(other) != loaded) {
            loaded = None;
        }
    }
    resolve_jumps(&steps, &rule_starts, default)
}

/// Appends the returns, and turns targets into distances.
fn resolve_jumps(steps: &[RuleStep], rule_starts: &[usize], default: u32) -> BpfProgram {
    // Behind the last condition stands the default action.
    let mut returns = vec![default];
    let mut distance = |from: usize, target: RuleJumpTarget| {
        let to = match target {
            RuleJumpTarget::NextInstruction => from + 1,
            RuleJumpTarget::Rule(index) => rule_starts.get(index).copied().unwrap_or(steps.len()),
            RuleJumpTarget::Return(value) => {
                let known = returns.iter().position(|other| *other == value);
                steps.len()
                    + known.unwrap_or_else(|| {
                        returns.push(value);
                        returns.len() - 1
                    })
            }
        };
        // No system call has as many rules as a conditional jump reaches.
        u8::try_from(to - from - 1).unwrap_or(u8::MAX)
    };
    let mut out = BpfProgram::new();
    for (place, step) in steps.iter().enumerate() {
        out.push(match step {
            RuleStep::Plain(instruction) => *instruction,
            RuleStep::Jump(operation, value, yes, no) => {
                bpf_jump(*operation, *value, distance(place, *yes), distance(place, *no))
            }
        });
    }
    out.extend(returns.into_iter().map(bpf_return));
    out
}

/// What the accumulator of the filter holds: an argument, and the bits of it that were kept.
type LoadedArgument = (u8, u32);

impl SeccompAction {
    /// The value that the filter returns.
    fn to_return_value(self) -> u32 {
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::FailWith(errno) => errno_action(errno),
            Self::Notify => libc::SECCOMP_RET_USER_NOTIF,
        }
    }
}

impl SeccompArgCheck {
    /// The argument and the bits of it that are compared.
    fn operand(self) -> LoadedArgument {
        match self {
            Self::Is(argument, _) | Self::Not(argument, _) | Self::Any(argument, _) => (argument, u32::MAX),
            Self::Masked(argument, mask, _) => (argument, mask),
        }
    }

    /// Appends the comparison, after what it needs in the accumulator.
    fn emit(
        self,
        steps: &mut Vec<RuleStep>,
        loaded: &mut Option<LoadedArgument>,
        matched: RuleJumpTarget,
        failed: RuleJumpTarget,
    ) {
        let (argument, mask) = self.operand();
        if *loaded != Some((argument, mask)) {
            if *loaded != Some((argument, u32::MAX)) {
                steps.push(RuleStep::Plain(bpf_load_argument(argument)));
            }
            if mask != u32::MAX {
                let and = bpf_statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask);
                steps.push(RuleStep::Plain(and));
            }
            *loaded = Some((argument, mask));
        }
        steps.push(match self {
            Self::Is(_, value) | Self::Masked(_, _, value) => {
                RuleStep::Jump(libc::BPF_JEQ, value, matched, failed)
            }
            Self::Not(_, value) => RuleStep::Jump(libc::BPF_JEQ, value, failed, matched),
            Self::Any(_, bits) => RuleStep::Jump(libc::BPF_JSET, bits, matched, failed),
        });
    }
}

/// The result if no rule matches.
const DEFAULT_ACTION: u32 = errno_action(libc::ENOSYS);

/// The return value of a filter for an error number.
const fn errno_action(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | (errno.cast_unsigned() & libc::SECCOMP_RET_DATA)
}

/// Loads the lower half of an argument.
fn bpf_load_argument(index: u8) -> libc::sock_filter {
    // Little-endian: the lower half comes first.
    bpf_load(offset_of!(libc::seccomp_data, args) + 8 * usize::from(index))
}

/// Loads a 32-bit word of `seccomp_data`.
fn bpf_load(offset: usize) -> libc::sock_filter {
    bpf_statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, u32::try_from(offset).unwrap_or(0))
}

/// Ends the filter with an action.
fn bpf_return(value: u32) -> libc::sock_filter {
    bpf_statement(libc::BPF_RET | libc::BPF_K, value)
}

/// An instruction without a condition.
fn bpf_statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).unwrap_or(0), jt: 0, jf: 0, k }
}

/// A conditional jump over `jt` or `jf` instructions.
fn bpf_jump(test: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    let code = libc::BPF_JMP | test | libc::BPF_K;
    libc::sock_filter { code: u16::try_from(code).unwrap_or(0), jt, jf, k }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An interpreter of the BPF program, as the kernel runs it.
    pub(in crate::sandbox) fn run(program: &BpfProgram, arch: u32, number: u32, arguments: [u32; 6]) -> u32 {
        let (mut at, mut accumulator) = (0, 0u32);
        loop {
            let step = program[at];
            at += 1;
            let code = u32::from(step.code);
            if code == libc::BPF_RET | libc::BPF_K {
                return step.k;
            } else if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS {
                accumulator = match step.k as usize {
                    0 => number,
                    4 => arch,
                    offset => arguments[(offset - 16) / 8],
                };
            } else if code == libc::BPF_JMP | libc::BPF_JA {
                at += step.k as usize;
            } else if code == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K {
                accumulator &= step.k;
            } else {
                let test = code & !(libc::BPF_JMP | libc::BPF_K);
                let holds = match test {
                    libc::BPF_JEQ => accumulator == step.k,
                    libc::BPF_JGE => accumulator >= step.k,
                    libc::BPF_JSET => accumulator & step.k != 0,
                    other => panic!("unknown test {other}"),
                };
                at += usize::from(if holds { step.jt } else { step.jf });
            }
        }
    }

    /// The meaning of the rules without the assembler.
    pub(in crate::sandbox) fn oracle(rules: &[SeccompRule], number: u32, arguments: [u32; 6]) -> u32 {
        for rule in rules.iter().filter(|rule| rule.call == i64::from(number)) {
            let holds = rule.checks.iter().all(|check| match *check {
                SeccompArgCheck::Is(index, value) => arguments[usize::from(index)] == value,
                SeccompArgCheck::Not(index, value) => arguments[usize::from(index)] != value,
                SeccompArgCheck::Any(index, bits) => arguments[usize::from(index)] & bits != 0,
                SeccompArgCheck::Masked(index, mask, value) => arguments[usize::from(index)] & mask == value,
            });
            if holds {
                return match rule.action {
                    SeccompAction::Allow => libc::SECCOMP_RET_ALLOW,
                    SeccompAction::FailWith(errno) => errno_action(errno),
                    SeccompAction::Notify => libc::SECCOMP_RET_USER_NOTIF,
                };
            }
        }
        DEFAULT_ACTION
    }

    fn check() -> impl Strategy<Value = SeccompArgCheck> {
        // Few, so that rules that follow each other look at the same one.
        let argument = 0u8..3;
        prop_oneof![
            (argument.clone(), 0u32..4).prop_map(|(a, v)| SeccompArgCheck::Is(a, v)),
            (argument.clone(), 0u32..4).prop_map(|(a, v)| SeccompArgCheck::Not(a, v)),
            (argument.clone(), 0u32..8).prop_map(|(a, v)| SeccompArgCheck::Any(a, v)),
            (argument, 0u32..8, 0u32..4).prop_map(|(a, m, v)| SeccompArgCheck::Masked(a, m, v)),
        ]
    }

    fn rule() -> impl Strategy<Value = SeccompRule> {
        let act = prop_oneof![
            Just(SeccompAction::Allow),
            Just(SeccompAction::FailWith(libc::EPERM)),
            Just(SeccompAction::Notify)
        ];
        (0i64..6, prop::collection::vec(check(), 0..4), act).prop_map(|(call, checks, act)| SeccompRule {
            call,
            checks,
            action: act,
        })
    }

    proptest! {
        #[test]
        fn the_program_does_what_the_rules_say(
            rules in prop::collection::vec(rule(), 0..12),
            number in 0u32..7,
            arguments in prop::array::uniform6(0u32..8),
        ) {
            let program = assemble_seccomp_filter(&rules);
            prop_assert_eq!(run(&program, ARCH_CODE, number, arguments), oracle(&rules, number, arguments));
        }
    }

    #[test]
    fn other_numberings_do_not_walk_around_the_rules() {
        let program = assemble_seccomp_filter(&[]);
        assert_eq!(run(&program, 0x4000_0003, 1, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(run(&program, ARCH_CODE, X32_SYSCALL_MASK + 1, [0; 6]), errno_action(libc::ENOSYS));
    }
}
