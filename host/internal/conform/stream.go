package conform

import (
	"bytes"
	"context"
	"encoding/json"

	"skep/abi"
	"skep/host/internal/turn"
)

// streaming answers ops at once, and llm.chat in lines of JSON to who submits it, as
// a host does.
type streaming struct{ turn.OpsFunc }

var _ turn.Ops = streaming{}

// Submit runs the op; its error comes with the answer.
func (s streaming) Submit(ctx context.Context, op abi.Op, req []byte) (turn.Answer, *abi.Error) {
	body, err := s.Call(ctx, op, req)
	if op == abi.OpLLMChat && err == nil {
		body = lines(body)
	}
	return turn.Completed(body, err), nil
}

// lines is an answer of llm.chat as it is read: its text, and then the rest of it
// with the space that stood behind.
func lines(body []byte) []byte {
	var end map[string]json.RawMessage
	if json.Unmarshal(body, &end) != nil {
		return body
	}
	var out bytes.Buffer
	if text := end["text"]; text != nil {
		delete(end, "text")
		out.Write(marshalled(map[string]json.RawMessage{"delta": text}))
		out.WriteByte('\n')
	}
	out.Write(marshalled(map[string]any{"end": end}))
	out.Write(body[len(bytes.TrimRight(body, " ")):])
	out.WriteByte('\n')
	return out.Bytes()
}

// marshalled is the JSON of what was JSON before.
func marshalled(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
