//! TLS 1.3 records (RFC 8446 §5) after the handshake, sealed and opened in place.
//!
//! rustls makes the keys; here they are used. Its own record layer, the unbuffered one included,
//! allocates and copies every record once more in each direction.
//!
//! Deviation: instead of `KeyUpdate` messages (which cannot be sent with extracted keys) both ends
//! change keys after [`RECORDS_PER_KEY`] records, along a one-way chain that starts from the
//! connection's exporter. AES-GCM allows 2^24.5 records with one key (RFC 8446 §5.5).

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::ConnectionTrafficSecrets;
use std::io;
use thiserror::Error;

/// Bytes of a record before its ciphertext.
pub(crate) const HEAD_LEN: usize = 5;
/// Bytes of a record after its plaintext: the inner content type and the tag.
pub(crate) const TAIL_LEN: usize = 1 + TAG_LEN;
/// The most plaintext bytes in a record.
pub(crate) const PLAIN_LEN_MAX: usize = 16 * 1024;
/// The longest record this code sends.
pub(crate) const RECORD_LEN_MAX: usize = HEAD_LEN + PLAIN_LEN_MAX + TAIL_LEN;

const TAG_LEN: usize = 16;
const APPLICATION_DATA: u8 = 23;
const ALERT: u8 = 21;
/// Both ends change keys after so many records: 64 GiB in full ones.
const RECORDS_PER_KEY: u64 = 1 << 22;

/// Why a record cannot be sealed or opened; the connection is broken then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum RecordError {
    /// Not a record of application data, or one beyond its bounds.
    #[error("not a TLS record of application data")]
    Malformed,
    /// It was not made by the far end.
    #[error("a TLS record does not authenticate")]
    Forged,
    /// The far end ended the connection.
    #[error("the far end closed the TLS connection")]
    Closed,
}

/// The keys of one direction.
pub(crate) struct Keys {
    algorithm: &'static aead::Algorithm,
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
    records: u64,
    records_per_key: u64,
    chain: [u8; 32],
}

impl Keys {
    /// Takes over a direction at `sequence`; later keys come from `chain`.
    pub(crate) fn new(
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
        chain: [u8; 32],
    ) -> io::Result<Keys> {
        let (algorithm, key, iv) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&aead::AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&aead::AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (&aead::CHACHA20_POLY1305, key, iv)
            }
            _ => return Err(io::Error::other("TLS agreed on an unknown cipher")),
        };
        let iv = iv.as_ref().try_into().map_err(|_| io::Error::other("a nonce of another size"))?;
        let key = less_safe(algorithm, key.as_ref())?;
        let records_per_key = RECORDS_PER_KEY;
        Ok(Keys { algorithm, key, iv, sequence, records: 0, records_per_key, chain })
    }

    /// The nonce of the next record; changes the keys when they have done enough.
    fn next_nonce(&mut self) -> Result<Nonce, RecordError> {
        if self.records == self.records_per_key {
            self.change()?;
        }
        let mut nonce = self.iv;
        for (byte, sequence) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= sequence;
        }
        self.sequence += 1;
        self.records += 1;
        Ok(Nonce::assume_unique_for_key(nonce))
    }

    fn change(&mut self) -> Result<(), RecordError> {
        let mut next = [0; 32 + 32 + 12];
        let mut hasher = blake3::Hasher::new_derive_key("anabranch 1 next record keys");
        hasher.update(&self.chain).finalize_xof().fill(&mut next);
        self.chain.copy_from_slice(&next[..32]);
        let key = &next[32..32 + self.algorithm.key_len()];
        self.key = less_safe(self.algorithm, key).map_err(|_| RecordError::Malformed)?;
        self.iv.copy_from_slice(&next[64..]);
        (self.sequence, self.records) = (0, 0);
        Ok(())
    }

    /// Seals the record whose `plain_len` bytes of plaintext are in place after [`HEAD_LEN`] bytes:
    /// `record` must be as long as the finished record.
    pub(crate) fn seal(&mut self, record: &mut [u8]) -> Result<(), RecordError> {
        let (head, rest) = record.split_first_chunk_mut().ok_or(RecordError::Malformed)?;
        let plain_len = rest.len().checked_sub(TAIL_LEN).ok_or(RecordError::Malformed)?;
        *head = head_of(rest.len());
        let nonce = self.next_nonce()?;
        let (plain, tail) = rest.split_at_mut(plain_len);
        self.key
            .seal_in_place_scatter(nonce, Aad::from(*head), plain, &[APPLICATION_DATA], tail)
            .map_err(|_| RecordError::Malformed)
    }

    /// Opens a whole record in place and gives its plaintext.
    pub(crate) fn open<'a>(&mut self, record: &'a mut [u8]) -> Result<&'a [u8], RecordError> {
        let (head, sealed) =
            record.split_first_chunk_mut::<HEAD_LEN>().ok_or(RecordError::Malformed)?;
        let nonce = self.next_nonce()?;
        let plain = self
            .key
            .open_in_place(nonce, Aad::from(*head), sealed)
            .map_err(|_| RecordError::Forged)?;
        // The inner content type is the last byte that is not zero (padding).
        let last = plain.iter().rposition(|&byte| byte != 0).ok_or(RecordError::Malformed)?;
        match plain[last] {
            APPLICATION_DATA => Ok(&plain[..last]),
            ALERT => Err(RecordError::Closed),
            _ => Err(RecordError::Malformed),
        }
    }
}

