//! The lock table: the locks of unfinished calls, indexed so that a conflict is found without comparing with every
//! other call.
//!
//! Paths are kept in two tries, one for shared and one for exclusive locks.
//! Two locks conflict where one path is the other or lies above it, and at least one of the two is exclusive.

use super::lock_set::{LockMode, LockResource, LockSet, ResourceLock};
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::Component;
use toolgate_proto::AbsPath;

/// Calls, in order: a thousand may share one lock.
type CallIndexSet = BTreeSet<usize>;

/// The locks of unfinished calls, by resource. A call is known by its index in the queue.
#[derive(Debug, Default)]
pub(super) struct LockTable {
    shared: LockIndex,
    exclusive: LockIndex,
}

#[derive(Debug, Default)]
struct LockIndex {
    paths: LockTrieNode,
    named: HashMap<String, CallIndexSet>,
}

#[derive(Debug, Default)]
struct LockTrieNode {
    calls: CallIndexSet,
    children: HashMap<OsString, LockTrieNode>,
}

impl LockTable {
    pub(super) fn add(&mut self, call: usize, locks: &LockSet) {
        for hold in &locks.locks {
            let places = self.index_mut(hold);
            match &hold.resource {
                LockResource::Path(path) => places.paths.add(&path_components(path), call),
                LockResource::Named(name) => match places.named.get_mut(name) {
                    Some(calls) => drop(calls.insert(call)),
                    None => drop(places.named.insert(name.clone(), CallIndexSet::from([call]))),
                },
            }
        }
    }

    pub(super) fn remove(&mut self, call: usize, locks: &LockSet) {
        for hold in &locks.locks {
            let places = self.index_mut(hold);
            match &hold.resource {
                LockResource::Path(path) => places.paths.remove(&path_components(path), call),
                LockResource::Named(name) => {
                    if let Some(calls) = places.named.get_mut(name) {
                        calls.remove(&call);
                        if calls.is_empty() {
                            places.named.remove(name);
                        }
                    }
                }
            }
        }
    }

    /// The calls whose locks conflict with these, each once, in order.
    pub(super) fn conflicting_calls(&self, locks: &LockSet) -> Vec<usize> {
        let mut met = Vec::new();
        self.visit(locks, &mut |calls| met.extend(calls));
        met.sort_unstable();
        met.dedup();
        met
    }

    /// The last of them before an index.
    pub(super) fn last_conflict_before(&self, place: usize, locks: &LockSet) -> Option<usize> {
        let mut last = None;
        self.visit(locks, &mut |calls| last = last.max(calls.range(..place).next_back().copied()));
        last
    }

    fn visit(&self, locks: &LockSet, see: &mut dyn FnMut(&CallIndexSet)) {
        for hold in &locks.locks {
            self.exclusive.visit(&hold.resource, see);
            if hold.mode == LockMode::Exclusive {
                self.shared.visit(&hold.resource, see);
            }
        }
    }

    fn index_mut(&mut self, hold: &ResourceLock) -> &mut LockIndex {
        match hold.mode {
            LockMode::Shared => &mut self.shared,
            LockMode::Exclusive => &mut self.exclusive,
        }
    }
}

impl LockIndex {
    fn visit(&self, on: &LockResource, see: &mut dyn FnMut(&CallIndexSet)) {
        match on {
            LockResource::Path(path) => self.paths.visit(&path_components(path), see),
            LockResource::Named(name) => {
                if let Some(calls) = self.named.get(name) {
                    see(calls);
                }
            }
        }
    }
}

impl LockTrieNode {
    fn add(&mut self, way: &[&OsStr], call: usize) {
        match way.split_first() {
            None => drop(self.calls.insert(call)),
            Some((name, rest)) => match self.children.get_mut(*name) {
                Some(node) => node.add(rest, call),
                None => {
                    let mut node = Self::default();
                    node.add(rest, call);
                    self.children.insert((*name).to_owned(), node);
                }
            },
        }
    }

