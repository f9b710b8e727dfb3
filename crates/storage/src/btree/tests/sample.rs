//! Drawn leaves: every leaf is as likely as any other, and estimates come near the size.

use std::collections::BTreeMap;

use super::*;

/// Sparse leaves in front, dense ones behind: the first half of the keys comes in random order,
/// with long values, the second in ascending order.
fn uneven(store: &Store, tree: Tree, random: &mut Random) -> u64 {
    let half = 30_000_u64;
    let mut keys: Vec<u64> = (0..half).collect();
    for index in (1..keys.len()).rev() {
        keys.swap(index, random.below(index as u64 + 1) as usize);
    }
    for key in keys {
        put(store, tree, &key.to_be_bytes(), &[1; 200]);
    }
    for key in half..2 * half {
        put(store, tree, &key.to_be_bytes(), &[2; 20]);
    }
    2 * half
}

#[test]
fn kept_leaves_are_equally_likely_whatever_their_fill() {
    let bench = Bench::new(1, 4000);
    let (store, tree) = bench.create();
    bench.run(&store, |store| {
        let mut random = Random(7);
        let keys = uneven(store, tree, &mut random);
        let exact = tree.statistics(store).unwrap();
        let draws = 20_000;
        let (mut leaves, mut pages, mut entries) = (0.0, 0.0, 0.0);
        let mut drawn = Vec::with_capacity(draws);
        for _ in 0..draws {
            let leaf = tree.draw(store, &mut || random.next()).unwrap();
            leaves += leaf.weight / draws as f64;
            pages += leaf.pages / draws as f64;
            entries += leaf.weight * leaf.entries as f64 / draws as f64;
            drawn.push(leaf);
        }
        assert!((leaves / exact.leaves as f64 - 1.0).abs() < 0.05, "{leaves} {exact:?}");
        assert!((pages / exact.pages as f64 - 1.0).abs() < 0.05, "{pages} {exact:?}");
        assert!((entries / keys as f64 - 1.0).abs() < 0.05, "{entries} of {keys}");
        // Each leaf by the number of times that it was kept.
        let most = drawn.iter().map(|leaf| leaf.weight).fold(0.0, f64::max);
        let mut kept: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for leaf in &drawn {
            assert!(leaf.upper.as_ref().is_none_or(|upper| *upper > leaf.lower));
            if (random.below(1 << 30) as f64) < leaf.weight / most * (1_u64 << 30) as f64 {
                *kept.entry(leaf.lower.clone()).or_default() += 1;
            }
        }
        let half = (keys / 2).to_be_bytes();
        let sum = |range: &mut dyn Iterator<Item = (&Vec<u8>, &u32)>| {
            range.fold((0_u32, 0_u32), |(leaves, draws), (_, count)| (leaves + 1, draws + count))
        };
        let sparse = sum(&mut kept.range(..half.to_vec()));
        let dense = sum(&mut kept.range(half.to_vec()..));
        assert!(sparse.0 > 3 * dense.0, "the halves differ in fill: {sparse:?} {dense:?}");
        let (sparse, dense) =
            (f64::from(sparse.1) / f64::from(sparse.0), f64::from(dense.1) / f64::from(dense.0));
        assert!((sparse / dense - 1.0).abs() < 0.2, "kept {sparse} and {dense} times a leaf");
    });
    bench.close(store);
}

#[test]
fn the_size_is_near_the_real_one() {
    let bench = Bench::new(1, 4000);
    let (store, tree) = bench.create();
    bench.run(&store, |store| {
        let size = tree.size(store).unwrap();
        assert_eq!((size.pages, size.entries), (1.0, 0.0));
        put(store, tree, b"one", b"");
        assert_eq!(tree.size(store).unwrap().entries, 1.0);
        let keys = uneven(store, tree, &mut Random(3)) as f64;
        let size = tree.size(store).unwrap();
        assert!(size.entries > keys / 2.5 && size.entries < keys * 2.5, "{size:?} of {keys}");
        assert_eq!(tree.resident_size(store), Some(size), "the same walks");
        assert_eq!(tree.part_within(store, |_| true).unwrap(), 1.0);
        assert_eq!(tree.part_within(store, |_| false).unwrap(), 0.0);
        let middle = tree.draw(store, &mut || 1 << 63).unwrap().lower;
        let below = tree.part_within(store, |leaf| leaf.lower < middle).unwrap();
        let above = tree.part_within(store, |leaf| leaf.lower >= middle).unwrap();
        assert!(below > 0.0 && above > 0.0 && (below + above - 1.0).abs() < 1e-9, "{below} {above}");
    });
    bench.close(store);
}
