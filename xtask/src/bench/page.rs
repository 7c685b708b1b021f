//! The generated parts of `docs/performance.md`: what stands between `<!-- NAME -->` and `<!-- /NAME -->`.

use anyhow::Context as _;
use serde_json::Value;

/// The page with the results in their places. Parts that were not measured stay.
pub(super) fn filled(page: &str, results: &Value) -> anyhow::Result<String> {
    let mut page = replaced(page, "environment", &environment(&results["environment"]))?;
    for table in results["tables"].as_array().context("the results have no tables")? {
        let name = table["name"].as_str().context("a table has no name")?;
        page = replaced(&page, name, &markdown(table))?;
    }
    Ok(page)
}

fn replaced(page: &str, name: &str, text: &str) -> anyhow::Result<String> {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let missing = || format!("docs/performance.md has no place for {name}: {start}{end}");
    let (before, rest) = page.split_once(&start).with_context(missing)?;
    let (_, after) = rest.split_once(&end).with_context(missing)?;
    Ok(format!("{before}{start}{text}{end}{after}"))
}

fn markdown(table: &Value) -> String {
    let line = |cells: &Value| {
        let cells: Vec<&str> = cells
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let columns = table["columns"].as_array().map_or(0, Vec::len);
    let rows: String = table["rows"].as_array().into_iter().flatten().map(line).collect();
    format!("{}|{}\n{rows}", line(&table["columns"]), "---|".repeat(columns))
}

fn environment(found: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let machine = &found["machine"];
    let packages: Vec<String> = found["peers"]["packages"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, version)| format!("{name} {}", text(version)))
        .collect();
    let kernels: Vec<&str> = found["peers"]["numpyBlas"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let rows = [
        (
            "processor",
            format!(
                "{} (family {}, model {}), {} cores, vector extensions {}",
                text(&machine["cpu"]),
                text(&machine["family"]),
                text(&machine["model"]),
                machine["cores"],
                text(&machine["vector"])
            ),
        ),
        ("memory", format!("{} GiB", machine["memoryGiB"])),
        (
            "commit, compiler",
            format!("{}, {}", text(&found["commit"]), text(&found["rust"])),
        ),
        (
            "peers",
            format!("Python {}, {}", text(&found["peers"]["python"]), packages.join(", ")),
        ),
        ("numpy's matrix library", kernels.join("; ")),
    ];
    let rows = rows.map(|(name, value)| format!("| {name} | {value} |"));
    format!(
        "| | |
|---|---|
{}
",
        rows.join(
            "
"
        )
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::filled;

    #[test]
    fn parts_are_replaced_and_the_rest_stays() {
        let page = "A\n<!-- environment -->\n<!-- /environment -->\nB\n<!-- t -->\nold\n<!-- /t -->\nC\n";
        let results =
            json!({"environment": {}, "tables": [{"name": "t", "columns": ["a", "b"], "rows": [["1", "2"]]}]});
        let found = filled(page, &results).unwrap();
        assert!(
            found.ends_with("B\n<!-- t -->\n| a | b |\n|---|---|\n| 1 | 2 |\n<!-- /t -->\nC\n"),
            "{found}"
        );
        assert!(found.starts_with("A\n<!-- environment -->\n| | |\n"), "{found}");
        assert!(filled("nothing", &results).is_err());
    }
}
