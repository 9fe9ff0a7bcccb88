//! Redirects: reads and writes of their own, which no rule for a command covers.

use super::analysis::{CommandDanger, DangerKind, InferredEffect, Origin, Phase, Standing};
use super::dirs::{is_null_or_stream_device, socket};
use super::expand::{self, Arg};
use super::part::{inferred, is_pipe};
use super::removal;
use super::syntax::{BashRedirectKind, Redirect};
use super::walk::{Place, Walk};
use toolgate_proto::{Effect, Scope, Severity, WriteKind};

/// What the redirects of a command come to.
#[derive(Default)]
pub(super) struct RedirectEffects {
    pub(super) effects: Vec<InferredEffect>,
    /// A target is not known, or the shell itself is changed.
    pub(super) unknown: bool,
    /// Standard input holds variables that may be secret.
    pub(super) reveals: bool,
    /// What standard input holds, if a here-document or here-string gives it; inner `None` if it is not known.
    pub(super) input: Option<Option<String>>,
    /// A descriptor is opened for reading.
    pub(super) reads: bool,
}

impl Walk<'_> {
    /// What redirects read and write.
    pub(super) fn redirects(&mut self, redirects: &[Redirect], place: &Place<'_>) -> RedirectEffects {
        let mut outcome = RedirectEffects::default();
        for redirect in redirects {
            self.pieces(&redirect.target.pieces, place);
            outcome.unknown |= redirect.sets_variable;
            outcome.reads |= matches!(
                redirect.kind,
                BashRedirectKind::Read | BashRedirectKind::ReadWrite | BashRedirectKind::DuplicateInput
            );
            let mut target = self.expand_redirect_target(redirect, &mut outcome);
            self.substitute(&mut target);
            match redirect.kind {
                BashRedirectKind::HereDocument => {
                    let body = redirect.body.and_then(|number| place.bodies.get(number));
                    let pieces = body.map(|body| body.pieces.as_slice()).unwrap_or_default();
                    self.pieces(pieces, place);
                    let arg = expand::single(pieces, "");
                    outcome.unknown |= self.evaluates(&arg);
                    outcome.reveals |= !self.is_printable(&arg);
                    outcome.input = Some(arg.known().map(str::to_owned));
                }
                BashRedirectKind::HereString => {
                    outcome.unknown |= self.evaluates(&target);
                    outcome.reveals |= !self.is_printable(&target);
                    outcome.input = Some(target.known().map(str::to_owned));
                }
                BashRedirectKind::Read => self.redirect(&target, &[Direction::In], place, &mut outcome),
                BashRedirectKind::Write | BashRedirectKind::Append | BashRedirectKind::Both => {
                    self.redirect(&target, &[Direction::Out], place, &mut outcome);
                }
                BashRedirectKind::ReadWrite => {
                    self.redirect(&target, &[Direction::In, Direction::Out], place, &mut outcome)
                }
                BashRedirectKind::DuplicateInput | BashRedirectKind::DuplicateOutput => {
                    let descriptor = target.known().is_some_and(is_descriptor);
                    if !descriptor {
                        let way = if redirect.kind == BashRedirectKind::DuplicateInput {
                            Direction::In
                        } else {
                            Direction::Out
                        };
                        self.redirect(&target, &[way], place, &mut outcome);
                    }
                }
            }
        }
        outcome
    }

    /// The word that a redirect names. Braces in it are expanded, and more than one word is an error.
    fn expand_redirect_target(&mut self, redirect: &Redirect, outcome: &mut RedirectEffects) -> Arg {
        let whole = expand::single(&redirect.target.pieces, &redirect.target.source);
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

    fn redirect(
        &mut self,
        target: &Arg,
        ways: &[Direction],
        place: &Place<'_>,
        outcome: &mut RedirectEffects,
    ) {
        if target.known().is_some_and(is_null_or_stream_device)
            || is_pipe(target)
            || self.is_private_temp(target)
        {
            return;
        }
        if let Some(url) = target.known().and_then(socket) {
            self.warn(DangerKind::Network, Severity::High, || format!("a redirect opens `{url}`"));
            outcome.effects.push(inferred(Effect::Fetch { url }, Origin::Redirect));
            outcome.unknown = true;
            return;
        }
        if target.known().is_some_and(removal::is_device)
            && ways.iter().any(|way| matches!(way, Direction::Out))
        {
            self.danger(CommandDanger {
                kind: DangerKind::DangerousRemoval,
                severity: Severity::Critical,
                phase: Phase::Ask,
                standing: Standing::Binding,
                text: format!("a redirect overwrites `{}`", target.text),
            });
        }
        for way in ways {
            // A glob that matches several files is an error, one that matches one is that file.
            let effects = match way {
                Direction::In => place.dirs.reads(target, Scope::Entry, Origin::Redirect, self.workspace),
                Direction::Out => place.dirs.writes(target, WriteKind::Put, Origin::Redirect, self.workspace),
            };
            let glob = target.pattern.is_some();
            if effects.is_none() || glob {
                outcome.unknown = true;
                self.warn(DangerKind::Redirect, Severity::High, || {
                    format!("the target of the redirect `{}` is not known", target.text)
                });
                for path in place.dirs.likely(target, self.workspace) {
                    let effect = match way {
                        Direction::In => Effect::Read { path, scope: Scope::Entry },
                        Direction::Out => Effect::Write { path, kind: WriteKind::Put },
                    };
                    outcome.effects.push(inferred(effect, Origin::Redirect));
                }
            }
            outcome.effects.extend(effects.unwrap_or_default());
        }
    }
}

/// `2`, `2-` or `-`: anything else after `>&` names a file.
fn is_descriptor(text: &str) -> bool {
    let number = text.strip_suffix('-').unwrap_or(text);
    text == "-" || number.bytes().all(|byte| byte.is_ascii_digit()) && number.parse::<i32>().is_ok()
}

#[derive(Clone, Copy)]
enum Direction {
    In,
    Out,
}
