//! The decision law, as the manual has it.

use super::book;
use super::command::{Simple, Touch, absolute};
use super::rule::{Entry, Rule, fits_labels, is_private};
use super::scene::{Address, CWD, Call, Deed, EXTRA, HOME, Place, Written, is_in, place};
use toolgate_policy::{Action, Layer};
use toolgate_proto::Mode;

/// How strongly something stands against a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReferenceObjection {
    /// Not at all.
    Nothing,
    /// Nobody said yes.
    Unasked,
    /// Somebody wants to be asked, or the place is one that always asks.
    Asked,
    /// No.
    Denied,
}

use ReferenceObjection::{Asked, Denied, Nothing, Unasked};

/// The answer to a call.
pub(super) fn judge(written: &Written, call: &Call) -> Action {
    let Some(law) = ReferenceEvaluator::new(written, call) else { return Action::Deny };
    let against = law.call();
    let agreed = call.opinions.contains(&Action::Allow);
    match (law.mode, against) {
        (Mode::Deny, _) | (_, Denied) => Action::Deny,
        (_, Nothing) => Action::Allow,
        (Mode::Bypass, Unasked) => Action::Allow,
        (_, Unasked) if agreed => Action::Allow,
        (Mode::DontAsk, Unasked | Asked) => Action::Deny,
        (_, Unasked | Asked) => Action::Ask,
    }
}

struct ReferenceEvaluator<'s> {
    written: &'s Written,
    call: &'s Call,
    mode: Mode,
    rules: Vec<Rule>,
    /// A rule or the book allows the whole tool.
    granted: bool,
}

/// Who touches a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AccessBasis {
    /// The tool, or a redirect.
    Itself,
    /// A command that a rule allows; `true`: by name and word for word.
    Ruled(bool),
    /// A command that is free because of what it is.
    Freed,
    /// A command that nobody allowed: its effects matter only where they stand against it.
    Nobody,
}

impl<'s> ReferenceEvaluator<'s> {
    /// Reads every rule. A rule that would hold something back and cannot be read leaves no law at all.
    fn new(written: &'s Written, call: &'s Call) -> Option<Self> {
        let mut rules = Vec::new();
        for layer in &written.layers {
            let lists =
                [(Action::Allow, &layer.allow), (Action::Ask, &layer.ask), (Action::Deny, &layer.deny)];
            for (action, list) in lists {
                for text in list {
                    match (Rule::read(text, action, layer.anchor()), action) {
                        (Entry::Broken, Action::Ask | Action::Deny) => return None,
                        (Entry::Broken, Action::Allow) | (Entry::Idle, _) => {}
                        (Entry::Rule(rule), Action::Allow) => {
                            let managed = matches!(layer.layer, Layer::Managed | Layer::Default);
                            if layer.trusted && (managed || !written.managed_only) {
                                rules.push(rule);
                            }
                        }
                        (Entry::Rule(rule), Action::Ask | Action::Deny) => rules.push(rule),
                    }
                }
            }
        }
        let bypass_is_off = written.no_bypass && written.mode == Mode::Bypass;
        let mode = if bypass_is_off { Mode::Default } else { written.mode };
        let mut law = Self { written, call, mode, rules, granted: false };
        law.granted =
            law.any(Action::Allow, |rule| rule.names(call)) || matches!(law.book(), Some((Action::Allow, _)));
        Some(law)
    }

    fn any(&self, action: Action, fits: impl Fn(&Rule) -> bool) -> bool {
        self.rules.iter().any(|rule| rule.action == action && fits(rule))
    }

    /// What the deny and ask rules say together.
    fn held(&self, fits: impl Fn(&Rule) -> bool) -> ReferenceObjection {
        if self.any(Action::Deny, &fits) {
            Denied
        } else if self.any(Action::Ask, &fits) {
            Asked
        } else {
            Nothing
        }
    }

    fn book(&self) -> Option<(Action, bool)> {
        book::answer(self.written.book.as_ref()?, self.call)
    }

    fn call(&self) -> ReferenceObjection {
        let call = self.call;
        let mut against = self.held(|rule| rule.names(call) || rule.matches_field(call));
        let off = self.written.disabled.iter().any(|name| *name == call.tool || call.also.contains(name));
        if off {
            against = Denied;
        }
        for opinion in &call.opinions {
            against = against.max(match opinion {
                Action::Allow => Nothing,
                Action::Ask => Asked,
                Action::Deny => Denied,
            });
        }
        against = against.max(match self.book() {
            None | Some((Action::Allow, _)) => Nothing,
            Some((Action::Ask, true)) => Asked,
            Some((Action::Ask, false)) => Unasked,
            Some((Action::Deny, _)) => Denied,
        });
        if call.needs_person {
            against = against.max(Asked);
        }
        against.max(self.deed())
    }

