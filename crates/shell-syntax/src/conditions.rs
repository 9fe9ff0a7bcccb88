//! `(( … ))` and `[[ … ]]`: they run nothing by themselves, but what they evaluate may.

use super::analysis::EffectOrigin;
use super::command_part::empty_part;
use super::expand::{self, ShellArg};
use super::syntax::{ShellWord, WordPiece};
use super::visitor::{AnalysisVisitor, CommandContext};
use toolgate_proto::PathScope;

impl AnalysisVisitor<'_> {
    /// `(( … ))`: names in it are evaluated, and may be assigned to.
    pub(super) fn visit_arithmetic(&mut self, pieces: &[WordPiece], place: &CommandContext<'_>) {
        self.visit_pieces(pieces, place);
        let mut part = empty_part("(( … ))".to_owned(), place);
        // What a name holds is evaluated in turn; only names that this line sets are known to hold no code.
        let mut arg = ShellArg::default();
        expand::collect_evaluated_names(pieces, &mut arg.evaluated);
        arg.evaluates = expand::collect_evaluation(pieces, &mut arg.evaluated);
        part.read_only = !self.evaluates(&arg);
        part.allow_text = part.read_only.then(String::new);
        self.push_part(part);
    }

    /// `[[ … ]]`.
    pub(super) fn visit_test(&mut self, words: &[ShellWord], place: &CommandContext<'_>) {
        let mut args = Vec::new();
        for word in words {
            self.visit_pieces(&word.pieces, place);
            if word.pieces.is_empty() {
                args.push(ShellArg::literal(word.source.clone()));
            } else {
                args.push(expand::expand_single(&word.pieces, &word.source));
            }
        }
        let arithmetic =
            |arg: &ShellArg| matches!(arg.text.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
        let mut unsafe_test =
            args.iter().any(|arg| self.evaluates(arg) || matches!(arg.known(), Some("-v" | "-R")));
        for (position, arg) in args.iter().enumerate() {
            if arithmetic(arg) {
                let sides = [position.checked_sub(1), position.checked_add(1)];
                for word in sides.into_iter().flatten().filter_map(|side| words.get(side)) {
                    let mut side = ShellArg::default();
                    expand::collect_evaluated_names(&word.pieces, &mut side.evaluated);
                    unsafe_test |= self.evaluates(&side);
                }
            }
        }
        let spelled: Vec<&str> = words.iter().map(|word| word.source.as_str()).collect();
        let text = format!("[[ {} ]]", spelled.join(" "));
        let mut part = empty_part(text, place);
        part.program = Some("[[".to_owned());
        part.argv = args.iter().map(ShellArg::to_command_word).collect();
        part.deny_texts.push(part.text.clone());
        if !unsafe_test {
            part.allow_text = Some(part.text.clone());
            part.read_only = true;
        }
        let files = args.windows(2).filter_map(|pair| match pair {
            [test, file]
                if matches!(
                    test.known(),
                    Some(
                        "-a" | "-b"
                            | "-c"
                            | "-d"
                            | "-e"
                            | "-f"
                            | "-g"
                            | "-h"
                            | "-k"
                            | "-L"
                            | "-N"
                            | "-O"
                            | "-G"
                            | "-p"
                            | "-r"
                            | "-s"
                            | "-S"
                            | "-u"
                            | "-w"
                            | "-x"
                    )
                ) =>
            {
                Some(file)
            }
            _ => None,
        });
        for file in files {
            part.effects.extend(
                place
                    .dirs
                    .read_effects(file, PathScope::Entry, EffectOrigin::Argument, self.workspace)
                    .unwrap_or_default(),
            );
        }
        self.push_part(part);
    }
}
