//! PDF files, with the feature `pdf`.

use super::file_fixture::FileFixture;
use serde_json::json;

/// A PDF with one line on each page.
fn pdf(pages: usize) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    let mut kids = Vec::new();
    for page in 1..=pages {
        let content = format!("BT /F1 12 Tf 72 700 Td (This is page {page}) Tj ET");
        let at = objects.len() + 1;
        kids.push(format!("{at} 0 R"));
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            at + 1
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{}] /Count {pages} >>", kids.join(" "));
    let mut out = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        offsets.push(out.len());
        out.extend(format!("{} 0 obj\n{object}\nendobj\n", index + 1).into_bytes());
    }
    let start = out.len();
    out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).into_bytes());
    for offset in offsets {
        out.extend(format!("{offset:010} 00000 n \n").into_bytes());
    }
    out.extend(
        format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n", objects.len() + 1)
            .into_bytes(),
    );
    out
}

#[test]
fn pages_are_read_by_range_and_damaged_files_are_refused() {
    let fixture = FileFixture::new();
    let path = fixture.put("book.pdf", pdf(300));
    let read = |pages: &str| fixture.call("Read", json!({ "file_path": path, "pages": pages }));
    let text = read("3").unwrap().model_text();
    assert_eq!(text, "--- page 3 of 300 ---\nThis is page 3\n");
    let text = read("299-").unwrap().model_text();
    assert_eq!(
        text,
        "--- page 299 of 300 ---\nThis is page 299\n--- page 300 of 300 ---\nThis is page 300\n"
    );
    let text = fixture.call_text("Read", json!({ "file_path": path }));
    assert!(
        text.ends_with("This is page 20\n[more pages follow: continue with `pages` \"21-40\"]\n"),
        "{text}"
    );
    for (pages, words) in
        [("1-21", "more than 20 pages"), ("5-2", "ends before"), ("x", "not a page"), ("0", "not a page")]
    {
        assert!(read(pages).unwrap_err().reason.contains(words), "{pages}");
    }
    assert_eq!(read("301").unwrap_err().kind, "RangeError");
    let whole = pdf(3);
    for end in (0..whole.len()).step_by(40) {
        let path = fixture.put("broken.pdf", &whole[..end]);
        // A truncated file is read or refused; a panic of the parser must not end the process.
        if let Err(refusal) = fixture.call("Read", json!({ "file_path": path })) {
            assert_eq!(refusal.kind, "FileReadError", "{end}: {refusal}");
        }
    }
}
