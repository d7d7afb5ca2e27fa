//! Applies its arguments to files of the current directory, one after the other, and prints the
//! result of each; the test of the lossy disk runs it.
//!
//! Arguments: `create FILE`, `open FILE`, `write FILE OFFSET BYTES LETTER`, `append FILE BYTES
//! LETTER` (from the file's position), `size FILE BYTES`, `sync FILE`, `folder NAME`, `sync-folder
//! NAME`, `rename FROM TO`, `remove FILE`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

fn main() -> io::Result<()> {
    let mut actor = Actor::default();
    for line in std::env::args().skip(1) {
        let words: Vec<&str> = line.split(' ').collect();
        let outcome = match actor.act(&words) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error
                .raw_os_error()
                .map_or_else(|| error.to_string(), |code| code.to_string()),
        };
        writeln!(io::stdout(), "{outcome}")?;
    }
    Ok(())
}

#[derive(Default)]
struct Actor(BTreeMap<String, File>);

impl Actor {
    fn act(&mut self, words: &[&str]) -> io::Result<()> {
        // Absolute paths, as the broker has.
        let here = std::env::current_dir()?;
        let path = |name: &str| here.join(name);
        match words {
            ["create", name] => self.open(&path(name), name, true),
            ["open", name] => self.open(&path(name), name, false),
            ["write", name, offset, count, letter] => self
                .file(name)?
                .write_all_at(&letters(letter, count), number(offset)),
            ["append", name, count, letter] => self.file(name)?.write_all(&letters(letter, count)),
            ["size", name, count] => self.file(name)?.set_len(number(count)),
            ["sync", name] => self.file(name)?.sync_data(),
            ["folder", name] => fs::create_dir(path(name)),
            ["sync-folder", name] => File::open(path(name))?.sync_all(),
            ["rename", from, to] => fs::rename(path(from), path(to)),
            ["remove", name] => fs::remove_file(path(name)),
            _ => Err(io::Error::other(format!("unknown: {words:?}"))),
        }
    }

    fn open(&mut self, path: &Path, name: &str, is_new: bool) -> io::Result<()> {
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .create(is_new)
            .truncate(is_new);
        self.0.insert(name.to_owned(), options.open(path)?);
        Ok(())
    }

    fn file(&mut self, name: &str) -> io::Result<&mut File> {
        self.0
            .get_mut(name)
            .ok_or_else(|| io::Error::other("not open"))
    }
}

fn letters(letter: &str, count: &str) -> Vec<u8> {
    letter
        .repeat(usize::try_from(number(count)).unwrap_or(0))
        .into_bytes()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}
