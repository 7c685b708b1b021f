//! Tables between markers of a document, and figures beside it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// What an evaluation found.
#[derive(Default)]
pub struct Document {
    tables: BTreeMap<String, String>,
    figures: BTreeMap<String, String>,
    data: BTreeMap<String, Value>,
}

impl Document {
    /// A Markdown table.
    pub fn table(&mut self, name: &str, markdown: String) {
        self.tables.insert(name.to_owned(), markdown);
    }

    /// An SVG picture.
    pub fn figure(&mut self, name: &str, svg: String) {
        self.figures.insert(name.to_owned(), svg);
    }

    /// Numbers behind tables and figures.
    pub fn data(&mut self, name: &str, value: &impl serde::Serialize) -> Result<()> {
        self.data.insert(name.to_owned(), serde_json::to_value(value)?);
        Ok(())
    }

    /// Writes figures and the numbers behind them to the folder, and puts the tables into the Markdown file of the folder's name beside it, between
    /// `<!-- table NAME -->` and `<!-- end -->`. Tables without a place there, and all of them where there is no such file, become files
    /// of their own.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let written = |path: &Path, text: &str| {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        for (name, svg) in &self.figures {
            written(&folder.join(format!("{name}.svg")), svg)?;
        }
        for (name, value) in &self.data {
            written(&folder.join(format!("{name}.json")), &format!("{value}\n"))?;
        }
        let path = folder.with_extension("md");
        let mut text = std::fs::read_to_string(&path).unwrap_or_default();
        for (name, table) in &self.tables {
            match place(&text, name, table) {
                Some(with_table) => text = with_table,
                None => written(&folder.join(format!("{name}.md")), table)?,
            }
        }
        if text.is_empty() { Ok(()) } else { written(&path, &text) }
    }
}

#[cfg(test)]
impl Document {
    /// A table that was made.
    pub(super) fn made(&self, name: &str) -> Option<&str> {
        self.tables.get(name).map(String::as_str)
    }
}

/// The text with the table at its place; `None` if it has none.
fn place(text: &str, name: &str, table: &str) -> Option<String> {
    let start = format!("<!-- table {name} -->");
    let (before, rest) = text.split_once(&start)?;
    let (_, after) = rest.split_once("<!-- end -->")?;
    Some(format!("{before}{start}\n{}\n<!-- end -->{after}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_go_between_their_markers() {
        let text = "a\n<!-- table x -->\nold\n<!-- end -->\nb\n<!-- table y -->\n<!-- end -->\n";
        let with = place(text, "x", "new\n").unwrap();
        assert_eq!(
            with,
            "a\n<!-- table x -->\nnew\n<!-- end -->\nb\n<!-- table y -->\n<!-- end -->\n"
        );
        assert_eq!(place(&with, "x", "new").unwrap(), with);
        assert!(place(text, "z", "").is_none());
    }
}
