//! Tables as Markdown.

use super::markdown_inline::InlineText;
use super::markdown_writer::MarkdownWriter;
use dom_query::NodeRef;

/// A wider table is written as blocks: nothing could be read in it.
const MAX_COLUMNS: usize = 64;
/// A cell that spans more columns is taken to span this many.
const MAX_SPAN: usize = 32;

/// A table with one cell of headings, tables or paragraphs to fewer cells than this arranges a page.
const MIN_CELLS_PER_ARRANGING: usize = 12;

/// One row: its cells, each repeated empty for the columns that it spans.
struct TableRow {
    /// The texts of the cells.
    cells: Vec<String>,
    /// It is in the head, or has no data.
    is_header: bool,
}

/// Writes a table: of data as a Markdown table, one that only arranges a page as its blocks.
pub(super) fn write_markdown_table(
    writer: &MarkdownWriter<'_>,
    table: &NodeRef<'_>,
    level: usize,
) -> Vec<String> {
    let mut rows = Vec::new();
    let mut captions = Vec::new();
    collect_rows(table, false, &mut rows, &mut captions);
    let mut blocks: Vec<String> = captions.iter().map(|caption| writer.inline_line(caption)).collect();
    blocks.retain(|caption| !caption.is_empty());
    if rows.is_empty() || is_layout(&rows) {
        for (row, _) in &rows {
            for cell in cells(row) {
                blocks.extend(writer.write_children(&cell, level));
            }
        }
        if rows.is_empty() {
            blocks.extend(writer.write_children(table, level));
        }
        return blocks;
    }
    let mut written: Vec<TableRow> =
        rows.iter().map(|(row, in_head)| write_row(writer, row, *in_head)).collect();
    written.retain(|row| row.cells.iter().any(|cell| !cell.is_empty()));
    let columns = written.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    if columns == 0 {
        return blocks;
    }
    let separator = if writer.is_plain { "\t" } else { " | " };
    let mut lines = Vec::new();
    for (index, row) in written.iter().enumerate() {
        let cells: Vec<&str> =
            (0..columns).map(|column| row.cells.get(column).map_or("", String::as_str)).collect();
        if writer.is_plain {
            lines.push(cells.join(separator).trim_end().to_owned());
        } else {
            lines.push(format!("| {} |", cells.join(separator)));
        }
        // Markdown wants a heading row; the first one stands for it where the table has none.
        let is_last_header = row.is_header && !written.get(index + 1).is_some_and(|next| next.is_header);
        if !writer.is_plain && index == 0 && (is_last_header || !row.is_header || written.len() > 1) {
            lines.push(format!("|{}", " --- |".repeat(columns)));
        }
    }
    blocks.push(lines.join("\n"));
    blocks
}

/// The rows of a table without those of tables inside it.
fn collect_rows<'a>(
    node: &NodeRef<'a>,
    in_head: bool,
    rows: &mut Vec<(NodeRef<'a>, bool)>,
    captions: &mut Vec<NodeRef<'a>>,
) {
    for child in node.children_it(false).filter(NodeRef::is_element) {
        let name = child.node_name().unwrap_or_default();
        match &*name {
            "tr" => rows.push((child, in_head)),
            "thead" => collect_rows(&child, true, rows, captions),
            "tbody" | "tfoot" => collect_rows(&child, false, rows, captions),
            "caption" => captions.push(child),
            _ => {}
        }
    }
}

/// The cells of a row.
fn cells<'a>(row: &NodeRef<'a>) -> Vec<NodeRef<'a>> {
    let is_cell = |node: &NodeRef<'_>| node.node_name().is_some_and(|name| matches!(&*name, "td" | "th"));
    row.children_it(false).filter(is_cell).collect()
}

/// Whether a table arranges a page: other tables, headings or several paragraphs in a good part of its cells, or one cell
/// in all. A box of facts may have one such cell among many.
fn is_layout(rows: &[(NodeRef<'_>, bool)]) -> bool {
    let (mut most_cells, mut all_cells, mut arranging_cells) = (0, 0, 0);
    for (row, _) in rows {
        let cells = cells(row);
        most_cells = most_cells.max(cells.len());
        all_cells += cells.len();
        for cell in cells {
            let mut paragraphs = 0;
            let mut is_arranging = false;
            for inner in cell.descendants_it().filter(NodeRef::is_element) {
                let name = inner.node_name().unwrap_or_default();
                match &*name {
                    "pre" | "article" | "section" => return true,
                    "table" | "h1" | "h2" | "h3" => is_arranging = true,
                    "p" => paragraphs += 1,
                    _ => {}
                }
            }
            arranging_cells += usize::from(is_arranging || paragraphs > 3);
        }
    }
    let is_arranging = arranging_cells * MIN_CELLS_PER_ARRANGING > all_cells;
    is_arranging || most_cells > MAX_COLUMNS || (most_cells <= 1 && rows.len() <= 1)
}

/// The cells of a row as text.
fn write_row(writer: &MarkdownWriter<'_>, row: &NodeRef<'_>, in_head: bool) -> TableRow {
    let mut out = TableRow { cells: Vec::new(), is_header: in_head };
    let mut has_data = false;
    for cell in cells(row) {
        has_data |= cell.node_name().is_some_and(|name| &*name == "td");
        out.cells.push(cell_text(writer, &cell));
        let span = cell.attr("colspan").and_then(|span| span.trim().parse::<usize>().ok()).unwrap_or(1);
        for _ in 1..span.min(MAX_SPAN) {
            if out.cells.len() < MAX_COLUMNS {
                out.cells.push(String::new());
            }
        }
    }
    out.is_header |= !has_data && !out.cells.is_empty();
    out
}

/// A cell on one line.
fn cell_text(writer: &MarkdownWriter<'_>, cell: &NodeRef<'_>) -> String {
    let mut text = InlineText::default();
    for child in cell.children_it(false) {
        writer.write_inline(&child, &mut text);
    }
    let text = text.finish();
    let text: Vec<&str> = text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect();
    if writer.is_plain { text.join(" ") } else { text.join("<br>").replace('|', "\\|") }
}
