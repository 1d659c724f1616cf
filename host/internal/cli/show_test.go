package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// keptTask is a host with a task that is over: a record, a log, and histories.
type keptTask struct {
	record  string
	events  []string
	history map[string][]string
	turns   []string
	// page is the size of a page of a history, 100 if it is 0.
	page int
	url  string
}

func newKeptTask(t *testing.T, k *keptTask) *keptTask {
	t.Helper()
	srv := httptest.NewServer(k)
	t.Cleanup(srv.Close)
	k.url = srv.URL
	return k
}

func (k *keptTask) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	after := 0
	fmt.Sscan(r.URL.Query().Get("after"), &after)
	switch r.URL.Path {
	case "/skep/v1/tasks/t-1":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, k.record)
	case "/skep/v1/tasks/t-1/events":
		fmt.Sscan(r.Header.Get("Last-Event-ID"), &after)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range k.events[after:] {
			fmt.Fprint(w, e)
		}
	case "/skep/v1/tasks/t-1/history":
		w.Header().Set("Content-Type", "application/json")
		entries, ok := k.history[r.URL.Query().Get("agent")]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"detail":"agent not found"}`)
			return
		}
		size, next := max(k.page, 1), "null"
		if k.page == 0 {
			size = 100
		}
		if last := after + size; last < len(entries) {
			next = fmt.Sprint(last)
		}
		fmt.Fprintf(w, `{"task_id":"t-1","agent":"x","entries":[%s],"next":%s}`,
			strings.Join(entries[after:min(len(entries), after+size)], ","), next)
	case "/skep/v1/tasks/t-1/turns":
		w.Header().Set("Content-Type", "application/json")
		size, next := 2, "null"
		if last := after + size; last < len(k.turns) {
			next = fmt.Sprint(last)
		}
		fmt.Fprintf(w, `{"task_id":"t-1","turns":[%s],"next":%s}`, strings.Join(k.turns[after:min(len(k.turns), after+size)], ","), next)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"detail":"task 'nothing' not found"}`)
	}
}

const doneRecord = `{"task_id":"t-1","instance":"user:alice","task_owner":"user:alice@hive","entrypoint":"chief","state":"completed",
	"is_running":false,"completed":true,"start_time":"2026-11-20T12:00:00.000+00:00","updated":"2026-11-20T12:00:01.750+00:00",
	"ended":"2026-11-20T12:00:01.750+00:00","cursor":9,"finish_subject":"::task_complete::","answer":"4\u001b[1m2",
	"usage":{"turns":4,"fuel":1234567,"cpu_ms":3.25,"host_calls":5,"fetches":2,"fetch_bytes":3072,"tokens":1,"micro_usd":0}}`

// event is an event of the log with its data.
func logged(id int, second, name, description, extra string) string {
	text, _ := json.Marshal(description)
	return fmt.Sprintf("id: %d\nevent: %s\ndata: {\"timestamp\":\"2026-11-20T12:00:%s+00:00\",\"task_id\":\"t-1\",\"description\":%s,\"extra_data\":%s}\n\n", id, name, second, text, extra)
}

// handed makes of the mail in an event what one agent was handed.
func handed(event, to string) string {
	return strings.Replace(event, `"extra_data":{`, `"extra_data":{"recipient":"`+to+`",`, 1)
}

// remembered is an entry of a history.
func remembered(seq, turn int, second, kind, member string) string {
	return fmt.Sprintf(`{"seq":%d,"turn":%d,"time":"2026-11-20T12:00:%s+00:00","kind":%q,%s}`, seq, turn, second, kind, member)
}

func in(seq, turn int, second, from, subject string) string {
	kind := "agent"
	if from == "alice" {
		kind = "user"
	}
	return remembered(seq, turn, second, "in", fmt.Sprintf(`"message":{"id":"00000000-0000-4000-8000-%012d","timestamp":"2026-11-20T12:00:00+00:00","msg_type":"request",`+
		`"message":{"task_id":"t-1","request_id":"00000000-0000-4000-9000-%012d","sender":{"address_type":%q,"address":%q},"recipient":{"address_type":"agent","address":"x"},"subject":%q,"body":"b"}}`,
		turn, turn, kind, from, subject))
}

