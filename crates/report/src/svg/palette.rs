//! Colours and the style sheet of charts.

/// The style sheet of charts; its colours are the variables that a [`Palette`] defines.
pub const STYLE: &str = include_str!("chart.css");

/// Values of the colour variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    colours: [(&'static str, &'static str); 14],
}

impl Palette {
    /// Dark on light. Series colours have a contrast of 4.5 and more on the paper.
    pub const LIGHT: Self = Self {
        colours: [
            ("--paper", "#ffffff"),
            ("--card", "#f6f7f9"),
            ("--ink", "#1b2330"),
            ("--soft", "#566070"),
            ("--rule", "#dde1e7"),
            ("--band", "#f0f2f6"),
            ("--s1", "#1464c0"),
            ("--s2", "#b4540a"),
            ("--s3", "#0b7a55"),
            ("--s4", "#8540a8"),
            ("--s5", "#b3263c"),
            ("--s6", "#5a6472"),
            ("--good", "#0b7a45"),
            ("--bad", "#b3263c"),
        ],
    };

    /// Light on dark.
    pub const DARK: Self = Self {
        colours: [
            ("--paper", "#12161d"),
            ("--card", "#1a2029"),
            ("--ink", "#e6eaf0"),
            ("--soft", "#9aa5b4"),
            ("--rule", "#2c3542"),
            ("--band", "#1a212b"),
            ("--s1", "#6cb0ff"),
            ("--s2", "#f0a04b"),
            ("--s3", "#4cc99a"),
            ("--s4", "#c792ea"),
            ("--s5", "#ff7a8a"),
            ("--s6", "#a3aebd"),
            ("--good", "#4cc98a"),
            ("--bad", "#ff7a8a"),
        ],
    };

    /// The variables as declarations: `--ink:#1b2330;…`.
    pub fn declarations(&self) -> String {
        let mut text = String::new();
        for (name, colour) in self.colours {
            text.extend([name, ":", colour, ";"]);
        }
        text
    }

    /// A style sheet with the colours in place of the variables, for renderers without them.
    pub fn resolve(&self, style: &str) -> String {
        let mut resolved = style.to_owned();
        for (name, colour) in self.colours {
            resolved = resolved.replace(&format!("var({name})"), colour);
        }
        resolved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_of_the_style_has_a_colour_in_both_palettes() {
        for palette in [Palette::LIGHT, Palette::DARK] {
            let resolved = palette.resolve(STYLE);
            assert!(!resolved.contains("var("), "{resolved}");
        }
    }
}
