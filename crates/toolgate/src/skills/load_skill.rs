//! Skills for users: `/name arguments`.

use super::invocation::{LoadedSkill, SkillInvocation, SkillUser};
use crate::settings::values::SkillOverride;
use crate::toolgate::Toolgate;
use tokio_util::sync::CancellationToken;
use toolgate_proto::{Code, Refusal, Verdict};

/// How many skills one prompt may name.
const MAX_STACKED_SKILLS: usize = 6;

impl Toolgate {
    /// Loads a skill or command for a user, who gave its name and arguments (`/name arguments`).
    ///
    /// Its commands and files go through the gate, without a question: a command that is not allowed is a refusal.
    /// Loading itself needs no rule, since the user asked for it, but a deny rule for it holds.
    pub async fn load_skill(
        &self,
        name: &str,
        arguments: &str,
        cancel: CancellationToken,
    ) -> Result<LoadedSkill, Refusal> {
        let unknown = || Refusal::new(Code::SkillNotFound, format!("there is no skill `{name}`"));
        let skills = self.skills().ok_or_else(unknown)?;
        let skill = skills.current().find_skill(name).cloned().ok_or_else(unknown)?;
        if skill.plugin.is_none() && skills.find_override(&skill.name) == SkillOverride::Off {
            return Err(unknown().hint("settings switch it off with `skillOverrides`"));
        }
        self.check_skill_allowed(&skill.name, arguments)?;
        let invocation = SkillInvocation {
            gate: &self.shared_gate(),
            session: self.session(),
            skills,
            skill: &skill,
            user: SkillUser::User,
            cancel,
        };
        invocation.load(arguments).await
    }

    /// Refuses a skill that a rule or `disabledTools` denies. What no rule allows and a mode would deny is the user's own
    /// request here.
    fn check_skill_allowed(&self, name: &str, arguments: &str) -> Result<(), Refusal> {
        let input = serde_json::json!({ "skill": name, "args": arguments }).to_string();
        let judgement = self.check("Skill", &input)?;
        match &judgement.verdict {
            Verdict::Deny(reason) if reason.rule.is_some() || reason.code == Some(Code::DeniedByRule) => {
                Err(Refusal::new(reason.code.unwrap_or(Code::DeniedByRule), reason.to_string()))
            }
            Verdict::Allow(_) | Verdict::Ask(_) | Verdict::Deny(_) => Ok(()),
        }
    }

    /// A prompt in which `/name arguments` is replaced by the text of that skill or command; none if it does not begin
    /// with the name of one. Several names, as in `/one /two arguments`, give their texts one after the other, each with
    /// the same arguments.
    pub async fn expand_prompt(
        &self,
        prompt: &str,
        cancel: CancellationToken,
    ) -> Result<Option<LoadedSkill>, Refusal> {
        let (names, rest) = self.find_prompt_skills(prompt);
        let mut joined: Option<LoadedSkill> = None;
        for name in names {
            let loaded = self.load_skill(name, rest, cancel.clone()).await?;
            joined = Some(match joined {
                None => loaded,
                Some(before) => before.followed_by(loaded),
            });
        }
        Ok(joined)
    }

    /// The skills that a prompt begins with, and the arguments behind them.
    pub(crate) fn find_prompt_skills<'a>(&self, prompt: &'a str) -> (Vec<&'a str>, &'a str) {
        let mut rest = prompt.trim();
        let mut names = Vec::new();
        while let Some(after) = rest.strip_prefix('/').filter(|_| names.len() < MAX_STACKED_SKILLS) {
            let (name, arguments) = after.split_once(char::is_whitespace).unwrap_or((after, ""));
            if self.skills().is_none_or(|skills| skills.current().find_skill(name).is_none()) {
                break;
            }
            names.push(name);
            rest = arguments.trim_start();
        }
        (names, rest)
    }

    /// Begins a turn: rules that a skill had until the next prompt end.
    pub fn begin_turn(&self) {
        self.gate().begin_turn();
    }
}
