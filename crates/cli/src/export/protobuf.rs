//! Just enough of Protocol Buffers to write messages: numbers, texts, bytes and messages within messages.
//!
//! A field is its number and its kind in one number, then its value. Repeated fields are written one after the other,
//! which every reader takes, packed or not.

/// Kinds of values, as the format numbers them.
const VARINT: u32 = 0;
const LENGTH_DELIMITED: u32 = 2;

/// A message that is being written, field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// One without fields.
    pub(super) fn new() -> Self {
        Message::default()
    }

    /// Its bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// A whole number; a negative one takes ten bytes.
    #[must_use]
    pub(super) fn number(mut self, field: u32, value: i64) -> Self {
        self.key(field, VARINT);
        self.varint(value as u64);
        self
    }

    /// A text.
    #[must_use]
    pub(super) fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// Bytes as they are.
    #[must_use]
    pub(super) fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.key(field, LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A message.
    #[must_use]
    pub(super) fn message(self, field: u32, message: Message) -> Self {
        self.bytes(field, &message.0)
    }

    /// As many messages as there are.
    #[must_use]
    pub(super) fn messages(self, field: u32, all: impl IntoIterator<Item = Message>) -> Self {
        all.into_iter()
            .fold(self, |message, one| message.message(field, one))
    }

    /// As many texts as there are.
    #[must_use]
    pub(super) fn texts<'a>(self, field: u32, all: impl IntoIterator<Item = &'a str>) -> Self {
        all.into_iter()
            .fold(self, |message, one| message.text(field, one))
    }

    /// As many numbers as there are.
    #[must_use]
    pub(super) fn numbers(self, field: u32, all: impl IntoIterator<Item = i64>) -> Self {
        all.into_iter()
            .fold(self, |message, one| message.number(field, one))
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    /// Seven bits a byte, the lowest first; all but the last byte have their highest bit set.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field as any reader would find it.
    #[derive(Debug, PartialEq)]
    enum Field {
        Number(u64),
        Bytes(Vec<u8>),
    }

    /// Reads a message again, from the format's description alone.
    fn read(mut bytes: &[u8]) -> Vec<(u64, Field)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let (mut value, mut shift) = (0, 0);
            loop {
                let (first, rest) = bytes.split_first().expect("a byte more");
                *bytes = rest;
                value |= u64::from(first & 0x7f) << shift;
                shift += 7;
                if first & 0x80 == 0 {
                    return value;
                }
            }
        }
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(length);
                    bytes = rest;
                    Field::Bytes(value.to_vec())
                }
                kind => panic!("kind {kind}"),
            };
            fields.push((key >> 3, field));
        }
        fields
    }

    #[test]
    fn bytes_are_those_of_the_formats_own_examples() {
        let bytes = |message: Message| message.into_bytes();
        assert_eq!(bytes(Message::new().number(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(
            bytes(Message::new().text(2, "testing")),
            [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]
        );
        let inner = Message::new().number(1, 150);
        assert_eq!(
            bytes(Message::new().message(3, inner)),
            [0x1a, 0x03, 0x08, 0x96, 0x01]
        );
        let minus_two = [
            0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ];
        assert_eq!(bytes(Message::new().number(1, -2)), minus_two);
    }

    #[test]
    fn whatever_is_written_is_read_again() {
        let long = vec![7u8; 300];
        for value in [0, 1, 127, 128, 16_383, 16_384, i64::MAX, i64::MIN, -1] {
            let message = Message::new()
                .number(20, value)
                .bytes(16, &long)
                .numbers(1, [3, value])
                .texts(2, ["", "ζ"])
                .messages(5, [Message::new(), Message::new().number(1, value)]);
            let inner = Message::new().number(1, value).into_bytes();
            let expected = [
                (20, Field::Number(value as u64)),
                (16, Field::Bytes(long.clone())),
                (1, Field::Number(3)),
                (1, Field::Number(value as u64)),
                (2, Field::Bytes(Vec::new())),
                (2, Field::Bytes("ζ".into())),
                (5, Field::Bytes(Vec::new())),
                (5, Field::Bytes(inner)),
            ];
            assert_eq!(read(&message.into_bytes()), expected);
        }
    }
}
