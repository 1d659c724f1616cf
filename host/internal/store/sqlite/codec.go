package sqlite

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/klauspost/compress/s2"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// A body begins with its codec. What is sealed is a body itself, of any other
// codec.
const (
	codecPlain  = 0x01
	codecPacked = 0x02 // an S2 block
	codecSealed = 0x03
	codecShort  = 0x04 // an S2 block after the phrases
	// codecSealedPacked is what is sealed and packed, after the length of its content, a uvarint:
	// pages are bounded by it.
	codecSealedPacked = 0x05
)

// maxBody keeps a body below the engine's own limit on one value, so that it
// is refused on its caller's goroutine and not inside a group.
const maxBody = 256 << 20

var errBody = errors.New("body cannot be read")

// errCodec is an errBody of a codec that this version does not have.
var errCodec = fmt.Errorf("%w: its codec", errBody)

// codec makes and reads bodies. It is safe for concurrent use.
type codec struct {
	ring *keyring.Ring // nil seals nothing and opens nothing
	// level is the feature level of the hosts that share the store, nil where one has it alone.
	level func() int
}

// encode renders v as a body. Markup characters stay as they are: the
// escapes that HTML needs would only make bodies larger here.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte(codecPlain)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return checkBody(bytes.TrimSuffix(b.Bytes(), []byte{'\n'}))
}

// wrap makes a body of bytes that are kept as they are.
func wrap(raw []byte) ([]byte, error) {
	return checkBody(append([]byte{codecPlain}, raw...))
}

func checkBody(body []byte) ([]byte, error) {
	if len(body) > maxBody {
		return nil, fmt.Errorf("body of %d bytes, at most %d are kept", len(body), maxBody)
	}
	return body, nil
}

// unwrap returns the content of a body that is not sealed.
func unwrap(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return nil, fmt.Errorf("%w: it is empty, so the file is damaged", errBody)
	}
	switch body[0] {
	case codecPlain:
		return body[1:], nil
	case codecPacked:
		return decompress(body[1:], s2.Decode)
	case codecShort:
		return decompress(body[1:], phrases().Decode)
	}
	return nil, fmt.Errorf("%w 0x%02x is unknown to this version of skep", errCodec, body[0])
}

// sealedIn returns what is sealed in a body, nil for none, and how long the content is that it has if
// it is not damaged.
func sealedIn(body []byte) (sealed []byte, content int) {
	if len(body) == 0 {
		return nil, 0
	}
	switch body[0] {
	case codecSealed: // an older one may be packed
		return body[1:], len(body) - 1 - keyring.Overhead - 1
	case codecSealedPacked:
		n, size := binary.Uvarint(body[1:])
		return body[1+max(size, 0):], int(min(n, math.MaxInt32))
	}
	return nil, 0
}

// sealedWith returns the key a body is sealed with, 0 for one that is not.
func sealedWith(body []byte) keyring.ID {
	sealed, _ := sealedIn(body)
	// What is too short to name a key does not open either.
	id, _ := keyring.KeyOf(sealed)
	return id
}

// contentSize returns how long the content of a body is. Of what is sealed by an older version and
// packed it is the packed length.
func contentSize(body []byte) int {
	if sealed, content := sealedIn(body); sealed != nil {
		return content
	}
	if len(body) > 0 && (body[0] == codecPacked || body[0] == codecShort) {
		if n, err := s2.DecodedLen(body[1:]); err == nil {
			return n
		}
	}
	return max(len(body)-1, 0)
}

// opener reads the bodies of one place.
type opener struct {
	*codec
	place place
}

// open returns the content of a body.
func (o opener) open(body []byte, at spot) ([]byte, error) {
	sealed, content := sealedIn(body)
	if sealed == nil {
		return unwrap(body)
	}
	if o.ring == nil {
		return nil, fmt.Errorf("%w: it is sealed and no keyring is in use", errBody)
	}
	plain, err := o.ring.Open(nil, sealed, o.place.bind(at))
	if errors.Is(err, keyring.ErrDestroyed) {
		// Its row is about to go.
		return nil, fmt.Errorf("%w: %w: %w", errBody, swarm.ErrErasing, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBody, err)
	}
	if body[0] == codecSealedPacked && content != contentSize(plain) {
		return nil, fmt.Errorf("%w: it has %d bytes of content and says %d", errBody, contentSize(plain), content)
	}
	return unwrap(plain)
}

// read decodes a body into v.
func (o opener) read(body []byte, at spot, v any) error {
	raw, err := o.open(body, at)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%w: %w", errBody, err)
	}
	return nil
}

// readEvent decodes an event.
func (o opener) readEvent(stored entry) (e swarm.Event, err error) {
	raw, err := o.open(stored.body, spot{inEvents, "", stored.seq})
	if err != nil {
		return e, err
	}
	if e, err = swarm.ReadEvent(raw); err != nil {
		return e, fmt.Errorf("%w: %w", errBody, err)
	}
	e.Seq = stored.seq
	return e, nil
}

// closer makes the bodies of one place.
type closer struct {
	opener
	sealer *keyring.Sealer // nil leaves them as they are
}

// close seals a body.
func (c closer) close(body []byte, at spot) []byte {
	if c.sealer == nil {
		return body
	}
	out := make([]byte, 1, 1+binary.MaxVarintLen32+len(body)+keyring.Overhead)
	out[0] = codecSealed
	if body[0] == codecShort || body[0] == codecPacked && c.hasSharedLevel() {
		out[0] = codecSealedPacked
		out = binary.AppendUvarint(out, uint64(contentSize(body)))
	}
	return c.sealer.Seal(out, body, c.place.bind(at))
}

// key returns the key that seals, 0 for none.
func (c closer) key() keyring.ID {
	if c.sealer == nil {
		return 0
	}
	return c.sealer.ID()
}

// unlimited reads what we wrote. Limits are for what comes in by a door, and a
// door's may be wider than the default.
var unlimited = mail.ParseOptions{Limits: mail.Limits{
	Bytes: math.MaxInt, Depth: math.MaxInt, Recipients: math.MaxInt,
}}

// readAs decodes entries that carry all they are in their bodies.
func readAs[T any](o opener, table, name string) func(entry) (T, error) {
	return func(e entry) (v T, err error) {
		err = o.read(e.body, spot{table, name, e.seq}, &v)
		return v, err
	}
}

// readRow decodes a queue row, whose message has limits when it reads itself.
func (o opener) readRow(stored row) (swarm.Row, error) {
	var r struct {
		swarm.Row
		Message json.RawMessage `json:"message"`
	}
	if err := o.read(stored.body, spot{inQueue, "", stored.seq}, &r); err != nil {
		return swarm.Row{}, err
	}
	var err error
	if r.Row.Message, err = unlimited.Message(r.Message); err != nil {
		return swarm.Row{}, fmt.Errorf("%w: %w", errBody, err)
	}
	r.Row.N, r.Row.Stash = stored.seq, stored.stash
	return r.Row, nil
}
