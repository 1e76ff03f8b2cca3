//! Command lines of the programs, and standard output of commands.
//!
//! The help of a command lists only the options that the command uses. A usage line lists only required options. The macros
//! `out!` and `outln!` handle a closed pipe.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use clap::{Command, Parser};

/// Global options that the help of some commands does not list, because these commands ignore them.
#[derive(Debug, Clone, Copy)]
pub struct HiddenOptions {
    /// Names of the commands that ignore the options.
    pub commands: &'static [&'static str],
    /// Ids of the hidden options. The commands accept these options without an error.
    pub options: &'static [&'static str],
}

/// Parses the arguments of the process. If they are invalid, prints the error and ends the process. For `--help`,
/// prints the help and ends the process.
pub fn parse<T: Parser>(hidden: &[HiddenOptions]) -> T {
    let mut command = prepare(T::command(), hidden);
    let mut matches =
        command.try_get_matches_from_mut(std::env::args_os()).unwrap_or_else(|error| error.exit());
    T::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

/// Parses a duration with its unit: `90s`, `26h`, `2d`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || "a number and s, m, h or d, such as 26h".to_owned();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().map_err(|_| expected())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(expected()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(expected)
}

fn prepare(mut command: Command, hidden: &[HiddenOptions]) -> Command {
    // `build` copies the global options to each command, where they can then be hidden.
    command.build();
    for one in hidden {
        for name in one.commands {
            command = command.mut_subcommand(name, |subcommand| hide_options(subcommand, one.options));
        }
    }
    set_usage(command)
}

fn hide_options(command: Command, options: &'static [&'static str]) -> Command {
    command
        .mut_args(|argument| match options.contains(&argument.get_id().as_str()) {
            true => argument.hide(true),
            false => argument,
        })
        .mut_subcommands(|subcommand| hide_options(subcommand, options))
}

/// Gives every command a fixed usage line. Otherwise, the usage line of an error would list every option whose
/// environment variable is set.
fn set_usage(mut command: Command) -> Command {
    let usage = command.render_usage().to_string();
    command.override_usage(usage.trim_start_matches("Usage:").trim().to_owned()).mut_subcommands(set_usage)
}

/// Writes to standard output. A closed pipe (`| head`) ends the process with exit code 0.
pub fn write_out(text: std::fmt::Arguments<'_>) {
    let Err(error) = std::io::stdout().lock().write_fmt(text) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    tracing::error!(%error, "cannot write to standard output");
    std::process::exit(1);
}

/// Like `print!`, but writes with [`write_out`](crate::write_out).
#[macro_export]
macro_rules! out {
    ($($text:tt)*) => { $crate::write_out(format_args!($($text)*)) };
}

/// Like `println!`, but writes with [`write_out`](crate::write_out).
#[macro_export]
macro_rules! outln {
    ($($text:tt)*) => { $crate::write_out(format_args!("{}\n", format_args!($($text)*))) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "program")]
    struct Arguments {
        #[arg(long, env = "PATH", global = true)]
        server: Option<String>,
        #[command(subcommand)]
        command: Subcommands,
    }

    #[derive(Debug, clap::Subcommand)]
    enum Subcommands {
        Load { path: String },
        Draw { path: String },
    }

    #[test]
    fn help_and_usage_name_what_a_command_needs() {
        use clap::CommandFactory;
        let hidden = [HiddenOptions { commands: &["draw"], options: &["server"] }];
        let mut command = prepare(Arguments::command(), &hidden);
        let mut text =
            |arguments: &[&str]| command.try_get_matches_from_mut(arguments).unwrap_err().to_string();
        assert!(text(&["program", "load", "--help"]).contains("--server"));
        assert!(!text(&["program", "draw", "--help"]).contains("--server"));
        assert!(text(&["program", "load"]).contains("Usage: program load [OPTIONS] <PATH>\n"));
        let mut command = prepare(Arguments::command(), &hidden);
        assert!(command.try_get_matches_from_mut(["program", "draw", "x", "--server", "y"]).is_ok());
    }
}
