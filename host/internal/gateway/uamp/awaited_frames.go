package uamp

import (
	"bytes"
	"context"
	"slices"
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
	of    *awaitedFrames
	reply string
	// streams are the names of the stream: the envelope's own, and the one that its receipt has.
	streams   []string
	frames    chan frameFor
	left      chan struct{} // closed as the attempt waits no more
	leaveOnce sync.Once
}

// maxStreamNames bounds the names of one stream.
const maxStreamNames = 2

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
	a := &awaitedFrame{of: w, reply: string(reply), frames: make(chan frameFor), left: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replies[a.reply] = a
	if stream != "" {
		a.streams = []string{stream}
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
	for _, name := range a.streams {
		if a.of.streams[name] == a {
			delete(a.of.streams, name)
		}
	}
}

// isOf reports whether the deltas are those of a stream.
func (a *awaitedFrame) isOf(stream string) bool {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return slices.Contains(a.streams, stream)
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

// find returns the attempt that a delta, or an envelope that can be a receipt or an answer, is for.
// Such an envelope names ours by reply_to, or else the stream. What else the partner sends is its
// own: its question about ours is no answer to it.
func (w *awaitedFrames) find(head frameHead) *awaitedFrame {
	w.mu.Lock()
	defer w.mu.Unlock()
	if head.isDelta || head.mayAnswer() && head.ReplyTo == "" {
		return w.streams[head.Stream]
	}
	if !head.mayAnswer() {
		return nil
	}
	a := w.replies[strings.TrimPrefix(strings.ToLower(head.ReplyTo), "urn:uuid:")]
	if a != nil && len(a.streams) > 0 && len(a.streams) < maxStreamNames && head.Stream != "" && w.streams[head.Stream] == nil {
		// A receipt may name the stream. Its first delta may be the next frame.
		a.streams = append(a.streams, head.Stream)
		w.streams[head.Stream] = a
	}
	return a
}
