package keyring

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// KEKSize is the length of a wrapping key.
const KEKSize = 32

// ParseKEK reads a wrapping key as operators write it: 32 bytes in base64 or
// hexadecimal, with space around it.
func ParseKEK(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if k, err := decode(text); err == nil && len(k) == KEKSize {
			return k, nil
		}
	}
	return nil, fmt.Errorf("[store] keyring must be %d bytes in base64 or hexadecimal, for instance from `openssl rand -hex %d`", KEKSize, KEKSize)
}

func newKEK(kek []byte) (cipher.AEAD, error) {
	if kek == nil {
		return nil, nil
	}
	if len(kek) != KEKSize {
		return nil, fmt.Errorf("[store] keyring is a key of %d bytes, it must have %d", len(kek), KEKSize)
	}
	return newAEAD(kek)
}

var errWrong = errors.New("does not open")

// wrap seals a key, or the file's check, with the wrapping key.
func wrap(kek cipher.AEAD, plain []byte, what string) ([]byte, error) {
	nonce := make([]byte, kek.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return kek.Seal(nonce, nonce, plain, []byte(what)), nil
}

func unwrap(kek cipher.AEAD, wrapped []byte, what string) ([]byte, error) {
	if len(wrapped) < kek.NonceSize() {
		return nil, errWrong
	}
	plain, err := kek.Open(nil, wrapped[:kek.NonceSize()], wrapped[kek.NonceSize():], []byte(what))
	if err != nil {
		return nil, errWrong
	}
	return plain, nil
}
