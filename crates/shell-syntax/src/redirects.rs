//! Redirects: reads and writes of their own, which no rule for a command covers.

use super::analysis::{
    CommandDanger, DangerKind, DangerResponse, DangerStanding, EffectOrigin, InferredEffect,
};
use super::command_part::{inferred_effect, is_pipe};
use super::expand::{self, ShellArg};
use super::removal;
use super::syntax::{BashRedirect, BashRedirectKind};
use super::visitor::{AnalysisVisitor, CommandContext};
use super::working_dirs::{is_null_or_stream_device, parse_network_redirect};
use toolgate_proto::{Effect, PathScope, RiskLevel, WriteKind};

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

impl AnalysisVisitor<'_> {
    /// What redirects read and write.
    pub(super) fn analyse_redirects(
        &mut self,
        redirects: &[BashRedirect],
        place: &CommandContext<'_>,
    ) -> RedirectEffects {
        let mut outcome = RedirectEffects::default();
        for redirect in redirects {
            self.visit_pieces(&redirect.target.pieces, place);
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
                    self.visit_pieces(pieces, place);
                    let arg = expand::expand_single(pieces, "");
                    outcome.unknown |= self.evaluates(&arg);
                    outcome.reveals |= !self.is_printable(&arg);
                    outcome.input = Some(arg.known().map(str::to_owned));
                }
                BashRedirectKind::HereString => {
                    outcome.unknown |= self.evaluates(&target);
                    outcome.reveals |= !self.is_printable(&target);
                    outcome.input = Some(target.known().map(str::to_owned));
                }
                BashRedirectKind::Read => {
                    self.add_redirect_effects(&target, &[RedirectDirection::In], place, &mut outcome)
                }
                BashRedirectKind::Write | BashRedirectKind::Append | BashRedirectKind::Both => {
                    self.add_redirect_effects(&target, &[RedirectDirection::Out], place, &mut outcome);
                }
                BashRedirectKind::ReadWrite => self.add_redirect_effects(
                    &target,
                    &[RedirectDirection::In, RedirectDirection::Out],
                    place,
                    &mut outcome,
                ),
                BashRedirectKind::DuplicateInput | BashRedirectKind::DuplicateOutput => {
                    let descriptor = target.known().is_some_and(is_descriptor);
                    if !descriptor {
                        let way = if redirect.kind == BashRedirectKind::DuplicateInput {
                            RedirectDirection::In
                        } else {
                            RedirectDirection::Out
                        };
                        self.add_redirect_effects(&target, &[way], place, &mut outcome);
                    }
                }
            }
        }
        outcome
    }

    /// The word that a redirect names. Braces in it are expanded, and more than one word is an error.
    fn expand_redirect_target(&mut self, redirect: &BashRedirect, outcome: &mut RedirectEffects) -> ShellArg {
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

    fn add_redirect_effects(
        &mut self,
        target: &ShellArg,
        ways: &[RedirectDirection],
        place: &CommandContext<'_>,
        outcome: &mut RedirectEffects,
    ) {
        if target.known().is_some_and(is_null_or_stream_device)
            || is_pipe(target)
            || self.is_private_temp(target)
        {
            return;
        }
        if let Some(url) = target.known().and_then(parse_network_redirect) {
            self.warn(DangerKind::Network, RiskLevel::High, || format!("a redirect opens `{url}`"));
            outcome.effects.push(inferred_effect(Effect::Fetch { url }, EffectOrigin::Redirect));
            outcome.unknown = true;
            return;
        }
        if target.known().is_some_and(removal::is_device)
            && ways.iter().any(|way| matches!(way, RedirectDirection::Out))
        {
            self.record_danger(CommandDanger {
                kind: DangerKind::DangerousRemoval,
                severity: RiskLevel::Critical,
                phase: DangerResponse::Ask,
                standing: DangerStanding::Binding,
                text: format!("a redirect overwrites `{}`", target.text),
            });
        }
        for way in ways {
            // A glob that matches several files is an error, one that matches one is that file.
            let effects = match way {
                RedirectDirection::In => {
                    place.dirs.read_effects(target, PathScope::Entry, EffectOrigin::Redirect, self.workspace)
                }
                RedirectDirection::Out => {
                    place.dirs.write_effects(target, WriteKind::Put, EffectOrigin::Redirect, self.workspace)
                }
            };
            let glob = target.pattern.is_some();
            if effects.is_none() || glob {
                outcome.unknown = true;
                self.warn(DangerKind::Redirect, RiskLevel::High, || {
                    format!("the target of the redirect `{}` is not known", target.text)
                });
                for path in place.dirs.likely_paths(target, self.workspace) {
                    let effect = match way {
                        RedirectDirection::In => Effect::Read { path, scope: PathScope::Entry },
                        RedirectDirection::Out => Effect::Write { path, kind: WriteKind::Put },
                    };
                    outcome.effects.push(inferred_effect(effect, EffectOrigin::Redirect));
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
enum RedirectDirection {
    In,
    Out,
}
