//! Every problem in the form of a policy book, each with its place.
//!
//! Deserialization stops at the first problem and names no place. The user who corrects a book wants them all, so the
//! form is compared here, and deserialization only confirms it.

use crate::tool_names::find_intended_name;
use serde_json::{Map, Value};
use toolgate_proto::json::describe;

/// A value of the book that has a wrong form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BookShapeProblem {
    /// The place as a JSON pointer, such as `/rules/0/action`.
    pub(crate) pointer: String,
    /// What is wrong.
    pub(crate) message: String,
    /// What to write.
    pub(crate) fix: String,
}

/// The values that a key can have.
#[derive(Clone, Copy)]
enum BookValueForm {
    /// Any string.
    Text,
    /// One of these strings.
    Word(&'static [&'static str]),
    /// A string or a list of strings.
    Texts,
    /// A list of objects with these keys.
    Objects(&'static [BookKey]),
}

/// A key of an object in the book.
struct BookKey {
    name: &'static str,
    is_required: bool,
    form: BookValueForm,
}

/// A key without which the object has no meaning.
const fn required(name: &'static str, form: BookValueForm) -> BookKey {
    BookKey { name, is_required: true, form }
}

/// A key that may be absent.
const fn optional(name: &'static str, form: BookValueForm) -> BookKey {
    BookKey { name, is_required: false, form }
}

const ACTIONS: BookValueForm = BookValueForm::Word(&["allow", "ask", "deny"]);

/// The keys of a book. A test compares them with the types that it is deserialized into.
const BOOK_KEYS: &[BookKey] =
    &[optional("defaultAction", ACTIONS), optional("rules", BookValueForm::Objects(RULE_KEYS))];

const RULE_KEYS: &[BookKey] = &[
    required("tool", BookValueForm::Text),
    required("action", ACTIONS),
    optional("risk", BookValueForm::Word(&["low", "medium", "high", "critical"])),
    optional("message", BookValueForm::Text),
    optional("conditions", BookValueForm::Objects(CONDITION_KEYS)),
];

const CONDITION_KEYS: &[BookKey] = &[
    required("param", BookValueForm::Text),
    required("operator", BookValueForm::Word(&["equals", "contains", "matches", "startsWith"])),
    required("value", BookValueForm::Texts),
];

/// Every problem in the form of a book, in its order.
pub(crate) fn find_shape_problems(book: &Value) -> Vec<BookShapeProblem> {
    let mut problems = Vec::new();
    check_object(book, BOOK_KEYS, "", &mut problems);
    problems
}

/// Checks the keys of an object and their values.
fn check_object(value: &Value, keys: &[BookKey], pointer: &str, problems: &mut Vec<BookShapeProblem>) {
    let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
    let Value::Object(fields) = value else {
        let example = "write `{\"defaultAction\": \"ask\", \"rules\": [{\"tool\": …, \"action\": …}]}`";
        let fix = if pointer.is_empty() { example.to_owned() } else { list_choices("keys", &known) };
        problems.push(mismatch(pointer, value, "an object", fix));
        return;
    };
    for (name, value) in fields {
        let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        match keys.iter().find(|key| key.name == name) {
            Some(key) => check_value(value, key, &pointer, problems),
            None => problems.push(BookShapeProblem {
                message: format!("unknown key `{}`", place(&pointer)),
                fix: suggest(name, &known, "keys"),
                pointer,
            }),
        }
    }
    for key in keys.iter().filter(|key| key.is_required && !has_key(fields, key.name, &known)) {
        problems.push(BookShapeProblem {
            pointer: pointer.to_owned(),
            message: format!("`{}` must have `{}`", place(pointer), key.name),
            fix: format!("add `{}`", key.name),
        });
    }
}

/// Whether the object has the key, perhaps misspelled: that problem is reported already.
fn has_key(fields: &Map<String, Value>, key: &str, known: &[&str]) -> bool {
    let is_misspelled = |name: &String| {
        !known.contains(&name.as_str()) && find_intended_name(name, known.iter().copied()) == Some(key)
    };
    fields.contains_key(key) || fields.keys().any(is_misspelled)
}