    fn deed(&self) -> ReferenceObjection {
        let plan = if self.mode == Mode::Plan { Asked } else { Nothing };
        let needs = |allowed: bool| if allowed { Nothing } else { Unasked };
        match &self.call.deed {
            Deed::Read(path) | Deed::Search(path) => self.read(&place(path), AccessBasis::Itself),
            Deed::Write(path) => self.change(&place(path), AccessBasis::Itself),
            Deed::Run(line) => {
                let mut against =
                    line.simples().iter().map(|simple| self.command(simple)).max().unwrap_or(Nothing);
                if line.items.iter().any(|(item, _)| item.echoes()) {
                    against = against.max(self.command(&Simple::of(&["echo"])));
                }
                against
            }
            Deed::Fetch(address) => self.fetch(address),
            Deed::Ask(_) => needs(self.granted || self.any(Action::Allow, |rule| rule.is_bare("WebSearch"))),
            Deed::Delegate(agent) => {
                let allowed = self.granted || self.any(Action::Allow, |rule| rule.matches_agent(agent));
                self.held(|rule| rule.matches_agent(agent)).max(needs(allowed))
            }
            Deed::Skill(name, args) => {
                let fits = |rule: &Rule| rule.matches_skill(name, args.as_deref());
                self.held(fits).max(needs(self.granted || self.any(Action::Allow, fits)))
            }
            Deed::Remote { path, .. } => {
                let spelled = path.as_ref().map_or(Nothing, |path| self.judge_remote_path(&absolute(path)));
                plan.max(spelled).max(needs(self.granted))
            }
            Deed::Note => Nothing,
            Deed::Anything => plan.max(needs(self.granted)),
        }
    }

    /// Another server sees another file system: only the spelling can be judged, and it may read and write.
    fn judge_remote_path(&self, path: &str) -> ReferenceObjection {
        let spelled = place(path).spelled;
        let rules =
            self.held(|rule| rule.matches_path("Read", &spelled) || rule.matches_path("Edit", &spelled));
        rules.max(if protected(&spelled) { Asked } else { Nothing })
    }

    /// The path as spelled and where it leads must both be granted.
    fn is_path_allowed(&self, names: &[&str], at: &Place, counts: impl Fn(&Rule, &str) -> bool) -> bool {
        [&at.spelled, &at.real].into_iter().all(|form| {
            self.any(Action::Allow, |rule| {
                names.iter().any(|name| rule.matches_path(name, form) && counts(rule, name))
            })
        })
    }

    fn read(&self, at: &Place, by: AccessBasis) -> ReferenceObjection {
        let held = self.held(|rule| forms(at).iter().any(|form| rule.matches_path("Read", form)));
        let kernel = forms(at).iter().any(|form| is_in(form, "/proc"));
        let mut against = held.max(if kernel { Asked } else { Nothing });
        if by == AccessBasis::Nobody {
            return against;
        }
        let allowed = self.is_path_allowed(&["Read", "Edit"], at, |_, _| true)
            || (by == AccessBasis::Itself && self.granted);
        if !inside(at) && !allowed {
            against = against.max(Unasked);
        }
        against.max(self.secret(at, by, &["Read", "Edit"]))
    }

    fn change(&self, at: &Place, by: AccessBasis) -> ReferenceObjection {
        let fits =
            |rule: &Rule, form: &String| rule.matches_path("Read", form) || rule.matches_path("Edit", form);
        let mut against = self.held(|rule| forms(at).iter().any(|form| fits(rule, form)));
        if forms(at).iter().any(|form| protected(form)) {
            against = against.max(Asked);
        }
        if self.mode == Mode::Plan {
            against = against.max(Asked);
        }
        if by == AccessBasis::Nobody {
            return against;
        }
        if at.shared {
            against = against.max(Unasked);
        }
        let ruled = matches!(by, AccessBasis::Ruled(_)) && inside(at);
        let freed = self.mode == Mode::AcceptEdits && inside(at);
        let granted = by == AccessBasis::Itself && self.granted && !matches!(self.call.deed, Deed::Run(_));
        if !(ruled || freed || granted || self.is_path_allowed(&["Edit"], at, |_, _| true)) {
            against = against.max(Unasked);
        }
        against.max(self.secret(at, by, &["Edit"]))
    }

