//! Least squares with three coefficients that must not be negative.

/// The columns of a problem, all of one length.
pub(super) type Columns = [Vec<f64>; 3];

/// The coefficients, the first above zero and the others at least zero, whose sum of columns comes
/// closest to `target`. The problem is convex. So its solution is the best of the ordinary
/// solutions over each choice of columns that gives no negative coefficient. Where the first would
/// have to be zero, it is the best of those with a positive first one. `None` where there is none.
pub(super) fn solve(columns: &Columns, target: &[f64]) -> Option<[f64; 3]> {
    const CHOICES: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
    let mut best: Option<(f64, [f64; 3])> = None;
    for choice in CHOICES {
        let chosen: Vec<&[f64]> = choice.iter().map(|&column| columns[column].as_slice()).collect();
        let Some(solution) = ordinary(&chosen, target) else { continue };
        if solution[0] <= 0.0 || solution.iter().any(|coefficient| *coefficient < 0.0) {
            continue;
        }
        let mut coefficients = [0.0; 3];
        for (&column, &coefficient) in choice.iter().zip(&solution) {
            coefficients[column] = coefficient;
        }
        let error = squares(columns, &coefficients, target);
        if best.is_none_or(|(least, _)| error < least) {
            best = Some((error, coefficients));
        }
    }
    best.map(|(_, coefficients)| coefficients)
}

fn squares(columns: &Columns, coefficients: &[f64; 3], target: &[f64]) -> f64 {
    let value =
        |row: usize| -> f64 { (0..3).map(|column| coefficients[column] * columns[column][row]).sum() };
    target.iter().enumerate().map(|(row, target)| (value(row) - target).powi(2)).sum()
}

/// Ordinary least squares by the normal equations; `None` where columns depend on each other.
fn ordinary(columns: &[&[f64]], target: &[f64]) -> Option<Vec<f64>> {
    let dot =
        |one: &[f64], other: &[f64]| -> f64 { one.iter().zip(other).map(|(one, other)| one * other).sum() };
    let row = |one: &&[f64]| columns.iter().chain([&target]).map(|other| dot(one, other)).collect();
    let mut rows: Vec<Vec<f64>> = columns.iter().map(row).collect();
    for pivot in 0..rows.len() {
        // A smaller remainder, after the other columns are taken out, is rounding.
        if rows[pivot][pivot] <= 1e-12 * dot(columns[pivot], columns[pivot]) {
            return None;
        }
        let taken = rows[pivot].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
            let part = row[pivot] / taken[pivot];
            row.iter_mut().zip(&taken).for_each(|(value, taken)| *value -= part * taken);
        }
    }
    Some(rows.iter().enumerate().map(|(at, row)| row[columns.len()] / row[at]).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns(at: &[f64]) -> Columns {
        [at.iter().map(|_| 1.0).collect(), at.to_vec(), at.iter().map(|at| at * at).collect()]
    }

    proptest! {
        #[test]
        fn no_other_allowed_coefficients_come_closer(
            target in prop::collection::vec(0.1f64..10.0, 5..9),
            other in prop::array::uniform3(0.0f64..5.0),
        ) {
            let at: Vec<f64> = (0..target.len()).map(|at| at as f64).collect();
            let columns = columns(&at);
            let found = solve(&columns, &target);
            prop_assume!(found.is_some());
            let found = found.unwrap();
            prop_assert!(found[0] > 0.0 && found[1] >= 0.0 && found[2] >= 0.0);
            let best = squares(&columns, &found, &target);
            let without_first = [vec![1, 2], vec![1], vec![2]].iter().any(|choice| {
                let chosen: Vec<&[f64]> = choice.iter().map(|&column: &usize| columns[column].as_slice()).collect();
                let solution = ordinary(&chosen, &target).unwrap();
                let mut coefficients = [0.0; 3];
                choice.iter().zip(&solution).for_each(|(&column, value)| coefficients[column] = value.max(0.0));
                squares(&columns, &coefficients, &target) < best
            });
            prop_assume!(!without_first);
            // Anywhere in the permitted region, and at a small distance from the solution.
            let aside = [found[0] * (1.0 + 0.01 * (other[0] - 2.5)), found[1] + 0.01 * other[1], found[2] + 0.01 * other[2]];
            for coefficients in [[other[0].max(1e-9), other[1], other[2]], aside] {
                prop_assert!(best <= squares(&columns, &coefficients, &target) * (1.0 + 1e-9));
            }
        }
    }

    #[test]
    fn columns_that_depend_on_each_other_are_not_used_together() {
        let columns = [vec![1.0; 4], vec![2.0; 4], vec![0.0, 1.0, 4.0, 9.0]];
        let found = solve(&columns, &[1.0, 1.5, 3.0, 5.5]).unwrap();
        assert!((found[0] + 2.0 * found[1] - 1.0).abs() < 1e-9 && (found[2] - 0.5).abs() < 1e-9, "{found:?}");
    }
}
