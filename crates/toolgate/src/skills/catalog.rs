//! The catalog: every skill, command, agent and output style that counts, and every file that does not.

use super::capability_file::{
    CapabilityContent, CapabilityFile, CapabilityKind, CatalogAgent, CatalogProblem, CatalogSkill,
    CatalogStyle, FileCandidate,
};
use super::places::{CapabilityPlace, CapabilityPlaces};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use toolgate_files::{FileStamp, StampWatch, list_folder, parallel_map, read_file_stamp};
use toolgate_proto::AbsPath;
use toolgate_proto::timestamp::may_timestamp_repeat;
use toolgate_skills::{CapabilityProblem, SkillFileKind};

/// The most files of one place; more are not read, and a problem says so.
const MAX_FILES_PER_PLACE: usize = 20_000;
/// How deep directories of commands and agents may be nested.
const MAX_DEPTH: usize = 8;
/// From this many files on they are read by several threads.
const MIN_PARALLEL_FILES: usize = 64;
/// The name of the file of a skill.
pub(super) const SKILL_FILE: &str = "SKILL.md";

/// What was found in all places.
#[derive(Debug, Clone, Default)]
pub struct SkillCatalog {
    /// The skills and commands in effect, by full name.
    skills: BTreeMap<String, Arc<CatalogSkill>>,
    /// The subagent types in effect, by full name.
    agents: BTreeMap<String, Arc<CatalogAgent>>,
    /// The output styles in effect, by full name.
    styles: BTreeMap<String, Arc<CatalogStyle>>,
    /// Skills that a stronger skill of the same name replaces; kept for `toolgate skill list --all`.
    shadowed: Vec<Arc<CatalogSkill>>,
    /// Problems of all files and directories that were searched.
    problems: Vec<CatalogProblem>,
    /// Every file that was read, by its path.
    files: HashMap<AbsPath, CapabilityFile>,
    /// When the files were read, in nanoseconds since 1970.
    read_at: i128,
    /// Where they were looked for.
    places: CapabilityPlaces,
    /// Every file and directory that was looked at, while they are collected.
    stamps: Vec<(AbsPath, FileStamp)>,
    /// Notices when one of them changes.
    watch: Arc<StampWatch>,
}

impl SkillCatalog {
    /// Finds and reads everything. A file that did not change since `previous` is not read again.
    pub fn load(places: &CapabilityPlaces, previous: Option<&Self>) -> Self {
        let read_at = i128::from(toolgate_files::now_millis()) * 1_000_000;
        let mut catalog = Self { read_at, places: places.clone(), ..Self::default() };
        let mut candidates = Vec::new();
        for place in &places.places {
            catalog.find_files(place, &mut candidates);
        }
        let read =
            parallel_map(&candidates, MIN_PARALLEL_FILES, |candidate| read_unless_kept(candidate, previous));
        let mut seen = HashSet::new();
        for (candidate, file) in candidates.iter().zip(read) {
            let stamp = file.as_ref().map_or(FileStamp::Absent, |file| file.stamp);
            catalog.stamps.push((candidate.path.clone(), stamp));
            let Some(file) = file else {
                catalog.note_missing_skill(candidate);
                continue;
            };
            catalog.add_file(candidate, file, &mut seen);
        }
        catalog.watch = Arc::new(StampWatch::new(std::mem::take(&mut catalog.stamps), read_at));
        catalog
    }

    /// The catalog as the files say now: the same one if no file or directory changed.
    pub fn reload(previous: &Arc<Self>, places: &CapabilityPlaces) -> Arc<Self> {
        match previous.places == *places && !previous.watch.has_changed() {
            true => Arc::clone(previous),
            false => Arc::new(Self::load(places, Some(previous))),
        }
    }

    /// The skill or command of a name; the last part of a command's name is enough where it is the only one.
    pub fn find_skill(&self, name: &str) -> Option<&Arc<CatalogSkill>> {
        let name = name.strip_prefix('/').unwrap_or(name);
        if let Some(skill) = self.skills.get(name) {
            return Some(skill);
        }
        let is_short_name = |skill: &&Arc<CatalogSkill>| {
            let own = skill.name.rsplit(':').next();
            own == Some(name) && skill.plugin.is_none() && skill.kind == SkillFileKind::Command
        };
        let mut matching = self.skills.values().filter(is_short_name);
        matching.next().filter(|_| matching.next().is_none())
    }

