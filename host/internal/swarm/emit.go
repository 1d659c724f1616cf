package swarm

import (
	"encoding/json"
	"fmt"
	"strings"

	"skep/abi"
)

// Names of the events that carry what a turn emits. All but the last are
// volatile: readers get them at once, the log never.
const (
	eventProgress = "agent_progress"
	eventChunk    = "agent_chunk"
	eventNote     = "agent_note"
	eventOutput   = "agent_output"
)

// emitted is what a turn has shown so far.
type emitted struct {
	n        int64
	bytes    int
	progress *abi.Progress
	text     strings.Builder // of the chunks
}

// emission is the data of a volatile event. A turn that is run again repeats
// its numbers.
type emission struct {
	Caller   string   `json:"caller"`
	Turn     int64    `json:"turn"`
	N        int64    `json:"n"`
	Text     string   `json:"text"`
	Fraction *float64 `json:"fraction,omitempty"`
}

// Emit shows something to whoever follows the task. It is neither staged nor
// an effect and never waits for a reader. The request has one member, of a
// size that the ABI allows; Emit bounds only what a whole turn may show. A
// refusal is LIMIT.
func (t *Turn) Emit(req abi.EmitRequest) (abi.EmitStatus, *abi.Error) {
	name, e, text := t.emission(req)
	switch {
	case t.emitted.n >= abi.MaxEmits:
		return "", abi.Errorf(abi.CodeLimit, abi.OpEmit, "emits", "a turn may emit %d times", abi.MaxEmits)
	case t.emitted.bytes+len(e.Text) > abi.MaxEmitBytes:
		return "", abi.Errorf(abi.CodeLimit, abi.OpEmit, "bytes", "a turn may emit %d bytes of text", abi.MaxEmitBytes)
	}
	// Every value is of our own making and encodes.
	extra, _ := json.Marshal(e)
	status, known := t.shown()
	if !known {
		status = t.task.show(t.run, Event{
			Name: name, Time: t.rt.now(), Description: "agent " + e.Caller + text, Extra: extra,
		})
	}
	if status != abi.EmitClosed {
		t.emitted.keep(e, req)
	}
	return status, nil
}

// shown is what an earlier attempt was told when it emitted the same.
func (t *Turn) shown() (status abi.EmitStatus, known bool) {
	if t.again == nil {
		return "", false
	}
	var rsp abi.EmitResponse
	err := json.Unmarshal(t.again.Answer, &rsp)
	return rsp.Status, err == nil
}

// emission is the next one of the turn, with the words that follow the agent's
// name in its description.
func (t *Turn) emission(req abi.EmitRequest) (name string, e emission, text string) {
	e = emission{Caller: t.agent.Name, Turn: t.row.N, N: t.emitted.n + 1}
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

func (k *emitted) keep(e emission, req abi.EmitRequest) {
	k.n++
	k.bytes += len(e.Text)
	if req.Progress != nil {
		k.progress = req.Progress
	}
	if req.Chunk != nil {
		k.text.WriteString(*req.Chunk)
	}
}

// output logs what a turn has shown, so that readers can drop the pieces they
// have. What a failed turn has shown was seen as well.
func (s *step) output(t *Turn, failed bool) {
	k := &t.emitted
	if k.n == 0 {
		return
	}
	extra := map[string]any{"caller": t.agent.Name, "turn": t.row.N, "n": k.n, "text": k.text.String()}
	if k.progress != nil {
		extra["progress"] = k.progress
	}
	if failed {
		extra["failed"] = true
	}
	s.event(eventOutput, fmt.Sprintf("agent %s emitted %d times in turn %d", t.agent.Name, k.n, t.row.N), extra)
}

// show puts a volatile event before the task's readers, unless nobody may get
// it any more.
func (t *live) show(rn *run, e Event) abi.EmitStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.State != StateRunning || rn.killed {
		return abi.EmitClosed
	}
	return t.air.push(e, t.rec.Cursor)
}
