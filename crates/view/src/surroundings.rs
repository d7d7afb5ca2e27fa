//! Whether there is a terminal to draw on, and its capabilities.

use std::env;
use std::fs::File;
use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;

use super::view::{Glyphs, Look, Palette};

/// The environment of the program.
#[derive(Clone, Copy)]
struct Surroundings<'a> {
    /// Standard error, which the view is drawn on, is a terminal.
    stderr_is_terminal: bool,
    /// Standard output goes into another program, which may use the terminal itself.
    stdout_is_pipe: bool,
    /// Value of a variable of the environment.
    variable: &'a dyn Fn(&str) -> Option<String>,
}

/// Whether a run is shown full screen: on a terminal, unless turned off.
pub fn is_wanted(no_tui: bool) -> bool {
    let around = Surroundings {
        stderr_is_terminal: std::io::stderr().is_terminal(),
        stdout_is_pipe: stdout_is_pipe(),
        variable: &variable,
    };
    !no_tui && around.has_viewer()
}

/// The capabilities of the terminal, by its environment.
pub(super) fn look() -> Look {
    look_of(&variable)
}

fn variable(name: &str) -> Option<String> {
    env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

fn stdout_is_pipe() -> bool {
    let Ok(copy) = std::io::stdout().as_fd().try_clone_to_owned() else {
        return false;
    };
    File::from(copy)
        .metadata()
        .is_ok_and(|metadata| metadata.file_type().is_fifo())
}

impl Surroundings<'_> {
    fn has_viewer(&self) -> bool {
        let is_ci = (self.variable)("CI")
            .is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
        let terminal = (self.variable)("TERM").unwrap_or_default();
        let can_draw = !matches!(terminal.as_str(), "" | "dumb");
        self.stderr_is_terminal && !self.stdout_is_pipe && can_draw && !is_ci
    }
}

fn look_of(variable: &dyn Fn(&str) -> Option<String>) -> Look {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let locale = set("LC_ALL")
        .or_else(|| set("LC_CTYPE"))
        .or_else(|| set("LANG"));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    let is_utf8 = locale.contains("utf-8") || locale.contains("utf8");
    // The console of the kernel has no font with dots.
    let has_font = set("TERM").is_none_or(|terminal| terminal != "linux");
    Look {
        glyphs: if is_utf8 && has_font {
            Glyphs::Unicode
        } else {
            Glyphs::Ascii
        },
        palette: if set("NO_COLOR").is_some() {
            Palette::Plain
        } else {
            Palette::Colour
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(variables: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        }
    }

    fn has_viewer(
        stderr_is_terminal: bool,
        stdout_is_pipe: bool,
        variables: &[(&str, &str)],
    ) -> bool {
        Surroundings {
            stderr_is_terminal,
            stdout_is_pipe,
            variable: &named(variables),
        }
        .has_viewer()
    }

    #[test]
    fn the_view_is_shown_on_a_terminal() {
        let xterm = ("TERM", "xterm-256color");
        assert!(has_viewer(true, false, &[xterm]));
        assert!(has_viewer(true, false, &[xterm, ("CI", "false")]));
        assert!(!has_viewer(false, false, &[xterm]));
        assert!(!has_viewer(true, true, &[xterm]));
        assert!(!has_viewer(true, false, &[xterm, ("CI", "true")]));
        assert!(!has_viewer(true, false, &[("TERM", "dumb")]));
        assert!(!has_viewer(true, false, &[]));
    }

    #[test]
    fn the_flag_wins() {
        assert!(!is_wanted(true));
    }

    #[test]
    fn characters_follow_the_locale() {
        let glyphs = |variables: &[(&str, &str)]| look_of(&named(variables)).glyphs;
        assert_eq!(glyphs(&[("LANG", "de_DE.UTF-8")]), Glyphs::Unicode);
        assert_eq!(glyphs(&[("LANG", "C.utf8")]), Glyphs::Unicode);
        assert_eq!(
            glyphs(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]),
            Glyphs::Ascii
        );
        assert_eq!(
            glyphs(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "")]),
            Glyphs::Unicode
        );
        assert_eq!(
            glyphs(&[("LANG", "C.utf8"), ("TERM", "linux")]),
            Glyphs::Ascii
        );
        assert_eq!(glyphs(&[]), Glyphs::Ascii);
    }

    #[test]
    fn no_color_is_honoured_unless_it_is_empty() {
        let palette = |variables: &[(&str, &str)]| look_of(&named(variables)).palette;
        assert_eq!(palette(&[("NO_COLOR", "1")]), Palette::Plain);
        assert_eq!(palette(&[("NO_COLOR", "")]), Palette::Colour);
        assert_eq!(palette(&[]), Palette::Colour);
    }
}
