use proptest::prelude::*;

use super::*;

fn read(text: &[u8]) -> Vec<(u64, Vec<String>)> {
    let mut records = CsvReader::new(text).unwrap();
    let mut all = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        all.push((record.line, record.fields().map(|f| String::from_utf8_lossy(f).into_owned()).collect()));
    }
    all
}

#[test]
fn records_keep_their_line_numbers() {
    let text = b"\xef\xbb\xbfa,b\r\n\r\n\"x,\"\"1\"\"\ny\",2\n3,\n";
    let expected: Vec<(u64, Vec<String>)> = vec![
        (1, vec!["a".into(), "b".into()]),
        (3, vec!["x,\"1\"\ny".into(), "2".into()]),
        (5, vec!["3".into(), String::new()]),
    ];
    assert_eq!(read(text), expected);
}

#[test]
fn other_delimiters_are_told_by_the_header() {
    for sign in [";", "\t", "|"] {
        let text = ["a", "b\n\"1", "0\"", "2,5\n"].join(sign);
        let expected =
            [(1, vec!["a".to_owned(), "b".to_owned()]), (2, vec![format!("1{sign}0"), "2,5".to_owned()])];
        assert_eq!(read(text.as_bytes()), expected, "{sign:?}");
    }
}

#[test]
fn a_header_that_begins_with_a_number_sign_is_no_comment() {
    let header = |text: &str| read(text.as_bytes())[0].clone();
    for (text, line, first) in [
        ("#Date,Open\n2024-03-14,\"1,5\"\n", 1, "#Date"),
        ("# by a tool, today, twice\n\n#Date;Open\r\n\r\n2024-03-14;1,5\r\n", 3, "#Date"),
        ("# a, b\n# c\nDate,Open,Close\n2024-03-14,1,2\n", 3, "Date"),
        ("# prices\nDate\n2024-03-14\n", 2, "Date"),
        ("#,Date\n1,2024-03-14\n", 1, "#"),
    ] {
        let (found, fields) = header(text);
        assert_eq!((found, fields[0].as_str()), (line, first), "{text}");
    }
    let mut records = CsvReader::new(&b"# a\n1,2\n"[..]).unwrap().without_comments();
    assert_eq!(records.next_record().unwrap().unwrap().raw, b"# a");
}

#[test]
fn empty_cells_alone_are_no_record() {
    let text = b",,\r\nDate,Open,\r\n,,\r\n2024-03-14,1,\r\n , ,\r\n\"\",,\r\n";
    let lines: Vec<u64> = read(text).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [2, 4, 6]);
    assert_eq!(read(b";;\na;b\n").len(), 1);
}

#[test]
fn a_quote_never_closed_costs_one_line_only() {
    let mut records = CsvReader::new(&b"\"a,1\nb,2\n"[..]).unwrap();
    assert!(records.next_record().unwrap().unwrap().unclosed);
    let second = records.next_record().unwrap().unwrap();
    assert_eq!((second.line, second.field(1)), (2, &b"2"[..]));
    assert!(records.next_record().unwrap().is_none());
}

#[test]
fn an_endless_line_is_refused() {
    let mut lines = LineReader::new(io::repeat(b'x')).unwrap();
    assert_eq!(lines.next_line().unwrap_err().kind(), io::ErrorKind::InvalidData);
}

proptest! {
    #[test]
    fn what_a_csv_writer_writes_is_read_back(rows in prop::collection::vec(prop::collection::vec("[a\",\n 1]{0,6}", 2..4), 0..8)) {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        rows.iter().for_each(|row| writer.write_record(row).unwrap());
        let text = writer.into_inner().unwrap();
        let has_text = |row: &&Vec<String>| row.iter().any(|field| !field.trim_matches(' ').is_empty());
        let rows: Vec<Vec<String>> = rows.iter().filter(has_text).cloned().collect();
        let found: Vec<Vec<String>> = read(&text).into_iter().map(|(_, fields)| fields).collect();
        prop_assert_eq!(found, rows);
    }
}
