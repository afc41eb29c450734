//! The cascade for the images in the lanes, of one channel: S0, S1, S2.
//!
//! | out | is | made by |
//! |---|---|---|
//! | S0 | x⋆φ | [`low_pass`] of x |
//! | S1, j = 0 | \|x⋆ψ₀θ\|⋆φ | full inverse transform, modulus |
//! | S1, j = 1 | \|x⋆ψ₁θ\|⋆φ | [`Cascade::half_bank`] of x's spectrum |
//! | S2 | \|\|x⋆ψ₀θ\|⋆ψ₁θ'\|⋆φ | [`Cascade::half_bank`] of the spectrum of each \|x⋆ψ₀θ\| |
//!
//! ψ₁ has no frequencies above half the highest, so its outputs live on every second pixel: the
//! spectrum is folded while it is read. Images are real, so only the columns 0 … W/2 of a spectrum
//! are made and kept; the others are conj X\[−k\]\[−l\]. Two rows share one complex transform, which
//! leaves a factor 2 in the spectrum; that, the inverse transform's 1/(H·W) and the fold's mean are
//! part of the filters.

use crate::fft::{Between, Fft, Line};
use crate::filters::{ANGLES, morlet};
use crate::lanes::{Complex, Lanes};
use crate::low_pass::{LowPass, low_pass};

/// Coefficients of one channel: 1 + 16 + 64.
pub(crate) const PATHS: usize = 1 + 2 * ANGLES + ANGLES * ANGLES;

/// Everything that depends on the padded size alone.
#[derive(Clone, Debug)]
pub(crate) struct Cascade {
    height: usize,
    width: usize,
    full: [Fft; 2],
    half: [Fft; 2],
    /// ψ₀θ at \[k·W + l\].
    first: Vec<Vec<f32>>,
    /// ψ₁θ at \[k·W/2 + l\]: its values at (k, l), (k + H/2, l), (k, l + W/2), (k + H/2, l + W/2).
    second: Vec<Vec<[f32; 4]>>,
    low_full: [LowPass; 2],
    low_half: [LowPass; 2],
}

/// Room for one cascade at work; one a thread.
pub(crate) struct Workspace<V> {
    /// The padded images, \[H\]\[W\].
    pub(crate) image: Vec<V>,
    modulus: Vec<V>,
    spectrum: Vec<Complex<V>>,
    modulus_spectrum: Vec<Complex<V>>,
    room: Room<V>,
}

/// What every step overwrites.
struct Room<V> {
    rows: Vec<Complex<V>>,
    line: Vec<Complex<V>>,
    other_line: Vec<Complex<V>>,
    column: Vec<V>,
    low: Vec<V>,
    between: Between<V>,
}

impl Cascade {
    /// For padded images of these sizes, each a multiple of 4 and at least 12.
    pub(crate) fn new(height: usize, width: usize) -> Self {
        let factor = 0.5 * Self::inverse_factor([height, width]);
        let wavelet = |j, theta| morlet([height, width], j, theta, factor);
        let (h, w) = (height / 2, width / 2);
        let folded = |filter: Vec<f32>| -> Vec<[f32; 4]> {
            let at = |k: usize, l: usize| filter[k * width + l];
            let quad = |k, l| [at(k, l), at(k + h, l), at(k, l + w), at(k + h, l + w)];
            (0..h).flat_map(|k| (0..w).map(move |l| (k, l))).map(|(k, l)| quad(k, l)).collect()
        };
        Cascade {
            height,
            width,
            full: [Fft::new(height), Fft::new(width)],
            half: [Fft::new(h), Fft::new(w)],
            first: (0..ANGLES).map(|theta| wavelet(0, theta)).collect(),
            second: (0..ANGLES).map(|theta| folded(wavelet(1, theta))).collect(),
            low_full: [low_pass(height, false), low_pass(width, false)],
            low_half: [low_pass(height, true), low_pass(width, true)],
        }
    }

