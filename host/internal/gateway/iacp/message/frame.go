package message

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// head is the length before a frame, in bytes: unsigned and big-endian (I-051).
const head = 4

// Errors of [FrameReader.Next]. Nothing can be read after them, but for [FrameReader.Skip].
var (
	// ErrEmpty is returned for a frame without a byte.
	ErrEmpty = errors.New("the frame is empty")
	// ErrTooLarge is returned for a frame that is larger than a message may be.
	ErrTooLarge = errors.New("the frame is too large")
	// ErrOrder is returned for a length whose bytes are the other way round.
	ErrOrder = errors.New("the length before the frame is little-endian; its first byte must be the highest")
	// ErrHTTP is returned for a request of HTTP, ErrTLS for a handshake of TLS: their first
	// bytes are lengths beyond every limit (I-062).
	ErrHTTP = errors.New("the connection speaks HTTP, not IaCP")
	ErrTLS  = errors.New("the connection speaks TLS, and IaCP is without it here")
)

// AppendFrame writes a frame after others.
func AppendFrame(out, text []byte) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(text)))
	return append(out, text...)
}

// FrameReader reads the frames of a connection. It is used by one goroutine.
type FrameReader struct {
	// Admit is called with the length of each frame before there is place for it, nil to take all:
	// with its error Next refuses the frame.
	Admit func(length int64) error

	r    *bufio.Reader
	most int
	// skip is the length of a frame that was refused for its length, and may be skipped.
	skip int64
}

// skipTimes is how many times as long as a message may be a frame is that is skipped
// (I-052): further frames can be read after it.
const skipTimes = 4

// readBuffer is what a silent connection holds, in bytes.
const readBuffer = 2 << 10

// NewFrameReader returns a reader of frames of at most so many bytes.
func NewFrameReader(r io.Reader, most int) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, readBuffer), most: most}
}

// Skip reads past a frame for which Next has returned [ErrTooLarge] or an error of Admit, without
// keeping it. It
// returns false where that is too much to read: then nothing can be read any more.
func (f *FrameReader) Skip() (skipped bool, err error) {
	n := f.skip
	if f.skip = 0; n == 0 {
		return false, nil
	}
	_, err = io.CopyN(io.Discard, f.r, n)
	return err == nil, err
}

// Wait returns when the first byte of the next frame is there.
func (f *FrameReader) Wait() error {
	_, err := f.r.Peek(1)
	return err
}

// Next returns the next frame. It returns [io.EOF] at the end between two frames. Memory is
// taken for what has come, not for what the length promises.
func (f *FrameReader) Next() ([]byte, error) {
	var first [head]byte
	if _, err := io.ReadFull(f.r, first[:]); err != nil {
		return nil, err
	}
	n, err := f.length(first[:])
	if err == nil && f.Admit != nil {
		if err = f.Admit(n); err != nil {
			f.skip = n
		}
	}
	if err != nil {
		return nil, err
	}
	return f.body(int(n))
}

// body reads the bytes of a frame.
func (f *FrameReader) body(n int) ([]byte, error) {
	text := make([]byte, 0, min(n, readBuffer))
	for {
		read, err := io.ReadFull(f.r, text[len(text):cap(text)])
		text = text[:len(text)+read]
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case len(text) == n:
			return text, nil
		}
		text = append(make([]byte, 0, min(n, 2*cap(text))), text...)
	}
}

// length reads the length of a frame before there is place for it.
func (f *FrameReader) length(first []byte) (int64, error) {
	n := int64(binary.BigEndian.Uint32(first))
	switch reversed := int64(binary.LittleEndian.Uint32(first)); {
	case n == 0:
		return 0, ErrEmpty
	case n <= int64(f.most):
		return n, nil
	case first[0] == 0x16 && first[1] == 3:
		return 0, ErrTLS
	case isMethod(first):
		return 0, ErrHTTP
	case n > skipTimes*int64(f.most):
		if reversed <= int64(f.most) {
			return 0, ErrOrder
		}
	case reversed <= int64(f.most): // who writes the frame knows which of both it is
		f.skip = n
		return 0, fmt.Errorf("%w: %d bytes, at most %d; or %w", ErrTooLarge, n, f.most, ErrOrder)
	default:
		f.skip = n
	}
	return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, n, f.most)
}

// isMethod reports whether the bytes begin a request of HTTP.
func isMethod(first []byte) bool {
	switch string(first) {
	case "GET ", "HEAD", "POST", "PUT ", "PRI ", "OPTI", "DELE", "PATC":
		return true
	}
	return false
}
