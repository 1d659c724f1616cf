package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// head is the length before a frame, in bytes. The document has no order for them: it is
// big-endian here (D-U10).
const head = 4

// Errors of a [Decoder], after which nothing more can be read.
var (
	// ErrOrder is returned for a length whose bytes are the other way round.
	ErrOrder = errors.New("the length before the frame is little-endian; its first byte must be the highest")
	// ErrTooLarge is returned for a frame that is larger than a message may be.
	ErrTooLarge = errors.New("the frame is too large")
	// ErrEmpty is returned for a frame without a byte.
	ErrEmpty = errors.New("the frame is empty")
	// ErrText is returned for a text message where it cannot be a frame.
	ErrText = errors.New("a frame has its length before it, in a binary message")
)

// Append writes a frame after others.
func Append(out, text []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(text)))
	return append(out, text...)
}

// Decoder reads frames out of messages: one may have several frames, and a frame may be in
// several messages. It is used by one goroutine.
type Decoder struct {
	most    int
	strict  bool
	pending []byte // the begin of a frame
}

// NewDecoder returns a decoder of frames of at most so many bytes. In the strict profile a
// text message without a length is refused.
func NewDecoder(most int, strict bool) *Decoder { return &Decoder{most: most, strict: strict} }

// Add takes a message and returns the frames that are whole, in order. They are valid
// until the next call. With an error come the frames before it.
func (d *Decoder) Add(message []byte, isText bool) (frames [][]byte, err error) {
	if isText {
		if d.strict || len(d.pending) > 0 {
			return nil, ErrText
		}
		return d.whole(message)
	}
	rest, joined := message, len(d.pending) > 0
	if joined {
		rest = append(d.pending, message...)
		d.pending = nil
	}
	for len(rest) >= head {
		n, err := d.length(rest)
		if err != nil {
			return frames, err
		}
		if len(rest) < head+n {
			break
		}
		frames = append(frames, rest[head:head+n])
		rest = rest[head+n:]
	}
	if joined && len(frames) == 0 {
		d.pending = rest // it grows in place: many small messages of one frame are not copied each time
	} else {
		d.pending = bytes.Clone(rest)
	}
	return frames, nil
}

// whole takes a message that is one frame.
func (d *Decoder) whole(message []byte) ([][]byte, error) {
	switch {
	case len(message) == 0:
		return nil, ErrEmpty
	case len(message) > d.most:
		return nil, d.tooLarge(uint64(len(message)))
	}
	return [][]byte{message}, nil
}

// length reads the length of a frame before there is place for it.
func (d *Decoder) length(rest []byte) (int, error) {
	n := binary.BigEndian.Uint32(rest)
	switch reversed := binary.LittleEndian.Uint32(rest); {
	case n == 0:
		return 0, ErrEmpty
	case uint64(n) <= uint64(d.most):
		return int(n), nil
	case uint64(reversed) <= uint64(d.most):
		return 0, ErrOrder
	}
	return 0, d.tooLarge(uint64(n))
}

func (d *Decoder) tooLarge(n uint64) error {
	return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, n, d.most)
}
