//! Stands in for benchmarks in a program without them: every request is refused.

use std::path::Path;

use thrum_broker::Queries;
use thrum_management::api::{
    BenchmarkCheck, BenchmarkComparison, BenchmarkLimits, BenchmarkRun, BenchmarkRunInFull,
    BenchmarkSamples, BenchmarkScenario,
};
use thrum_management::{
    BenchmarkActivity, BenchmarkChange, BenchmarkOrder, BenchmarkRefusal, Benchmarks, OpenRunFile,
    ProgramError,
};

use super::tasks::Around;

const WHY: &str = "this program was built without the part bench";

/// No benchmarks.
#[derive(Clone, Debug)]
pub(crate) struct HostedBenchmarks;

impl HostedBenchmarks {
    /// There is nothing to open.
    pub(crate) fn open(_data_dir: &Path, _around: Around, _queries: Queries) -> Self {
        Self
    }
}

fn left_out<T>() -> Result<T, ProgramError> {
    Err(ProgramError::Benchmark {
        refusal: BenchmarkRefusal::LeftOut,
        why: WHY.to_owned(),
    })
}

impl Benchmarks for HostedBenchmarks {
    fn activity(&self) -> Option<BenchmarkActivity> {
        None
    }

    fn limits(&self) -> BenchmarkLimits {
        BenchmarkLimits {
            why_not: Some(WHY.to_owned()),
            ..BenchmarkLimits::default()
        }
    }

    fn scenarios(&self) -> Result<Vec<BenchmarkScenario>, ProgramError> {
        left_out()
    }

    fn check(&self, _order: &BenchmarkOrder) -> Result<BenchmarkCheck, ProgramError> {
        left_out()
    }

    fn start(&self, _order: BenchmarkOrder) -> Result<String, ProgramError> {
        left_out()
    }

    fn runs(&self) -> Result<Vec<BenchmarkRun>, ProgramError> {
        left_out()
    }

    fn run(&self, _id: &str) -> Result<BenchmarkRunInFull, ProgramError> {
        left_out()
    }

    fn samples(
        &self,
        _id: &str,
        _after: u64,
        _most: usize,
    ) -> Result<BenchmarkSamples, ProgramError> {
        left_out()
    }

    fn stop(&self, _id: &str) -> Result<(), ProgramError> {
        left_out()
    }

    fn change(&self, _id: &str, _change: BenchmarkChange) -> Result<(), ProgramError> {
        left_out()
    }

    fn remove(&self, _id: &str) -> Result<(), ProgramError> {
        left_out()
    }

    fn set_baseline(&self, _id: &str, _is_baseline: bool) -> Result<(), ProgramError> {
        left_out()
    }

    fn open_file(&self, _id: &str, _name: &str) -> Result<OpenRunFile, ProgramError> {
        left_out()
    }

    fn compare(&self, _ids: &[String]) -> Result<BenchmarkComparison, ProgramError> {
        left_out()
    }
}
