package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"skep/host/client"
)

// acpBridge carries the messages of one program to the ACP gateway of a host and back.
// It makes the connection again when it was lost.
type acpBridge struct {
	client *client.Client
	out    lineWriter
	// patience is how long a question waits for its answer.
	patience time.Duration

	mu   sync.Mutex
	conn *client.ACPConn // nil while there is none
	// waiting are the questions that were sent and have no answer, oldest first.
	waiting []*acpQuestion
	// changed is closed and replaced when conn or waiting changes.
	changed chan struct{}
}

// acpQuestion is a line that is answered.
type acpQuestion struct {
	id, sender, kind string
	line             []byte
	// timer gives the question up.
	timer *time.Timer
}

// maxACPQuestions is how many questions the host lets wait on one connection.
const maxACPQuestions = 64

func newACPBridge(c *client.Client, out io.Writer, patience time.Duration) *acpBridge {
	return &acpBridge{client: c, out: lineWriter{out: out}, patience: patience, changed: make(chan struct{})}
}

// serve carries messages until there are none and all questions are answered.
func (b *acpBridge) serve(ctx context.Context, lines func(context.Context, func([]byte)) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var running sync.WaitGroup
	defer running.Wait()
	defer end(nil)
	running.Go(func() { end(b.connect(ctx)) })
	defer b.change(func() {
		for _, q := range b.waiting {
			q.timer.Stop()
		}
		b.waiting = nil
	})
	err := lines(ctx, func(line []byte) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			b.send(ctx, line)
		}
	})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return b.wait(ctx, func() bool { return len(b.waiting) == 0 })
}

// wait waits until a condition holds, which is looked at with mu held.
func (b *acpBridge) wait(ctx context.Context, holds func() bool) error {
	for {
		b.mu.Lock()
		done, changed := holds(), b.changed
		b.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// change changes what is guarded by mu, and wakes the waiting calls.
func (b *acpBridge) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
	close(b.changed)
	b.changed = make(chan struct{})
}

// reconnectPause is the time between a connection that brought nothing and the next.
const reconnectPause = time.Second

// connect keeps a connection open until ctx ends or the host refuses for good.
func (b *acpBridge) connect(ctx context.Context) error {
	for {
		conn, err := b.client.ACP(ctx)
		if err != nil {
			return err
		}
		var again []*acpQuestion
		b.change(func() { b.conn, again = conn, slices.Clone(b.waiting) }) // later ones are sent where they wait
		came, err := b.read(ctx, conn, again)
		conn.Close()
		b.change(func() { b.conn = nil })
		if ended := new(client.Ended); errors.As(err, &ended) {
			return err
		}
		if came {
			continue
		}
		select {
		case <-time.After(reconnectPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// read sends questions again, and writes what comes until the connection ends.
func (b *acpBridge) read(ctx context.Context, conn *client.ACPConn, again []*acpQuestion) (came bool, err error) {
	var repeating sync.WaitGroup
	defer repeating.Wait()
	repeating.Go(func() {
		for _, q := range again {
			if !conn.Fits(q.line) { // the host before took more
				b.refuseLine(q.line, conn.MaxBody)
			} else if conn.Write(ctx, q.line) != nil {
				return
			}
		}
	})
	for {
		text, err := conn.Read(ctx)
		if err != nil {
			return came, err
		}
		came = true
		b.out.write(text)
		b.answered(readEnvelope(text))
	}
}

// send brings a line to the host: a question until it is answered, something else until the
// host has taken it. While as many questions wait as may, the next one waits here, and the
// lines after it. It returns early when ctx ends.
func (b *acpBridge) send(ctx context.Context, line []byte) {
	m := readEnvelope(line)
	kind := string(m.Header.Type)
	isQuestion := (kind == "REQUEST" || kind == "QUERY") && m.Header.ID != ""
	for {
		var conn *client.ACPConn
		err := b.wait(ctx, func() bool {
			if conn = b.conn; conn == nil || !isQuestion || !conn.Fits(line) {
				return conn != nil
			}
			if len(b.waiting) >= maxACPQuestions {
				return false
			}
			q := &acpQuestion{id: string(m.Header.ID), sender: string(m.Header.Sender), kind: kind, line: line}
			q.timer = time.AfterFunc(b.patience, func() { b.giveUp(q) })
			b.waiting = append(b.waiting, q)
			return true
		})
		if err != nil {
			return
		}
		if !conn.Fits(line) {
			b.refuseLine(line, conn.MaxBody)
			return
		}
		if isQuestion {
			_ = conn.Write(ctx, line) // the next connection repeats it
			return
		}
		if conn.Write(ctx, line) == nil && conn.Taken(ctx) == nil {
			return
		}
		conn.Close()
		if b.wait(ctx, func() bool { return b.conn != conn }) != nil {
			return
		}
	}
}

// answered takes out the question that a message answers. Progress answers none.
func (b *acpBridge) answered(m acpEnvelope) {
	kind := string(m.Header.Type)
	if kind == "INFORM" && m.Header.Progress == "partial" {
		return
	}
	b.change(func() {
		i := slices.IndexFunc(b.waiting, func(q *acpQuestion) bool {
			ends := kind == "ERROR" || kind == "RESPONSE" && q.kind == "REQUEST" || kind == "INFORM" && q.kind == "QUERY"
			return ends && q.id != "" && q.id == string(m.Header.ReplyTo) && q.sender == string(m.Header.Receiver)
		})
		if i >= 0 {
			b.waiting[i].timer.Stop()
			b.waiting = slices.Delete(b.waiting, i, i+1)
		}
	})
}

// giveUp answers a question that has waited long enough, as one to another member of the
// partner, for which the host owes no answer. An answer that comes later is written.
func (b *acpBridge) giveUp(q *acpQuestion) {
	waits := false
	b.change(func() {
		waits = slices.Contains(b.waiting, q)
		q.id = "" // a later answer does not match it
	})
	if !waits {
		return
	}
	b.refuse(q.line, "timeout", fmt.Sprintf("no answer has come within %v; raise --timeout of skep acp stdio", b.patience))
	b.change(func() { b.waiting = slices.DeleteFunc(b.waiting, func(other *acpQuestion) bool { return other == q }) })
}

// acpEnvelope is what the bridge reads of a message.
type acpEnvelope struct {
	Header struct {
		Type     acpText `json:"type"`
		ID       acpText `json:"id"`
		Sender   acpText `json:"sender"`
		Receiver acpText `json:"receiver"`
		ReplyTo  acpText `json:"reply_to"`
		// Conversation is the message's conversation_id.
		Conversation acpText `json:"conversation_id"`
		// Progress is "partial" in an INFORM before the answer.
		Progress acpText `json:"x_progress"`
	} `json:"header"`
}

// acpText is a text, or one in an object as the document's Scala example writes ids.
type acpText string

// UnmarshalJSON implements [json.Unmarshaler]. The host refuses what is neither.
func (t *acpText) UnmarshalJSON(raw []byte) error {
	var wrapped struct{ ID string }
	if json.Unmarshal(raw, (*string)(t)) != nil && json.Unmarshal(raw, &wrapped) == nil {
		*t = acpText(wrapped.ID)
	}
	return nil
}

// readEnvelope reads what it can of a text.
func readEnvelope(text []byte) (m acpEnvelope) {
	_ = json.Unmarshal(text, &m) // the host answers what is no message
	return m
}
