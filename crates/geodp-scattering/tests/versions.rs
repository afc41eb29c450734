//! The bits of the transform: the same in every version, for any company in the lanes, and as they ever were.

use geodp_scattering::{Level, Scattering};

fn planes(count: usize, len: usize) -> Vec<Vec<f32>> {
    let pixel = |plane: usize, at: usize| ((at * at * 13 + plane * 41 + at) % 256) as f32 / 255.0;
    (0..count).map(|plane| (0..len).map(|at| pixel(plane, at)).collect()).collect()
}

fn bits(scattering: &Scattering, planes: &[&[f32]]) -> Vec<Vec<u32>> {
    let mut out = vec![vec![0.0; scattering.output_len()]; planes.len()];
    let mut targets: Vec<&mut [f32]> = out.iter_mut().map(|out| &mut out[..]).collect();
    scattering.transform(planes, &mut scattering.scratch(), &mut targets);
    out.iter().map(|out| out.iter().map(|v| v.to_bits()).collect()).collect()
}

#[test]
fn every_level_gives_the_same_bits() {
    for (height, width) in [(28, 28), (32, 32), (4, 30), (13, 22)] {
        let planes = planes(Scattering::BLOCK, height * width);
        let planes: Vec<&[f32]> = planes.iter().map(|plane| &plane[..]).collect();
        let at = |level| Scattering::at_level(height, width, level).unwrap();
        let expected = bits(&at(Level::Portable), &planes);
        for level in Level::available() {
            // All lanes, the lanes of half a register, and some that are left empty.
            for count in [16, 8, 11, 3] {
                let found = bits(&at(level), &planes[..count]);
                assert_eq!(found, expected[..count], "{level:?}, {count} planes");
            }
        }
    }
}

#[test]
fn the_bits_never_change() {
    // Of the first version; a model trained on features needs just these.
    for (side, expected) in [(28, 0x4b4f_9185_9634_769f), (32, 0x666b_1ab2_cfc7_9984)] {
        let planes = planes(Scattering::BLOCK, side * side);
        let planes: Vec<&[f32]> = planes.iter().map(|plane| &plane[..]).collect();
        let digest = |digest: u64, bits: u32| {
            digest.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(bits) + 1)
        };
        let scattering = Scattering::new(side, side).unwrap();
        let found = bits(&scattering, &planes).into_iter().flatten().fold(0, digest);
        assert_eq!(found, expected, "{side} × {side}");
    }
}

#[test]
fn a_plane_does_not_see_its_neighbours_or_its_lane() {
    let scattering = Scattering::new(28, 28).unwrap();
    let planes = planes(Scattering::BLOCK, 28 * 28);
    let planes: Vec<&[f32]> = planes.iter().map(|plane| &plane[..]).collect();
    let together = bits(&scattering, &planes);
    for (alone, expected) in planes.iter().zip(&together) {
        assert_eq!(&bits(&scattering, &[alone])[0], expected);
    }
    let mut turned = planes.clone();
    turned.rotate_left(3);
    let mut expected = together;
    expected.rotate_left(3);
    assert_eq!(bits(&scattering, &turned), expected);
}

#[test]
fn a_used_scratch_leaves_no_trace() {
    let scattering = Scattering::new(12, 16).unwrap();
    let planes = planes(2, 12 * 16);
    let mut scratch = scattering.scratch();
    let mut run = |plane: &[f32]| {
        let mut out = vec![0.0; scattering.output_len()];
        scattering.transform(&[plane], &mut scratch, &mut [&mut out]);
        out
    };
    let first = run(&planes[0]);
    run(&planes[1]);
    assert_eq!(run(&planes[0]), first);
}

#[test]
fn small_images_are_refused() {
    assert!(Scattering::new(4, 4).is_ok());
    for (height, width) in [(3, 28), (28, 3), (0, 0)] {
        let error = Scattering::new(height, width).unwrap_err();
        assert!(error.to_string().contains("at least 4 × 4"), "{error}");
    }
}
