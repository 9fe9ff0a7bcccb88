//! The task store beside a model: every operation gives the same answer and leaves the same list.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use toolgate_state::{NewTask, TaskChange, TaskError, TaskItem, TaskStatus, TaskStore};

/// An operation on a list. Numbers are small, so that most of them name a task.
#[derive(Debug, Clone)]
enum TaskOperation {
    Create { subject: String, description: String, after: Option<u32> },
    SetStatus { number: u32, status: TaskStatus, owner: Option<String> },
    SetOwner { number: u32, owner: String },
    Block { blocker: u32, blocked: u32 },
    Note { number: u32, text: String },
    Rename { number: u32, subject: String, revision: Option<u32> },
    SetMetadata { number: u32, key: String, value: Option<u32> },
    Remove { number: u32 },
    Replace { tasks: Vec<(String, TaskStatus)> },
    Clear,
}

/// The list as plain maps.
#[derive(Debug, Default)]
struct ModelList {
    last_number: u32,
    order: Vec<u32>,
    tasks: BTreeMap<u32, ModelTask>,
    /// Pairs of blocker and blocked.
    dependencies: BTreeSet<(u32, u32)>,
}

#[derive(Debug, Clone, Default)]
struct ModelTask {
    subject: String,
    description: String,
    status: TaskStatus,
    owner: Option<String>,
    notes: Vec<String>,
    metadata: BTreeMap<String, u32>,
    revision: u32,
}

impl ModelList {
    fn blockers(&self, number: u32) -> Vec<u32> {
        let open = |task: &ModelTask| !task.status.is_closed();
        self.dependencies
            .iter()
            .filter(|(blocker, blocked)| *blocked == number && self.tasks.get(blocker).is_some_and(open))
            .map(|(blocker, _)| *blocker)
            .collect()
    }

    /// Whether `from` waits for `to`, by following each dependency.
    fn waits_for(&self, from: u32, to: u32) -> bool {
        from == to
            || self
                .dependencies
                .iter()
                .any(|(blocker, blocked)| *blocked == from && self.waits_for(*blocker, to))
    }

    fn add(&mut self, subject: &str, description: &str, status: TaskStatus) -> u32 {
        self.last_number += 1;
        let task = ModelTask {
            subject: subject.to_owned(),
            description: description.to_owned(),
            status,
            revision: 1,
            ..ModelTask::default()
        };
        self.tasks.insert(self.last_number, task);
        self.order.push(self.last_number);
        self.last_number
    }

    fn remove(&mut self, number: u32) {
        self.tasks.remove(&number);
        self.order.retain(|other| *other != number);
        self.dependencies.retain(|(blocker, blocked)| *blocker != number && *blocked != number);
    }

    fn change(&mut self, number: u32, change: impl FnOnce(&mut ModelTask)) {
        let task = self.tasks.get_mut(&number).unwrap();
        change(task);
        task.revision += 1;
    }

    fn claim_problem(&self, number: u32, owner: Option<&str>) -> Option<TaskError> {
        let task = &self.tasks[&number];
        if task.status == TaskStatus::InProgress
            && let Some(other) = task.owner.as_deref()
            && owner.unwrap_or("session") != other
        {
            return Some(TaskError::Claimed { number, owner: other.to_owned() });
        }
        let blockers = self.blockers(number);
        (!blockers.is_empty()).then_some(TaskError::Blocked { number, blockers })
    }

