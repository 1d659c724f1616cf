package skep

import (
	"encoding/json"
	"fmt"
	"time"

	"skep/sdk/go/internal/abi"
)

// Entry is one line of the agent's history in this task. Exactly one of
// Message, Call, Result and Note is set.
type Entry struct {
	Seq     int64
	Turn    int64
	Time    time.Time
	Message *Message
	Call    *ToolCall
	Result  *ToolResult
	Note    string
}

// ToolCall is a call the agent made.
type ToolCall struct {
	ID   string
	Name string
	Args json.RawMessage
}

// ToolResult is the host's answer to the call with the same ID.
type ToolResult struct {
	ID   string
	OK   bool
	Text string
}

// HistoryCount is the length of the whole history as of the start of the turn.
func (t *Turn) HistoryCount() int64 { return t.history.Count }

// History returns the newest entries, oldest first: at most the last 50 or
// 64 KiB. [Turn.HistoryAfter] reads further back.
func (t *Turn) History() ([]Entry, error) { return entries(t.history.Tail) }

// HistoryAfter reads entries with Seq > after, oldest first. It returns where
// the next page begins, 0 at the end.
func (t *Turn) HistoryAfter(after int64, limit int) (page []Entry, next int64, err error) {
	var rsp abi.HistoryResponse
	if err := t.Call(OpHistory, abi.HistoryRequest{After: after, Limit: limit}, &rsp); err != nil {
		return nil, 0, err
	}
	page, err = entries(rsp.Entries)
	return page, rsp.Next, err
}

func entries(raw []abi.HistoryEntry) ([]Entry, error) {
	list := make([]Entry, 0, len(raw))
	for _, r := range raw {
		e, err := entry(r)
		if err != nil {
			return nil, fmt.Errorf("history entry %d: %w", r.Seq, err)
		}
		list = append(list, e)
	}
	return list, nil
}

func entry(r abi.HistoryEntry) (Entry, error) {
	e := Entry{Seq: r.Seq, Turn: r.Turn, Note: r.Note}
	at, err := time.Parse(time.RFC3339Nano, r.Time)
	if err != nil {
		return e, err
	}
	e.Time = at
	if r.Message != nil {
		e.Message = new(Message)
		if err := json.Unmarshal(r.Message, e.Message); err != nil {
			return e, err
		}
	}
	if r.Call != nil {
		e.Call = &ToolCall{ID: r.Call.ID, Name: r.Call.Name, Args: r.Call.Args}
	}
	if r.Result != nil {
		e.Result = &ToolResult{ID: r.Result.ID, OK: r.Result.OK, Text: r.Result.Text}
	}
	return e, nil
}
