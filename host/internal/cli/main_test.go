package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell is an [Env] whose output can be read.
type shell struct {
	Env
	stdout, stderr bytes.Buffer
}

// newShell is a world with nothing in it but variables.
func newShell(vars map[string]string, args ...string) *shell {
	s := &shell{}
	s.Env = Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &s.stdout, Stderr: &s.stderr,
		LookupEnv: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
	}
	return s
}

// fakeHost is a host with one task, whose answer comes when its log has ended.
type fakeHost struct {
	t *testing.T
	// events is what the stream brings; status refuses it.
	events string
	status int
	// subject and response are the answer's; hold keeps it back.
	subject, response string
	hold              chan struct{}
	// cursor is the event after which the post's own begin. With gone, the
	// host stops after the post: only its stream is still there.
	cursor int
	gone   bool
	url    string
	mu     sync.Mutex
	calls  []string
}

func newFakeHost(t *testing.T, f *fakeHost) *fakeHost {
	t.Helper()
	f.t = t
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	f.url = srv.URL
	return f
}

func (f *fakeHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.calls = append(f.calls, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
	f.mu.Unlock()
	io.Copy(io.Discard, r.Body) // only then does the server see that a caller leaves
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost && r.Header.Get("Prefer") == "respond-async":
		if f.cursor > 0 {
			w.Header().Set("Location", fmt.Sprintf("/skep/v1/tasks/t-1/events?after=%d", f.cursor))
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"task_id":"t-1","status":"accepted"}`)
	case f.gone && !strings.HasSuffix(r.URL.Path, "/events"):
		panic(http.ErrAbortHandler)
	case r.Method == http.MethodPost:
		f.answer(w, r)
	case strings.HasSuffix(r.URL.Path, "/events") && f.status != 0:
		w.WriteHeader(f.status)
		fmt.Fprint(w, `{"detail":"no events today"}`)
	case strings.HasSuffix(r.URL.Path, "/events"):
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, f.events)
		w.(http.Flusher).Flush()
		if !strings.Contains(f.events, "task_complete\n") {
			<-r.Context().Done()
		}
	default:
		fmt.Fprint(w, `{"task_id":"t-1","state":"completed","usage":{"turns":2,"fuel":1234567,"cpu_ms":3.25}}`)
	}
}

func (f *fakeHost) answer(w http.ResponseWriter, r *http.Request) {
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("X-MAIL-Finish-Subject", f.subject)
	body, err := json.Marshal(map[string]string{"response": f.response})
	if err != nil {
		f.t.Error(err)
	}
	w.Write(body)
}

func mailEvent(id int, second, from, to, kind, subject, body string) string {
	recipient := fmt.Sprintf(`"recipient":{"address_type":"agent","address":%q}`, to)
	name, field := "request_id", recipient
	if kind == "broadcast" || kind == "broadcast_complete" {
		name, field = "broadcast_id", fmt.Sprintf(`"recipients":[{"address_type":"agent","address":%q}]`, to)
	}
	sender := "agent"
	if from == "alice" {
		sender = "user"
	}
	if from == "system" {
		sender = "system"
	}
	text, _ := json.Marshal(body)
	cost := ""
	if sender == "agent" {
		cost = `,"cost":{"fuel":9,"cpu_ms":1.25}`
	}
	return fmt.Sprintf("id: %d\nevent: new_message\ndata: {\"timestamp\":\"2026-11-20T12:00:%s+00:00\",\"task_id\":\"t-1\",\"description\":\"\",\"extra_data\":{\"full_message\":{"+
		`"id":"00000000-0000-4000-8000-%012d","timestamp":"2026-11-20T12:00:%s+00:00","msg_type":%q,"message":{"task_id":"t-1",%q:"00000000-0000-4000-9000-%012d",`+
		`"sender":{"address_type":%q,"address":%q},%s,"subject":%q,"body":%s}}%s}}`+"\n\n",
		id, second, id, second, kind, name, id, sender, from, field, subject, text, cost)
}

const completed = "id: 99\nevent: task_complete\ndata: {\"timestamp\":\"x\",\"task_id\":\"t-1\",\"response\":\"42\"}\n\n"

// smallTaskMail is the mail of a small task.
func smallTaskMail() string {
	return mailEvent(1, "00.000", "alice", "chief", "request", "New Message", "What is 6*7?\nSay it.\nNow.") +
		mailEvent(2, "00.012", "chief", "math", "request", "multiply", "6*7") +
		mailEvent(3, "00.020", "math", "chief", "response", "Re: multiply", "\x1b[31m42\x07") +
		"id: 4\nevent: agent_error\ndata: {\"timestamp\":\"2026-11-20T12:00:00.021+00:00\",\"description\":\"agent poet: agent \\\"poet\\\" failed (trap): unreachable\",\"extra_data\":{\"caller\":\"poet\"}}\n\n" +
		mailEvent(5, "01.500", "system", "chief", "response", "::agent_error::", "poet failed") +
		mailEvent(6, "01.750", "chief", "all", "broadcast_complete", "::task_complete::", "42") + completed
}

const shown = `task t-1  URL

    time  from         to          type       tier      cost  mail
   0.000  you        → chief       request    2            What is 6*7? (2 more lines)
   0.012  chief      → math        request    5    1.2 ms  multiply · 6*7
   0.020  math       → chief       response   5    1.2 ms  Re: multiply · \x1b[31m42\a
   0.021  poet       ✗ failed (trap): unreachable
   1.500  system     → chief       response   1            ::agent_error:: · poet failed
   1.750  chief      → all         complete   3    1.2 ms  42

  completed in TIME · 5 messages · 2 turns · 1.23M fuel · 3.2 ms cpu
`

// stable takes what differs from run to run out of an output.
func stable(text, url string) string {
	text = strings.ReplaceAll(text, url, "URL")
	if before, rest, ok := strings.Cut(text, " in "); ok {
		if _, after, ok := strings.Cut(rest, " · 5 messages"); ok {
			text = before + " in TIME · 5 messages" + after
		}
	}
	return text
}

func TestSend(t *testing.T) {
	t.Parallel()
	f := newFakeHost(t, &fakeHost{events: smallTaskMail(), subject: "::task_complete::", response: "42 \x1b[1m!"})
	s := newShell(nil, "send", "--url", f.url, "What is 6*7?")
	if code := Main(t.Context(), s.Env); code != exitOK {
		t.Errorf("code %d", code)
	}
	if got := s.stdout.String(); got != "42 \x1b[1m!\n" {
		t.Errorf("stdout %q, want the answer as it is", got)
	}
	if got := stable(s.stderr.String(), f.url); got != shown {
		t.Errorf("stderr:\n%s\nwant:\n%s", got, shown)
	}
}

func TestSendToTerminal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		vars    map[string]string
		colours bool
	}{
		{"plain", nil, true},
		{"NO_COLOR", map[string]string{"NO_COLOR": "1"}, false},
		{"a dumb one", map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeHost(t, &fakeHost{events: smallTaskMail(), subject: "::task_complete::", response: "42 \x1b[1m!"})
			s := newShell(tc.vars, "send", "--url", f.url, "What is 6*7?")
			s.StdoutTerminal, s.StderrTerminal, s.Width = true, true, 80
			if code := Main(t.Context(), s.Env); code != exitOK {
				t.Errorf("code %d", code)
			}
			if got := s.stdout.String(); got != "42 \\x1b[1m!\n" {
				t.Errorf("stdout %q, want what cannot change the terminal", got)
			}
			got := s.stderr.String()
			if strings.Contains(got, "\x1b[") != tc.colours {
				t.Errorf("colours: %v, want %v", !tc.colours, tc.colours)
			}
			if strings.Contains(got, "\x1b[31m42") || strings.Contains(got, "\x07") {
				t.Errorf("the mail reaches the terminal as it is: %q", got)
			}
		})
	}
}

func TestSendAsData(t *testing.T) {
	t.Parallel()
	f := newFakeHost(t, &fakeHost{events: smallTaskMail(), subject: "::task_complete::", response: "42"})
	s := newShell(nil, "send", "-o", "json", "--url", f.url, "What is 6*7?")
	if code := Main(t.Context(), s.Env); code != exitOK || s.stderr.Len() > 0 {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
	var got struct {
		Task     string            `json:"task_id"`
		State    string            `json:"state"`
		Answer   string            `json:"answer"`
		Messages []json.RawMessage `json:"messages"`
		Usage    map[string]any    `json:"usage"`
	}
	if err := json.Unmarshal(s.stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, s.stdout.String())
	}
	if got.Task != "t-1" || got.State != "completed" || got.Answer != "42" || len(got.Messages) != 5 || got.Usage["turns"] != 2.0 {
		t.Errorf("got %+v", got)
	}
}

// TestEndings: the exit code is how the task ended.
func TestEndings(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]int{
		"::task_complete::": exitOK, "::task_timeout::": exitTimeout, "::task_cancelled::": exitFailed,
		"::agent_error::": exitFailed, "::runtime_error::": exitFailed, "": exitOK, "::something_new::": exitFailed,
	} {
		f := newFakeHost(t, &fakeHost{events: completed, subject: subject, response: "what came of it"})
		s := newShell(nil, "send", "--url", f.url, "x")
		if code := Main(t.Context(), s.Env); code != want {
			t.Errorf("%q: code %d, want %d", subject, code, want)
		}
		if failed := want != exitOK; strings.Contains(s.stderr.String(), "what came of it") != failed || (s.stdout.Len() == 0) != failed {
			t.Errorf("%q: stdout %q, stderr %q", subject, s.stdout.String(), s.stderr.String())
		}
	}
}

// TestAnswerWithoutMail: want the answer also when the events cannot be had.
func TestAnswerWithoutMail(t *testing.T) {
	t.Parallel()
	f := newFakeHost(t, &fakeHost{status: http.StatusInternalServerError, subject: "::task_complete::", response: "42", hold: make(chan struct{})})
	time.AfterFunc(100*time.Millisecond, func() { close(f.hold) })
	s := newShell(nil, "send", "--url", f.url, "x")
	if code := Main(t.Context(), s.Env); code != exitOK || s.stdout.String() != "42\n" {
		t.Errorf("code %d, stdout %q", code, s.stdout.String())
	}
	if !strings.Contains(s.stderr.String(), "no events today") {
		t.Errorf("stderr %q does not tell", s.stderr.String())
	}
}

// TestAnswerBeforeTheEnd: the answer comes also when the task goes on with someone
// else's message.
func TestAnswerBeforeTheEnd(t *testing.T) {
	t.Parallel()
	f := newFakeHost(t, &fakeHost{events: mailEvent(1, "00.000", "alice", "chief", "request", "", "x"), subject: "::task_complete::", response: "42"})
	s := newShell(nil, "send", "--url", f.url, "x")
	if code := Main(t.Context(), s.Env); code != exitOK || s.stdout.String() != "42\n" {
		t.Errorf("code %d, stdout %q, stderr %q", code, s.stdout.String(), s.stderr.String())
	}
}

// TestAnswerOfAHostThatStops: want an answer that has come with the events to
// be enough.
func TestAnswerOfAHostThatStops(t *testing.T) {
	t.Parallel()
	timeout := strings.Replace(completed, "task_complete", "task_error", 1)
	for _, tc := range []struct {
		events string
		code   int
	}{
		{smallTaskMail(), exitOK},
		{mailEvent(1, "00.000", "alice", "chief", "request", "", "x") + completed, exitFailed},
		{timeout, exitTimeout},
	} {
		t.Run(fmt.Sprint(tc.code), func(t *testing.T) {
			t.Parallel()
			f := newFakeHost(t, &fakeHost{events: tc.events, gone: true})
			s := newShell(nil, "send", "--url", f.url, "x")
			if code := Main(t.Context(), s.Env); code != tc.code || !strings.Contains(s.stdout.String()+s.stderr.String(), "42\n") {
				t.Errorf("code %d, want %d; stdout %q, stderr %q", code, tc.code, s.stdout.String(), s.stderr.String())
			}
		})
	}
}

// TestAnswerToALaterPost: want mail to be shown beyond a completion that
// answers an earlier post.
func TestAnswerToALaterPost(t *testing.T) {
	t.Parallel()
	early := strings.Replace(strings.Replace(completed, "99", "12", 1), "42", "41", 1)
	f := newFakeHost(t, &fakeHost{
		events: early + mailEvent(13, "00.100", "math", "chief", "response", "later", "y") + completed,
		cursor: 11, subject: "::task_complete::", response: "42", hold: make(chan struct{}),
	})
	time.AfterFunc(time.Second, func() { close(f.hold) })
	s := newShell(nil, "send", "--task", "t-1", "--url", f.url, "x")
	if code := Main(t.Context(), s.Env); code != exitOK || s.stdout.String() != "42\n" {
		t.Errorf("code %d, stdout %q", code, s.stdout.String())
	}
	if got := s.stderr.String(); !strings.Contains(got, "later") || !strings.Contains(got, "whole task: 2 turns") {
		t.Errorf("stderr %q", got)
	}
}

// TestInterrupted: want a send to stop waiting at the first signal.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	f := newFakeHost(t, &fakeHost{hold: make(chan struct{})})
	s := newShell(nil, "send", "--url", f.url, "x")
	signals := make(chan os.Signal, 1)
	s.Signals = signals
	time.AfterFunc(200*time.Millisecond, func() { signals <- os.Interrupt })
	if code := Main(t.Context(), s.Env); code != exitInterrupted {
		t.Errorf("code %d, want %d", code, exitInterrupted)
	}
	if got := s.stderr.String(); !strings.Contains(got, "interrupted") || !strings.Contains(got, "skep task show t-1") {
		t.Errorf("stderr %q", got)
	}
}

// TestOvertime: want a send to give up on a host that does not end a task.
func TestOvertime(t *testing.T) {
	t.Parallel()
	f := conversation{keptHint: "see %s"}.explainFailure(fmt.Errorf("%w", errOvertime), "t-1")
	if got := explain(f); got.code != exitTimeout || got.hint != "see t-1" {
		t.Errorf("got %+v", got)
	}
}

// stuck is a stream that takes nothing until it is released.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) {
	<-s
	return len(p), nil
}

// TestSecondSignal: want the second signal not to wait for the command.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s := newShell(nil, "version")
	pipe := make(stuck)
	defer close(pipe)
	signals := make(chan os.Signal, 2)
	s.Stdout, s.Signals = pipe, signals
	signals <- os.Interrupt
	signals <- os.Interrupt
	if code := Main(t.Context(), s.Env); code != exitInterrupted {
		t.Errorf("code %d, want %d", code, exitInterrupted)
	}
}

// TestInterruptedStdin: want a read of stdin not to hold a command up.
func TestInterruptedStdin(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	s := newShell(nil, "send", "--url", "http://127.0.0.1:1")
	s.Stdin, s.Signals = r, signals
	if code := Main(t.Context(), s.Env); code != exitInterrupted {
		t.Errorf("code %d, want %d: %s", code, exitInterrupted, s.stderr.String())
	}
}

// TestEmptyText: an empty text is called as the command's help has it.
func TestEmptyText(t *testing.T) {
	t.Parallel()
	for _, line := range [][]string{{"TEXT", "answer", "order", ""}, {"BODY", "send", ""}} {
		s := newShell(nil, line[1:]...)
		if code := Main(t.Context(), s.Env); code != exitUsage || !strings.Contains(s.stderr.String(), "the "+line[0]+" is empty") {
			t.Errorf("%q: code %d, stderr %q", line, code, s.stderr.String())
		}
	}
}

func TestStdinIsATerminal(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"run", "send"} {
		s := newShell(nil, command)
		s.StdinTerminal = true
		if code := Main(t.Context(), s.Env); code != exitUsage || !strings.Contains(s.stderr.String(), "needs a BODY") {
			t.Errorf("%s: code %d, stderr %q", command, code, s.stderr.String())
		}
	}
}

// TestBrokenStdout: want a failed write to be a failure.
func TestBrokenStdout(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join(t.TempDir(), ".")) // cannot be written to
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, args := range [][]string{{"version"}, {"version", "-o", "json"}} {
		s := newShell(nil, args...)
		s.Stdout = f
		if code := Main(context.Background(), s.Env); code != exitFailed || !strings.Contains(s.stderr.String(), "write to stdout") {
			t.Errorf("%v: code %d, stderr %q", args, code, s.stderr.String())
		}
	}
}
