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
		if point, ok := expandPoint(key); ok {
			return newPublic(id, point)
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
		if point, err := key.Bytes(); err == nil {
			return "z" + encodeBase58(append([]byte(codeP256), compressPoint(point)...))
		}
	}
	return ""
}

// coordinate is the length of a coordinate of P-256, in bytes.
const coordinate = 32

// expandPoint reads a compressed point of P-256
// (https://www.secg.org/sec1-v2.pdf, section 2.3.4).
func expandPoint(raw []byte) (key *ecdsa.PublicKey, ok bool) {
	x, y := elliptic.UnmarshalCompressed(elliptic.P256(), raw)
	if x == nil {
		return nil, false
	}
	point := make([]byte, 1+2*coordinate)
	point[0] = 4
	x.FillBytes(point[1 : 1+coordinate])
	y.FillBytes(point[1+coordinate:])
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	return key, err == nil
}

// compressPoint keeps x and the sign of y.
func compressPoint(point []byte) []byte {
	return append([]byte{2 | point[len(point)-1]&1}, point[1:1+coordinate]...)
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
