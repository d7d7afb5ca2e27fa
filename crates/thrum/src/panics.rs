//! A panic ends the program: a worker that fell would leave its clients hanging.
//!
//! The exception is a panic of a library that parses another system's answer, which `thrum_auth`
//! catches.

use std::panic::{set_hook, take_hook};

/// From now on a panic of any thread ends the program, before it unwinds.
pub(crate) fn end_the_program() {
    let print = take_hook();
    set_hook(Box::new(move |panic| {
        if !thrum_auth::is_panic_caught(panic) {
            print(panic);
            std::process::abort();
        }
    }));
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    /// Tells the process of the test from the one that panics.
    const MARK: &str = "THRUM_TEST_OF_PANICS";
    const SIGABRT: i32 = 6;

    #[test]
    fn a_panic_of_any_thread_ends_the_program_and_says_why() {
        if std::env::var_os(MARK).is_some() {
            end_the_program();
            let thread = std::thread::spawn(|| panic!("a worker fell"));
            drop(thread.join());
            return;
        }
        let myself = std::env::current_exe().unwrap();
        let name = "panics::tests::a_panic_of_any_thread_ends_the_program_and_says_why";
        let ended = Command::new(myself)
            .args(["--exact", name, "--nocapture"])
            .env(MARK, "1")
            .output()
            .unwrap();
        assert_eq!(ended.status.signal(), Some(SIGABRT), "{ended:?}");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.contains("a worker fell"), "{said}");
    }
}