    /// Applies an operation, or says why not.
    fn apply(&mut self, operation: &TaskOperation) -> Option<TaskError> {
        let missing =
            |number: &u32| (!self.tasks.contains_key(number)).then_some(TaskError::NotFound(*number));
        match operation {
            TaskOperation::Create { subject, description, after } => {
                // A task that waits for itself or for none of the list is not created, and no number is used.
                let own = self.last_number + 1;
                match after {
                    Some(after) if *after == own => {
                        return Some(TaskError::Cycle { blocked: own, blocker: own });
                    }
                    Some(after) if missing(after).is_some() => return missing(after),
                    Some(after) => {
                        self.dependencies.insert((*after, own));
                    }
                    None => {}
                }
                self.add(subject, description, TaskStatus::Pending);
            }
            TaskOperation::SetStatus { number, status, owner } => {
                if let Some(error) = missing(number) {
                    return Some(error);
                }
                let claims = *status == TaskStatus::InProgress;
                if claims && let Some(error) = self.claim_problem(*number, owner.as_deref()) {
                    return Some(error);
                }
                let (owner, status) = (owner.clone(), *status);
                self.change(*number, |task| {
                    task.status = status;
                    let session = claims.then(|| "session".to_owned());
                    task.owner = owner.or(task.owner.take()).or(session);
                });
            }
            TaskOperation::SetOwner { number, owner } => {
                if let Some(error) = missing(number) {
                    return Some(error);
                }
                let owner = Some(owner.clone()).filter(|owner| !owner.is_empty());
                self.change(*number, |task| task.owner = owner);
            }
            TaskOperation::Block { blocker, blocked } => {
                if let Some(error) = missing(blocked).or(missing(blocker)) {
                    return Some(error);
                }
                if self.waits_for(*blocker, *blocked) {
                    return Some(TaskError::Cycle { blocked: *blocked, blocker: *blocker });
                }
                self.dependencies.insert((*blocker, *blocked));
                self.change(*blocked, |_| {});
            }
            TaskOperation::Note { number, text } => {
                if let Some(error) = missing(number) {
                    return Some(error);
                }
                self.change(*number, |task| task.notes.push(text.clone()));
            }
            TaskOperation::Rename { number, subject, revision } => {
                if let Some(error) = missing(number) {
                    return Some(error);
                }
                let now = self.tasks[number].revision;
                if revision.is_some_and(|revision| revision != now) {
                    return Some(TaskError::Stale { number: *number, revision: now });
                }
                self.change(*number, |task| task.subject.clone_from(subject));
            }
            TaskOperation::SetMetadata { number, key, value } => {
                if let Some(error) = missing(number) {
                    return Some(error);
                }
                self.change(*number, |task| match value {
                    Some(value) => drop(task.metadata.insert(key.clone(), *value)),
                    None => drop(task.metadata.remove(key)),
                });
            }
            TaskOperation::Remove { number } => {
                if let Some(error) = missing(number) {
                    return Some(error);
                }
                self.remove(*number);
            }
            TaskOperation::Replace { tasks } => self.replace(tasks),
            TaskOperation::Clear => {
                // Numbers go on after it: an agent that still knows one must not get another task.
                *self = Self { last_number: self.last_number, ..Self::default() };
            }
        }
        None
    }

    fn replace(&mut self, tasks: &[(String, TaskStatus)]) {
        let mut left = self.order.clone();
        let mut order = Vec::new();
        let mut plan = Vec::new();
        for (subject, status) in tasks {
            let at = left.iter().position(|number| self.tasks[number].subject == *subject);
            plan.push((at.map(|at| left.remove(at)), subject, *status));
        }
        left.into_iter().for_each(|number| self.remove(number));
        for (old, subject, status) in plan {
            order.push(match old {
                Some(number) => {
                    if self.tasks[&number].status != status {
                        self.change(number, |task| task.status = status);
                    }
                    number
                }
                None => self.add(subject, "", status),
            });
        }
        self.order = order;
    }
}

fn run(store: &TaskStore, list: &str, operation: &TaskOperation) -> Option<TaskError> {
    let update = |number: u32, mut change: TaskChange| {
        change.claimant = Some("session".to_owned());
        store.update(list, number, change).err()
    };
    let mut change = TaskChange::default();
    match operation.clone() {
        TaskOperation::Create { subject, description, after } => {
            let mut task = NewTask::new(subject);
            task.description = description;
            task.blocked_by = after.into_iter().collect();
            store.create(list, task).err()
        }
        TaskOperation::SetStatus { number, status, owner } => {
            change.owner = owner;
            update(number, change.with_status(status))
        }
        TaskOperation::SetOwner { number, owner } => update(number, change.with_owner(owner)),
        TaskOperation::Block { blocker, blocked } => {
            change.add_blocked_by = vec![blocker];
            update(blocked, change)
        }
        TaskOperation::Note { number, text } => {
            change.note = Some(toolgate_state::TaskNote::new(text));
            update(number, change)
        }
        TaskOperation::Rename { number, subject, revision } => {
            change.subject = Some(subject);
            change.expected_revision = revision;
            update(number, change)
        }
        TaskOperation::SetMetadata { number, key, value } => {
            let value = value.map_or(serde_json::Value::Null, serde_json::Value::from);
            change.metadata = [(key, value)].into_iter().collect();
            update(number, change)
        }
        TaskOperation::Remove { number } => store.remove(list, number).err(),
        TaskOperation::Replace { tasks } => {
            let tasks: Vec<NewTask> = tasks
                .into_iter()
                .map(|(subject, status)| NewTask::new(subject).with_status(status))
                .collect();
            store.replace(list, &tasks).err()
        }
        TaskOperation::Clear => {
            let had_tasks = !store.list(list).unwrap().is_empty();
            assert_eq!(store.remove_list(list).unwrap(), had_tasks);
            assert!(store.lists().unwrap().is_empty());
            None
        }
    }
}

