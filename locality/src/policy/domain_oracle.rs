//! The oracle of the paper: workers are dealt to domains, and every request's true domain is known.

use rand::RngCore;

use super::{Candidates, Decision, Policy, Reason, Ties, ties};

/// Which workers serve which domains, as in the ELDR artifact: domains with an even worker's share of the traffic or more have workers of
/// their own, the rest share what is left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainPools {
    /// First worker and number of workers of each domain; none: the shared pool.
    pools: Vec<Option<(usize, usize)>>,
    shared: (usize, usize),
}

impl DomainPools {
    /// Deals `workers` to domains with these traffic shares (any scale): quotas by largest remainder, contiguous in order of domain number,
    /// the shared pool last.
    pub fn new(shares: &[f64], workers: usize) -> Self {
        let sane = |s: f64| if s.is_finite() && s > 0.0 { s } else { 0.0 };
        let total: f64 = shares.iter().map(|s| sane(*s)).sum();
        if workers == 0 || total <= 0.0 {
            return Self {
                pools: vec![None; shares.len()],
                shared: (0, workers),
            };
        }
        let ideal = |s: f64| sane(s) / total * workers as f64;
        let head: Vec<bool> = shares.iter().map(|s| ideal(*s) >= 1.0).collect();
        let mut wanted: Vec<f64> = shares
            .iter()
            .zip(&head)
            .filter(|(_, h)| **h)
            .map(|(s, _)| ideal(*s))
            .collect();
        let rest: f64 = shares
            .iter()
            .zip(&head)
            .filter(|(_, h)| !**h)
            .map(|(s, _)| ideal(*s))
            .sum();
        if rest > 0.0 {
            wanted.push(rest);
        }
        let quotas = largest_remainder(&wanted, workers);
        let (mut first, mut quota) = (0, quotas.into_iter());
        let mut next = || {
            let size = quota.next().unwrap_or(0);
            first += size;
            (first - size, size)
        };
        let pools = head.iter().map(|head| head.then(&mut next)).collect();
        Self { pools, shared: next() }
    }

    /// Workers of a domain: the shared pool for one that has none of its own, every worker where that pool is empty.
    pub fn pool(&self, domain: Option<u32>, workers: usize) -> std::ops::Range<usize> {
        let own = domain.and_then(|d| self.pools.get(d as usize).copied().flatten());
        let (first, size) = own.unwrap_or(self.shared);
        let pool = first.min(workers)..(first + size).min(workers);
        if pool.is_empty() { 0..workers } else { pool }
    }
}

/// Whole numbers adding up to `seats`, near `wanted` (which adds up to `seats`); each at least 1 where there are seats enough.
fn largest_remainder(wanted: &[f64], seats: usize) -> Vec<usize> {
    let mut quotas: Vec<usize> = wanted.iter().map(|w| w.floor() as usize).collect();
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*b].fract().total_cmp(&wanted[*a].fract()).then(a.cmp(b)));
    let mut left = seats.saturating_sub(quotas.iter().sum());
    for index in order {
        if left > 0 {
            quotas[index] += 1;
            left -= 1;
        }
    }
    quotas
}

/// The least loaded worker of the domain's pool.
#[derive(Clone, Debug, Default)]
pub struct DomainOracle {
    /// Who serves what.
    pub pools: DomainPools,
}

impl Policy for DomainOracle {
    fn choose(&self, candidates: &Candidates<'_>, rng: &mut dyn RngCore) -> Option<Decision> {
        let pool = self.pools.pool(candidates.domain, candidates.loads.len());
        let (worker, band) = ties::least_loaded(candidates.loads, pool, Ties::Spread, rng)?;
        Some(Decision::by_load(worker, band, Reason::Domain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quotas of the ELDR artifact.
    #[test]
    fn pools_match_eldr() {
        let pools = DomainPools::new(&[500.0, 300.0, 150.0, 50.0], 4);
        let of = |d| pools.pool(Some(d), 4);
        assert_eq!([of(0), of(1), of(2), of(3)], [0..2, 2..3, 3..4, 3..4]);
        let pools = DomainPools::new(&[400.0, 300.0, 200.0, 100.0], 16);
        let of = |d| pools.pool(Some(d), 16);
        assert_eq!([of(0), of(1), of(2), of(3)], [0..6, 6..11, 11..14, 14..16]);
    }

    #[test]
    fn the_unknown_go_anywhere_and_empty_fleets_nowhere() {
        let pools = DomainPools::new(&[1.0, 1.0], 4);
        assert_eq!(pools.pool(None, 4), 0..4);
        assert_eq!(pools.pool(Some(9), 4), 0..4);
        assert_eq!(DomainPools::new(&[], 3).pool(Some(0), 3), 0..3);
        assert_eq!(pools.pool(Some(1), 1), 0..1, "workers have left");
        let oracle = DomainOracle { pools };
        let mut rng = rand::rngs::mock::StepRng::new(0, 1);
        let mut choose = |loads: &[f32]| {
            let candidates = Candidates {
                loads,
                domain: Some(1),
                ..Candidates::default()
            };
            oracle.choose(&candidates, &mut rng).map(|d| (d.worker, d.reason))
        };
        assert_eq!(choose(&[0.0, 0.0, 5.0, 4.0]), Some((3, Reason::Domain)));
        assert_eq!(choose(&[]), None);
    }
}