/// Checks the value of a key. `null` stands for an absent word or text.
fn check_value(value: &Value, key: &BookKey, pointer: &str, problems: &mut Vec<BookShapeProblem>) {
    match (key.form, value) {
        (BookValueForm::Text | BookValueForm::Texts, Value::String(_)) => {}
        (BookValueForm::Text | BookValueForm::Word(_), Value::Null) if !key.is_required => {}
        (BookValueForm::Word(words), Value::String(word)) if words.contains(&word.as_str()) => {}
        (BookValueForm::Word(words), value) => {
            let fix = suggest(value.as_str().unwrap_or_default(), words, "words");
            problems.push(mismatch(pointer, value, &format!("one of `{}`", words.join("`, `")), fix));
        }
        (BookValueForm::Texts, Value::Array(items)) => {
            for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.is_string()) {
                let fix = "write it in quotes".to_owned();
                problems.push(mismatch(&format!("{pointer}/{index}"), item, "a string", fix));
            }
        }
        (BookValueForm::Objects(keys), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                check_object(item, keys, &format!("{pointer}/{index}"), problems);
            }
        }
        (BookValueForm::Objects(_), value) => {
            problems.push(mismatch(pointer, value, "a list of objects", "write `[{…}]`".to_owned()));
        }
        (BookValueForm::Text, value) => {
            problems.push(mismatch(pointer, value, "a string", "write it in quotes".to_owned()));
        }
        (BookValueForm::Texts, value) => {
            let fix = "write it in quotes".to_owned();
            problems.push(mismatch(pointer, value, "a string or a list of strings", fix));
        }
    }
}

/// The problem of a value that must be something else.
fn mismatch(pointer: &str, value: &Value, wanted: &str, fix: String) -> BookShapeProblem {
    let message = format!("`{}` is {}, but must be {wanted}", place(pointer), describe(value));
    BookShapeProblem { pointer: pointer.to_owned(), message, fix }
}

/// The word that was probably meant, or all.
fn suggest(given: &str, known: &[&'static str], what: &str) -> String {
    match find_intended_name(given, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => list_choices(what, known),
    }
}

/// What can be written.
fn list_choices(what: &str, known: &[&str]) -> String {
    format!("use the {what} `{}`", known.join("`, `"))
}

/// A place as people write it: `policy.rules[0].action`.
fn place(pointer: &str) -> String {
    pointer.split('/').skip(1).fold("policy".to_owned(), |place, step| match step.parse::<usize>() {
        Ok(index) => format!("{place}[{index}]"),
        Err(_) => format!("{place}.{}", step.replace("~1", "/").replace("~0", "~")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy_book::BookContent;
    use serde_json::json;

    #[test]
    fn a_book_has_problems_of_form_exactly_where_it_cannot_be_deserialized() {
        let rule = json!({ "tool": "Bash", "action": "deny", "risk": "high", "message": "no",
            "conditions": [{ "param": "command", "operator": "startsWith", "value": ["a", "b"] }] });
        let book = json!({ "defaultAction": "ask", "rules": [rule] });
        assert_eq!(find_shape_problems(&book), []);
        let pointers = [
            "/defaultAction",
            "/rules",
            "/rules/0",
            "/rules/0/tool",
            "/rules/0/action",
            "/rules/0/risk",
            "/rules/0/message",
            "/rules/0/conditions",
            "/rules/0/conditions/0",
            "/rules/0/conditions/0/param",
            "/rules/0/conditions/0/operator",
            "/rules/0/conditions/0/value",
            "/rules/0/conditions/0/value/1",
        ];
        let values =
            [json!(null), json!(1), json!("x"), json!("deny"), json!("low"), json!({}), json!({ "x": 1 })];
        for pointer in pointers {
            for value in &values {
                let mut changed = book.clone();
                *changed.pointer_mut(pointer).unwrap() = value.clone();
                let is_valid = serde_json::from_value::<BookContent>(changed.clone()).is_ok();
                assert_eq!(find_shape_problems(&changed).is_empty(), is_valid, "{pointer}: {value}");
            }
            let mut changed = book.clone();
            let (above, name) = pointer.rsplit_once('/').unwrap();
            if let Some(Value::Object(fields)) = changed.pointer_mut(above) {
                fields.remove(name);
                let is_valid = serde_json::from_value::<BookContent>(changed.clone()).is_ok();
                assert_eq!(find_shape_problems(&changed).is_empty(), is_valid, "{pointer} is absent");
            }
        }
    }
}
