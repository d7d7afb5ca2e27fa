//! Pixels of a drawing.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Options, Tree};

/// Why a picture cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The machine has no font to draw text with.
    #[error(
        "no font is installed, so a picture would have no text; install one, for example the package fonts-dejavu-core"
    )]
    NoFont,
    /// The drawing is not valid.
    #[error("the drawing cannot be read")]
    Drawing(#[from] usvg::Error),
    /// The picture has no size, or does not fit into memory.
    #[error("a picture of {width} x {height} pixels cannot be made")]
    Size {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
    },
    /// The picture cannot be encoded.
    #[error("the picture cannot be encoded: {reason}")]
    Encoding {
        /// Why not.
        reason: String,
    },
}

/// Whether this program can draw pixels.
///
/// # Errors
/// It cannot: it was built without what draws them.
pub const fn require() -> Result<(), PngError> {
    Ok(())
}

/// An SVG file as PNG, with the fonts of this machine.
///
/// # Errors
///
/// See [`PngError`].
pub fn render(svg: &str) -> Result<Vec<u8>, PngError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_system_fonts();
    render_with(svg, fonts)
}

fn render_with(svg: &str, mut fonts: fontdb::Database) -> Result<Vec<u8>, PngError> {
    let family = any_family(&fonts).ok_or(PngError::NoFont)?;
    fonts.set_sans_serif_family(family.clone());
    let options = Options {
        font_family: family,
        fontdb: Arc::new(fonts),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options)?;
    let size = tree.size().to_int_size();
    let (width, height) = (size.width(), size.height());
    let mut pixmap = Pixmap::new(width, height).ok_or(PngError::Size { width, height })?;
    resvg::render(&tree, Transform::default(), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| PngError::Encoding {
        reason: error.to_string(),
    })
}

/// A family for text: a well-known one, else the first available one.
fn any_family(fonts: &fontdb::Database) -> Option<String> {
    const KNOWN: [&str; 5] = [
        "DejaVu Sans",
        "Noto Sans",
        "Liberation Sans",
        "Roboto",
        "Arial",
    ];
    let families = || {
        fonts
            .faces()
            .flat_map(|face| &face.families)
            .map(|family| family.0.as_str())
    };
    let known = KNOWN
        .into_iter()
        .find(|known| families().any(|family| family == *known));
    known.or_else(|| families().next()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::png::picture;
    use crate::result::RunResult;
    use crate::svg::Palette;

    #[test]
    fn a_machine_without_fonts_gets_the_package_to_install() {
        let svg = picture(&RunResult::default()).standalone(&Palette::LIGHT);
        let error = render_with(&svg, fontdb::Database::new()).unwrap_err();
        assert!(error.to_string().contains("fonts-dejavu-core"));
    }
}
