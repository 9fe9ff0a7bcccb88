//! Visits `[[ … ]]` and `(( … ))`. They run nothing by themselves, but arithmetic evaluates the values of variables,
//! and a value such as `a[$(cmd)]` then runs a command.
//!
//! They are read-only if every name that they evaluate is known to contain a number; then they need no rule.

use crate::analysis::EffectOrigin;
use crate::bash_program::{ShellWord, WordPiece};
use crate::command_part::empty_part;
use crate::evaluated_names;
use crate::expand;
use crate::grammars;
use crate::shell_arg::ShellArg;
use crate::visitor::{AnalysisVisitor, CommandContext};
use toolgate_proto::PathScope;

impl AnalysisVisitor<'_> {
    /// Visits `(( … ))`. It is read-only if every name in it is known to contain a number.
    pub(crate) fn visit_arithmetic(&mut self, pieces: &[WordPiece], context: &CommandContext<'_>) {
        self.visit_pieces(pieces, context);
        let mut part = empty_part("(( … ))".to_owned(), context);
        let mut arg = ShellArg::default();
        evaluated_names::collect_evaluated_names(pieces, &mut arg.evaluated);
        arg.evaluates = evaluated_names::collect_evaluation(pieces, &mut arg.evaluated);
        part.read_only = !self.variables.evaluates(&arg);
        part.allow_text = part.read_only.then(String::new);
        self.push_part(part);
    }

    /// Visits `[[ … ]]`.
    ///
    /// The files that operators such as `-f` test are reads of their attributes.
    pub(crate) fn visit_test(&mut self, words: &[ShellWord], context: &CommandContext<'_>) {
        let mut args = Vec::new();
        for word in words {
            self.visit_pieces(&word.pieces, context);
            if word.pieces.is_empty() {
                args.push(ShellArg::literal(word.source.clone()));
            } else {
                args.push(expand::expand_single(&word.pieces, &word.source));
            }
        }
        let evaluates = self.test_evaluates(words, &args);
        let spelled: Vec<&str> = words.iter().map(|word| word.source.as_str()).collect();
        let text = format!("[[ {} ]]", spelled.join(" "));
        let mut part = empty_part(text, context);
        part.program = Some("[[".to_owned());
        part.argv = args.iter().map(ShellArg::to_command_word).collect();
        part.deny_texts.push(part.text.clone());
        if !evaluates {
            part.allow_text = Some(part.text.clone());
            part.read_only = true;
        }
        for pair in args.windows(2) {
            if let [operator, file] = pair
                && operator.known().is_some_and(grammars::is_file_test)
            {
                let reads =
                    context.dirs.read_effects(file, PathScope::Entry, EffectOrigin::Argument, self.workspace);
                part.effects.extend(reads.unwrap_or_default());
            }
        }
        self.push_part(part);
    }

    /// Whether a test evaluates a value that may contain code: by an expansion, by `-v` and `-R`, which expand a
    /// subscript, or by a numeric comparison, whose operands are arithmetic.
    fn test_evaluates(&mut self, words: &[ShellWord], args: &[ShellArg]) -> bool {
        let mut evaluates =
            args.iter().any(|arg| self.variables.evaluates(arg) || matches!(arg.known(), Some("-v" | "-R")));
        for (position, arg) in args.iter().enumerate() {
            if !matches!(arg.text.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") {
                continue;
            }
            let sides = [position.checked_sub(1), position.checked_add(1)];
            for word in sides.into_iter().flatten().filter_map(|side| words.get(side)) {
                let mut side = ShellArg::default();
                evaluated_names::collect_evaluated_names(&word.pieces, &mut side.evaluated);
                evaluates |= self.variables.evaluates(&side);
            }
        }
        evaluates
    }
}
