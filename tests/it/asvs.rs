//! Check of the table of security requirements, `asvs.md`. Every row names a test, and every named test exists.

use std::path::Path;

fn sources(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all += &sources(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all += &std::fs::read_to_string(path).expect("a source");
        }
    }
    all
}

#[test]
fn every_requirement_names_a_test() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = sources(&tests.join("it")) + &sources(&tests.join("../api/src"));
    let table = std::fs::read_to_string(tests.join("asvs.md")).expect("the table");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 30, "{}", rows.len());
    for row in rows {
        let named = row.rsplit('|').nth(1).unwrap_or_default();
        let named: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test in {row}");
        for name in named {
            assert!(all.contains(&format!("fn {name}()")), "no test {name}");
        }
    }
}
