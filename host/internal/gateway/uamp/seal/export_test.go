package seal

import "crypto/ed25519"

// EncodeMultikey is a key of Ed25519 in multibase that newPublic need not take.
func EncodeMultikey(key ed25519.PublicKey) string { return PublicKey{key: key}.Multikey() }
