//! The address of a blob, for tests: a host has its own.

const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// The SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let mut h: [u32; 8] =
        [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((bytes.len() + 9 + 63) / 64 * 64 - 8, 0);
    padded.extend_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    padded.chunks(64).for_each(|block| mix(&mut h, block));
    h.iter().map(|word| format!("{word:08x}")).collect()
}

fn mix(h: &mut [u32; 8], block: &[u8]) {
    let mut w = [0u32; 64];
    for (i, b) in block.iter().enumerate() {
        w[i / 4] = w[i / 4] << 8 | u32::from(*b);
    }
    for i in 16..64 {
        let (a, b) = (w[i - 15], w[i - 2]);
        let (a, b) = (a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3, b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10);
        w[i] = w[i - 16].wrapping_add(a).wrapping_add(w[i - 7]).wrapping_add(b);
    }
    let mut v = *h;
    for i in 0..64 {
        let (a, e) = (v[0], v[4]);
        let high = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let low = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let first = v[7].wrapping_add(high).wrapping_add(e & v[5] ^ !e & v[6]).wrapping_add(K[i]).wrapping_add(w[i]);
        let second = low.wrapping_add(a & v[1] ^ a & v[2] ^ v[1] & v[2]);
        v.rotate_right(1);
        v[4] = v[4].wrapping_add(first);
        v[0] = first.wrapping_add(second);
    }
    h.iter_mut().zip(v).for_each(|(h, v)| *h = h.wrapping_add(v));
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn known_digests() {
        for (bytes, want) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("tea\n", "b49c876df8b640bda8d61932383cbb787236104f12ebfaf1007ea6dcc11d64aa"),
        ] {
            assert_eq!(sha256(bytes.as_bytes()), want);
        }
        assert_eq!(sha256(&[b'a'; 119]), "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
    }
}
