package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"skep/abi"
)

// Names of the events of op emit. All but the last are volatile: readers get them at
// once, the log never.
const (
	eventProgress = "agent_progress"
	eventChunk    = "agent_chunk"
	eventNote     = "agent_note"
	eventOutput   = "agent_output"
)

// emitState counts what the turn has emitted.
type emitState struct {
	// exchange is the row of the exchange on which the turn works, 0 for none.
	exchange int64
	// logged is how many emissions are in the log since the turn waited for people.
	logged   int64
	n        int64
	bytes    int
	progress *abi.Progress
	text     strings.Builder // of the chunks
	cuts     []int           // the lengths of the chunks, in bytes
}

func newEmitState(setup *turnSetup) emitState {
	b, _ := setup.rec.findBreakpoint(setup.run.row.N)
	return emitState{exchange: setup.exchange, logged: b.Emitted}
}

// emitEvent is the data of a volatile event. A repeated turn has the same numbers.
type emitEvent struct {
	Caller   string   `json:"caller"`
	Turn     int64    `json:"turn"`
	N        int64    `json:"n"`
	Text     string   `json:"text"`
	Fraction *float64 `json:"fraction,omitempty"`
	// Exchange is the row of the exchange on which the turn works, 0 for none.
	Exchange int64 `json:"exchange,omitempty"`
}

// Emit shows progress, text or a note to the readers of the task. It is neither staged
// nor an effect and never waits for a reader. The request has one member, of a size
// that the ABI allows; Emit bounds the sum over the turn. A refusal is LIMIT.
func (t *Turn) Emit(req abi.EmitRequest) (abi.EmitStatus, *abi.Error) {
	name, e, text := newEmitEvent(t.agent.Name, t.row.N, t.emitted.n+1, req)
	switch {
	case t.emitted.n >= abi.MaxEmits:
		return "", abi.Errorf(abi.CodeLimit, abi.OpEmit, "emits", "a turn may emit %d times", abi.MaxEmits)
	case t.emitted.bytes+len(e.Text) > abi.MaxEmitBytes:
		return "", abi.Errorf(abi.CodeLimit, abi.OpEmit, "bytes", "a turn may emit %d bytes of text", abi.MaxEmitBytes)
	}
	e.Exchange = t.emitted.exchange
	// The values always encode.
	extra, _ := json.Marshal(e)
	status, known := t.replayedEmit()
	if !known {
		status = t.task.publishVolatile(t.run, Event{
			Name: name, Time: t.rt.now(), Description: "agent " + e.Caller + text, Extra: extra,
		})
	}
	if status != abi.EmitClosed {
		t.emitted.addEmitted(e, req)
	}
	return status, nil
}

// replayedEmit is the status that an earlier attempt got for the same call.
func (t *Turn) replayedEmit() (status abi.EmitStatus, known bool) {
	if t.replay == nil {
		return "", false
	}
	var rsp abi.EmitResponse
	err := json.Unmarshal(t.replay.Answer, &rsp)
	return rsp.Status, err == nil
}

// newEmitEvent makes the n-th event of a turn; text follows the agent's name in its
// description.
func newEmitEvent(agent string, turn, n int64, req abi.EmitRequest) (name string, e emitEvent, text string) {
	e = emitEvent{Caller: agent, Turn: turn, N: n}
	switch p := req.Progress; {
	case p != nil:
		e.Text, e.Fraction, text = p.Text, p.Fraction, " makes progress"
		if p.Fraction != nil {
			text = fmt.Sprintf(" is at %.0f %%", *p.Fraction*100)
		}
		if p.Text != "" {
			text += ": " + p.Text
		}
		return eventProgress, e, text
	case req.Chunk != nil:
		e.Text = *req.Chunk
		return eventChunk, e, " emits text"
	}
	e.Text = *req.Note
	return eventNote, e, " notes: " + e.Text
}

func (k *emitState) addEmitted(e emitEvent, req abi.EmitRequest) {
	k.n++
	k.bytes += len(e.Text)
	if k.n <= k.logged {
		return
	}
	if req.Progress != nil {
		k.progress = req.Progress
	}
	if req.Chunk != nil {
		k.text.WriteString(*req.Chunk)
		k.cuts = append(k.cuts, len(*req.Chunk))
	}
}

// logEmitted logs the sum of what a turn has emitted, so that readers can drop the
// pieces. The output of a failed turn was seen as well.
func (mut *mutationBuilder) logEmitted(t *Turn, failed bool) {
	k := &t.emitted
	if k.n <= k.logged {
		return
	}
	extra := map[string]any{"caller": t.agent.Name, "turn": t.row.N, "n": k.n, "text": k.text.String()}
	if k.progress != nil {
		extra["progress"] = k.progress
	}
	if failed {
		extra["failed"] = true
	}
	if k.exchange != 0 {
		extra["exchange"] = k.exchange
	}
	if len(k.cuts) > 0 && (k.exchange != 0 || mut.Task.hasGatewayReader()) {
		extra["cuts"] = k.cuts // they read the text in the pieces in which it was emitted
	}
	mut.logEvent(eventOutput, fmt.Sprintf("agent %s emitted %d times in turn %d", t.agent.Name, k.n, t.row.N), extra)
}

// ShowForeign shows progress or text of an agent of another swarm to the readers of a
// running task. It is not stored.
func (r *Runtime) ShowForeign(ctx context.Context, key TaskKey, agent string, p abi.EmitRequest) error {
	t, err := r.acquireExisting(ctx, key)
	if err != nil {
		return err
	}
	defer r.releaseTask(t)
	name, e, text := newEmitEvent(agent, 0, 0, p)
	extra, _ := json.Marshal(e) // the values always encode
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.State == StateRunning {
		t.volatile.pushEvent(Event{Name: name, Time: r.now(), Description: "agent " + agent + text, Extra: extra}, t.rec.Cursor)
	}
	return nil
}

// publishVolatile gives a volatile event to the task's readers, unless the task or the
// turn has ended.
func (t *activeTask) publishVolatile(rn *runningTurn, e Event) abi.EmitStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.State != StateRunning || rn.killed {
		return abi.EmitClosed
	}
	return t.volatile.pushEvent(e, t.rec.Cursor)
}
