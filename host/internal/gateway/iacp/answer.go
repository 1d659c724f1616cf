package iacp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/message"
)

// errLate ends the wait for an answer when its asker waits no more.
var errLate = errors.New("the time for the answer is over")

// headOf is what answering a message needs of it: an open question holds nothing of its content.
func headOf(m message.Message) message.Message {
	return message.Message{ID: m.ID, Type: m.Type, Sender: message.Agent{ID: m.Sender.ID}, Recipient: &message.Recipient{ID: m.To()}, Conversation: m.Conversation}
}

// question is a message of a peer that was taken and waits for its answer.
type question struct {
	caller gateway.Caller
	head   message.Message
	x      gateway.Exchange
	// until is when the asker waits no more, zero for never, taken when the question was taken.
	until, taken time.Time
	// alone is set where no other question was open on the connection.
	alone bool
	// note is the exchange's, nil where it was not read.
	note *note
}

// readNote returns the note of the question's exchange.
func (q question) readNote() (note, error) {
	if q.note != nil {
		return *q.note, nil
	}
	return noteOf(q.x)
}

// reply writes the answer to a question when it is there. An asker who has left gets it on the next
// connection.
func (c *conn) reply(q question) {
	n, err := q.readNote()
	settle := func(answered bool) {
		defer c.done()
		c.settle(q, n, answered)
	}
	later := false // settle is called when the answer is acknowledged
	deliver := func(m message.Message) error {
		if len(m.Payload) > maxSmall || q.x.Duplicate { // settle writes for a duplicate, and the reader does not wait for the store
			return c.deliverMessage(m)
		}
		text, err := c.g.encode(c.caller, m)
		if err == nil {
			err = c.deliverLater(m.To(), m.ID, text, func(err error) { settle(err == nil) })
		}
		later = err == nil
		return err
	}
	if err == nil && n.HandedOn && !q.x.Duplicate {
		deliver = nil
	}
	answered := c.answer(q, deliver)
	if !later {
		settle(answered || deliver == nil && q.until.IsZero())
	}
}

// settle notes whether the asker of a question has its answer.
func (c *conn) settle(q question, n note, answered bool) {
	if n.isDue() {
		c.g.deadlines.handOver(c.ctx, deadlineKey(q.caller, q.x.ID), deadline{q.x.ID, n.Until}, answered)
	}
	switch {
	case !answered:
		c.keepUnsent(q.caller, q.head.Sender.ID, q.x, q.until)
	case q.x.Duplicate:
		c.removeUnsent(unsentKey(q.caller, q.head.Sender.ID, q.x))
	}
}

// answer waits for the answer to a question, until its asker waits no more, and delivers it; deliver
// is nil for an answer that leaves through the outbox. It returns false where the asker may not have
// the answer: the connection ended before, or the host stops. The caller has begun the wait.
func (c *conn) answer(q question, deliver func(message.Message) error) (answered bool) {
	endLoad := c.g.loads.begin(q.x)
	ctx := c.ctx
	if !q.until.IsZero() {
		late, cancel := context.WithDeadlineCause(ctx, q.until, errLate)
		defer cancel()
		ctx = late
	}
	a, err := c.await(ctx, q.head, q.x)
	endLoad()                     // before the answer: its asker may send the next question to a group then
	repeated := c.endWait(q.x.ID) // before the answer: its asker may repeat the question then
	if repeated && deliver == nil {
		deliver = c.deliverMessage
	}
	c.noteAnswerTime(q)
	switch {
	case err == nil:
		if failed, counts := failureOf(a.Outcome); counts {
			c.g.noteResult(q.caller, q.head.Type, q.x, failed)
		}
		return c.respond(q, a, deliver)
	case c.ctx.Err() != nil:
		return false
	case errors.Is(context.Cause(ctx), errLate):
		return c.answerLate(q, deliver)
	}
	c.refuse(q.head, err)
	return !errors.Is(err, gateway.ErrDraining)
}

// noteResult counts how a question to an agent of ours has ended, once.
func (g *Gateway) noteResult(c gateway.Caller, t message.Type, x gateway.Exchange, failed bool) {
	if !x.Duplicate && !isAboutBegun(t) {
		g.breakers.record(breakerKey{realmOf(c), x.Task.Swarm, x.Agent}, failed, time.Now())
	}
}