// doneTask is a small task: a question, an agent that answers, one that fails.
func doneTask() *keptTask {
	return &keptTask{
		record: doneRecord,
		events: []string{
			handed(mailEvent(1, "00.000", "alice", "chief", "request", "New Message", "What is 6*7?\nSay it."), "chief"),
			logged(2, "00.012", "tool_call", "agent chief called send_request", `{"tool_name":"send_request","tool_args":{},"tool_call_id":"c1","caller":"chief"}`),
			handed(mailEvent(3, "00.012", "chief", "math", "request", "multiply", "6*7\nor more"), "math"),
			logged(4, "00.020", "agent_output", "", `{"caller":"math","turn":2,"n":2,"text":"thinking \u001b[2J","progress":{"text":"a done\nb \u001b[2Jwaits"}}`),
			handed(mailEvent(5, "00.020", "math", "chief", "response", "Re: multiply", "\x1b[31m42\u202e"), "chief"),
			logged(6, "00.021", "agent_error", "agent poet: agent \"poet\" failed (fuel): out of fuel; the limit is [agents.poet] limits.fuel", `{"caller":"poet","cause":"fuel","limit":"limits.fuel","message_id":"x"}`),
			handed(mailEvent(7, "00.021", "system", "chief", "response", "::agent_error::", "poet failed"), "chief"),
			mailEvent(8, "01.750", "chief", "all", "broadcast_complete", "::task_complete::", "42"),
			"id: 9\nevent: task_complete\ndata: {\"timestamp\":\"2026-11-20T12:00:01.750+00:00\",\"task_id\":\"t-1\",\"response\":\"42\"}\n\n",
		},
		history: map[string][]string{
			"chief": {
				in(1, 1, "00.012", "alice", "New Message"),
				remembered(2, 1, "00.010", "call", `"call":{"id":"c1","name":"send_request","args":{"target":"math"}}`),
				remembered(3, 1, "00.010", "result", `"result":{"id":"c1","ok":true,"text":"SUCCESS: sent\u001b[2J"}`),
				in(4, 3, "01.700", "math", "Re: multiply"),
				remembered(5, 3, "01.700", "note", `"note":"so it is 42"`),
				in(6, 5, "01.750", "math", "Re: again"),
				remembered(7, 0, "01.750", "note", `"note":"everybody is told"`),
			},
			"math": {in(1, 2, "00.020", "chief", "multiply"), remembered(2, 0, "01.750", "note", `"note":"everybody is told"`)},
			"poet": {in(1, 4, "00.021", "chief", "rhyme"), remembered(2, 4, "00.021", "note", `"note":"turn failed: out of fuel"`)},
		},
		turns: []string{
			recordedTurn(1, "chief", "00.002", "00.012", "ok", 1, `{"mail":2}`, 0),
			withSpans(recordedTurn(2, "math", "00.013", "00.020", "ok", 2, `{"emit":1,"kv.put":3,"\u001b[2J":1}`, 0),
				`{"name":"look \u001b[2Jup","offset_ms":1.5,"duration_ms":5,"attributes":{"hits":"3","city":"Oslo"}}`,
				`{"name":"inner","parent":1,"action":"price_of","offset_ms":2,"duration_ms":1,"error":"empty","cut":true}`,
				`{"name":"odd","parent":9,"offset_ms":3,"duration_ms":1}`),
			recordedTurn(3, "chief", "00.021", "01.700", "ok", 1, `{"http.fetch":2,"kv.get":1}`, 3072),
			recordedTurn(4, "poet", "00.013", "00.021", "fuel", 1, `{}`, 0),
			// Turn 5 has no record any more, and turn 6 is in no history.
			recordedTurn(6, "idle", "01.710", "01.740", "ok", 1, `{"clock.now":1}`, 0),
			recordedTurn(7, "math", "01.760", "", "", 1, `{"kv.cas":1}`, 0),
		},
		page: 2,
	}
}

