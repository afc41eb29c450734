//! The wire format of Protocol Buffers, as much of it as ONNX needs: varints, lengths and floats
//! ([specification](https://protobuf.dev/programming-guides/encoding/)).

/// A message under construction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// An integer; negative ones take ten bytes, as the format has it.
    pub(super) fn int(mut self, field: u32, value: i64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value as u64);
        self
    }

    pub(super) fn float(mut self, field: u32, value: f32) -> Self {
        self.varint(u64::from(field) << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    pub(super) fn text(self, field: u32, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    pub(super) fn message(self, field: u32, value: &Message) -> Self {
        self.bytes(field, &value.0)
    }

    pub(super) fn messages<'m>(
        self,
        field: u32,
        values: impl IntoIterator<Item = &'m Message>,
    ) -> Self {
        values.into_iter().fold(self, |message, value| message.message(field, value))
    }

    pub(super) fn ints(self, field: u32, values: impl IntoIterator<Item = i64>) -> Self {
        values.into_iter().fold(self, |message, value| message.int(field, value))
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the specification: field 1 = 150, field 2 = "testing", a message in field 3.
    #[test]
    fn examples_of_the_specification() {
        let inner = Message::default().int(1, 150);
        assert_eq!(inner.clone().finish(), [0x08, 0x96, 0x01]);
        let text = Message::default().text(2, "testing").finish();
        assert_eq!(text, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let outer = Message::default().message(3, &inner).finish();
        assert_eq!(outer, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::default().int(1, -1).finish().len(), 11);
        assert_eq!(Message::default().float(2, 1.0).finish(), [0x15, 0, 0, 0x80, 0x3f]);
    }
}
