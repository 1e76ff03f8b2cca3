//! Check of the NATS server's recorded system calls: each message must be on disk before the server acknowledges it.
//!
//! A message is on disk if an fsync of its block file began after the write. A file that replaces a block file must be
//! on disk before the replacement.

use std::collections::{HashMap, HashSet};

#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) acknowledged: HashSet<u64>,
    /// Sequence numbers of the messages that were not on disk when they were acknowledged. A power loss could have
    /// destroyed them.
    pub(super) uncertain: HashSet<u64>,
    /// Block files that were replaced by a file that was not on disk yet.
    pub(super) replaced_early: Vec<String>,
}

/// Checks that the messages of `stream` were on disk when the NATS server acknowledged them. `recording` contains the
/// server's system calls.
pub(super) fn judge(recording: &str, stream: &str) -> Verdict {
    let mut replay = Replay { stream, ..Replay::default() };
    recording.lines().for_each(|line| replay.line(line));
    replay.verdict
}

/// End of a line that contains only the beginning of a system call. A later line contains the end of the call.
const UNFINISHED: &str = "<unfinished ...>";
/// Bits that NATS sets in a sequence number to mark a deleted message.
const MARKS: u64 = 0b11 << 62;

#[derive(Default)]
struct Replay<'a> {
    stream: &'a str,
    /// System calls that have begun but not ended, by thread.
    begun: HashMap<&'a str, Call>,
    /// Sequence numbers of the messages that were written to each file, but not synced yet.
    written: HashMap<String, HashSet<u64>>,
    certain: HashSet<u64>,
    verdict: Verdict,
}

enum Call {
    Write { file: String, messages: HashSet<u64> },
    Sync { file: String, covers: HashSet<u64> },
    Rename { from: String, to: String },
    Other,
}

impl<'a> Replay<'a> {
    fn line(&mut self, line: &'a str) {
        let Some((thread, rest)) = line.split_once(' ') else { return };
        let rest = rest.trim_start();
        if rest.starts_with("<... ") {
            let call = self.begun.remove(thread);
            self.end(call.unwrap_or(Call::Other), rest);
            return;
        }
        let call = self.begin(rest);
        if rest.ends_with(UNFINISHED) {
            self.begun.insert(thread, call);
        } else {
            self.end(call, rest);
        }
    }

    fn begin(&mut self, text: &str) -> Call {
        let (name, arguments) = text.split_once('(').unwrap_or((text, ""));
        if name.starts_with("rename") {
            let mut paths = quoted(arguments).map(|path| String::from_utf8_lossy(&path).into_owned());
            return match (paths.next(), paths.next()) {
                (Some(from), Some(to)) => Call::Rename { from, to },
                _ => Call::Other,
            };
        }
        let file = file_of(arguments);
        if matches!(name, "fsync" | "fdatasync") {
            let covers = self.written.get(&file).cloned().unwrap_or_default();
            return Call::Sync { file, covers };
        }
        let data: Vec<u8> = quoted(arguments).flatten().collect();
        if file.starts_with("TCP:") {
            self.acknowledge(&String::from_utf8_lossy(&data));
            return Call::Other;
        }
        let messages = if file.ends_with(".blk") { messages(&data) } else { HashSet::new() };
        Call::Write { file, messages }
    }

    fn end(&mut self, call: Call, text: &str) {
        match call {
            Call::Write { file, messages } => self.written.entry(file).or_default().extend(messages),
            Call::Sync { file, covers } if text.ends_with("= 0") => {
                self.certain.extend(&covers);
                let since = self.written.remove(&file).unwrap_or_default();
                let still: HashSet<u64> = since.difference(&covers).copied().collect();
                if !still.is_empty() {
                    self.written.insert(file, still);
                }
            }
            Call::Rename { from, to } => {
                if self.written.remove(&from).is_some() && to.ends_with(".blk") {
                    self.verdict.replaced_early.push(to);
                }
            }
            Call::Sync { .. } | Call::Other => {}
        }
    }

    /// Searches for acknowledgements in `sent` and adds them to the verdict. `sent` is text from the server to a
    /// client.
    fn acknowledge(&mut self, sent: &str) {
        for told in sent.split(&format!("{{\"stream\":\"{}\",", self.stream)).skip(1) {
            let digits = told.trim_start().strip_prefix("\"seq\":").unwrap_or_default();
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            if let Ok(sequence) = digits[..end].parse() {
                self.verdict.acknowledged.insert(sequence);
                if !self.certain.contains(&sequence) {
                    self.verdict.uncertain.insert(sequence);
                }
            }
        }
    }
}

