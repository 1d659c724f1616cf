package sqlite

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
)

// Lengths of bodies that are packed, in bytes. A short one is packed with the phrases. In a longer one
// they save little, and S2 is faster without them.
const (
	minShort      = 64
	maxShort      = 32 << 10
	minCompressed = 1 << 10
)

// sharedLevel is the feature level from which hosts that share a store read what is packed with the
// phrases, and what is sealed with the length of its content, and erase what is in the table usage.
const sharedLevel = 2

// phrasesText is what bodies have in common: names of members, descriptions of tools, limits. It is
// part of the format, so it never changes; other phrases get another codec.
//
//go:embed phrases.txt
var phrasesText []byte

// phrases is the dictionary of short bodies. The most frequent phrases are at its end, where S2 reaches
// them from most of a body.
var phrases = sync.OnceValue(func() *s2.Dict { return s2.MakeDict(phrasesText, nil) })

// shorten packs the plain body of a step if that makes it smaller, and if all hosts that share the
// store read it.
func (c *codec) shorten(body []byte) []byte {
	switch n := len(body); {
	case n < minShort || !c.hasSharedLevel():
		return body
	case n > maxShort:
		return compress(body)
	}
	return packWith(phrases().Encode, codecShort, body)
}

// packRecord packs a plain body of a turn's record. Each version of skep reads those that are packed
// without the phrases.
func (c *codec) packRecord(body []byte) []byte {
	if !c.hasSharedLevel() {
		return compress(body)
	}
	return c.shorten(body)
}

// hasSharedLevel reports whether all hosts that share the store have [sharedLevel].
func (c *codec) hasSharedLevel() bool { return c.level == nil || c.level() >= sharedLevel }

// compress packs a plain body if that makes it smaller, without the phrases.
func compress(body []byte) []byte {
	if len(body) < minCompressed {
		return body
	}
	return packWith(s2.Encode, codecPacked, body)
}

func packWith(encode func(dst, src []byte) []byte, codec byte, body []byte) []byte {
	out := make([]byte, 1+s2.MaxEncodedLen(len(body)-1))
	out[0] = codec
	out = out[:1+len(encode(out[1:], body[1:]))]
	if len(out) >= len(body) {
		return body
	}
	return out
}

// decompress refuses what would be larger than any body before it is there.
func decompress(packed []byte, decode func(dst, src []byte) ([]byte, error)) ([]byte, error) {
	n, err := s2.DecodedLen(packed)
	if err == nil && n > maxBody {
		err = fmt.Errorf("%d bytes, at most %d are kept", n, maxBody)
	}
	var raw []byte
	if err == nil {
		raw, err = decode(nil, packed)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBody, err)
	}
	return raw, nil
}

// onOwnStack runs do on a goroutine of its own. Packing with phrases takes 64 KiB of stack, which a
// caller that then waits for an answer would keep.
func onOwnStack(do func()) {
	var failed any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { failed = recover() }()
		do()
	}()
	<-done
	if failed != nil {
		panic(failed)
	}
}
