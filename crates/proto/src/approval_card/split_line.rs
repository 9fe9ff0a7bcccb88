//! Splits a command line into pieces that each begin with a simple command.

/// The line, cut before each of these commands that does not overlap the one before. The pieces are slices of the line
/// without the blanks around them, so together they are everything that would run: a command that the analysis spelled
/// otherwise stays inside a piece.
pub(super) fn split_line(line: &str, commands: &[String]) -> Vec<String> {
    let mut cuts: Vec<usize> = Vec::new();
    let mut searched_to = 0;
    for command in commands {
        if let Some((start, end)) = find_command(line, searched_to, command) {
            cuts.push(start);
            searched_to = end;
        }
    }
    // What stands before the first command (`for …; do`, an opening brace) belongs to it.
    if let Some(first) = cuts.first_mut() {
        *first = 0;
    } else {
        cuts.push(0);
    }
    let ends = cuts.iter().skip(1).copied().chain([line.len()]);
    let pieces = cuts.iter().zip(ends).map(|(start, end)| line.get(*start..end).unwrap_or_default().trim());
    pieces.filter(|piece| !piece.is_empty()).map(str::to_owned).collect()
}

/// Whether each of the commands stands somewhere in the line.
pub(super) fn has_commands(line: &str, commands: &[String]) -> bool {
    commands.iter().all(|command| find_command(line, 0, command).is_some())
}

/// Where a command stands in the line, at `from` or later. The analysis normalises blanks, so any blanks match.
fn find_command(line: &str, from: usize, command: &str) -> Option<(usize, usize)> {
    let rest = line.get(from..)?;
    let starts = rest.char_indices().map(|(at, _)| from + at);
    starts.into_iter().find_map(|start| {
        let is_inside_word =
            line.get(..start)?.ends_with(|c: char| c.is_alphanumeric() || "_-./".contains(c));
        if is_inside_word {
            return None;
        }
        match_blanks_freely(line.get(start..)?, command).map(|len| (start, start + len))
    })
}

/// The length of the prefix of `text` that is `command`, where each run of blanks matches any other.
fn match_blanks_freely(text: &str, command: &str) -> Option<usize> {
    let mut rest = text;
    let mut words = command.split_whitespace().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        rest = rest.strip_prefix(word)?;
        if words.peek().is_some() {
            let after = rest.trim_start();
            if after.len() == rest.len() {
                return None;
            }
            rest = after;
        }
    }
    Some(text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str, commands: &[&str]) -> Vec<String> {
        let commands: Vec<String> = commands.iter().map(|&command| command.to_owned()).collect();
        split_line(line, &commands)
    }

    #[test]
    fn pieces_begin_with_commands_and_keep_operators() {
        assert_eq!(
            split("cd  a &&\n npm   ci; npm test | tee log", &["cd a", "npm ci", "npm test", "tee log"]),
            ["cd  a &&", "npm   ci;", "npm test |", "tee log"]
        );
        assert_eq!(
            split("for f in *; do rm \"$f\"; done", &["rm \"$f\""]),
            ["for f in *; do rm \"$f\"; done"]
        );
        // A command inside another, and one that is spelled otherwise, stay inside a piece.
        assert_eq!(
            split("echo $(cat x) && ls", &["echo $(cat x)", "cat x", "ls"]),
            ["echo $(cat x) &&", "ls"]
        );
        assert_eq!(split("timeout 5 make", &["timeout 5 make", "make"]), ["timeout 5 make"]);
        assert_eq!(split("'l's -a; id", &["ls -a", "id"]), ["'l's -a; id"]);
        assert_eq!(split("", &[]), Vec::<String>::new());
    }

    proptest::proptest! {
        /// Nothing of a line is lost but blanks at the cuts, whatever the analysis says.
        #[test]
        fn the_pieces_are_the_whole_line(line in "[a-c;|& \n$(){}'é]{0,40}", commands in proptest::collection::vec("[a-c ;]{0,5}", 0..6)) {
            let squeeze = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            proptest::prop_assert_eq!(squeeze(&split_line(&line, &commands).concat()), squeeze(&line));
        }
    }
}
