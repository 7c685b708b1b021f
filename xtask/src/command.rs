//! Running other programs, with errors that say which one failed and what it printed last.

use std::{ffi::OsStr, process::Command};

use anyhow::{Context as _, bail};

/// Lines of a failed program's output that an error repeats.
const ERROR_LINES: usize = 15;

/// A command with its arguments.
pub(crate) fn command<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Runs a command quietly and returns its standard output.
///
/// # Errors
/// When it cannot be started or ends with a failure; the message holds the last lines it wrote.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let done = command
        .stdin(std::process::Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", name(command)))?;
    if !done.status.success() {
        let text = if done.stderr.is_empty() {
            &done.stdout
        } else {
            &done.stderr
        };
        bail!(
            "{} failed ({})\n{}",
            line(command),
            done.status,
            tail(&String::from_utf8_lossy(text), ERROR_LINES)
        );
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Runs a command quietly; its output matters only if it fails.
pub(crate) fn quiet(command: &mut Command) -> anyhow::Result<()> {
    output(command).map(drop)
}

/// Whether a command can be run and succeeds.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    output(command).is_ok()
}

/// Runs a command whose output the person should see as it comes.
pub(crate) fn shown(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", name(command)))?;
    if !status.success() {
        bail!("{} failed ({status})", line(command));
    }
    Ok(())
}

/// Runs a command with its standard input taken from a text.
pub(crate) fn with_input(command: &mut Command, input: &str) -> anyhow::Result<String> {
    use std::{io::Write as _, process::Stdio};
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", name(command)))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that fails early closes its end; its own message, below, says more than "broken pipe".
        let _ = stdin.write_all(input.as_bytes());
    }
    let done = child.wait_with_output()?;
    if !done.status.success() {
        bail!(
            "{} failed ({})\n{}",
            line(command),
            done.status,
            tail(&String::from_utf8_lossy(&done.stderr), ERROR_LINES)
        );
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The last lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn line(command: &Command) -> String {
    let mut text = name(command);
    for arg in command.get_args().take(12) {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{command, output, tail, with_input};

    #[test]
    fn a_failure_says_what_ran_and_what_it_printed() {
        let error = output(&mut command("sh", ["-c", "echo first; echo reason >&2; exit 3"]))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("sh -c") && error.contains("reason") && error.contains('3'),
            "{error}"
        );
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = output(&mut command("no-such-program-here", ["x"]))
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot start no-such-program-here"), "{error}");
    }

    #[test]
    fn input_reaches_the_program() {
        assert_eq!(with_input(&mut command("cat", [""; 0]), "a\nb\n").unwrap(), "a\nb\n");
    }

    #[test]
    fn tail_keeps_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 5), "a");
    }
}
