package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coder/websocket"
)

// Pace bounds a message on its way, as the listener bounds the bodies of requests: a peer that
// answers pings could hold its bytes for ever. It is safe for concurrent use.
type Pace interface {
	// Until returns the deadline of the next read of a message that began at start and has
	// brought read bytes so far.
	Until(start time.Time, read int64) time.Time
	// Acquire counts bytes that have come, until Release. Its error is why there is no place
	// for them.
	Acquire(n int64) error
	Release(n int64)
}

// Within is the pace of messages that are whole in a time, and not counted.
type Within time.Duration

// Until implements [Pace].
func (w Within) Until(start time.Time, _ int64) time.Time { return start.Add(time.Duration(w)) }

// Acquire implements [Pace].
func (Within) Acquire(int64) error { return nil }

// Release implements [Pace].
func (Within) Release(int64) {}

// Errors of a message that was not read.
var (
	// ErrSlowMessage is the error of a message that is not there in its time.
	ErrSlowMessage = errors.New("a message is not whole in its time")
	// ErrNoPlace is the error of a message for whose bytes there is no place.
	ErrNoPlace = errors.New("there is no place for a message")
)

// ReadSocket reads a message of at most so many bytes from a WebSocket whose read limit is
// off. A larger one is [websocket.ErrMessageTooBig], after which the caller closes the socket
// with that status: Close reads for a while what the peer still sends. A library that closes
// at its own limit leaves that unread, and the peer is told of a reset connection and not why.
// A message that is behind its pace closes the socket with [websocket.StatusPolicyViolation]
// and is [ErrSlowMessage]; one that has no place closes it with
// [websocket.StatusTryAgainLater] and is [ErrNoPlace].
func ReadSocket(ctx context.Context, conn *websocket.Conn, most int64, pace Pace) (websocket.MessageType, []byte, error) {
	kind, r, err := conn.Reader(ctx)
	if err != nil {
		return 0, nil, err
	}
	p := &pacedReader{r: r, pace: pace, start: time.Now()}
	defer p.release()
	closed := make(chan struct{})
	p.timer = time.AfterFunc(time.Until(pace.Until(p.start, 0)), func() {
		defer close(closed)
		_ = conn.Close(websocket.StatusPolicyViolation, ErrSlowMessage.Error())
	})
	message, err := io.ReadAll(io.LimitReader(p, most+1))
	if !p.timer.Stop() {
		<-closed
		return kind, nil, fmt.Errorf("%w: %d bytes came in %v", ErrSlowMessage, p.read, time.Since(p.start).Round(time.Second))
	}
	if errors.Is(err, ErrNoPlace) {
		_ = conn.Close(websocket.StatusTryAgainLater, ErrNoPlace.Error())
	}
	if err == nil && int64(len(message)) > most {
		err = fmt.Errorf("%w: it has at most %d bytes", websocket.ErrMessageTooBig, most)
	}
	return kind, message, err
}

// pacedReader reads a message within a pace. Its timer ends the socket.
type pacedReader struct {
	r          io.Reader
	pace       Pace
	timer      *time.Timer
	start      time.Time
	read, held int64
}

func (p *pacedReader) Read(b []byte) (int, error) {
	if !p.timer.Stop() {
		return 0, ErrSlowMessage
	}
	p.timer.Reset(time.Until(p.pace.Until(p.start, p.read)))
	n, err := p.r.Read(b)
	p.read += int64(n)
	if wrong := p.pace.Acquire(int64(n)); wrong != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoPlace, wrong)
	}
	p.held += int64(n)
	return n, err
}

func (p *pacedReader) release() { p.pace.Release(p.held) }

// WriteSocket writes a text within a time. A peer that does not read loses its connection.
func WriteSocket(ctx context.Context, conn *websocket.Conn, text []byte, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, text)
}

// DeliverSocket writes a text and waits until the peer's side has read it: the answer to a ping
// comes after what was sent before. It does not end with ctx, which may end with the answer to the
// text: a write that is cut off ends the connection.
func DeliverSocket(ctx context.Context, conn *websocket.Conn, text []byte, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := conn.Write(ctx, websocket.MessageText, text); err != nil {
		return err
	}
	return conn.Ping(ctx)
}

// PingSocket pings the peer of a WebSocket until one ping is not answered within a time, and
// returns why; or ctx's cause. What reads the socket must go on meanwhile.
func PingSocket(ctx context.Context, conn *websocket.Conn, every, within time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			timed, cancel := context.WithTimeout(ctx, within)
			err := conn.Ping(timed)
			cancel()
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
