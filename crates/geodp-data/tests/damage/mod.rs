//! Damaged files. The number of a case decides everything about it, so that a failure can be had again,
//! and making one takes a microsecond: a million of them are to be read.

use std::io::Read;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use geodp_nn::SplitMix64;

/// What puts the checksums of a damaged file right, so that what lies behind them is reached.
pub(crate) type Repair = fn(&mut [u8]);

/// Bytes that mean something to a format: ends, signs, the largest length.
const TELLING: &[u8] = b"\0\x01\x7f\x80\xff\n,\"-.[]=eN";

/// One of `files` with one to seven changes, most of them of a byte; every other one is repaired.
pub(crate) fn damaged(files: &[Vec<u8>], case: u64, repair: Option<Repair>) -> Vec<u8> {
    let mut random = SplitMix64::new(SplitMix64::new(case).next_u64());
    let mut bytes = files[random.below(files.len())].clone();
    for _ in 0..=random.below(7) {
        if bytes.is_empty() {
            break;
        }
        damage(&mut bytes, &mut random);
    }
    if let Some(repair) = repair.filter(|_| random.below(2) == 0) {
        repair(&mut bytes);
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, random: &mut SplitMix64) {
    let at = random.below(bytes.len());
    let stretch = |random: &mut SplitMix64| at..bytes.len().min(at + 1 + random.below(19));
    match random.below(13) {
        0..8 => bytes[at] = byte(random),
        8..10 => {
            let new: Vec<u8> = (0..=random.below(5)).map(|_| byte(random)).collect();
            bytes.splice(at..at, new);
        }
        10 => drop(bytes.drain(stretch(random))),
        11 => {
            let part = bytes[stretch(random)].repeat(2 + random.below(38));
            bytes.splice(at..at, part);
        }
        _ => bytes.truncate(at),
    }
}

fn byte(random: &mut SplitMix64) -> u8 {
    match random.below(2) {
        0 => random.next_u64() as u8,
        _ => TELLING[random.below(TELLING.len())],
    }
}

/// The checksums of a PNG file's chunks, as far as their lengths lead.
pub(crate) fn repair_png(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(length) = bytes.get(at..at + 4) {
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let Some(chunk) = bytes.get(at + 4..at + 8 + length) else { return };
        let mut crc = Crc::new();
        crc.update(chunk);
        at += 8 + length;
        let Some(stored) = bytes.get_mut(at..at + 4) else { return };
        stored.copy_from_slice(&crc.sum().to_be_bytes());
        at += 4;
    }
}

/// Checksum and length after the first member of a gzip file whose header has no names in it.
pub(crate) fn repair_gzip(bytes: &mut [u8]) {
    const HEADER: usize = 10;
    let Some(packed) = bytes.get(HEADER..) else { return };
    let mut decoder = DeflateDecoder::new(packed);
    let mut unpacked = Vec::new();
    if decoder.by_ref().take(1 << 16).read_to_end(&mut unpacked).is_err() {
        return;
    }
    let end = HEADER + decoder.total_in() as usize;
    let Some(stored) = bytes.get_mut(end..end + 8) else { return };
    let mut crc = Crc::new();
    crc.update(&unpacked);
    stored[..4].copy_from_slice(&crc.sum().to_le_bytes());
    stored[4..].copy_from_slice(&(unpacked.len() as u32).to_le_bytes());
}