    /// A secret asks unless a rule speaks of it by name.
    fn secret(&self, at: &Place, by: AccessBasis, names: &[&str]) -> ReferenceObjection {
        let secret = forms(at).iter().any(|form| form.to_lowercase().ends_with("/.env"));
        let frank =
            |rule: &Rule, name: &str| rule.pattern(name).is_some_and(|pattern| pattern.names_secret());
        if !secret || by == AccessBasis::Ruled(true) || self.is_path_allowed(names, at, frank) {
            Nothing
        } else {
            Unasked
        }
    }

    fn command(&self, simple: &Simple) -> ReferenceObjection {
        let spellings = simple.spellings();
        let held = self.held(|rule| spellings.iter().any(|text| rule.fits_command(text)));
        let bare = simple.bare();
        let ruled = self.granted || self.any(Action::Allow, |rule| rule.fits_command(&bare));
        let exactly = self.any(Action::Allow, |rule| rule.is_command(&bare));
        let free = simple.only_reads() && self.written.free_readers;
        let edits = simple.edits_files() && self.mode == Mode::AcceptEdits;
        let by = if ruled && !simple.steered() {
            AccessBasis::Ruled(exactly)
        } else if (free || edits && !simple.has_unknown_variable()) && !simple.steered() {
            AccessBasis::Freed
        } else {
            AccessBasis::Nobody
        };
        let mut against = held.max(if by == AccessBasis::Nobody { Unasked } else { Nothing });
        // What a variable makes of the program is not known: it may be what a rule holds back.
        if simple.steered() && self.held(|rule| rule.may_match_program(simple.program())) != Nothing {
            against = against.max(Asked);
        }
        if self.mode == Mode::Plan
            && (simple.steered() || simple.has_unknown_variable() || !simple.only_reads())
        {
            against = against.max(Asked);
        }
        for touch in simple.touches() {
            against = against.max(match touch {
                Touch::Reads(path) => self.read(&place(&path), by),
                Touch::Changes(path) => self.change(&place(&path), by),
                Touch::Removes(path) => {
                    let at = place(&path);
                    let holds = |form: &String| [CWD, EXTRA, HOME].iter().any(|held| is_in(held, form));
                    let grave = if forms(&at).iter().any(holds) { Asked } else { Nothing };
                    self.change(&at, by).max(grave)
                }
                Touch::Fetches(address) => self.reach(&address),
            });
        }
        if let Some(path) = &simple.output
            && path != "/dev/null"
        {
            against = against.max(self.change(&place(&absolute(path)), AccessBasis::Itself));
        }
        if let Some(path) = &simple.input {
            against = against.max(self.read(&place(&absolute(path)), AccessBasis::Freed));
        }
        against
    }

    /// A host that holds nothing back: neither a rule nor the blocked list speaks of it.
    fn host(&self, address: &Address) -> ReferenceObjection {
        let blocked = self.written.blocked_hosts.iter().any(|host| fits_labels(host, address.host));
        self.held(|rule| rule.matches_host(address)).max(if blocked { Denied } else { Nothing })
    }

    /// A fetch by the tool for it.
    fn fetch(&self, address: &Address) -> ReferenceObjection {
        let named = self.any(Action::Allow, |rule| rule.is_host(address.host));
        let private = if is_private(address.host) && !named { Denied } else { Nothing };
        let usual = matches!(address.effective_port(), 80 | 443);
        let approved = self.written.approved_hosts.iter().any(|host| fits_labels(host, address.host));
        let allowed = self.any(Action::Allow, |rule| rule.matches_host(address))
            || (usual && (approved || self.granted))
            || (self.written.approve_https && address.secure && address.effective_port() == 443);
        self.host(address).max(private).max(if allowed { Nothing } else { Unasked })
    }

    /// A fetch by a command: a rule for the command covers it, but for the service that hands out credentials.
    fn reach(&self, address: &Address) -> ReferenceObjection {
        self.host(address).max(if address.host == "169.254.169.254" { Asked } else { Nothing })
    }
}

/// Every path that a rule which holds back may mean.
fn forms(at: &Place) -> Vec<String> {
    [at.spelled.clone(), at.real.clone()].into_iter().chain(at.links.iter().cloned()).collect()
}

fn inside(at: &Place) -> bool {
    [CWD, EXTRA].iter().any(|root| is_in(&at.real, root))
}

/// Places that are never pre-approved for writing, as far as scenes use them.
fn protected(path: &str) -> bool {
    let names: Vec<String> = path.split('/').map(str::to_lowercase).collect();
    let anywhere = [".git", ".claude", ".vscode", ".bashrc"];
    names.iter().any(|name| anywhere.contains(&name.as_str())) || is_in(path, "/etc") || is_in(path, "/proc")
}
