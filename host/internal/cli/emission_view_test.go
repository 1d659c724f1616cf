package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"skep/host/client"
)

// shows is an event of what an agent shows.
func shows(id int, second, name, extra string) string {
	head := ""
	if id > 0 {
		head = fmt.Sprintf("id: %d\n", id)
	}
	return head + fmt.Sprintf("event: %s\ndata: {\"timestamp\":\"2026-11-20T12:00:%s+00:00\",\"task_id\":\"t-1\",\"description\":\"\",\"extra_data\":%s}\n\n", name, second, extra)
}

// chatter is a task whose agents show what they do.
func chatter() string {
	return mailEvent(1, "00.000", "alice", "chief", "request", "New Message", "go") +
		shows(0, "00.010", "agent_progress", `{"caller":"chief","turn":1,"n":1,"text":"reading","fraction":0.5}`) +
		shows(0, "00.020", "agent_chunk", `{"caller":"chief","turn":1,"n":2,"text":"one\ntw"}`) +
		shows(0, "00.030", "agent_chunk", `{"caller":"chief","turn":1,"n":3,"text":"o \u001b[31m"}`) +
		shows(0, "00.040", "agent_note", `{"caller":"chief","turn":1,"n":4,"text":"by the way"}`) +
		shows(0, "00.050", "agent_chunk", `{"caller":"chief","turn":1,"n":6,"text":"end"}`) +
		shows(2, "00.060", "agent_output", `{"caller":"chief","turn":1,"n":6,"text":"one\ntwo \u001b[31mx\nend","progress":{"text":"done","fraction":1}}`) +
		mailEvent(6, "01.750", "chief", "all", "broadcast_complete", "::task_complete::", "42") + completed
}

// Where a line cannot change, there are a note and the sum of a turn.
func TestSendShowsEmissions(t *testing.T) {
	t.Parallel()
	f := newFakeHost(t, &fakeHost{events: chatter(), subject: "::task_complete::", response: "42"})
	s := newShell(nil, "send", "--url", f.url, "go")
	if code := Main(t.Context(), s.Env); code != exitOK || s.stdout.String() != "42\n" {
		t.Errorf("code %d, stdout %q", code, s.stdout.String())
	}
	want := `   0.000  you        → chief       request    2            go
   0.040  chief      … by the way
   0.060  chief      … 100 % · done · one (2 more lines)
   1.750  chief      → all         complete   3    1.2 ms  42
`
	if got := s.stderr.String(); !strings.Contains(got, want) || strings.Contains(got, "\r") {
		t.Errorf("stderr:\n%s\nwant in it:\n%s", got, want)
	}
}

// On a terminal the progress and the joined pieces are one line that changes
// and is gone in the end.
func TestSendShowsEmissionsOnATerminal(t *testing.T) {
	t.Parallel()
	f := newFakeHost(t, &fakeHost{events: chatter(), subject: "::task_complete::", response: "42"})
	s := newShell(map[string]string{"NO_COLOR": "1"}, "send", "--url", f.url, "go")
	s.StderrTerminal, s.Width = true, 80
	if code := Main(t.Context(), s.Env); code != exitOK {
		t.Errorf("code %d", code)
	}
	var seen []string
	for part := range strings.SplitSeq(strings.ReplaceAll(s.stderr.String(), "\n", "\n\r"), "\r") {
		if strings.Contains(part, "…") {
			seen = append(seen, part)
		}
	}
	want := []string{
		"   0.010  chief      … 50 % · reading",
		"   0.020  chief      … 50 % · reading · tw",
		"   0.030  chief      … 50 % · reading · two \\x1b[31m",
		"   0.040  chief      … by the way\n",
		"   0.050  chief      … 50 % · reading · two \\x1b[31m…end",
		"   0.060  chief      … 100 % · done · one (2 more lines)\n",
	}
	if got := strings.Join(seen, "|"); got != strings.Join(want, "|") {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
	if got := screen(s.stderr.String()); strings.Contains(got, "reading") || !strings.Contains(got, "… by the way\n") {
		t.Errorf("what is left on the screen:\n%s", got)
	}
}

// screen is what a terminal shows in the end.
func screen(text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		var shown []rune
		for part := range strings.SplitSeq(line, "\r") {
			over := []rune(part)
			shown = append(over, shown[min(len(over), len(shown)):]...)
		}
		out = append(out, strings.TrimRight(string(shown), " "))
	}
	return strings.Join(out, "\n")
}

func TestSendAsDataHasNoEmissions(t *testing.T) {
	t.Parallel()
	f := newFakeHost(t, &fakeHost{events: chatter(), subject: "::task_complete::", response: "42"})
	s := newShell(nil, "send", "-o", "json", "--url", f.url, "go")
	s.StderrTerminal, s.Width = true, 80
	if code := Main(t.Context(), s.Env); code != exitOK || s.stderr.Len() > 0 || strings.Contains(s.stdout.String(), "by the way") {
		t.Errorf("code %d, stdout %s, stderr %q", code, s.stdout.String(), s.stderr.String())
	}
}

func TestPiecesOfATurn(t *testing.T) {
	t.Parallel()
	var p emissions
	for _, m := range []client.Emission{{N: 1, Text: "a"}, {N: 2, Text: "b"}, {N: 5, Text: "c"}} {
		p.add(m, true)
	}
	if p.text != "ab…c" {
		t.Errorf("with a loss: %q", p.text)
	}
	p.add(client.Emission{N: 1, Text: "x"}, true)
	if p.text != "x" {
		t.Errorf("a turn that is run again: %q", p.text)
	}
	p.add(client.Emission{N: 2, Text: strings.Repeat("é", keptText)}, true)
	if len(p.text) > keptText {
		t.Errorf("%d bytes are kept", len(p.text))
	}
}

// The line that changes fits the terminal, and shows the end of a long text.
func TestLiveLineFits(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := newMailview(&out, style{}, 70)
	v.live = true
	e := client.Event{Name: client.EventChunk, Timestamp: "2026-11-20T12:00:00Z", Extra: []byte(`{"caller":"chief","turn":1,"n":1,"text":"` + strings.Repeat("x", 500) + `END"}`)}
	v.printEvent(e)
	line := out.String()[strings.LastIndex(out.String(), "\n")+1:]
	if n := len([]rune(strings.TrimSuffix(line, "\r"))); n != 69 || !strings.HasSuffix(line, "xEND\r") {
		t.Errorf("%d columns: %q", n, line)
	}
}

func TestLiveLineThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	v := newMailview(failing{}, style{}, 70)
	v.live = true
	v.printEvent(client.Event{Name: client.EventChunk, Extra: []byte(`{"caller":"a","turn":1,"n":1,"text":"x"}`)})
	if v.err == nil {
		t.Error("nobody learns that nothing is shown")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }
