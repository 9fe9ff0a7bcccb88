//! Analyses redirects: each is a read or a write of its own, which no rule for a command covers.
//!
//! A rule that allows `echo *` was not written for `echo x > ~/.bashrc`. The target is resolved like an argument; one
//! that is not known makes the whole command uncoverable. Here-documents and here-strings open no file, but their
//! content is the input of the command, and a shell runs it.

use crate::analysis::{
    CommandDanger, DangerKind, DangerResponse, DangerStanding, EffectOrigin, InferredEffect,
};
use crate::bash_program::{BashRedirect, BashRedirectKind};
use crate::command_part::{inferred_effect, is_pipe};
use crate::expand;
use crate::removal;
use crate::shell_arg::ShellArg;
use crate::visitor::{AnalysisVisitor, CommandContext};
use crate::working_dirs::{is_null_or_stream_device, parse_network_redirect};
use toolgate_proto::{Effect, PathScope, RiskLevel, WriteKind};

/// What the redirects of a command do.
#[derive(Default)]
pub(crate) struct RedirectEffects {
    /// The files and addresses that they open.
    pub(crate) effects: Vec<InferredEffect>,
    /// A redirect has an unknown target, or changes the shell itself.
    pub(crate) unknown: bool,
    /// Standard input contains variables that may be secret (`cat <<< "$TOKEN"`), and the command may print it.
    pub(crate) reveals: bool,
    /// The content of standard input, if a here-document or here-string gives it; the inner `None` if it is not
    /// known.
    pub(crate) input: Option<Option<String>>,
    /// A redirect opens a file descriptor for reading.
    pub(crate) reads: bool,
}

/// Which way data goes through a redirect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RedirectDirection {
    /// The target is read.
    In,
    /// The target is written.
    Out,
}

impl AnalysisVisitor<'_> {
    /// Finds the effects of redirects.
    pub(crate) fn analyse_redirects(
        &mut self,
        redirects: &[BashRedirect],
        context: &CommandContext<'_>,
    ) -> RedirectEffects {
        let mut outcome = RedirectEffects::default();
        for redirect in redirects {
            self.visit_pieces(&redirect.target.pieces, context);
            outcome.unknown |= redirect.sets_variable;
            outcome.reads |= matches!(
                redirect.kind,
                BashRedirectKind::Read | BashRedirectKind::ReadWrite | BashRedirectKind::DuplicateInput
            );
            let mut target = match self.variables.loop_value(&redirect.target) {
                // Each iteration opens one file: the glob is that of the loop, and not one of the redirect.
                Some(value) => ShellArg { one_of: vec![value.clone()], ..value },
                None => expand_redirect_target(redirect, &mut outcome),
            };
            self.variables.substitute(&mut target);
            let directions: &[RedirectDirection] = match redirect.kind {
                BashRedirectKind::HereDocument => {
                    let body = redirect.here_document.and_then(|index| context.here_documents.get(index));
                    let pieces = body.map(|body| body.pieces.as_slice()).unwrap_or_default();
                    self.visit_pieces(pieces, context);
                    self.add_redirect_input(&expand::expand_single(pieces, ""), &mut outcome);
                    continue;
                }
                BashRedirectKind::HereString => {
                    self.add_redirect_input(&target, &mut outcome);
                    continue;
                }
                BashRedirectKind::DuplicateInput | BashRedirectKind::DuplicateOutput
                    if target.known().is_some_and(is_descriptor) =>
                {
                    continue;
                }
                BashRedirectKind::Read | BashRedirectKind::DuplicateInput => &[RedirectDirection::In],
                BashRedirectKind::Write
                | BashRedirectKind::Append
                | BashRedirectKind::Both
                | BashRedirectKind::DuplicateOutput => &[RedirectDirection::Out],
                BashRedirectKind::ReadWrite => &[RedirectDirection::In, RedirectDirection::Out],
            };
            self.add_redirect_effects(&target, directions, context, &mut outcome);
        }
        outcome
    }

    /// Adds the content that a here-document or here-string gives to standard input.
    fn add_redirect_input(&mut self, content: &ShellArg, outcome: &mut RedirectEffects) {
        outcome.unknown |= self.variables.evaluates(content);
        outcome.reveals |= !self.variables.is_printable(content);
        outcome.input = Some(content.known().map(str::to_owned));
    }

    /// Adds the effects of opening the target of a redirect.
    fn add_redirect_effects(
        &mut self,
        target: &ShellArg,
        directions: &[RedirectDirection],
        context: &CommandContext<'_>,
        outcome: &mut RedirectEffects,
    ) {
        // The variable of a loop: each of its values may be the target.
        if !target.one_of.is_empty() {
            for value in &target.one_of {
                self.add_redirect_effects(value, directions, context, outcome);
            }
            return;
        }
        if target.known().is_some_and(is_null_or_stream_device)
            || is_pipe(target)
            || self.variables.is_private_temp(target)
        {
            return;
        }
        if let Some(url) = target.known().and_then(parse_network_redirect) {
            self.warn(DangerKind::Network, RiskLevel::High, || format!("a redirect connects to `{url}`"));
            outcome.effects.push(inferred_effect(Effect::Fetch { url }, EffectOrigin::Redirect));
            outcome.unknown = true;
            return;
        }
        if target.known().is_some_and(removal::is_device) && directions.contains(&RedirectDirection::Out) {
            self.record_danger(CommandDanger {
                kind: DangerKind::DangerousRemoval,
                severity: RiskLevel::Critical,
                phase: DangerResponse::Ask,
                standing: DangerStanding::Binding,
                text: format!("a redirect overwrites the device `{}`", target.text),
            });
        }
        for direction in directions {
            self.add_file_redirect(target, *direction, context, outcome);
        }
    }

    /// Adds the effect of reading or writing the file that a redirect names.
    ///
    /// A target that most likely is a known path, such as `$HOME/x`, is added for rules that deny.
    fn add_file_redirect(
        &mut self,
        target: &ShellArg,
        direction: RedirectDirection,
        context: &CommandContext<'_>,
        outcome: &mut RedirectEffects,
    ) {
        let (dirs, origin) = (&context.dirs, EffectOrigin::Redirect);
        let effects = match direction {
            RedirectDirection::In => dirs.read_effects(target, PathScope::Entry, origin, self.workspace),
            RedirectDirection::Out => dirs.write_effects(target, WriteKind::Put, origin, self.workspace),
        };
        // A glob that matches one file is that file; one that matches several is an error. What it may read is judged like
        // the glob of an argument.
        if effects.is_none() || target.pattern.is_some() && direction == RedirectDirection::Out {
            outcome.unknown = true;
            self.warn(DangerKind::Redirect, RiskLevel::High, || {
                format!("the redirect target `{}` is not known in advance", target.text)
            });
            for path in dirs.likely_paths(target, self.workspace) {
                let effect = match direction {
                    RedirectDirection::In => Effect::Read { path, scope: PathScope::Entry },
                    RedirectDirection::Out => Effect::Write { path, kind: WriteKind::Put },
                };
                outcome.effects.push(inferred_effect(effect, origin));
            }
        }
        outcome.effects.extend(effects.unwrap_or_default());
    }
}

/// The word that a redirect names. Its braces are expanded; a target of more than one word is an error in bash.
fn expand_redirect_target(redirect: &BashRedirect, outcome: &mut RedirectEffects) -> ShellArg {
    let whole = expand::expand_single(&redirect.target.pieces, &redirect.target.source);
    if matches!(redirect.kind, BashRedirectKind::HereDocument | BashRedirectKind::HereString) {
        return whole;
    }
    let mut words = Vec::new();
    match (expand::expand(&redirect.target, &mut words), words.as_slice()) {
        (Some(()), [word]) => word.clone(),
        (Some(()), _) | (None, _) => {
            outcome.unknown = true;
            whole
        }
    }
}

/// Whether the target of `<&` or `>&` is a file descriptor (`2`, `2-`, `-`). Anything else names a file.
fn is_descriptor(text: &str) -> bool {
    let number = text.strip_suffix('-').unwrap_or(text);
    text == "-" || number.bytes().all(|byte| byte.is_ascii_digit()) && number.parse::<i32>().is_ok()
}
