package capability

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"skep/abi"
)

// What needs no turn: requests that show nothing, two things, or too much.
func TestRefusedEmits(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	for _, c := range []struct {
		req  string
		want abi.Code
	}{
		{``, abi.CodeInvalid},
		{`{}`, abi.CodeInvalid},
		{`{"chunk":null}`, abi.CodeInvalid},
		{`{"chunk":1}`, abi.CodeInvalid},
		{`{"text":"x"}`, abi.CodeInvalid},
		{`{"chunk":"a","note":"b"}`, abi.CodeInvalid},
		{`{"progress":{"text":"a"},"note":"b"}`, abi.CodeInvalid},
		{`{"progress":"a"}`, abi.CodeInvalid},
		{`{"progress":{}}`, abi.CodeInvalid},
		{`{"progress":{"percent":50}}`, abi.CodeInvalid},
		{`{"progress":{"fraction":-0.01}}`, abi.CodeInvalid},
		{`{"progress":{"fraction":1.01}}`, abi.CodeInvalid},
		{`{"progress":{"fraction":"half"}}`, abi.CodeInvalid},
		{`{"chunk":` + text(abi.MaxEmitChunk+1) + `}`, abi.CodeLimit},
		{`{"note":` + text(abi.MaxEmitText+1) + `}`, abi.CodeLimit},
		{`{"progress":{"text":` + text(abi.MaxEmitText+1) + `}}`, abi.CodeLimit},
	} {
		_, fault := bareOps(t, builtinOps()).Call(context.Background(), abi.OpEmit, []byte(c.req))
		if fault == nil || fault.Code != c.want || fault.Op != "emit" {
			t.Errorf("emit %.60q: %v, want %v", c.req, fault, c.want)
		}
	}
}

func TestEmitsAsLargeAsTheyMayBe(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	for _, req := range []string{
		`{"chunk":""}`, `{"chunk":` + text(abi.MaxEmitChunk) + `}`, `{"note":` + text(abi.MaxEmitText) + `}`,
		`{"progress":{"fraction":0}}`, `{"progress":{"fraction":1,"text":` + text(abi.MaxEmitText) + `}}`,
		`{"progress":null,"note":"x"}`,
	} {
		var ask abi.EmitRequest
		if err := json.Unmarshal([]byte(req), &ask); err != nil {
			t.Fatal(err)
		}
		if fault := checkEmit(ask); fault != nil {
			t.Errorf("emit %.60q: %v", req, fault)
		}
	}
}
