//! The command line of `cargo xtask mutants`.

use anyhow::{Context, Result, bail};

/// Size and choice of the sample, and the crates.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Mutants of each crate, about.
    sample: usize,
    /// Chooses among the samples.
    seed: usize,
    /// Names without `thrum-`.
    pub(super) crates: Vec<String>,
}

impl Options {
    /// Reads the arguments behind `mutants`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let (mut sample, mut seed, mut crates) = (None, None, Vec::new());
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut number = || {
                let text = arguments.next();
                let text = text.with_context(|| format!("`{argument}` needs a number"))?;
                let number = text.parse::<usize>();
                number.with_context(|| format!("`{text}` behind `{argument}` is no number"))
            };
            match argument.as_str() {
                "--sample" => sample = Some(number()?),
                "--seed" => seed = Some(number()?),
                name if name.starts_with('-') => {
                    bail!("do not understand `{name}` behind `mutants`")
                }
                name => crates.push(name.to_owned()),
            }
        }
        if crates.is_empty() {
            bail!("name the crates to change: `cargo xtask mutants --sample 40 --seed 7 codec`");
        }
        Ok(Self {
            sample: sample.context("`--sample` is missing")?.max(1),
            seed: seed.context("`--seed` is missing")?,
            crates,
        })
    }

    /// The sample of that many mutants, as cargo-mutants wants it: every n-th, from a place that
    /// the seed chooses. Each mutant is in one of n samples. Neighbours tend to be caught or missed
    /// together, and they are in different samples.
    pub(super) fn shard(&self, total: usize) -> String {
        let shards = total.div_ceil(self.sample).max(1);
        format!("{}/{shards}", self.seed % shards)
    }

    /// The command that tests the same sample.
    pub(super) fn again(&self) -> String {
        format!(
            "make mutants SAMPLE={} SEED={} MUTATED=\"{}\"",
            self.sample,
            self.seed,
            self.crates.join(" ")
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn sample_seed_and_crates_are_read_and_repeated() {
        let options = parse("--sample 40 --seed 7 codec storage").unwrap();
        assert_eq!(
            options.again(),
            "make mutants SAMPLE=40 SEED=7 MUTATED=\"codec storage\""
        );
        let refused = [
            "",
            "--sample 40 --seed 7",
            "--sample 40 codec",
            "--seed 7 codec",
            "--sample --seed 7 codec",
            "--sample x --seed 7 codec",
            "codec --sample",
            "--samples 40 --seed 7 codec",
        ];
        for line in refused {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_seeds_choose_among_samples_of_the_size_that_cover_all_mutants() {
        let shards: BTreeSet<String> = (0..100)
            .map(|seed| parse(&format!("--sample 40 --seed {seed} codec")).unwrap())
            .map(|options| options.shard(121))
            .collect();
        assert_eq!(Vec::from_iter(shards), ["0/4", "1/4", "2/4", "3/4"]);
    }

    #[test]
    fn a_sample_larger_than_a_crate_is_all_of_it() {
        let shard = |sample: &str, total| {
            let options = parse(&format!("--sample {sample} --seed 7 codec")).unwrap();
            options.shard(total)
        };
        assert_eq!(shard("40", 40), "0/1");
        assert_eq!(shard("40", 41), "1/2");
        assert_eq!(shard("40", 0), "0/1");
        assert_eq!(shard("0", 10), "7/10", "at least one mutant is tested");
    }
}