    /// What the inverse transform divides by.
    pub(crate) fn inverse_factor([height, width]: [usize; 2]) -> f64 {
        1.0 / (height * width) as f64
    }

    pub(crate) fn workspace<V: Lanes>(&self) -> Workspace<V> {
        let (pixels, kept) = (self.height * self.width, self.height * (self.width / 2 + 1));
        let longest = self.height.max(self.width);
        Workspace {
            image: vec![V::default(); pixels],
            modulus: vec![V::default(); pixels],
            spectrum: vec![Complex::default(); kept],
            modulus_spectrum: vec![Complex::default(); kept],
            room: Room {
                rows: vec![Complex::default(); pixels],
                line: vec![Complex::default(); longest],
                other_line: vec![Complex::default(); longest],
                column: vec![V::default(); longest],
                low: vec![V::default(); self.low_full[0].outputs * self.width],
                between: Between::new(longest),
            },
        }
    }

    /// Values of one path, H/4 − 2 times W/4 − 2.
    pub(crate) fn path_len(&self) -> usize {
        self.low_full[0].outputs * self.low_full[1].outputs
    }

    /// Writes the [`PATHS`] paths of the images in `work.image`, one after the other.
    #[inline(always)]
    pub(crate) fn run<V: Lanes>(&self, work: &mut Workspace<V>, out: &mut [V]) {
        let Workspace { image, modulus, spectrum, modulus_spectrum, room } = work;
        let path = self.path_len();
        let (zeroth, rest) = out.split_at_mut(path);
        let (first, second) = rest.split_at_mut(2 * ANGLES * path);
        let (first_fine, first_coarse) = first.split_at_mut(ANGLES * path);

        self.smooth(image, room, zeroth);
        self.forward(image, room, spectrum);
        self.half_bank(spectrum, room, first_coarse);
        let fine = first_fine.chunks_exact_mut(path).zip(second.chunks_exact_mut(ANGLES * path));
        for ((s1, s2), filter) in fine.zip(&self.first) {
            self.full_modulus(spectrum, filter, room, modulus);
            self.smooth(modulus, room, s1);
            self.forward(modulus, room, modulus_spectrum);
            self.half_bank(modulus_spectrum, room, s2);
        }
    }

    /// Twice the spectrum of real images, columns 0 … W/2.
    #[inline(always)]
    fn forward<V: Lanes>(&self, image: &[V], room: &mut Room<V>, spectrum: &mut [Complex<V>]) {
        let Room { rows, line, other_line, between, .. } = room;
        let (width, kept) = (self.width, self.width / 2 + 1);
        let targets = rows.chunks_exact_mut(2 * kept);
        for (pair, target) in image.chunks_exact(2 * width).zip(targets) {
            let (upper, lower) = pair.split_at(width);
            for ((value, re), im) in line.iter_mut().zip(upper).zip(lower) {
                *value = Complex::new(*re, *im);
            }
            self.full[1].run((line, Line::WHOLE), (other_line, Line::WHOLE), between);
            // Z = A + iB: 2A_l = Z_l + conj Z_−l, 2B_l = −i(Z_l − conj Z_−l).
            let (upper, lower) = target.split_at_mut(kept);
            for l in 0..kept {
                let (z, mirror) = (other_line[l], other_line[(width - l) % width]);
                upper[l] = Complex::new(z.re + mirror.re, z.im - mirror.im);
                lower[l] = Complex::new(z.im + mirror.im, mirror.re - z.re);
            }
        }
        for start in 0..kept {
            let column = Line { start, step: kept };
            self.full[0].run((rows, column), (spectrum, column), between);
        }
    }