// recordedTurn is a turn as a host renders it; without an end it is not over.
func recordedTurn(n int, agent, start, end, exit string, attempt int, ops string, fetched int) string {
	over := `"end":null,"exit":null,"usage":null`
	if end != "" {
		over = fmt.Sprintf(`"end":"2026-11-20T12:00:%s+00:00","exit":%q,"usage":{"fuel":1500,"cpu_ms":1.25,"wall_ms":2000,"host_calls":3,"fetches":%d,"fetch_bytes":%d,"tokens":%d,"micro_usd":%d}`,
			end, exit, min(fetched, 2), fetched, min(fetched, 1450), min(fetched, 812))
	}
	return fmt.Sprintf(`{"turn":%d,"agent":%q,"start":"2026-11-20T12:00:%s+00:00","attempt":%d,"ops":%s,%s}`, n, agent, start, attempt, ops, over)
}

// withSpans adds the spans of a turn.
func withSpans(turn string, spans ...string) string {
	return strings.TrimSuffix(turn, "}") + `,"spans":[` + strings.Join(spans, ",") + "]}"
}

const shownTask = `task      t-1
state     completed
owner     user:alice@hive
instance  user:alice
created   THEN
ended     THEN
duration  1.8 s
cost      4 turns · 1.23M fuel · 3.2 ms cpu · 5 host calls · 2 HTTP requests, 3.07k bytes · 1 token

    time  from         to          type       tier      cost  mail
   0.000  you        → chief       request    2            What is 6*7? (1 more line)
   0.012  chief      # turn 1 · ok in 2 s · 1.5k fuel · 1.2 ms cpu · takes request from you New Message
            send_request {"target":"math"}
            → SUCCESS: sent\x1b[2J
   0.012  chief      → math        request    5    1.2 ms  multiply · 6*7 (1 more line)
   0.020  math       # turn 2 · ok in 2 s (attempt 2) · 1.5k fuel · 1.2 ms cpu · takes request from chief mul…
            ops: \x1b[2J ×1, emit ×1, kv.put ×3
            · look \x1b[2Jup · 5 ms at +1.5 ms · city=Oslo · hits=3
            · · price_of: inner · 1 ms at +2 ms, not ended · failed: empty
            · odd · 1 ms at +3 ms
   0.020  math       … a done (1 more line) · thinking \x1b[2J
   0.020  math       → chief       response   5    1.2 ms  Re: multiply · \x1b[31m42\u202e
   0.021  poet       # turn 4 · failed in 2 s · 1.5k fuel · 1.2 ms cpu · takes request from chief rhyme
   0.021  poet       ✗ failed (fuel): out of fuel; the limit is [agents.poet] limits.fuel
            cause fuel, limit [agents.poet] limits.fuel
   0.021  system     → chief       response   1            ::agent_error:: · poet failed
   1.700  chief      # turn 3 · ok in 2 s · 1.5k fuel · 1.2 ms cpu · takes request from math Re: multiply
            ops: http.fetch ×2, kv.get ×1 · 2 HTTP requests, 3.07k bytes · 1450 tokens · $0.000812
            note: so it is 42
   1.740  idle       # turn 6 · ok in 2 s · 1.5k fuel · 1.2 ms cpu
            ops: clock.now ×1
   1.750  chief      # turn 5 · ok · 9 fuel · 1.2 ms cpu · takes request from math Re: again
   1.750  chief      → all         complete   3    1.2 ms  42
   1.750  answer     = 42
   1.760  math       # turn 7 · not over
            ops: kv.cas ×1

progress  math: a done
          b \x1b[2Jwaits
end       completed, by ::task_complete::
answer    4\x1b[1m2
`

// Past times are shown with their age, which changes.
func withoutAges(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if title, _, ok := strings.Cut(line, "2026-11-20 "); ok && strings.Contains(line, " ago)") {
			lines[i] = title + "THEN"
		}
	}
	return strings.Join(lines, "\n")
}