/// Returns the file or socket in the first argument of a system call, for example `TCP:[...]` in `8<TCP:[...]>`.
fn file_of(arguments: &str) -> String {
    let named = arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    let name = named.map_or("", |(name, _)| name);
    if name.starts_with("TCP:") {
        name.to_owned()
    } else {
        String::from_utf8_lossy(&bytes(name)).into_owned()
    }
}

fn quoted(arguments: &str) -> impl Iterator<Item = Vec<u8>> + '_ {
    arguments.split('"').skip(1).step_by(2).map(bytes)
}

/// Decodes bytes from a text like `\x41\x42`.
fn bytes(hexadecimal: &str) -> Vec<u8> {
    hexadecimal.split("\\x").skip(1).filter_map(|digits| u8::from_str_radix(digits, 16).ok()).collect()
}

/// Returns the sequence numbers of the messages in a piece of a block file. Each message begins with its length and its
/// sequence number.
fn messages(mut piece: &[u8]) -> HashSet<u64> {
    let mut found = HashSet::new();
    while let Some((head, _)) = piece.split_first_chunk::<12>() {
        let [a, b, c, d, sequence @ ..] = *head;
        let length = u32::from_le_bytes([a, b, c, d]) & !(1 << 31);
        found.insert(u64::from_le_bytes(sequence) & !MARKS);
        piece = piece.get((length as usize).max(1)..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hexadecimal(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
    }

    fn written(sequence: u64) -> String {
        let record = [&14u32.to_le_bytes()[..], &sequence.to_le_bytes(), b"xy"].concat();
        format!("7 pwrite64(9<{}>, \"{}\", 14, 0) = 14", hexadecimal(b"/S/1.blk"), hexadecimal(&record))
    }

    fn acknowledged(sequence: u64) -> String {
        let told = format!("MSG inbox 1 30\r\n{{\"stream\":\"S\",\"seq\":{sequence}}}\r\n");
        format!("8 write(4<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"{}\", 47) = 47", hexadecimal(told.as_bytes()))
    }

    fn synced() -> String {
        format!("7 fsync(9<{}>) = 0", hexadecimal(b"/S/1.blk"))
    }

    fn uncertain(lines: &[String]) -> Vec<u64> {
        let verdict = judge(&lines.join("\n"), "S");
        assert!(!verdict.acknowledged.is_empty());
        verdict.uncertain.into_iter().collect()
    }

    #[test]
    fn only_an_fsync_between_a_write_and_its_acknowledgement_makes_it_certain() {
        assert!(uncertain(&[written(1), synced(), acknowledged(1)]).is_empty());
        assert_eq!(uncertain(&[written(1), acknowledged(1), synced()]), [1]);
        assert_eq!(uncertain(&[synced(), written(1), acknowledged(1)]), [1]);
        assert_eq!(uncertain(&[written(1), synced(), written(2), acknowledged(2)]), [2]);
    }

    #[test]
    fn an_fsync_covers_what_was_written_before_it_began() {
        let begins = synced().replace(" = 0", "").replace(')', " <unfinished ...>");
        let ends = "7 <... fsync resumed>) = 0".to_owned();
        let other = written(2).replacen('7', "6", 1);
        let lines = [written(1), begins, other, ends, acknowledged(1), acknowledged(2)];
        assert_eq!(uncertain(&lines), [2]);
        let failed = synced().replace("= 0", "= -1 EIO (Input/output error)");
        assert_eq!(uncertain(&[written(1), failed, acknowledged(1)]), [1]);
    }

    #[test]
    fn a_file_put_in_place_of_a_block_has_to_be_on_disk() {
        let renamed = format!(
            "7 renameat(AT_FDCWD<\\x2f>, \"{}\", AT_FDCWD<\\x2f>, \"{}\") = 0",
            hexadecimal(b"/S/1.blk.tmp"),
            hexadecimal(b"/S/1.blk")
        );
        let whole = written(1).replace(&hexadecimal(b".blk"), &hexadecimal(b".blk.tmp"));
        let synced = synced().replace(&hexadecimal(b".blk"), &hexadecimal(b".blk.tmp"));
        let early = judge(&[whole.clone(), renamed.clone()].join("\n"), "S").replaced_early;
        assert_eq!(early, ["/S/1.blk"]);
        assert!(judge(&[whole, synced, renamed].join("\n"), "S").replaced_early.is_empty());
    }
}
