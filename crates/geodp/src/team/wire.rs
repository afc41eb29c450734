//! Messages between processes, as bytes: little-endian, lists with their lengths first.
//!
//! Norms and losses may be any bits, also those of no number, so nothing here goes through text. Reading
//! never panics: bytes that are no message give `None`.

use super::{Found, SentClip};
use crate::params::ClipKind;
use geodp_data::{Fingerprint, FingerprintPart};

/// What is written and read.
pub(super) trait Wire: Sized {
    fn write(&self, out: &mut Vec<u8>);
    fn take(from: &mut &[u8]) -> Option<Self>;

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
    /// Of exactly these bytes.
    fn read(mut bytes: &[u8]) -> Option<Self> {
        let value = Self::take(&mut bytes)?;
        bytes.is_empty().then_some(value)
    }
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                let (own, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_le_bytes(*own))
            }
        }
    )*};
}
number!(u8, u32, u64, f32, f64);

impl<T: Wire> Wire for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u64).write(out);
        self.iter().for_each(|value| value.write(out));
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let len = usize::try_from(u64::take(from)?).ok()?;
        // No value is shorter than a byte: a length that cannot be is not reserved.
        let mut values = Vec::with_capacity(len.min(from.len()));
        for _ in 0..len {
            values.push(T::take(from)?);
        }
        Some(values)
    }
}

impl Wire for String {
    fn write(&self, out: &mut Vec<u8>) {
        self.as_bytes().to_vec().write(out);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        String::from_utf8(Vec::take(from)?).ok()
    }
}

impl<T: Wire> Wire for Result<T, String> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Ok(value) => {
                0u8.write(out);
                value.write(out);
            }
            Err(reason) => {
                1u8.write(out);
                reason.write(out);
            }
        }
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(from)? {
            0 => Ok(T::take(from)?),
            1 => Err(String::take(from)?),
            _ => return None,
        })
    }
}

impl Wire for Fingerprint {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let (own, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(Self::from_bytes(*own))
    }
}

impl Wire for Found {
    fn write(&self, out: &mut Vec<u8>) {
        let Self { source, units, dim, machine, part, report } = self;
        source.write(out);
        units.write(out);
        dim.write(out);
        machine.write(out);
        part.head.write(out);
        part.blocks.write(out);
        // Counts by name; nothing in it is a floating-point number.
        serde_json::to_string(report).unwrap_or_default().write(out);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self {
            source: Wire::take(from)?,
            units: Wire::take(from)?,
            dim: Wire::take(from)?,
            machine: Wire::take(from)?,
            part: FingerprintPart { head: Wire::take(from)?, blocks: Wire::take(from)? },
            report: serde_json::from_str(&String::take(from)?).ok()?,
        })
    }
}

/// Norms, losses, hits and rows of a part of a batch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PartOutcome {
    pub(super) norms: Vec<f32>,
    pub(super) losses: Vec<f32>,
    pub(super) correct: u64,
    pub(super) rows: u64,
}

impl Wire for PartOutcome {
    fn write(&self, out: &mut Vec<u8>) {
        let Self { norms, losses, correct, rows } = self;
        norms.write(out);
        losses.write(out);
        correct.write(out);
        rows.write(out);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self {
            norms: Wire::take(from)?,
            losses: Wire::take(from)?,
            correct: Wire::take(from)?,
            rows: Wire::take(from)?,
        })
    }
}

/// A weight rule of a part of a batch.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SentRule {
    Clipped(SentClip),
    Kept { clip: SentClip, length: f64, uniforms: Vec<f64> },
}

/// A part of a batch: which of the receiver's units, and which of their rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub(super) choice: u64,
    pub(super) units: Vec<u32>,
}

/// What rank 0 wants. Weights follow `Sum`, `Norms` and `Losses` by broadcast.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    Load { config: String, folder: String },
    Sum { part: Part, rule: SentRule, sensitivity: f64 },
    Norms(Part),
    Losses(Part),
    Stop,
}