fn less_safe(algorithm: &'static aead::Algorithm, key: &[u8]) -> io::Result<LessSafeKey> {
    let key = UnboundKey::new(algorithm, key).map_err(|_| io::Error::other("not a key"))?;
    Ok(LessSafeKey::new(key))
}

fn head_of(len: usize) -> [u8; HEAD_LEN] {
    let [high, low] = (len as u16).to_be_bytes();
    [APPLICATION_DATA, 3, 3, high, low]
}

/// The length of the record that begins `bytes`, its head included; `None` when less than a head
/// is there.
pub(crate) fn record_len(bytes: &[u8]) -> Result<Option<usize>, RecordError> {
    let Some(head) = bytes.first_chunk::<HEAD_LEN>() else { return Ok(None) };
    let len = usize::from(u16::from_be_bytes([head[3], head[4]]));
    if head[..3] != [APPLICATION_DATA, 3, 3]
        || !(TAIL_LEN..=PLAIN_LEN_MAX + TAIL_LEN).contains(&len)
    {
        return Err(RecordError::Malformed);
    }
    Ok(Some(HEAD_LEN + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(records_per_key: u64) -> Keys {
        let key = less_safe(&aead::AES_128_GCM, &[5; 16]).unwrap();
        let (algorithm, iv, chain) = (&aead::AES_128_GCM, [6; 12], [7; 32]);
        Keys { algorithm, key, iv, sequence: 0, records: 0, records_per_key, chain }
    }

    fn seal(keys: &mut Keys, plain: &[u8]) -> Vec<u8> {
        let mut record = vec![0; HEAD_LEN + plain.len() + TAIL_LEN];
        record[HEAD_LEN..HEAD_LEN + plain.len()].copy_from_slice(plain);
        keys.seal(&mut record).unwrap();
        record
    }

    #[test]
    fn records_open_in_order_across_changes_of_keys() {
        let (mut near, mut far) = (keys(3), keys(3));
        for number in 0..20u8 {
            let plain = vec![number; 1 + usize::from(number) * 800];
            let mut record = seal(&mut near, &plain);
            assert_eq!(record_len(&record), Ok(Some(record.len())));
            assert_eq!(far.open(&mut record), Ok(&plain[..]));
        }
    }

    #[test]
    fn a_record_that_was_changed_repeated_or_left_out_does_not_open() {
        let (mut near, mut far) = (keys(9), keys(9));
        let first = seal(&mut near, b"one");
        let second = seal(&mut near, b"two");
        assert_eq!(far.open(&mut second.clone()), Err(RecordError::Forged));
        let mut far = keys(9);
        assert_eq!(far.open(&mut first.clone()), Ok(&b"one"[..]));
        assert_eq!(far.open(&mut first.clone()), Err(RecordError::Forged));
        let mut far = keys(9);
        let mut changed = first;
        changed[HEAD_LEN] ^= 1;
        assert_eq!(far.open(&mut changed), Err(RecordError::Forged));
    }

    #[test]
    fn what_is_no_record_is_refused_from_its_head() {
        assert_eq!(record_len(b"GET /"), Err(RecordError::Malformed));
        assert_eq!(record_len(&[23, 3, 3, 0x40, 0x12]), Err(RecordError::Malformed));
        assert_eq!(record_len(&[23, 3, 3, 0, 16]), Err(RecordError::Malformed));
        assert_eq!(record_len(&[23, 3, 3, 0]), Ok(None));
    }

    #[test]
    fn every_key_of_the_chain_is_used_for_its_own_records_only() {
        let mut near = keys(2);
        let records: Vec<Vec<u8>> = (0..6).map(|_| seal(&mut near, b"same")).collect();
        for (index, record) in records.iter().enumerate() {
            assert!(records[..index].iter().all(|earlier| earlier != record));
        }
    }
}
