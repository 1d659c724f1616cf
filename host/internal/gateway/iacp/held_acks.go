package iacp

import (
	"time"

	"skep/host/internal/gateway/iacp/message"
)

// A peer that sends one question after the other needs no acknowledgement before the answer: it is held
// for a moment, and both leave by one write. So does TCP with its own
// (https://www.rfc-editor.org/rfc/rfc9293#section-3.8.6.3). The acknowledgement of a peer that sends the
// next message without the answer, as one does that counts what is not acknowledged, is never held.

// minAlternating is how many questions a peer has to send one after the other before an acknowledgement is
// held, and of heldCycle one is not held: a peer that would send its next message then is found out.
const minAlternating, heldCycle = 3, 32

// heldAcks are the frames of acknowledgements that wait for an answer. conn.writing guards them.
type heldAcks struct {
	frames []byte
	timer  *time.Timer // nil before the first
}

// hold keeps a frame until release, or until flush is called after a moment.
func (h *heldAcks) hold(text []byte, delay time.Duration, flush func()) {
	switch {
	case h.timer == nil:
		h.timer = time.AfterFunc(delay, flush)
	case h.frames == nil:
		h.timer.Reset(delay)
	}
	h.frames = message.AppendFrame(h.frames, text)
}

// release returns the frames, which are held no more.
func (h *heldAcks) release() (frames []byte) {
	if frames = h.frames; frames != nil {
		h.frames = nil
		h.timer.Stop()
	}
	return frames
}

// flushHeld writes the acknowledgements that are held.
func (c *conn) flushHeld() {
	c.writing.Lock()
	defer c.writing.Unlock()
	if frames := c.held.release(); frames != nil {
		_ = c.writeFrames(frames)
	}
}

// acknowledgeQuestion confirms to the peer that a question is kept: at once, or together with its answer.
func (c *conn) acknowledgeQuestion(m message.Message, holds bool) {
	if !holds || !c.acks {
		c.acknowledge(m)
		return
	}
	text, err := c.g.encode(c.caller, c.newAck(m))
	if err != nil || int64(len(text)) > c.peerMost {
		return
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.held.hold(text, c.g.AckDelay, c.flushHeld)
}

// rhythm is how a peer asks.
type rhythm struct {
	// alternating are the questions that came when no other was open, since the last that did not.
	alternating int
	// answers is about how long the last answers took.
	answers time.Duration
}

// asks notes a question that came while so many were open, and returns whether its acknowledgement is
// held for at most a delay.
func (r *rhythm) asks(open int, delay time.Duration) (holds bool) {
	if open > 0 {
		r.alternating = 0
		return false
	}
	r.alternating++
	return r.alternating > minAlternating && r.alternating%heldCycle != 0 && r.answers < delay
}

// answered notes how long an answer took.
func (r *rhythm) answered(took time.Duration) { r.answers += (took - r.answers) / 4 }

// noteAnswerTime notes how long the answer to a question took that was taken on the connection.
func (c *conn) noteAnswerTime(q question) {
	if q.taken.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rhythm.answered(time.Since(q.taken))
}