    /// Every skill and command that counts, in name order.
    pub fn skills(&self) -> impl Iterator<Item = &Arc<CatalogSkill>> {
        self.skills.values()
    }

    /// The skills and commands that a stronger one of the same name replaces.
    pub fn shadowed_skills(&self) -> &[Arc<CatalogSkill>] {
        &self.shadowed
    }

    /// Every agent that counts, in name order.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<CatalogAgent>> {
        self.agents.values()
    }

    /// Every output style that counts, in name order.
    pub fn output_styles(&self) -> impl Iterator<Item = &Arc<CatalogStyle>> {
        self.styles.values()
    }

    /// The problems of all files, in the order of the places.
    pub fn problems(&self) -> &[CatalogProblem] {
        &self.problems
    }

    /// How many files were found.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Lists the files of a place that may be used.
    fn find_files(&mut self, place: &CapabilityPlace, candidates: &mut Vec<FileCandidate>) {
        let start = candidates.len();
        let plugin = place.plugin.clone().map(Arc::new);
        let candidate = |kind: CapabilityKind, path: AbsPath, place_name: String| FileCandidate {
            kind,
            path,
            place_name,
            scope: place.scope.clone(),
            boundary: place.boundary.clone(),
            plugin: plugin.clone(),
            clash_prefix: place.clash_prefix.clone(),
        };
        for dir in &place.skills {
            for entry in self.list(dir) {
                if entry.is_directory && !entry.name.starts_with('.') {
                    let path = dir.join(&entry.name).join(SKILL_FILE);
                    candidates.push(candidate(CapabilityKind::Skill, path, entry.name));
                } else if entry.name.ends_with(".md") {
                    let message = format!(
                        "a skill is a directory with a file `{SKILL_FILE}`, so this file is not used"
                    );
                    self.add_problem(dir.join(&entry.name), CapabilityProblem::warning(1, message));
                }
            }
        }
        for dir in &place.skill_dirs {
            let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            candidates.push(candidate(CapabilityKind::Skill, dir.join(SKILL_FILE), name));
        }
        for (kind, roots) in [
            (CapabilityKind::Command, &place.commands),
            (CapabilityKind::Agent, &place.agents),
            (CapabilityKind::OutputStyle, &place.output_styles),
        ] {
            for root in roots {
                let mut files = Vec::new();
                match root.as_path().extension().is_some_and(|extension| extension == "md") {
                    true => files.push((root.clone(), stem_of(root))),
                    false => self.find_markdown(root, "", 0, &mut files),
                }
                candidates.extend(files.into_iter().map(|(path, name)| candidate(kind, path, name)));
            }
        }
        if candidates.len() - start > MAX_FILES_PER_PLACE {
            let first = candidates.get(start).map(|candidate| candidate.path.clone());
            candidates.truncate(start + MAX_FILES_PER_PLACE);
            let message =
                format!("there are more than {MAX_FILES_PER_PLACE} files here; the others are not used");
            self.add_problem(first.unwrap_or_else(AbsPath::root), CapabilityProblem::error(1, message));
        }
    }

    /// Finds Markdown files below a directory, each with its name: the directories above it and its own, with colons.
    fn find_markdown(
        &mut self,
        dir: &AbsPath,
        prefix: &str,
        depth: usize,
        found: &mut Vec<(AbsPath, String)>,
    ) {
        for entry in self.list(dir) {
            let path = dir.join(&entry.name);
            if entry.is_directory && !entry.name.starts_with('.') {
                if depth < MAX_DEPTH && found.len() <= MAX_FILES_PER_PLACE {
                    self.find_markdown(&path, &format!("{prefix}{}:", entry.name), depth + 1, found);
                } else {
                    let message =
                        format!("directories are read to a depth of {MAX_DEPTH}, so this one is not");
                    self.add_problem(path, CapabilityProblem::warning(1, message));
                }
            } else if entry.name.ends_with(".md") {
                let name = format!("{prefix}{}", stem_of(&path));
                found.push((path, name));
            }
        }
    }

    /// Lists a directory and reports one that cannot be read as a problem, so that other places still load.
    fn list(&mut self, dir: &AbsPath) -> Vec<toolgate_files::FolderEntry> {
        self.stamps.push((dir.clone(), read_file_stamp(dir)));
        list_folder(dir).unwrap_or_else(|problem| {
            let message = format!("the directory cannot be read: {problem}");
            self.add_problem(dir.clone(), CapabilityProblem::error(1, message));
            Vec::new()
        })
    }

    /// A directory among the skills that has no skill.
    fn note_missing_skill(&mut self, candidate: &FileCandidate) {
        if let Some(dir) = candidate.path.parent() {
            let message = format!("the directory has no file `{SKILL_FILE}`, so it is not a skill");
            let problem = candidate.note_plugin().unwrap_or_else(|| CapabilityProblem::note(1, message));
            self.add_problem(dir, problem);
        }
    }

    /// Adds the capability of a file. A file that is reachable by two paths counts once, except in plugins.
    fn add_file(&mut self, candidate: &FileCandidate, file: CapabilityFile, seen: &mut HashSet<(u64, u64)>) {
        // Two links to one file are one skill.
        if let FileStamp::Present { id, .. } = file.stamp
            && candidate.plugin.is_none()
            && !seen.insert(id)
        {
            let message = "another path leads to the same file, and that one counts".to_owned();
            self.problems.push(candidate.refusal(message));
            return;
        }
        for problem in &file.problems {
            self.add_problem(candidate.path.clone(), problem.clone());
        }
        match &file.content {
            CapabilityContent::Skill(skill) => self.add_skill(candidate, skill),
            CapabilityContent::Agent(agent) => match self.agents.get(&agent.name) {
                Some(other) => {
                    let message = format!("the agent `{}` of {} counts instead", agent.name, other.file);
                    self.problems.push(candidate.refusal(message));
                }
                None => drop(self.agents.insert(agent.name.clone(), Arc::clone(agent))),
            },
            CapabilityContent::Style(style) => match self.styles.get(&style.name) {
                Some(other) => {
                    let message =
                        format!("the output style `{}` of {} counts instead", style.name, other.file);
                    self.problems.push(candidate.refusal(message));
                }
                None => drop(self.styles.insert(style.name.clone(), Arc::clone(style))),
            },
            CapabilityContent::Nothing => {}
        }
        self.files.insert(candidate.path.clone(), file);
    }

    /// Adds a skill where no stronger one has its name: the places come strongest first, and in all of them a skill
    /// counts more than a command.
    fn add_skill(&mut self, candidate: &FileCandidate, skill: &Arc<CatalogSkill>) {
        let Some(other) = self.skills.get(&skill.name).cloned() else {
            self.skills.insert(skill.name.clone(), Arc::clone(skill));
            return;
        };
        if let Some(prefix) = &candidate.clash_prefix {
            let name = format!("{prefix}:{}", skill.name);
            if toolgate_skills::check_capability_name(&name).is_ok() && !self.skills.contains_key(&name) {
                let renamed = CatalogSkill { name: name.clone(), ..CatalogSkill::clone(skill) };
                self.skills.insert(name, Arc::new(renamed));
                return;
            }
        }
        let replaces = other.kind == SkillFileKind::Command && skill.kind == SkillFileKind::Skill;
        let (winner, loser) = if replaces { (Arc::clone(skill), other) } else { (other, Arc::clone(skill)) };
        let message = format!("`{}` of {} counts instead", winner.name, winner.file);
        let problem = CapabilityProblem::note(1, message);
        self.problems.push(CatalogProblem { file: loser.file.clone(), problem });
        self.shadowed.push(loser);
        if replaces {
            self.skills.insert(winner.name.clone(), winner);
        }
    }

    /// Records a problem with the file or directory to which it belongs.
    fn add_problem(&mut self, file: AbsPath, problem: CapabilityProblem) {
        self.problems.push(CatalogProblem { file, problem });
    }
}

/// Reads a file, unless it is as it was; none if there is no such file.
fn read_unless_kept(candidate: &FileCandidate, previous: Option<&SkillCatalog>) -> Option<CapabilityFile> {
    let stamp = read_file_stamp(&candidate.path);
    let FileStamp::Present { changed, .. } = stamp else {
        return (candidate.kind != CapabilityKind::Skill).then(|| candidate.read(stamp));
    };
    let kept = previous.and_then(|previous| {
        let kept = previous.files.get(&candidate.path)?;
        // Written so shortly before it was read that a second write may have the same time.
        let is_certain = kept.stamp == stamp
            && kept.plugin == candidate.plugin
            && !may_timestamp_repeat(changed, previous.read_at);
        is_certain.then(|| kept.clone())
    });
    Some(kept.unwrap_or_else(|| candidate.read(stamp)))
}

/// The name of a file without its ending.
fn stem_of(path: &AbsPath) -> String {
    path.as_path().file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