fn compare(model: &ModelList, stored: &[TaskItem]) {
    let numbers: Vec<u32> = stored.iter().map(|task| task.number).collect();
    assert_eq!(numbers, model.order);
    for task in stored {
        let expected = &model.tasks[&task.number];
        assert_eq!(task.subject, expected.subject);
        assert_eq!(task.description, expected.description);
        assert_eq!(task.status, expected.status);
        assert_eq!(task.owner, expected.owner);
        assert_eq!(task.revision, expected.revision, "task {}", task.number);
        assert_eq!(task.blocked_by, model.blockers(task.number));
        let blocks: Vec<u32> =
            model.dependencies.iter().filter(|(from, _)| *from == task.number).map(|(_, to)| *to).collect();
        assert_eq!(task.blocks, blocks);
        let notes: Vec<&String> = task.notes.iter().map(|note| &note.text).collect();
        assert_eq!(notes, expected.notes.iter().collect::<Vec<_>>());
        let metadata: BTreeMap<String, u32> = task
            .metadata
            .iter()
            .map(|(key, value)| (key.clone(), u32::try_from(value.as_u64().unwrap()).unwrap()))
            .collect();
        assert_eq!(metadata, expected.metadata);
    }
}

fn number() -> impl Strategy<Value = u32> {
    0_u32..8
}

fn status() -> impl Strategy<Value = TaskStatus> {
    prop::sample::select(TaskStatus::ALL.to_vec())
}

fn owner() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "left", "right", "session"]).prop_map(str::to_owned)
}

fn operation() -> impl Strategy<Value = TaskOperation> {
    prop_oneof![
        4 => ("\\PC{0,12}", any::<String>(), prop::option::weighted(0.2, number()))
            .prop_map(|(subject, description, after)| TaskOperation::Create { subject, description, after }),
        4 => (number(), status(), prop::option::of(prop::sample::select(vec!["left", "right", "session"])))
            .prop_map(|(number, status, owner)| TaskOperation::SetStatus {
                number,
                status,
                owner: owner.map(str::to_owned),
            }),
        1 => (number(), owner()).prop_map(|(number, owner)| TaskOperation::SetOwner { number, owner }),
        4 => (number(), number()).prop_map(|(blocker, blocked)| TaskOperation::Block { blocker, blocked }),
        1 => (number(), any::<String>()).prop_map(|(number, text)| TaskOperation::Note { number, text }),
        2 => (number(), "[ab]", prop::option::of(1_u32..4))
            .prop_map(|(number, subject, revision)| TaskOperation::Rename { number, subject, revision }),
        1 => (number(), "(__proto__|a|b)", prop::option::of(0_u32..9))
            .prop_map(|(number, key, value)| TaskOperation::SetMetadata { number, key, value }),
        1 => number().prop_map(|number| TaskOperation::Remove { number }),
        1 => prop::collection::vec(("[abc]", status()), 0..5).prop_map(|tasks| TaskOperation::Replace { tasks }),
        1 => Just(TaskOperation::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_task_store_answers_as_its_model(operations in prop::collection::vec(operation(), 1..40)) {
        let store = TaskStore::in_memory().unwrap();
        let mut model = ModelList::default();
        for operation in &operations {
            prop_assert_eq!(run(&store, "list", operation), model.apply(operation), "{:?}", operation);
        }
        compare(&model, &store.list("list").unwrap());
        prop_assert!(store.list("other").unwrap().is_empty());
    }

    #[test]
    fn a_watcher_sees_every_change(operations in prop::collection::vec(operation(), 1..40)) {
        let store = TaskStore::in_memory().unwrap();
        let (mut seen, mut count) = (BTreeMap::<u32, TaskItem>::new(), 0);
        for (at, operation) in operations.iter().enumerate() {
            run(&store, "list", operation);
            if at % 3 == 0 {
                follow(&store, &mut seen, &mut count);
            }
        }
        follow(&store, &mut seen, &mut count);
        let mut now = store.list("list").unwrap();
        now.sort_by_key(|task| task.number);
        prop_assert_eq!(seen.into_values().map(without_blockers).collect::<Vec<_>>(),
            now.into_iter().map(without_blockers).collect::<Vec<_>>());
    }
}

/// The open blockers of a task change with the status of another task, which is reported in its place.
fn without_blockers(mut task: TaskItem) -> TaskItem {
    task.blocked_by.clear();
    task
}

fn follow(store: &TaskStore, seen: &mut BTreeMap<u32, TaskItem>, count: &mut i64) {
    let (events, now) = store.changes_since("list", *count).unwrap();
    for event in events {
        match event.task {
            Some(task) => drop(seen.insert(event.number, task)),
            None => drop(seen.remove(&event.number)),
        }
    }
    *count = now;
}
