package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"skep/abi"
)

// Names of the events of op emit. All but the last are volatile: readers get them at
// once, the log never. eventEmitted comes first for readers that begin with the running turns.
const (
	eventEmitted  = "agent_emitted"
	eventProgress = "agent_progress"
	eventChunk    = "agent_chunk"
	eventNote     = "agent_note"
	eventOutput   = "agent_output"
)

// emitState counts what a turn has emitted. activeTask.mu guards it from readers of the task;
// the turn alone changes it.
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
	reports  []progressReport
}

// progressReport is progress with its place: how many chunks were before it.
type progressReport struct {
	At       int      `json:"at"`
	Text     string   `json:"text,omitempty"`
	Fraction *float64 `json:"fraction,omitempty"`
}

// newEmitState begins the emissions of a row's turn. The caller holds mu.
func (t *activeTask) newEmitState(row Row) emitState {
	b, _ := t.rec.findBreakpoint(row.N)
	return emitState{exchange: t.exchangeOf(row), logged: b.Emitted}
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
	k := &t.run.emitted
	if status, known := t.replayedEmit(); known && status != abi.EmitClosed && t.emits < k.n {
		t.emits++ // it was emitted before the turn hibernated
		return status, nil
	}
	name, e, text := newEmitEvent(t.agent.Name, t.row.N, k.n+1, req)
	switch {
	case k.n >= abi.MaxEmits:
		return "", abi.Errorf(abi.CodeLimit, abi.OpEmit, "emits", "a turn may emit %d times", abi.MaxEmits)
	case k.bytes+len(e.Text) > abi.MaxEmitBytes:
		return "", abi.Errorf(abi.CodeLimit, abi.OpEmit, "bytes", "a turn may emit %d bytes of text", abi.MaxEmitBytes)
	}
	e.Exchange = k.exchange
	// The values always encode.
	extra, _ := json.Marshal(e)
	event := Event{Name: name, Time: t.rt.now(), Description: "agent " + e.Caller + text, Extra: extra}
	status, known := t.replayedEmit()
	t.task.mu.Lock()
	defer t.task.mu.Unlock()
	switch {
	case !known:
		status = t.task.publishVolatile(t.run, event)
	case k.exchange != 0 && e.N > k.logged && status != abi.EmitClosed:
		// The host was started again: a gateway's reader that came before the turn has not seen it.
		t.task.publishVolatile(t.run, event)
	}
	if status != abi.EmitClosed { // a reader that comes has it either from here or as an event
		k.addEmitted(e, req)
		t.emits++
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
	if p := req.Progress; p != nil {
		k.progress = p
		k.reports = append(k.reports, progressReport{len(k.cuts), p.Text, p.Fraction})
	}
	if req.Chunk != nil {
		k.text.WriteString(*req.Chunk)
		k.cuts = append(k.cuts, len(*req.Chunk))
	}
}

// logEmitted logs the sum of what a turn has emitted, so that readers can drop the
// pieces. The output of a failed turn was seen as well.
func (mut *mutationBuilder) logEmitted(t *Turn, failed bool) {
	k := &t.run.emitted
	if k.n <= k.logged {
		return
	}
	extra := k.output(t.row, k.exchange != 0 || mut.Task.hasGatewayReader())
	if k.progress != nil {
		extra["progress"] = k.progress
	}
	if failed {
		extra["failed"] = true
	}
	mut.logEvent(eventOutput, fmt.Sprintf("agent %s emitted %d times in turn %d", t.agent.Name, k.n, t.row.N), extra)
}

// output is the data of an event with all that the turn of a row has emitted. Readers of
// gateways read it in the pieces in which it was emitted, with the progress between them.
func (k *emitState) output(row Row, inPieces bool) map[string]any {
	extra := map[string]any{"caller": row.Agent, "turn": row.N, "n": k.n, "text": k.text.String()}
	if k.exchange != 0 {
		extra["exchange"] = k.exchange
	}
	if inPieces && len(k.cuts) > 0 {
		extra["cuts"] = k.cuts
	}
	if inPieces && len(k.reports) > 0 {
		extra["reports"] = k.reports
	}
	return extra
}

// emittedByRunning are events with what the running turns have emitted so far, in the order of
// their agents. The caller holds mu.
func (t *activeTask) emittedByRunning(now time.Time) (list []volatileEvent) {
	for _, agent := range slices.Sorted(maps.Keys(t.running)) {
		rn := t.running[agent]
		k := &rn.emitted
		if rn.killed || k.n <= k.logged {
			continue
		}
		extra, _ := json.Marshal(k.output(rn.row, true)) // the values always encode
		text := fmt.Sprintf("agent %s has emitted %d times in turn %d", agent, k.n, rn.row.N)
		list = append(list, volatileEvent{Event{Name: eventEmitted, Time: now, Description: text, Extra: extra}, t.rec.Cursor})
	}
	return list
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
// turn has ended. The caller holds mu.
func (t *activeTask) publishVolatile(rn *runningTurn, e Event) abi.EmitStatus {
	if t.rec.State != StateRunning || rn.killed {
		return abi.EmitClosed
	}
	return t.volatile.pushEvent(e, t.rec.Cursor)
}
