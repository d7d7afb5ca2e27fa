//! Packs the dashboard into the program, if it was built (`make dashboard`): a table of its files,
//! each compressed once. Without it the table is empty, and the program has one plain page.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The folder with the built pages. It exists without them, as Cargo would otherwise run this with
/// each build.
const BUILT: &str = "../../dashboard/dist";
const PAGES: &str = "site";
/// Bytes of all files as they are sent; more is a mistake.
const BYTES_MAX: usize = 2 * 1024 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={BUILT}");
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let pages = here.join(BUILT).join(PAGES);
    let mut paths = Vec::new();
    if pages.join("index.html").exists() {
        list(&pages, &pages, &mut paths)?;
    }
    paths.sort();
    let mut table = "[\n".to_owned();
    let mut bytes = 0;
    for (number, path) in paths.iter().enumerate() {
        let packed = pack(&fs::read(pages.join(path))?)?;
        bytes += packed.len();
        fs::write(out.join(format!("{number}.gz")), packed)?;
        let include = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{number}.gz\"))");
        writeln!(table, "({path:?}, {include}),")?;
    }
    if bytes > BYTES_MAX {
        return Err(format!("the dashboard has {bytes} bytes, more than {BYTES_MAX}").into());
    }
    table.push(']');
    fs::write(out.join("dashboard.rs"), table)?;
    Ok(())
}

/// Adds the files of a folder, as the paths by which they are asked for.
fn list(root: &Path, folder: &Path, paths: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let relative = path.strip_prefix(root)?;
        let name = relative.to_str().ok_or("a name that is not UTF-8")?;
        // Notes of the builder for itself.
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            list(root, &path, paths)?;
        } else {
            paths.push(name.to_owned());
        }
    }
    Ok(())
}

fn pack(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes)?;
    Ok(packer.finish()?)
}