// answerLate withdraws a message whose asker waits no more, and tells it so. A repeat of what was
// answered in time gets the answer.
func (c *conn) answerLate(q question, deliver func(message.Message) error) (answered bool) {
	caller, m, x := q.caller, q.head, q.x
	var a gateway.Answer
	ready := false
	err := c.retry(c.ctx, "an answer waits", func() (err error) {
		a, ready, err = c.g.Runtime.Look(c.ctx, x)
		return err
	})
	if err == nil && ready && a.Outcome != gateway.NeedsInput {
		return c.respond(q, a, deliver)
	}
	if c.ctx.Err() != nil {
		return false
	}
	c.g.noteResult(caller, m.Type, x, true)
	withdraw := func() error { return c.g.Runtime.Cancel(c.ctx, caller, x.ID, errLate.Error()) }
	if n, err := q.readNote(); err == nil && n.HandedOn { // the withdrawal puts an answer into the outbox
		_ = c.retry(c.ctx, "a withdrawal waits", withdraw)
		return c.ctx.Err() == nil
	}
	if err := withdraw(); err != nil && !errors.Is(err, gateway.ErrConflict) {
		c.g.Log.Warn("iacp: a message whose time is over could not be withdrawn", "message", x.ID, "error", err)
	}
	c.refuse(m, &fault{code: codeTimeout, text: errLate.Error(), retry: true})
	return c.ctx.Err() == nil
}

// respond sends an answer, unless send is nil, and returns whether the asker has it. In the place of
// an answer that is longer than the peer takes it sends an error.
func (c *conn) respond(q question, a gateway.Answer, send func(message.Message) error) (answered bool) {
	if send == nil {
		return true
	}
	if bytes := c.answerRoom(a); bytes > 0 {
		if !c.room.answers.TryAcquire(bytes) {
			var err error
			if a, err = c.awaitRoom(q.x, bytes); err != nil {
				return c.refuseAnswer(q.x, err)
			}
		}
		defer c.room.answers.Release(bytes)
	}
	n, err := q.readNote()
	var m message.Message
	if err == nil {
		m = c.g.answerTo(q.caller, q.x, n, a)
	}
	asked := questionOf(m)
	if err == nil {
		err = send(m)
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, errTooLong):
		return c.refuseLong(asked) == nil
	}
	return c.refuseAnswer(q.x, err)
}

// refuseAnswer tells an asker why there is no answer, and returns whether it has that.
func (c *conn) refuseAnswer(x gateway.Exchange, err error) (answered bool) {
	if errors.Is(err, errAway) || c.ctx.Err() != nil {
		return false
	}
	c.refuse(message.Message{ID: x.ID}, err)
	return c.ctx.Err() == nil
}

// answerRoom is the room that an answer takes until it is acknowledged, in bytes: none for a small one.
func (c *conn) answerRoom(a gateway.Answer) int64 {
	if len(a.Body) <= maxSmall {
		return 0
	}
	return min(int64(len(a.Body)), c.g.Held)
}

// awaitRoom waits until the realm has room for an answer, and reads it again: those that wait hold no
// text. With an error it takes no room.
func (c *conn) awaitRoom(x gateway.Exchange, bytes int64) (a gateway.Answer, err error) {
	if c.room.answers.Acquire(c.ctx, bytes) != nil {
		return a, errAway
	}
	ready := false
	err = c.retry(c.ctx, "an answer waits", func() (err error) {
		a, ready, err = c.g.Runtime.Look(c.ctx, x)
		return err
	})
	if err == nil && !ready {
		err = gateway.ErrUnknown
	}
	if err != nil {
		c.room.answers.Release(bytes)
	}
	return a, err
}

// questionOf is the question of an answer, as a refusal names it.
func questionOf(answer message.Message) message.Message {
	return message.Message{
		ID: answer.Parent, Sender: message.Agent{ID: answer.To()}, Recipient: &message.Recipient{ID: answer.Sender.ID}, Conversation: answer.Conversation,
	}
}

// refuseLong sends the asker of a question an error in the place of an answer that the peer would not
// take.
func (c *conn) refuseLong(question message.Message) error {
	f := &fault{code: codeInvalid, reason: reasonTooLarge, text: errTooLong.Error()}
	return c.tell(message.ErrorResponse, question, f.payload())
}

