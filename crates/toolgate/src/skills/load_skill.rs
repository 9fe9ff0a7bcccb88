//! Skills for users: `/name arguments`.

use super::invocation::{LoadedSkill, SkillInvocation, SkillUser};
use crate::settings::values::SkillOverride;
use crate::toolgate::Toolgate;
use tokio_util::sync::CancellationToken;
use toolgate_proto::{Code, Refusal, Verdict};

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

    /// Refuses a skill that a rule denies.
    fn check_skill_allowed(&self, name: &str, arguments: &str) -> Result<(), Refusal> {
        let input = serde_json::json!({ "skill": name, "args": arguments }).to_string();
        let judgement = self.check("Skill", &input)?;
        match &judgement.verdict {
            Verdict::Deny(reason) if reason.rule.is_some() => {
                Err(Refusal::new(reason.code.unwrap_or(Code::DeniedByRule), reason.to_string()))
            }
            Verdict::Allow(_) | Verdict::Ask(_) | Verdict::Deny(_) => Ok(()),
        }
    }

    /// A prompt in which `/name arguments` is replaced by the text of that skill or command; none if it does not begin
    /// with the name of one.
    pub async fn expand_prompt(
        &self,
        prompt: &str,
        cancel: CancellationToken,
    ) -> Result<Option<LoadedSkill>, Refusal> {
        let Some(rest) = prompt.trim_start().strip_prefix('/') else { return Ok(None) };
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let is_known = self.skills().is_some_and(|skills| skills.current().find_skill(name).is_some());
        match is_known {
            true => self.load_skill(name, arguments.trim(), cancel).await.map(Some),
            false => Ok(None),
        }
    }

    /// Begins a turn: rules that a skill had until the next prompt end.
    pub fn begin_turn(&self) {
        self.gate().begin_turn();
    }
}
