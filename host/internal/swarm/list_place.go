package swarm

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// listPlaces seals the places where lists of tasks go on. A list stops at any task that it has
// looked at, so a place that could be read would show the age or the cost of others' tasks.
type listPlaces struct{ sealer cipher.AEAD }

// placeSize is the length of all places in bytes, which thus show nothing by theirs: two numbers
// and a point.
const placeSize = 40

// newListPlaces returns the places of all hosts with this secret, which share a store.
func newListPlaces(secret []byte) (listPlaces, error) {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("places of lists"))
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		return listPlaces{}, err
	}
	sealer, err := cipher.NewGCMWithRandomNonce(block)
	return listPlaces{sealer}, err
}

// bound is what a place belongs to: it is good for a list of the same tasks.
func (p listPlaces) bound(f TaskFilter) []byte {
	return fmt.Appendf(nil, "%q %q %q %v", f.Tenant, f.Swarm, f.Instance, f.ByCost)
}

func (p listPlaces) seal(f TaskFilter, place string) string {
	if place == "" {
		return ""
	}
	padded := fmt.Appendf(nil, "%-*s", placeSize, place)
	return base64.RawURLEncoding.EncodeToString(p.sealer.Seal(nil, nil, padded, p.bound(f)))
}

func (p listPlaces) open(f TaskFilter, sealed string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err == nil {
		raw, err = p.sealer.Open(nil, nil, raw, p.bound(f))
	}
	if err != nil {
		return "", &Refusal{Kind: ErrInvalid, Text: "the place where the list goes on is none that an earlier page of this list has named"}
	}
	return strings.TrimRight(string(raw), " "), nil
}
