package envelope

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"skep/host/internal/gateway/wire"
)

// sigName is the property that no hash covers.
const sigName = "sig"

// Signed is an envelope that was read, with the bytes that its signature covers.
type Signed struct {
	Envelope
	reader Reader
	// text is the envelope as it came, canonical its RFC 8785 form without the signature, which
	// sum is the hash of.
	text, canonical []byte
	sum             [sha256.Size]byte
}

// Received is the envelope as it came.
func (s Signed) Received() []byte { return s.text }

// Sums are the hashes that a signature of the envelope may cover, one for each canonical
// form (U-025). The second one is not made before it is wanted.
func (s Signed) Sums(yield func([sha256.Size]byte) bool) {
	if !yield(s.sum) {
		return
	}
	text, err := wire.Canonical(s.text, wire.AsSent, s.reader.MaxDepth, sigName)
	if second := sha256.Sum256(text); err == nil && second != s.sum {
		yield(second)
	}
}

// hop are the members of ext that change on the way: a repeat may have others.
var hop = []string{"traceparent", "tracestate", hopsName}

// Digest is what a repeat of the envelope has too: all but its signature, its token and
// what changes on the way. It is kept, so it stays the hash of what package json writes of a
// list of the envelope and its ext.
func (s Signed) Digest() (sum [sha256.Size]byte, err error) {
	all, _ := wire.Members(s.canonical)
	ext, _ := wire.Members(all["ext"])
	for _, name := range hop {
		delete(ext, name)
	}
	if len(ext) == 0 {
		ext = nil // none is the same as one without members
	}
	last, err := json.Marshal(ext)
	if err != nil {
		return sum, err
	}
	delete(all, "ext")
	delete(all, "cap_token")
	h := sha256.New()
	before := "[{"
	for _, name := range slices.Sorted(maps.Keys(all)) {
		_, _ = fmt.Fprintf(h, "%s%q:", before, name) // a hash takes all
		_, _ = h.Write(escapeHTML(all[name]))
		before = ","
	}
	_, _ = fmt.Fprintf(h, "},%s]", last)
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// escapeHTML is [json.HTMLEscape], without a copy of a text in which nothing is escaped.
func escapeHTML(text []byte) []byte {
	for _, special := range []string{"<", ">", "&", "\u2028", "\u2029"} {
		if bytes.Contains(text, []byte(special)) {
			var out bytes.Buffer
			json.HTMLEscape(&out, text)
			return out.Bytes()
		}
	}
	return text
}

// CheckTime refuses an envelope whose time is further from now than clocks may differ
// (U-016). A repeat of one that was taken is not held against the clock.
func CheckTime(at, now time.Time, skew time.Duration) error {
	if age := now.Sub(at); age > skew || age < -skew {
		return &Fault{
			Code: Unauthenticated, Text: "ts is further from the time here than clock_skew of [gateways.uamp] allows",
			Details: map[string]any{"now": now.UTC().Format(wireTime)},
		}
	}
	return nil
}
