package seal

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"errors"
	"math/big"
	"slices"
	"strings"
)

// base58 are the digits of keys in multibase
// (https://www.w3.org/TR/cid-1.0/#base-58-btc).
const base58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// The codes of key types before a key, as varints
// (https://www.w3.org/TR/cid-1.0/#Multikey).
const (
	codeEd25519 = "\xed\x01"
	codeP256    = "\x80\x24"
)

// maxMultikey bounds the text of a key: 35 bytes have 48 digits.
const maxMultikey = 64

var errMultikey = errors.New("it is no key of Ed25519 or P-256 in multibase")

// ParseMultikey reads a public key in multibase, as in did:key and publicKeyMultibase.
func ParseMultikey(id, text string) (PublicKey, error) {
	digits, ok := strings.CutPrefix(text, "z")
	if !ok || len(digits) > maxMultikey {
		return PublicKey{}, errMultikey
	}
	raw, ok := decodeBase58(digits)
	if !ok || len(raw) < len(codeP256) {
		return PublicKey{}, errMultikey
	}
	code, key := string(raw[:2]), raw[2:]
	switch {
	case code == codeEd25519 && len(key) == ed25519.PublicKeySize:
		return newPublic(id, ed25519.PublicKey(key))
	case code == codeP256:
		if x, y := elliptic.UnmarshalCompressed(elliptic.P256(), key); x != nil {
			return newPublic(id, &ecdsa.PublicKey{Curve: elliptic.P256(), X: x, Y: y})
		}
	}
	return PublicKey{}, errMultikey
}

// Multikey returns the key in multibase.
func (p PublicKey) Multikey() string {
	switch key := p.key.(type) {
	case ed25519.PublicKey:
		return "z" + encodeBase58(append([]byte(codeEd25519), key...))
	case *ecdsa.PublicKey:
		return "z" + encodeBase58(append([]byte(codeP256), elliptic.MarshalCompressed(key.Curve, key.X, key.Y)...))
	}
	return ""
}

func decodeBase58(text string) (raw []byte, ok bool) {
	n, radix := new(big.Int), big.NewInt(int64(len(base58)))
	for i := range len(text) {
		digit := strings.IndexByte(base58, text[i])
		if digit < 0 {
			return nil, false
		}
		n.Add(n.Mul(n, radix), big.NewInt(int64(digit)))
	}
	zeros := len(text) - len(strings.TrimLeft(text, base58[:1]))
	return append(make([]byte, zeros), n.Bytes()...), true
}

func encodeBase58(raw []byte) string {
	var digits []byte
	n, radix, rest := new(big.Int).SetBytes(raw), big.NewInt(int64(len(base58))), new(big.Int)
	for n.Sign() > 0 {
		n.DivMod(n, radix, rest)
		digits = append(digits, base58[rest.Int64()])
	}
	for _, b := range raw {
		if b != 0 {
			break
		}
		digits = append(digits, base58[0])
	}
	slices.Reverse(digits)
	return string(digits)
}
