// Command sdk is the benchmark's agent as its authors write them: against the SDK,
// one source for a module and for a process. The first word of a message is what a
// turn does, the second how often; "chat" and "stream" ask the model what the
// rest of the message is.
package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	skep "skep/sdk/go"
	"skep/sdk/goproc"
)

type doer struct{}

var agent = skep.Run(skep.Descriptor{Name: "sdk", Version: "1"}, doer{})

func main() { goproc.Serve(agent) }

// Warm has encoding/json learn what the turns need, before the image is taken.
func (doer) Warm() error {
	for range 3 {
		raw, err := json.Marshal(question(strings.Repeat("x", 1024)))
		if err != nil {
			return err
		}
		pieces := []string{
			`{"delta":"word"}`,
			`{"end":{"text":"word","finish":"stop","tool_calls":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
		}
		if err := json.Unmarshal(raw, &skep.ChatRequest{}); err != nil {
			return err
		}
		for _, p := range pieces {
			if err := json.Unmarshal([]byte(p), &skep.ChatPiece{}); err != nil {
				return err
			}
		}
	}
	runtime.GC()
	return nil
}

// Turn completes the task with what it did.
func (doer) Turn(t *skep.Turn) error {
	what, rest, _ := strings.Cut(t.Message.Body, " ")
	var told string
	var err error
	switch what {
	case "chat":
		var rsp skep.ChatResponse
		rsp, err = t.Chat(question(rest))
		told = fmt.Sprintf("%d bytes", len(rsp.Text))
	case "stream":
		told, err = stream(t, rest)
	default:
		told = what + " " + rest
		err = often(t, what, rest)
	}
	if err != nil {
		return err
	}
	return t.TaskComplete(told)
}

func question(text string) skep.ChatRequest {
	return skep.ChatRequest{Model: "default", Messages: []skep.ChatMessage{{Role: skep.RoleUser, Content: text}}}
}

// stream looks at every piece of an answer.
func stream(t *skep.Turn, text string) (string, error) {
	pieces, size := 0, 0
	rsp, err := t.ChatStream(question(text), func(p skep.ChatPiece) error {
		pieces, size = pieces+1, size+len(p.Delta)
		return nil
	})
	if err == nil && size != len(rsp.Text) {
		err = fmt.Errorf("the pieces have %d bytes, the answer %d", size, len(rsp.Text))
	}
	return fmt.Sprintf("%d pieces, %d bytes", pieces, size), err
}

// often calls one op, as often as the digits say.
func often(t *skep.Turn, what, digits string) error {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return err
	}
	kv, kib := t.KV(skep.ScopeAgent), strings.Repeat("x", 1024)
	for range n {
		switch what {
		case "clock":
			_, err = t.WallTime()
		case "get":
			_, err = kv.Get("kib")
		case "put":
			err = kv.Put("kib", kib)
		case "log":
			t.Log("a line of the benchmark")
		case "logkib":
			t.Log(kib)
		default:
			err = fmt.Errorf("no command %q", what)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
