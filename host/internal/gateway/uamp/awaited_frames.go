package uamp

import (
	"bytes"
	"context"
	"strings"
	"sync"

	"skep/host/internal/gateway/uamp/envelope"
)

// awaitedFrames are what attempts wait for on one socket: replies to envelopes, and the deltas
// of streams. It is safe for concurrent use.
type awaitedFrames struct {
	mu      sync.Mutex
	replies map[string]*awaitedFrame
	streams map[string]*awaitedFrame
}

func newAwaitedFrames() *awaitedFrames {
	return &awaitedFrames{replies: map[string]*awaitedFrame{}, streams: map[string]*awaitedFrame{}}
}

// awaitedFrame gets the frames for one attempt. A socket is not read on until they are taken:
// a partner that sends more than it may waits itself.
type awaitedFrame struct {
	of            *awaitedFrames
	reply, stream string
	frames        chan frameFor
	left          chan struct{} // closed as the attempt waits no more
	leaveOnce     sync.Once
}

// frameFor is a frame with its head.
type frameFor struct {
	head frameHead
	text []byte
}

// isDelta reports whether the frame is a delta.
func (f frameFor) isDelta() bool { return f.head.isDelta }

// await waits for the replies to an envelope, and for the deltas of a stream if there is a
// name. leave must be called.
func (w *awaitedFrames) await(reply envelope.ID, stream string) *awaitedFrame {
	a := &awaitedFrame{of: w, reply: string(reply), stream: stream, frames: make(chan frameFor), left: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replies[a.reply] = a
	if stream != "" {
		w.streams[stream] = a
	}
	return a
}

func (a *awaitedFrame) leave() {
	a.leaveOnce.Do(func() { close(a.left) })
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.of.replies[a.reply] == a {
		delete(a.of.replies, a.reply)
	}
	if a.of.streams[a.stream] == a {
		delete(a.of.streams, a.stream)
	}
}

// isOf reports whether the deltas are those of a stream.
func (a *awaitedFrame) isOf(stream string) bool {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return a.stream == stream
}

// isLast reports whether one attempt alone waits.
func (w *awaitedFrames) isLast() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.replies) == 1
}

// hand gives a frame to the attempt that waits for it, if one does.
func (w *awaitedFrames) hand(ctx context.Context, head frameHead, text []byte) bool {
	a := w.find(head)
	if a == nil {
		return false
	}
	select {
	case a.frames <- frameFor{head, bytes.Clone(text)}:
	case <-a.left:
	case <-ctx.Done():
	}
	return true
}

func (w *awaitedFrames) find(head frameHead) *awaitedFrame {
	w.mu.Lock()
	defer w.mu.Unlock()
	if head.isDelta {
		return w.streams[head.Stream]
	}
	a := w.replies[strings.TrimPrefix(strings.ToLower(head.ReplyTo), "urn:uuid:")]
	if a != nil && a.stream != "" && head.Stream != "" && w.streams[head.Stream] == nil {
		// A receipt may name the stream. Its first delta may be the next frame.
		delete(w.streams, a.stream)
		a.stream = head.Stream
		w.streams[a.stream] = a
	}
	return a
}
