//! Converts HTML files to Markdown as `WebFetch` does, for `scripts/web/score_markdown.py`.
//!
//! `page_to_markdown OUT PAGES BASE` writes `OUT/<case>.md` for each `PAGES/<case>/source.html` and prints the times.
//! `page_to_markdown FILE` prints the Markdown of one file.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for measurements: it reads files, prints, and ends at the first problem"
)]

use std::path::PathBuf;
use std::time::Instant;
use toolgate_tools::{PageForm, convert_page};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [file] => {
            let html = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
            let started = Instant::now();
            let page = convert_page(&html, None, PageForm::Markdown, None);
            println!(
                "{}\n\n[{} characters in {:?}]",
                page.text,
                page.text.chars().count(),
                started.elapsed()
            );
        }
        [out, pages, base] => {
            let mut times = Vec::new();
            for case in std::fs::read_dir(pages).unwrap() {
                let case = case.unwrap().path();
                let Ok(html) = std::fs::read(case.join("source.html")) else { continue };
                let html = String::from_utf8_lossy(&html).into_owned();
                let started = Instant::now();
                let page = convert_page(&html, Some(base), PageForm::Markdown, None);
                times.push(started.elapsed().as_secs_f64() * 1000.0);
                let name = format!("{}.md", case.file_name().unwrap_or_default().to_string_lossy());
                std::fs::write(PathBuf::from(out).join(name), page.text).unwrap();
            }
            let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
            let worst = times.iter().copied().fold(0.0, f64::max);
            println!("{} pages, mean {mean:.1} ms, worst {worst:.1} ms", times.len());
        }
        _ => println!("usage: page_to_markdown FILE | page_to_markdown OUT PAGES BASE"),
    }
}
