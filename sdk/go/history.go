package skep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"skep/sdk/go/internal/wire"
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
func (t *Turn) HistoryCount() int64 { return t.count }

// History returns the newest entries, oldest first: at most the last 50 or
// 64 KiB. [Turn.HistoryAfter] reads further back.
func (t *Turn) History() ([]Entry, error) { return entries(t.tail) }

// HistoryAfter reads entries with Seq > after, oldest first. It returns where
// the next page begins, 0 at the end.
func (t *Turn) HistoryAfter(after int64, limit int) (page []Entry, next int64, err error) {
	body, err := t.perform(OpHistory, fmt.Appendf(nil, `{"after":%d,"limit":%d}`, after, limit))
	if err != nil {
		return nil, 0, err
	}
	var list json.RawMessage
	if err := wire.Object(bytes.Clone(body), wire.Fields{{"entries", &list}, {"next", &next}}); err != nil {
		return nil, 0, fmt.Errorf("%s: answer: %w", OpHistory, err)
	}
	page, err = entries(list)
	return page, next, err
}

func entries(list json.RawMessage) ([]Entry, error) {
	page := []Entry{}
	err := wire.Array(list, func(raw json.RawMessage) error {
		var e Entry
		if err := e.read(raw); err != nil {
			return fmt.Errorf("entry %d: %w", e.Seq, err)
		}
		page = append(page, e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return page, nil
}

func (e *Entry) read(raw json.RawMessage) error {
	var at string
	err := wire.Object(raw, wire.Fields{
		{"seq", &e.Seq}, {"turn", &e.Turn}, {"time", &at}, {"note", &e.Note},
		{"message", func(raw json.RawMessage) error {
			e.Message = &Message{}
			return e.Message.read(raw)
		}},
		{"call", func(raw json.RawMessage) error {
			e.Call = &ToolCall{}
			return wire.Object(raw, wire.Fields{{"id", &e.Call.ID}, {"name", &e.Call.Name}, {"args", &e.Call.Args}})
		}},
		{"result", func(raw json.RawMessage) error {
			e.Result = &ToolResult{}
			return wire.Object(raw, wire.Fields{{"id", &e.Result.ID}, {"ok", &e.Result.OK}, {"text", &e.Result.Text}})
		}},
	})
	if err == nil {
		e.Time, err = time.Parse(time.RFC3339Nano, at)
	}
	return err
}