func TestShow(t *testing.T) {
	t.Parallel()
	k := newKeptTask(t, doneTask())
	s := newShell(nil, "task", "show", "t-1", "--url", k.url)
	if code := Main(t.Context(), s.Env); code != exitOK || s.stderr.Len() > 0 {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
	if diff := cmp.Diff(shownTask, withoutAges(s.stdout.String())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// In full, every text is there to its last line, escaped as well.
func TestShowInFull(t *testing.T) {
	t.Parallel()
	k := newKeptTask(t, doneTask())
	s := newShell(nil, "task", "show", "t-1", "--full", "--url", k.url)
	if code := Main(t.Context(), s.Env); code != exitOK {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
	got := s.stdout.String()
	for _, want := range []string{"\n            What is 6*7?\n              Say it.\n", "\n            6*7\n              or more\n", "\n            \\x1b[31m42\\u202e\n", "\n            thinking \\x1b[2J\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

func TestShowOnTerminals(t *testing.T) {
	t.Parallel()
	for name, vars := range map[string]map[string]string{"colours": nil, "NO_COLOR": {"NO_COLOR": "1"}, "dumb": {"TERM": "dumb"}} {
		k := newKeptTask(t, doneTask())
		s := newShell(vars, "task", "show", "t-1", "--full", "--url", k.url)
		s.StdoutTerminal, s.Width = true, 80
		if code := Main(t.Context(), s.Env); code != exitOK {
			t.Errorf("%s: code %d", name, code)
		}
		got := s.stdout.String()
		if strings.Contains(got, "\x1b[") != (name == "colours") {
			t.Errorf("%s: %q", name, got)
		}
		for _, hostile := range []string{"\x1b[2J", "\x1b[31m42", "4\x1b[1m2", "\u202e"} {
			if strings.Contains(got, hostile) {
				t.Errorf("%s: %q reaches the terminal", name, hostile)
			}
		}
	}
}

func TestShowAsData(t *testing.T) {
	t.Parallel()
	k := newKeptTask(t, doneTask())
	s := newShell(nil, "task", "show", "t-1", "-o", "json", "--url", k.url)
	if code := Main(t.Context(), s.Env); code != exitOK || s.stderr.Len() > 0 {
		t.Errorf("code %d, stderr %q", code, s.stderr.String())
	}
	var got struct {
		State   string
		Events  []struct{ ID int }
		Turns   []struct{ Turn int }
		History map[string][]struct{ Seq int }
	}
	if err := json.Unmarshal(s.stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, s.stdout.String())
	}
	if got.State != "completed" || len(got.Events) != 9 || got.Events[8].ID != 9 || len(got.Turns) != 6 || got.Turns[5].Turn != 7 || len(got.History) != 3 || len(got.History["chief"]) != 7 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(s.stdout.String(), `"state": "completed"`) || strings.ContainsRune(s.stdout.String(), 0x1b) {
		t.Errorf("%s", s.stdout.String())
	}
}

// A paused task shows what it waits for, a running one that it has not ended.
func TestShowOfATaskThatHasNotEnded(t *testing.T) {
	t.Parallel()
	one := `[{\"arguments\":\"{\\\"item\\\":\\\"tea\\u001b[2J\\\"}\",\"call_id\":\"t1.c2\",\"name\":\"order\"}]`
	two := strings.TrimSuffix(one, "]") + `,{\"arguments\":\"{}\",\"call_id\":\"t1.c3\",\"name\":\"ask\"}]`
	for _, tt := range []struct{ state, answer, want string }{
		{"paused", `"` + one + `"`, "waits     order {\"item\":\"tea\\x1b[2J\"}, call t1.c2\nanswer    `skep task resume t-1 --result TEXT --url URL`\nor        `skep task resume t-1 --response TEXT --url URL` calls it off\n"},
		{"paused", `"` + two + `"`, "          ask {}, call t1.c3\nanswer    `skep task resume t-1 --result '[{\"call_id\":\"t1.c2\",\"content\":\"TEXT\"},{\"call_id\":\"t1.c3\",\"content\":\"TEXT\"}]' --url URL`\n"},
		{"paused", `"\u001b[2Jno calls"`, "waits     \\x1b[2Jno calls\n"},
		{"running", "null", "end       none yet; `skep task cancel t-1 --url URL` ends it\n"},
	} {
		k := doneTask()
		k.record = fmt.Sprintf(`{"task_id":"t-1","state":%q,"cursor":1,"start_time":"2026-11-20T12:00:00+00:00","updated":"2026-11-20T12:00:00+00:00","answer":%s,"ended":null}`, tt.state, tt.answer)
		newKeptTask(t, k)
		s := newShell(nil, "task", "show", "t-1", "--url", k.url)
		code := Main(t.Context(), s.Env)
		got := strings.ReplaceAll(s.stdout.String(), k.url, "URL")
		got = strings.Replace(got, "\n          ask", "\nwaits     ask", 1)
		want := strings.Replace(tt.want, "          ask", "waits     ask", 1)
		if code != exitOK || !strings.Contains(got, want) {
			t.Errorf("code %d:\n%s\nwant in it:\n%s", code, got, want)
		}
	}
}

func TestShowThatFails(t *testing.T) {
	t.Parallel()
	unknown := newKeptTask(t, doneTask())
	early := doneTask()
	early.events = early.events[:4]
	broken := doneTask()
	broken.history["chief"] = []string{"1"}
	lost := doneTask()
	lost.turns[3] = "1"
	for name, tt := range map[string]struct {
		k    *keptTask
		id   string
		code int
		text string
	}{
		"an unknown task":       {unknown, "nothing", exitNotFound, "task 'nothing' not found"},
		"a log that ends early": {newKeptTask(t, early), "t-1", exitFailed, "event 4 of 9: the log ends"},
		"a strange history":     {newKeptTask(t, broken), "t-1", exitFailed, "history: not an answer"},
		"strange turns":         {newKeptTask(t, lost), "t-1", exitFailed, "turns: not an answer"},
	} {
		for _, output := range []string{"text", "json"} {
			s := newShell(nil, "task", "show", tt.id, "--url", tt.k.url, "-o", output)
			if code := Main(t.Context(), s.Env); code != tt.code || !strings.Contains(s.stderr.String(), tt.text) {
				t.Errorf("%s as %s: code %d, stderr %q", name, output, code, s.stderr.String())
			}
		}
	}
	for _, output := range []string{"text", "json"} {
		s := newShell(nil, "task", "show", "t-1", "--url", unknown.url, "-o", output)
		s.Stdout = failing{}
		if code := Main(t.Context(), s.Env); code != exitFailed {
			t.Errorf("stdout that is full, %s: code %d", output, code)
		}
	}
}

// endless is a host whose task has very many events and an agent that remembers
// as many things. It makes them as they are read.
func endless(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		after := 0
		fmt.Sscan(r.URL.Query().Get("after"), &after)
		second := func(i int) string { return fmt.Sprintf("%02d.%06d", i/1_000_000, i%1_000_000) }
		w.Header().Set("Content-Type", "application/json")
		switch filepath.Base(r.URL.Path) {
		case "t-1":
			fmt.Fprintf(w, `{"task_id":"t-1","state":"completed","start_time":"2026-11-20T12:00:00+00:00","updated":"2026-11-20T12:00:59+00:00","cursor":%d}`, n)
		case "events":
			w.Header().Set("Content-Type", "text/event-stream")
			for i := 1; i <= n; i++ {
				fmt.Fprint(w, handed(mailEvent(i, second(i), "chief", "chief", "request", "again", strings.Repeat("x", 1700)), "chief"))
			}
		case "turns":
			var page []string
			for i := after + 1; i <= min(after+100, n); i++ {
				page = append(page, recordedTurn(i, "chief", second(i), second(i), "ok", 1, `{"kv.put":1}`, 0))
			}
			next := "null"
			if after+100 < n {
				next = fmt.Sprint(after + 100)
			}
			fmt.Fprintf(w, `{"turns":[%s],"next":%s}`, strings.Join(page, ","), next)
		case "history":
			var page []string
			for i := after + 1; i <= min(after+100, n); i++ {
				page = append(page, in(i, i, second(i), "chief", "again"))
			}
			next := "null"
			if after+100 < n {
				next = fmt.Sprint(after + 100)
			}
			fmt.Fprintf(w, `{"entries":[%s],"next":%s}`, strings.Join(page, ","), next)
		}
	}
}

// watermark counts what is written, and looks at the heap now and then.
type watermark struct{ lines, most uint64 }

func (w *watermark) Write(p []byte) (int, error) {
	before := w.lines
	w.lines += uint64(strings.Count(string(p), "\n"))
	if w.lines/1000 != before/1000 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		w.most = max(w.most, m.HeapAlloc)
	}
	return len(p), nil
}

// A long task is shown as it is read, in whatever form.
func TestShowOfALongTask(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	// Events of two kilobytes each, and bytes of heap beside what other tests have left.
	const n, most = 2500, 2 << 20
	for _, output := range []string{"text", "json"} {
		out, used := &watermark{}, uint64(0)
		for range 3 { // what other tests have left behind allocates, too, sometimes
			if out, used = showEndless(t, n, output); used <= most {
				break
			}
		}
		if out.lines < 2*n || used > most {
			t.Errorf("%s: %d lines, %d bytes of heap", output, out.lines, used)
		}
		t.Logf("%s: %d lines, at most %d KiB of heap", output, out.lines, used>>10)
	}
}

// showEndless shows a task of n events, and returns how much heap was used meanwhile.
func showEndless(t *testing.T, n int, output string) (out *watermark, used uint64) {
	t.Helper()
	srv := httptest.NewServer(endless(n))
	defer srv.Close()
	s := newShell(nil, "task", "show", "t-1", "--url", srv.URL, "-o", output)
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	out = &watermark{most: before.HeapAlloc}
	s.Stdout = out
	if code := Main(t.Context(), s.Env); code != exitOK {
		t.Errorf("%s: code %d; stderr %q", output, code, s.stderr.String())
	}
	return out, out.most - before.HeapAlloc
}

func TestArgument(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"t-1": "t-1", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "ä": "ä", "\x1b": `'\x1b'`} {
		if got := argument(in); got != want {
			t.Errorf("argument(%q) = %s, want %s", in, got, want)
		}
	}
}

// exportOf runs a command that exports to a file and returns the lines of it.
func exportOf(t *testing.T, code int, file string, args ...string) []string {
	t.Helper()
	s := newShell(nil, append(args, "--export", file)...)
	if got := Main(t.Context(), s.Env); got != code {
		t.Errorf("%v: code %d, want %d; stderr %q", args, got, code, s.stderr.String())
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(raw), "\n"), "\n")
}

// An export that was cut off at any byte is the same in the end.
func TestExportGoesOn(t *testing.T) {
	t.Parallel()
	k := newKeptTask(t, doneTask())
	for _, tt := range []struct {
		lines int
		args  []string
	}{
		{9, []string{"task", "events", "t-1", "--url", k.url}},
		{7, []string{"task", "history", "t-1", "--agent", "chief", "--url", k.url}},
	} {
		file := filepath.Join(t.TempDir(), "x.jsonl")
		whole := exportOf(t, exitOK, file, tt.args...)
		if len(whole) != tt.lines {
			t.Fatalf("%v: %d lines:\n%s", tt.args, len(whole), strings.Join(whole, ""))
		}
		text := strings.Join(whole, "")
		for _, line := range whole {
			if !json.Valid([]byte(line)) || !strings.HasPrefix(line, `{"task_id":"t-1",`) {
				t.Errorf("line %s", line)
			}
		}
		for _, cut := range []int{len(whole[0]), len(whole[0]) + 1, len(text) - 1, len(text)} {
			if err := os.WriteFile(file, []byte(text + "\n")[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(exportOf(t, exitOK, file, tt.args...), ""); got != text {
				t.Errorf("%v, cut off at %d:\n%s\nwant:\n%s", tt.args, cut, got, text)
			}
		}
	}
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	k := newKeptTask(t, doneTask())
	dir := t.TempDir()
	events := []string{"task", "events", "t-1", "--url", k.url}
	log := filepath.Join(dir, "log")
	exportOf(t, exitOK, log, events...)
	for name, content := range map[string]string{"text": "hello\n", "half": "{", "other": `{"task_id":"t-2","id":1}` + "\n"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := exportOf(t, exitUsage, file, events...); strings.Join(got, "")+strings.Repeat("\n", strings.Count(content, "\n")) != content {
			t.Errorf("%s was changed: %q", name, got)
		}
	}
	exportOf(t, exitUsage, log, "task", "history", "t-1", "--agent", "chief", "--url", k.url)
	exportOf(t, exitUsage, log, append(events, "--after", "3")...)
	for _, tt := range []struct {
		code int
		args []string
	}{
		{exitNotFound, []string{"task", "events", "nothing", "--export", filepath.Join(dir, "new")}},
		{exitNotFound, []string{"task", "history", "t-1", "--agent", "nobody", "--export", filepath.Join(dir, "new")}},
		{exitNotFound, append(events[:3:3], "--export", filepath.Join(dir, "no", "file"))},
		{exitUsage, []string{"task", "history", "t-1"}},
		{exitUsage, []string{"task", "history", "t-1", "--agent", "chief", "--after", "-1"}},
		{exitUsage, []string{"task", "events", "t-1", "--after", "-1"}},
	} {
		s := newShell(nil, append(tt.args, "--url", k.url)...)
		if code := Main(t.Context(), s.Env); code != tt.code {
			t.Errorf("%v: code %d, want %d: %s", tt.args, code, tt.code, s.stderr.String())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a refused export left a file")
	}
}

// What an export has got is kept when the host fails in the middle.
func TestExportThatBreaks(t *testing.T) {
	t.Parallel()
	k := doneTask()
	k.events = k.events[:4]
	newKeptTask(t, k)
	file := filepath.Join(t.TempDir(), "x")
	if got := exportOf(t, exitFailed, file, "task", "events", "t-1", "--url", k.url); len(got) != 4 {
		t.Errorf("%q", got)
	}
	s := newShell(nil, "task", "events", "t-1", "--url", k.url, "-o", "json")
	s.Stdout = failing{}
	if code := Main(t.Context(), s.Env); code != exitFailed {
		t.Errorf("stdout that is full: code %d", code)
	}
}

func TestEventsAndHistoryAsText(t *testing.T) {
	t.Parallel()
	k := newKeptTask(t, doneTask())
	for want, args := range map[string][]string{
		"   0.020  math       → chief       response   5    1.2 ms  Re: multiply · \\x1b[31m42\\u202e\n": {"events", "t-1", "--after", "3"},
		"    1  turn 1    request from you: b\n    2  turn 1    send_request {\"target\":\"math\"}\n    3  turn 1    → SUCCESS: sent\\x1b[2J\n    4  turn 3    request from math: Re: multiply · b\n" +
			"    5  turn 3    note: so it is 42\n    6  turn 5    request from math: Re: again · b\n    7  -         note: everybody is told\n": {"history", "t-1", "--agent", "chief"},
	} {
		s := newShell(nil, append([]string{"task"}, append(args, "--url", k.url)...)...)
		if code := Main(t.Context(), s.Env); code != exitOK || !strings.Contains(s.stdout.String(), want) {
			t.Errorf("%v: code %d:\n%s%s\nwant in it:\n%s", args, code, s.stdout.String(), s.stderr.String(), want)
		}
	}
	s := newShell(nil, "task", "events", "t-1", "--after", "7", "-o", "json", "--url", k.url)
	if code := Main(t.Context(), s.Env); code != exitOK || strings.Count(s.stdout.String(), "\n") != 2 || !strings.HasPrefix(s.stdout.String(), `{"task_id":"t-1","id":8,`) {
		t.Errorf("code %d: %s", code, s.stdout.String())
	}
}