impl Wire for Part {
    fn write(&self, out: &mut Vec<u8>) {
        self.choice.write(out);
        self.units.write(out);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self { choice: Wire::take(from)?, units: Wire::take(from)? })
    }
}

impl Wire for SentClip {
    fn write(&self, out: &mut Vec<u8>) {
        let kind = match self.kind {
            ClipKind::Flat => 0u8,
            ClipKind::AutoS => 1,
            ClipKind::Psac => 2,
        };
        kind.write(out);
        self.clip_norm.write(out);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let kind = match u8::take(from)? {
            0 => ClipKind::Flat,
            1 => ClipKind::AutoS,
            2 => ClipKind::Psac,
            _ => return None,
        };
        Some(Self { kind, clip_norm: Wire::take(from)? })
    }
}

impl Wire for SentRule {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Clipped(clip) => {
                0u8.write(out);
                clip.write(out);
            }
            Self::Kept { clip, length, uniforms } => {
                1u8.write(out);
                clip.write(out);
                length.write(out);
                uniforms.write(out);
            }
        }
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(from)? {
            0 => Self::Clipped(Wire::take(from)?),
            1 => Self::Kept {
                clip: Wire::take(from)?,
                length: Wire::take(from)?,
                uniforms: Wire::take(from)?,
            },
            _ => return None,
        })
    }
}

impl Wire for Request {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Load { config, folder } => {
                0u8.write(out);
                config.write(out);
                folder.write(out);
            }
            Self::Sum { part, rule, sensitivity } => {
                1u8.write(out);
                part.write(out);
                rule.write(out);
                sensitivity.write(out);
            }
            Self::Norms(part) => {
                2u8.write(out);
                part.write(out);
            }
            Self::Losses(part) => {
                3u8.write(out);
                part.write(out);
            }
            Self::Stop => 4u8.write(out),
        }
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(from)? {
            0 => Self::Load { config: Wire::take(from)?, folder: Wire::take(from)? },
            1 => Self::Sum {
                part: Wire::take(from)?,
                rule: Wire::take(from)?,
                sensitivity: Wire::take(from)?,
            },
            2 => Self::Norms(Wire::take(from)?),
            3 => Self::Losses(Wire::take(from)?),
            4 => Self::Stop,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn requests() -> [Request; 5] {
        let part = Part { choice: 7, units: vec![1, 5, 9] };
        let clip = SentClip { kind: ClipKind::Psac, clip_norm: 0.1 };
        let rule = SentRule::Kept { clip, length: 0.5, uniforms: vec![0.25, f64::INFINITY] };
        [
            Request::Load { config: "[data]".to_owned(), folder: String::new() },
            Request::Sum { part: part.clone(), rule, sensitivity: 0.1 },
            Request::Norms(part.clone()),
            Request::Losses(part),
            Request::Stop,
        ]
    }

    #[test]
    fn messages_come_back() {
        for request in requests() {
            let bytes = request.bytes();
            assert_eq!(Request::read(&bytes), Some(request));
            // Neither a part of a message nor one with more behind it is one.
            assert_eq!(Request::read(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Request::read(&[bytes, vec![0]].concat()), None);
        }
        let outcome =
            PartOutcome { norms: vec![f32::INFINITY, 1.5], losses: vec![0.0], correct: 3, rows: 4 };
        let answers = [Ok(outcome), Err("no such file".to_owned())];
        for answer in answers {
            assert_eq!(Result::<PartOutcome, String>::read(&answer.bytes()), Some(answer));
        }
        let not_a_number = f32::from_bits(0x7fc0_1234);
        let bits = Vec::<f32>::read(&vec![not_a_number].bytes()).map(|v| v[0].to_bits());
        assert_eq!(bits, Some(0x7fc0_1234));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::read(&bytes);
            let _ = Result::<PartOutcome, String>::read(&bytes);
            let _ = Result::<Found, String>::read(&bytes);
        }
    }
}