    /// |x⋆ψ₀| at every pixel.
    #[inline(always)]
    fn full_modulus<V: Lanes>(
        &self,
        spectrum: &[Complex<V>],
        filter: &[f32],
        room: &mut Room<V>,
        modulus: &mut [V],
    ) {
        let Room { rows, line, between, .. } = room;
        let (height, width, kept) = (self.height, self.width, self.width / 2 + 1);
        for k in 0..height {
            let here = row_of(spectrum, kept, k);
            let mirror = row_of(spectrum, kept, (height - k) % height);
            let filter = &filter[k * width..][..width];
            // Real and imaginary parts change places, for the inverse.
            for ((value, z), weight) in line.iter_mut().zip(here).zip(filter) {
                *value = Complex::new(z.im, z.re).scaled(V::splat(*weight));
            }
            for l in kept..width {
                let z = mirror[width - l];
                line[l] = Complex::new(z.im * V::splat(-filter[l]), z.re * V::splat(filter[l]));
            }
            let row = Line { start: k * width, step: 1 };
            self.full[1].run((line, Line::WHOLE), (rows, row), between);
        }
        for start in 0..width {
            let column = Line { start, step: width };
            self.full[0].run((rows, column), (line, Line::WHOLE), between);
            for (k, z) in line[..height].iter().enumerate() {
                modulus[k * width + start] = z.modulus();
            }
        }
    }

    /// |x⋆ψ₁θ|⋆φ for all θ, one path after the other.
    #[inline(always)]
    fn half_bank<V: Lanes>(&self, spectrum: &[Complex<V>], room: &mut Room<V>, out: &mut [V]) {
        let Room { rows, line, column: moduli, low, between, .. } = room;
        let (height, h, w) = (self.height, self.height / 2, self.width / 2);
        for (filter, out) in self.second.iter().zip(out.chunks_exact_mut(self.path_len())) {
            for (k, filter) in filter.chunks_exact(w).enumerate() {
                let (upper, lower) = (row_of(spectrum, w + 1, k), row_of(spectrum, w + 1, k + h));
                let upper_mirror = row_of(spectrum, w + 1, (height - k) % height);
                let lower_mirror = row_of(spectrum, w + 1, h - k);
                for (l, weights) in filter.iter().enumerate() {
                    let [a, b, c, d] = *weights;
                    let (a, b) = (V::splat(a), V::splat(b));
                    let (c, d) = (V::splat(c), V::splat(d));
                    let (one, two) = (upper[l], lower[l]);
                    let (three, four) = (upper_mirror[w - l], lower_mirror[w - l]);
                    let re = (one.re * a + two.re * b) + (three.re * c + four.re * d);
                    let im = (one.im * a + two.im * b) - (three.im * c + four.im * d);
                    line[l] = Complex::new(im, re);
                }
                let row = Line { start: k * w, step: 1 };
                self.half[1].run((line, Line::WHOLE), (rows, row), between);
            }
            for start in 0..w {
                let column = Line { start, step: w };
                self.half[0].run((rows, column), (line, Line::WHOLE), between);
                for (modulus, z) in moduli.iter_mut().zip(&line[..h]) {
                    *modulus = z.modulus();
                }
                self.low_half[0].apply(&moduli[..h], (low, column));
            }
            self.low_half[1].apply_rows(low, out);
        }
    }

    /// u⋆φ at every fourth pixel, without the border.
    #[inline(always)]
    fn smooth<V: Lanes>(&self, image: &[V], room: &mut Room<V>, out: &mut [V]) {
        let Room { column: values, low, .. } = room;
        for start in 0..self.width {
            for (value, row) in values.iter_mut().zip(image.chunks_exact(self.width)) {
                *value = row[start];
            }
            let column = Line { start, step: self.width };
            self.low_full[0].apply(&values[..self.height], (low, column));
        }
        self.low_full[1].apply_rows(low, out);
    }
}

/// Row `k` of a spectrum. No closure: it would not be compiled for the CPU.
#[inline(always)]
fn row_of<V>(spectrum: &[Complex<V>], length: usize, k: usize) -> &[Complex<V>] {
    &spectrum[k * length..][..length]
}
