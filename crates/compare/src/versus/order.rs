//! The order of runs: interleaved, so that a machine that becomes slower does not slow only the
//! last broker.

/// The order of all runs as indices of brokers, one list for each round. Every round begins with
/// another broker.
pub fn rounds(brokers: usize, rounds: u32) -> Vec<Vec<usize>> {
    (0..rounds)
        .map(|round| {
            let first = usize::try_from(round).unwrap_or(0) % brokers.max(1);
            (0..brokers)
                .map(|place| (first + place) % brokers)
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_take_turns_and_another_one_begins_each_round() {
        let expected = vec![vec![0, 1, 2], vec![1, 2, 0], vec![2, 0, 1], vec![0, 1, 2]];
        assert_eq!(rounds(3, 4), expected);
        assert_eq!(rounds(1, 2), vec![vec![0], vec![0]]);
        assert_eq!(rounds(0, 1), vec![Vec::<usize>::new()]);
    }
}