    fn remove(&mut self, way: &[&OsStr], call: usize) {
        match way.split_first() {
            None => drop(self.calls.remove(&call)),
            Some((name, rest)) => {
                if let Some(node) = self.children.get_mut(*name) {
                    node.remove(rest, call);
                    if node.calls.is_empty() && node.children.is_empty() {
                        self.children.remove(*name);
                    }
                }
            }
        }
    }

    /// Every node on the path, at its end, and below it.
    fn visit(&self, way: &[&OsStr], see: &mut dyn FnMut(&CallIndexSet)) {
        match way.split_first() {
            None => self.visit_all(see),
            Some((name, rest)) => {
                see(&self.calls);
                if let Some(node) = self.children.get(*name) {
                    node.visit(rest, see);
                }
            }
        }
    }

    fn visit_all(&self, see: &mut dyn FnMut(&CallIndexSet)) {
        see(&self.calls);
        for node in self.children.values() {
            node.visit_all(see);
        }
    }
}

fn path_components(path: &AbsPath) -> Vec<&OsStr> {
    path.as_path()
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            // INVARIANT: locks have resolved or lexical paths, in which there is no `..`.
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds() -> impl Strategy<Value = Vec<ResourceLock>> {
        let path = prop::collection::vec(prop_oneof![Just("a"), Just("b"), Just("c")], 0..4)
            .prop_map(|names| LockResource::Path(AbsPath::root().join(names.join("/"))));
        let name = prop_oneof![Just("x"), Just("y")].prop_map(|name| LockResource::Named(name.to_owned()));
        let how = prop_oneof![Just(LockMode::Shared), Just(LockMode::Exclusive)];
        let hold = (prop_oneof![3 => path, 1 => name], how)
            .prop_map(|(on, how)| ResourceLock { resource: on, mode: how });
        prop::collection::vec(hold, 0..3)
    }

    /// The rule itself, said once more without trees.
    fn conflict(one: &ResourceLock, two: &ResourceLock) -> bool {
        let touch = match (&one.resource, &two.resource) {
            (LockResource::Path(one), LockResource::Path(two)) => one.is_under(two) || two.is_under(one),
            (LockResource::Named(one), LockResource::Named(two)) => one == two,
            (LockResource::Path(_), LockResource::Named(_))
            | (LockResource::Named(_), LockResource::Path(_)) => false,
        };
        touch && (one.mode == LockMode::Exclusive || two.mode == LockMode::Exclusive)
    }

    proptest! {
        #[test]
        fn the_trees_find_what_comparing_each_pair_finds(
            lock_sets in prop::collection::vec((holds(), any::<bool>()), 1..12),
            asked in holds(),
        ) {
            let mut table = LockTable::default();
            let lock_sets: Vec<(LockSet, bool)> = lock_sets
                .into_iter()
                .map(|(holds, stays)| (LockSet { locks: holds, ..LockSet::default() }, stays))
                .collect();
            for (call, (locks, _)) in lock_sets.iter().enumerate() {
                table.add(call, locks);
            }
            for (call, (locks, stays)) in lock_sets.iter().enumerate() {
                if !stays {
                    table.remove(call, locks);
                }
            }
            let asked = LockSet { locks: asked, ..LockSet::default() };
            let naive: Vec<usize> = lock_sets
                .iter()
                .enumerate()
                .filter(|(_, (locks, stays))| {
                    *stays && locks.locks.iter().any(|one| asked.locks.iter().any(|two| conflict(one, two)))
                })
                .map(|(call, _)| call)
                .collect();
            for place in 0..lock_sets.len() {
                let last = naive.iter().copied().filter(|call| *call < place).max();
                prop_assert_eq!(table.last_conflict_before(place, &asked), last);
            }
            prop_assert_eq!(table.conflicting_calls(&asked), naive);
        }
    }
}