// retry calls again what a failing store has held up, with pauses that double, until ctx ends.
// What the runtime has refused stays refused.
func (c *conn) retry(ctx context.Context, held string, call func() error) error {
	for pause := c.g.FirstPause; ; pause = min(2*pause, lastPause) {
		err := call()
		if err == nil || ctx.Err() != nil || isRefusal(err) {
			return err
		}
		c.g.Log.Warn("iacp: "+held+" for the store", "realm", c.caller.Realm, "error", err)
		if !gateway.Pause(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// await waits for the answer of an exchange, and shows how far it is where that was agreed.
func (c *conn) await(ctx context.Context, m message.Message, x gateway.Exchange) (a gateway.Answer, err error) {
	shows := c.progress && m.Type == message.TaskRequest
	if shows {
		_ = c.tell(message.TaskResponse, m, map[string]any{"status": "accepted"})
	}
	shown := 0.0
	err = c.retry(ctx, "an answer waits", func() (err error) {
		if !shows {
			if a, err = c.g.Runtime.Wait(ctx, x); err != nil || a.Outcome != gateway.NeedsInput {
				return err
			}
		}
		a, err = c.follow(ctx, m, x, &shown)
		return err
	})
	return a, err
}

// follow waits for the answer of an exchange and shows its progress, which only grows (I-031).
func (c *conn) follow(ctx context.Context, m message.Message, x gateway.Exchange, shown *float64) (a gateway.Answer, err error) {
	s, err := c.g.Runtime.Follow(ctx, x, 0)
	if err != nil {
		return a, err
	}
	defer s.Close()
	for {
		piece, err := s.Next(ctx)
		switch {
		case err != nil:
			return a, err
		case piece.Kind == gateway.End:
			return *piece.Answer, nil
		case piece.Kind == gateway.Progress && c.progress:
			payload := map[string]any{"status": "in_progress", "result": piece.Text}
			if piece.Fraction != nil {
				*shown = max(*shown, *piece.Fraction)
				payload["progress"] = *shown
			}
			_ = c.tell(message.TaskResponse, m, payload)
		}
	}
}

// answerTo returns the message with an answer. It is the same for each reader of the
// exchange, which has the note.
func (g *Gateway) answerTo(c gateway.Caller, x gateway.Exchange, n note, a gateway.Answer) message.Message {
	if a.Outcome == gateway.Cancelled && !n.Until.IsZero() && !a.At.Before(n.Until) {
		a.Outcome, a.Body = gateway.TimedOut, errLate.Error()
	}
	m := message.New(message.TaskResponse, n.Receiver, taskResponse(a, g.MaxDepth))
	if n.Type == message.ToolRequest {
		m = message.New(message.ToolResponse, n.Receiver, toolResponse(a, g.MaxDepth))
	}
	m.ID, m.Timestamp = ownID("answer", c, x.ID), message.Time(a.At)
	m.Parent, m.Conversation, m.Recipient = n.ID, x.Conversation, &message.Recipient{ID: n.Sender}
	if n.Conversation != "" {
		m.Conversation = n.Conversation
	}
	return m
}

// ownID is an id of ours about a message of a caller, the same each time, in the form of
// version 4.
func ownID(what string, c gateway.Caller, id string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{Name, what, c.Principal.Tenant, c.Realm, id}, "\x1f")))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	return uuid.UUID(sum[:16]).String()
}

// status answers a message_status: with the answer of the message that it names, or with
// how far that is (I-008).
func (c *conn) status(caller gateway.Caller, m message.Message) {
	var asked struct {
		ID string `json:"message_id"`
	}
	_ = json.Unmarshal(m.Payload, &asked) // without an id no message is found
	x, err := c.g.Runtime.Find(c.ctx, caller, asked.ID)
	var a gateway.Answer
	ok := false
	if err == nil {
		a, ok, err = c.g.Runtime.Look(c.ctx, x)
	}
	switch {
	case errors.Is(err, gateway.ErrUnknown):
		c.refuse(m, &fault{code: codeUnknown, text: "there is no such message"})
	case err != nil:
		c.refuse(m, err)
	case ok && a.Outcome != gateway.NeedsInput && c.answerRoom(a) == 0:
		_ = c.respond(question{caller: caller, x: x}, a, c.write) // who asks again is told again
	case ok && a.Outcome != gateway.NeedsInput:
		c.respondLater(caller, m, x)
	default:
		_ = c.tell(message.TaskResponse, message.Message{ID: x.ID, Sender: m.Sender}, map[string]any{"status": "in_progress"})
	}
}

// respondLater answers a message_status with an answer that may have to wait for room. The queue goes on
// meanwhile: acknowledgements behind it make the room.
func (c *conn) respondLater(caller gateway.Caller, m message.Message, x gateway.Exchange) {
	if begun, _, _ := c.begin(); !begun {
		c.refuse(m, errManyAsks)
		return
	}
	go func() {
		defer c.done()
		if a, ok, err := c.g.Runtime.Look(c.ctx, x); err != nil || !ok {
			c.refuse(message.Message{ID: x.ID}, cmp.Or(err, error(gateway.ErrUnknown)))
		} else {
			_ = c.respond(question{caller: caller, x: x}, a, c.write)
		}
	}()
}

// seconds writes a time as texts have it.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) + " s" }
