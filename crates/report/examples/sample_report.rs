//! Writes the reports of a made-up run into a folder, to look at their form:
//! `sample_report FOLDER`.

use std::error::Error;
use std::path::PathBuf;

use thrum_report::html::{PageOptions, page, versus_page};
use thrum_report::{markdown, png, versus};

#[path = "../tests/sample/mod.rs"]
mod sample;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let run = sample::run(280);
    let options = PageOptions {
        comparison: Some(sample::comparison()),
        markdown: "# fan-in-50k\n\nVALID, PASS\n".to_owned(),
        template: None,
    };
    std::fs::write(folder.join("report.html"), page(&run, &options)?)?;
    std::fs::write(
        folder.join("day.html"),
        page(&sample::run(86_380), &options)?,
    )?;
    for (name, run) in [
        ("invalid", sample::invalid()),
        ("missing", sample::missing()),
        ("connections", sample::connections()),
    ] {
        let options = PageOptions {
            markdown: markdown(&run),
            ..PageOptions::default()
        };
        std::fs::write(folder.join(format!("{name}.html")), page(&run, &options)?)?;
        std::fs::write(folder.join(format!("{name}.md")), markdown(&run))?;
    }
    std::fs::write(folder.join("report.md"), markdown(&run))?;
    std::fs::write(folder.join("report.png"), png::report(&run)?)?;
    let versus = sample::versus();
    std::fs::write(folder.join("versus.html"), versus_page(&versus)?)?;
    std::fs::write(folder.join("versus.md"), versus::markdown(&versus))?;
    let invalid = sample::versus_invalid();
    std::fs::write(folder.join("versus-invalid.html"), versus_page(&invalid)?)?;
    std::fs::write(folder.join("versus-invalid.md"), versus::markdown(&invalid))?;
    Ok(())
}
