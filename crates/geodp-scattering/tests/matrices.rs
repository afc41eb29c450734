//! The transform as matrices is the fast transform.

use geodp_scattering::{Matrices, Matrix, Scattering};

type Plane = Vec<Vec<f64>>;

/// l·m·rᵀ as it is written.
fn sandwich(l: &Matrix, m: &Plane, r: &Matrix) -> Plane {
    let at = |matrix: &Matrix, row, column| f64::from(matrix.values[row * matrix.dims[1] + column]);
    let half: Plane = (0..l.dims[0])
        .map(|i| {
            let sum = |k: usize| (0..l.dims[1]).map(|j| at(l, i, j) * m[j][k]).sum();
            (0..m[0].len()).map(sum).collect()
        })
        .collect();
    let line = |line: &Vec<f64>| -> Vec<f64> {
        let sum = |k: usize| line.iter().enumerate().map(|(j, v)| v * at(r, k, j)).sum();
        (0..r.dims[0]).map(sum).collect()
    };
    half.iter().map(line).collect()
}

fn both(a: &Plane, b: &Plane, f: impl Fn(f64, f64) -> f64) -> Plane {
    let line = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect();
    a.iter().zip(b).map(line).collect()
}

fn complex(l: &[Matrix; 2], [re, im]: &[Plane; 2], r: &[Matrix; 2]) -> [Plane; 2] {
    let part = |a: usize, plane, b: usize| sandwich(&l[a], plane, &r[b]);
    let real = |plane| both(&part(0, plane, 0), &part(1, plane, 1), |a, b| a - b);
    let cross = |plane| both(&part(0, plane, 1), &part(1, plane, 0), |a, b| a + b);
    [both(&real(re), &cross(im), |a, b| a - b), both(&cross(re), &real(im), |a, b| a + b)]
}

fn moduli(by: [&[Matrix; 2]; 2], spectrum: &[Plane; 2], filters: &[Matrix]) -> Vec<Plane> {
    let one = |filter: &Matrix| {
        let rows = filter.values.chunks_exact(filter.dims[1]);
        let filter: Plane = rows.map(|row| row.iter().map(|v| f64::from(*v)).collect()).collect();
        let product = [0, 1].map(|part| both(&spectrum[part], &filter, |a, b| a * b));
        let [re, im] = complex(by[0], &product, by[1]);
        both(&re, &im, f64::hypot)
    };
    filters.iter().map(one).collect()
}

#[test]
fn the_matrices_are_the_fast_transform() {
    for (height, width) in [(12, 16), (13, 10)] {
        let image: Vec<f32> =
            (0..height * width).map(|at| (at * at * 13 % 256) as f32 / 255.0).collect();
        let scattering = Scattering::new(height, width).unwrap();
        let mut expected = vec![0.0; scattering.output_len()];
        scattering.transform(&[&image], &mut scattering.scratch(), &mut [&mut expected]);

        let Matrices { rows, columns, first, second } = scattering.matrices();
        let row = |y: &usize| -> Vec<f64> {
            columns.reflected.iter().map(|x| f64::from(image[y * width + x])).collect()
        };
        let padded: Plane = rows.reflected.iter().map(row).collect();
        let spectrum = |plane: &Plane| {
            let nothing = vec![vec![0.0; plane[0].len()]; plane.len()];
            complex(&rows.forward, &[plane.clone(), nothing], &columns.forward)
        };
        let whole = [&rows.inverse, &columns.inverse];
        let half = [&rows.inverse_half, &columns.inverse_half];
        let low = |plane: &Plane| sandwich(&rows.low_full, plane, &columns.low_full);
        let low_half = |plane: &Plane| sandwich(&rows.low_half, plane, &columns.low_half);
        let fine = moduli(whole, &spectrum(&padded), &first);
        let coarse = [&padded].into_iter().chain(&fine);
        let coarse = coarse.flat_map(|plane| moduli(half, &spectrum(plane), &second));
        let found = [&padded].into_iter().chain(&fine).map(low);
        let found: Vec<f64> =
            found.chain(coarse.map(|plane| low_half(&plane))).flatten().flatten().collect();
        assert_eq!(found.len(), expected.len());
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let error = (found - f64::from(*expected)).abs();
            assert!(error < 3e-7, "{height} × {width}, coefficient {at}: {error:e}");
        }
    }
}
