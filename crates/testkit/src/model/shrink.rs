//! Shrinking: a pair of settings and a call on which model and engine disagree, reduced to what the disagreement needs.

use super::compare::{ModelDisagreement, compile, decide_with_engine};
use super::evaluator;
use super::generated_call::{GeneratedCall, GeneratedEffect, GeneratedSettings};
use toolgate_proto::Mode;

/// More rules than a generated list has.
const MAX_LIST_LEN: usize = 10;
/// More commands than a generated line has.
const MAX_LINE_LEN: usize = 4;

/// Removes whatever can be removed while model and engine still disagree.
pub(super) fn shrink_disagreement(
    mut settings: GeneratedSettings,
    mut call: GeneratedCall,
) -> ModelDisagreement {
    let disagree = |settings: &GeneratedSettings, call: &GeneratedCall| {
        decide_with_engine(&compile(settings), call).0 != evaluator::judge(settings, call)
    };
    let size = |settings: &GeneratedSettings, call: &GeneratedCall| format!("{settings:?}{call:?}").len();
    loop {
        let now = size(&settings, &call);
        let smaller = shrink_candidates(&settings, &call)
            .into_iter()
            .find(|(settings, call)| size(settings, call) < now && disagree(settings, call));
        match smaller {
            Some(found) => (settings, call) = found,
            None => break,
        }
    }
    let command = match &call.effect {
        GeneratedEffect::Exec(line) => format!(" `{}`", line.text()),
        _ => String::new(),
    };
    ModelDisagreement {
        model: evaluator::judge(&settings, &call),
        engine: decide_with_engine(&compile(&settings), &call),
        settings: format!("{settings:?}"),
        call: format!("{}{command} {:?} {:?} {:?}", call.tool, call.effect, call.input, call.opinions),
    }
}

/// Copies of a pair, each with one thing removed.
fn shrink_candidates(
    settings: &GeneratedSettings,
    call: &GeneratedCall,
) -> Vec<(GeneratedSettings, GeneratedCall)> {
    let mut candidates: Vec<(GeneratedSettings, GeneratedCall)> = Vec::new();
    let mut change = |edit: &dyn Fn(&mut GeneratedSettings, &mut GeneratedCall)| {
        let (mut settings, mut call) = (settings.clone(), call.clone());
        edit(&mut settings, &mut call);
        candidates.push((settings, call));
    };
    for layer in 0..settings.layers.len() {
        change(&|settings, _| drop(settings.layers.remove(layer)));
        for list in 0..3 {
            for rule in 0..MAX_LIST_LEN {
                change(&|settings, _| remove_rule(settings, layer, list, rule));
            }
        }
    }
    change(&|settings, _| settings.book = None);
    change(&|settings, _| settings.disabled.clear());
    change(&|settings, _| settings.approved_hosts.clear());
    change(&|settings, _| settings.blocked_hosts.clear());
    change(&|settings, _| {
        (settings.managed_only, settings.no_bypass, settings.approve_https) = (false, false, false);
    });
    change(&|settings, _| settings.free_readers = true);
    change(&|settings, _| settings.mode = Mode::Default);
    change(&|_, call| call.opinions.clear());
    change(&|_, call| call.needs_user = false);
    for command in 0..MAX_LINE_LEN {
        change(&|_, call| {
            if let GeneratedEffect::Exec(line) = &mut call.effect
                && line.items.len() > 1
                && command < line.items.len()
            {
                line.items.remove(command);
            }
        });
    }
    candidates
}

/// Removes one rule of one list of a layer, if it exists.
fn remove_rule(settings: &mut GeneratedSettings, layer: usize, list: usize, rule: usize) {
    let Some(layer) = settings.layers.get_mut(layer) else { return };
    let list = match list {
        0 => &mut layer.allow,
        1 => &mut layer.ask,
        _ => &mut layer.deny,
    };
    if rule < list.len() {
        list.remove(rule);
    }
}
