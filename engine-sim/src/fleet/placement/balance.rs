//! Greedy placement of one layer.

/// Physical to logical experts, \[P\]. Copies go one after the other to the expert whose copies carry most; then copies, heaviest first, to
/// the rank that carries least among those with a free place, those without a copy of it preferred.
pub(super) fn place(load: &[f64], ranks: usize, redundant: usize) -> Vec<u16> {
    let places = (load.len() + redundant) / ranks;
    let mut copies = vec![1usize; load.len()];
    for _ in 0..redundant {
        // More copies than ranks would lie on one rank twice.
        let heaviest = (0..load.len())
            .filter(|e| copies[*e] < ranks)
            .max_by(|a, b| {
                let share = |e: usize| load[e] / copies[e] as f64;
                share(*a).total_cmp(&share(*b)).then(b.cmp(a))
            })
            .unwrap_or(0);
        copies[heaviest] += 1;
    }
    let mut all: Vec<(f64, usize)> = (0..load.len())
        .flat_map(|e| std::iter::repeat_n((load[e] / copies[e] as f64, e), copies[e]))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut held: Vec<(f64, Vec<u16>)> = vec![(0.0, Vec::with_capacity(places)); ranks];
    for (share, expert) in all {
        let id = expert as u16;
        let rank = (0..ranks)
            .filter(|r| held[*r].1.len() < places)
            .min_by(|a, b| {
                let key = |r: usize| (held[r].1.contains(&id), held[r].0);
                let ((twice_a, load_a), (twice_b, load_b)) = (key(*a), key(*b));
                twice_a.cmp(&twice_b).then(load_a.total_cmp(&load_b)).then(a.cmp(b))
            })
            .unwrap_or(0);
        held[rank].0 += share;
        held[rank].1.push(id);
    }
    held.into_iter().flat_map(|(_, experts)| experts).collect()
}

/// Load of the rank that carries most.
pub(super) fn heaviest_rank(row: &[u16], load: &[f64], ranks: usize) -> f64 {
    let mut copies = vec![0usize; load.len()];
    for expert in row {
        if let Some(n) = copies.get_mut(usize::from(*expert)) {
            *n += 1;
        }
    }
    let share = |expert: &u16| {
        let e = usize::from(*expert);
        load.get(e).map_or(0.0, |l| *l / copies[e] as f64)
    };
    let places = (row.len() / ranks.max(1)).max(1);
    let sums = row.chunks(places).map(|rank| rank.iter().map(share).sum::<f64>());
    sums.fold(0.0, f64::max)
}
