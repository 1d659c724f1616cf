package capability

import (
	"context"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
)

// An action that an agent does not have is named, with what it may have.
func TestNoAction(t *testing.T) {
	t.Parallel()
	told := ""
	recordOf(t, func(v *visit) { told = v.call(abi.OpAction, `{"name":"nonsense","args":{}}`); workday(v) })
	want := `UNSUPPORTED: agent "boss" has no action "nonsense"; [agents.boss] actions names those it may call`
	if told != want {
		t.Errorf("%s, want %s", told, want)
	}
}

// What needs no turn: numbers the table does not have or does not offer yet,
// and requests that are not JSON of the right shape.
func TestRefusedOps(t *testing.T) {
	for _, c := range []struct {
		op   abi.Op
		req  string
		want abi.Code
	}{
		{abi.OpAction, `{}`, abi.CodeInvalid},
		{abi.OpAction, `{"Name":"a"}`, abi.CodeInvalid},
		{abi.OpMail, `{"tool":"help","args":{},"tool":"help"}`, abi.CodeInvalid},
		{abi.OpBlobGet, `{"sha256":"a"}`, abi.CodeInvalid},
		{abi.OpBlobGet, `{"sha256":"` + strings.Repeat("A", 64) + `"}`, abi.CodeInvalid},
		{abi.OpBlobGet, `{"sha256":"` + strings.Repeat("a", maxRequest) + `"}`, abi.CodeLimit},
		{abi.OpHTTPFetch, `{}`, abi.CodeUnsupported},
		{abi.OpLLMChat, `{}`, abi.CodeUnsupported},
		{999, `{}`, abi.CodeUnsupported},
		{-1, `{}`, abi.CodeUnsupported},
		{abi.OpMail, ``, abi.CodeInvalid},
		{abi.OpMail, `[]`, abi.CodeInvalid},
		{abi.OpMail, `{"tool":"help"} x`, abi.CodeInvalid},
		{abi.OpMail, `{"tool":"help"}]`, abi.CodeInvalid},
		{abi.OpMail, `{"tool":"help","sender":"boss"}`, abi.CodeInvalid},
		{abi.OpHistory, `{"after":-1}`, abi.CodeInvalid},
		{abi.OpHistory, `{"limit":"x"}`, abi.CodeInvalid},
		{abi.OpLog, `{"message":`, abi.CodeInvalid},
		{abi.OpLog, strings.Repeat("x", maxLogLine+1), abi.CodeLimit},
		{abi.OpKVGet, `{"name":"a"}`, abi.CodeInvalid},
		{abi.OpKVGet, `{}`, abi.CodeInvalid},
		{abi.OpKVGet, `{"key":"a","scope":"swarm"}`, abi.CodeInvalid},
		{abi.OpKVGet, `{"key":"` + strings.Repeat("x", swarm.MaxKVName+1) + `"}`, abi.CodeLimit},
		{abi.OpKVList, `{"limit":-1}`, abi.CodeInvalid},
		{abi.OpKVList, `[]`, abi.CodeInvalid},
		{abi.OpKVCas, `{"key":1}`, abi.CodeInvalid},
	} {
		_, fault := bareOps(t, builtinOps()).Call(context.Background(), c.op, []byte(c.req))
		if fault == nil || fault.Code != c.want {
			t.Errorf("op %d %.40q: %v, want %v", c.op, c.req, fault, c.want)
		}
		if fault != nil && fault.Op == "" {
			t.Errorf("op %d: the error names no op", c.op)
		}
	}
}

func TestLogLinesAreCounted(t *testing.T) {
	o := bareOps(t, builtinOps())
	o.j.logs = maxLogLines
	if _, fault := o.Call(context.Background(), abi.OpLog, []byte(`{"message":"x"}`)); fault == nil || fault.Code != abi.CodeLimit {
		t.Errorf("line %d: %v", maxLogLines+1, fault)
	}
}

func TestParseResult(t *testing.T) {
	for _, c := range []struct {
		raw   string
		state string // "" absent
		ok    bool
	}{
		{"", "", true},
		{" \n", "", true},
		{"{}", "", true},
		{`{"state":{"a":1},"notes":["x"]}`, `{"a":1}`, true},
		{`{"state":null}`, `null`, true},
		{`{"future":1}`, "", true},
		{`{"notes":["\"state\""]}`, "", true},
		{`[]`, "", false},
		{`{"state":1} {}`, "", false},
		{`{"state":"` + strings.Repeat("x", abi.MaxState) + `"}`, "", false},
		{`{"notes":[` + strings.Repeat(`"x",`, maxNotes) + `"x"]}`, "", false},
		{`{"notes":["` + strings.Repeat("x", maxNote+1) + `"]}`, "", false},
	} {
		r, err := parseResult([]byte(c.raw))
		if (err == nil) != c.ok {
			t.Errorf("%.60q: %v", c.raw, err)
			continue
		}
		if c.ok && string(r.State) != c.state {
			t.Errorf("%.60q: state %q, want %q", c.raw, r.State, c.state)
		}
	}
}

// A page of history stays within its bytes, but always has an entry.
func TestFit(t *testing.T) {
	e := func(n int) abi.HistoryEntry { return abi.HistoryEntry{Note: strings.Repeat("x", n)} }
	for _, c := range []struct {
		sizes []int
		want  int
		more  bool
	}{{nil, 0, false}, {[]int{500}, 1, false}, {[]int{40, 40, 40}, 2, true}, {[]int{500, 1}, 1, true}, {[]int{50, 50}, 2, false}} {
		var entries []abi.HistoryEntry
		for _, n := range c.sizes {
			entries = append(entries, e(n))
		}
		page, more := fitPage(entries, 100)
		if len(page) != c.want || more != c.more {
			t.Errorf("%v: %d entries, more %v, want %d, %v", c.sizes, len(page), more, c.want, c.more)
		}
	}
}
