//! The packets of a database for one user lookup, kept apart so that a test can damage each one.

use crate::sql;

/// The one user of the database; the password is `secret`.
pub const USER: &str = "ann";
/// Columns of the row: the hash, a salt, whether it is a superuser, roles.
const COLUMNS: [&str; 4] = ["password_hash", "salt", "is_superuser", "roles"];

/// The server's side of a connection with one query.
#[derive(Clone, Debug)]
pub struct ReplayedDialogue {
    /// Bytes before the first packet.
    prelude: &'static [u8],
    /// Packets without their lengths.
    packets: Vec<Vec<u8>>,
    /// Adds the header to the packet with this number.
    frame: fn(usize, &[u8]) -> Vec<u8>,
}

impl ReplayedDialogue {
    /// PostgreSQL, which has one row for the query.
    pub fn postgres() -> Self {
        let (text, boolean) = (25_u32, 16_u32);
        let mut described = vec![b'T', 0, 4];
        let mut row = vec![b'D', 0, 4];
        let values = [sql::BCRYPT, "salt", "\0", "a,b"];
        let kinds = [text, text, boolean, text];
        for ((name, value), kind) in COLUMNS.iter().zip(values).zip(kinds) {
            described.extend(name.as_bytes());
            described.extend([0; 7]);
            described.extend(kind.to_be_bytes());
            described.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1]);
            row.extend(
                u32::try_from(value.len())
                    .expect("a short text")
                    .to_be_bytes(),
            );
            row.extend(value.as_bytes());
        }
        let ready = b"ZI".to_vec();
        Self {
            prelude: b"N",
            packets: vec![
                b"R\0\0\0\0".to_vec(),
                b"Sserver_version\x0015.6\0".to_vec(),
                b"K\0\0\0\x01\0\0\0\x02".to_vec(),
                ready.clone(),
                b"1".to_vec(),
                [&b"t\0\x01"[..], &text.to_be_bytes()].concat(),
                described,
                ready.clone(),
                b"2".to_vec(),
                row,
                b"CSELECT 1\0".to_vec(),
                b"3".to_vec(),
                ready,
            ],
            frame: postgres_frame,
        }
    }

    /// MySQL, which has one row for the query.
    pub fn mysql() -> Self {
        let (varchar, tiny) = (0xfd, 0x01);
        // The old ends of lists, no TLS.
        let capabilities: u32 = 0x0008_a209;
        let [low, high] = [capabilities & 0xffff, capabilities >> 16]
            .map(|half| u16::try_from(half).expect("a half").to_le_bytes());
        let greeting = [
            &b"\x0a8.0.36\0\x01\0\0\0saltsalt\0"[..],
            &low,
            &[0x2d, 2, 0],
            &high,
            &[21],
            &[0; 10],
            b"saltsaltsalt\0mysql_native_password\0",
        ];
        let okay = vec![0, 0, 0, 2, 0, 0, 0];
        let end = vec![0xfe, 0, 0, 2, 0];
        let columns = COLUMNS.iter().zip([varchar, varchar, tiny, varchar]);
        let columns: Vec<_> = columns.map(|(name, kind)| column(name, kind)).collect();
        let mut row = vec![0, 0];
        row.extend(sized(sql::BCRYPT));
        row.extend(sized("salt"));
        row.push(0);
        row.extend(sized("a,b"));
        let mut packets = vec![greeting.concat(), okay.clone(), okay];
        // The statement is prepared: its number, its columns, its parameter.
        packets.push(vec![0, 1, 0, 0, 0, 4, 0, 1, 0, 0, 0, 0]);
        packets.push(column("?", varchar));
        packets.push(end.clone());
        packets.extend(columns.clone());
        packets.push(end.clone());
        // And executed.
        packets.push(vec![4]);
        packets.extend(columns);
        packets.push(end.clone());
        packets.push(row);
        packets.push(end);
        Self {
            prelude: b"",
            packets,
            frame: mysql_frame,
        }
    }

    /// The undamaged dialogue.
    pub fn whole(&self) -> Vec<u8> {
        self.framed(&self.packets)
    }

    /// Each packet cut after each of its bytes, with a matching length; the other packets are
    /// whole.
    pub fn cut(&self) -> impl Iterator<Item = Vec<u8>> {
        let places = self.packets.iter().enumerate();
        let places =
            places.flat_map(|(number, packet)| (0..packet.len()).map(move |at| (number, at)));
        places.map(|(number, at)| self.cut_at(number, at))
    }

    /// The packet of this number cut after `bytes` bytes.
    ///
    /// # Panics
    /// There are fewer packets.
    pub fn cut_at(&self, number: usize, bytes: usize) -> Vec<u8> {
        let mut packets = self.packets.clone();
        packets[number].truncate(bytes);
        self.framed(&packets)
    }

    /// Each byte of each packet replaced by these, one at a time.
    pub fn altered(&self, values: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let places = self.packets.iter().enumerate();
        let places =
            places.flat_map(|(number, packet)| (0..packet.len()).map(move |at| (number, at)));
        places.flat_map(move |(number, at)| {
            values.iter().map(move |value| {
                let mut packets = self.packets.clone();
                packets[number][at] = *value;
                self.framed(&packets)
            })
        })
    }

    fn framed(&self, packets: &[Vec<u8>]) -> Vec<u8> {
        let framed = packets.iter().enumerate();
        let framed = framed.flat_map(|(number, packet)| (self.frame)(number, packet));
        self.prelude.iter().copied().chain(framed).collect()
    }
}

/// A kind, then the length of the rest and its own.
fn postgres_frame(_number: usize, packet: &[u8]) -> Vec<u8> {
    let Some((kind, body)) = packet.split_first() else {
        return Vec::new();
    };
    let length = u32::try_from(body.len() + 4).expect("a short packet");
    [&[*kind], &length.to_be_bytes()[..], body].concat()
}

/// The length of the rest, and a number.
fn mysql_frame(number: usize, packet: &[u8]) -> Vec<u8> {
    let length = u32::try_from(packet.len()).expect("a short packet");
    let number = u8::try_from(number).expect("few packets");
    [&length.to_le_bytes()[..3], &[number], packet].concat()
}

/// The definition of a column of MySQL.
fn column(name: &str, kind: u8) -> Vec<u8> {
    let mut column = Vec::new();
    for text in ["def", "", "", "", name, ""] {
        column.extend(sized(text));
    }
    column.extend([0x0c, 0x2d, 0, 0, 1, 0, 0, kind, 0, 0, 0, 0, 0]);
    column
}

/// A short text of MySQL.
fn sized(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("a short text");
    [&[length], text.as_bytes()].concat()
}
