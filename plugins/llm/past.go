package main

import (
	"cmp"
	"encoding/json"
	"strings"

	skep "skep/sdk/go"
)

// history returns the entries after one, oldest first.
func history(t *skep.Turn, after int64) ([]skep.Entry, error) {
	tail, err := t.History()
	if err != nil {
		return nil, err
	}
	begin := t.HistoryCount() + 1
	if len(tail) > 0 {
		begin = tail[0].Seq
	}
	var all []skep.Entry
	for next := after; next+1 < begin; {
		page, further, err := t.HistoryAfter(next, 200)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if e.Seq < begin {
				all = append(all, e)
			}
		}
		if further == 0 {
			break
		}
		next = further
	}
	for _, e := range tail {
		if e.Seq > after {
			all = append(all, e)
		}
	}
	return all, nil
}

// talk is a conversation with the model.
type talk []skep.ChatMessage

// hear adds a message of another. There is one message for all that comes
// together: some models know no two of them in a row.
func (c *talk) hear(said string) {
	if n := len(*c); n > 0 && (*c)[n-1].Role == skep.RoleUser {
		(*c)[n-1].Content += "\n\n" + said
		return
	}
	*c = append(*c, skep.ChatMessage{Role: skep.RoleUser, Content: said})
}

// tell adds entries of the history: mail and notes as what is heard, calls and
// their results as such. A call without a result was cut off with its turn.
func (c *talk) tell(entries []skep.Entry, times bool) {
	results := map[string]*skep.ToolResult{}
	for _, e := range entries {
		if e.Result != nil {
			results[e.Result.ID] = e.Result
		}
	}
	for _, e := range entries {
		switch {
		case e.Message != nil:
			c.hear(frame(e.Message, times))
		case e.Call != nil && e.Call.Name != "": // one that could not be read has no name
			c.called(e.Call, results[e.Call.ID])
		case e.Note != "":
			c.hear(element("note", e.Note))
		}
	}
}

func (c *talk) called(call *skep.ToolCall, result *skep.ToolResult) {
	id := word(call.ID)
	said := skep.ChatMessage{Role: skep.RoleTool, ToolCallID: id, Content: "no result", Error: true}
	if result != nil {
		said.Content, said.Error = inert(result.Text), !result.OK
	}
	made := skep.ChatCall{ID: id, Name: word(call.Name), Arguments: object(string(call.Args))}
	*c = append(*c, skep.ChatMessage{Role: skep.RoleAssistant, ToolCalls: []skep.ChatCall{made}}, said)
}

// word makes a name or id that every provider takes.
func word(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
	return cmp.Or(s[:min(len(s), 64)], "unnamed")
}

// object is a text that is a JSON object, and an empty one for any other.
func object(s string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(s), &members) != nil || members == nil {
		return "{}"
	}
	return s
}
