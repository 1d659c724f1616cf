package skep_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	skep "skep/sdk/go"
	"skep/sdk/go/skeptest"
)

// turnIn runs one turn in a world, and gives what a later one has.
func turnIn(t *testing.T, w *skeptest.World, f turnFunc) skeptest.Outcome {
	t.Helper()
	out := skeptest.Run(f, skeptest.Input{World: w, CanComplete: true})
	if out.Err != nil {
		t.Error(out.Err)
	}
	return out
}

// told runs calls, and gives what each was refused with.
func told(t *testing.T, w *skeptest.World, calls func(*skep.Turn) []error) (said []string) {
	t.Helper()
	turnIn(t, w, func(turn *skep.Turn) error {
		for _, err := range calls(turn) {
			said = append(said, fmt.Sprint(err))
		}
		return nil
	})
	return said
}

func requests(out skeptest.Outcome) (all []string) {
	for _, c := range out.Calls {
		all = append(all, c.Op.String()+" "+string(c.Request))
	}
	return all
}

func TestHelpersSayWhatTheContractWants(t *testing.T) {
	t.Parallel()
	w := &skeptest.World{KV: skep.ScopeInstance, HTTP: func(skep.FetchRequest) (skep.FetchResponse, error) {
		return skep.FetchResponse{Status: 204}, nil
	}}
	one := "1"
	out := turnIn(t, w, func(turn *skep.Turn) error {
		kv := turn.KV(skep.ScopeTask)
		_, missing := kv.Get("a")
		_, _, list := kv.List("p", "q", 2)
		_, cas := turn.KV(skep.ScopeInstance).Cas("n", nil, &one)
		_, set := turn.SetTimer(90*time.Second, "x")
		_, text := turn.Fetch(skep.FetchRequest{URL: "http://a/", Method: "POST", Headers: map[string]string{"a": "b"}, Body: []byte("<é>")})
		_, raw := turn.Fetch(skep.FetchRequest{URL: "http://a/", Body: []byte{0, 255}})
		_, exists := turn.SecretExists("k")
		return errors.Join(kv.Put("a", ""), kv.Delete("a"), list, cas, set, text, raw, exists, isNot(missing, skep.NotFound), isNot(turn.CancelTimer("t"), skep.NotFound))
	})
	want := []string{
		`kv.get {"key":"a","scope":"task"}`,
		`kv.list {"prefix":"p","after":"q","limit":2,"scope":"task"}`,
		`kv.cas {"key":"n","expect":null,"value":"1","scope":"instance"}`,
		`timer.set {"after":"1m30s","body":"x"}`,
		`http.fetch {"method":"POST","url":"http://a/","headers":{"a":"b"},"body":"<é>"}`,
		`http.fetch {"method":"GET","url":"http://a/","body_base64":"AP8="}`,
		`secret.exists {"name":"k"}`,
		`kv.put {"key":"a","value":"","scope":"task"}`,
		`kv.delete {"key":"a","scope":"task"}`,
		`timer.cancel {"id":"t"}`,
	}
	if got := requests(out); !slices.Equal(got, want) {
		t.Errorf("called\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func isNot(err error, want skep.Code) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("%v, want %v", err, want)
}

// Values are the turn's until it ends well; only cas is for ever at once.
func TestValuesAreCommitted(t *testing.T) {
	t.Parallel()
	w := &skeptest.World{KV: skep.ScopeInstance}
	in := skeptest.Input{World: w}
	w.Values(skep.ScopeAgent, in)["old"] = "1"
	one, two := "1", "2"
	fails := turnFunc(func(turn *skep.Turn) error {
		kv := turn.KV(skep.ScopeAgent)
		ok, err := kv.Cas("cas", nil, &one)
		other, again := kv.Cas("cas", nil, &two)
		if !ok || other || err != nil || again != nil {
			t.Error(ok, other, err, again)
		}
		return errors.Join(kv.Put("new", "1"), kv.Delete("old"), errors.New("no"))
	})
	if out := skeptest.Run(fails, in); out.Err == nil || len(w.Values(skep.ScopeAgent, in)) != 2 {
		t.Error(out.Err, w.Values(skep.ScopeAgent, in))
	}
	turnIn(t, w, func(turn *skep.Turn) error {
		kv := turn.KV(skep.ScopeAgent)
		if err := errors.Join(kv.Put("b", "2"), kv.Delete("old"), kv.Delete("none"), turn.KV(skep.ScopeTask).Put("t", "")); err != nil {
			return err
		}
		_, gone := kv.Get("old")
		value, err := kv.Get("b")
		_, staged := kv.Cas("b", &two, nil)
		deleted, cas := kv.Cas("cas", &one, nil)
		if value != "2" || err != nil || !errors.Is(gone, skep.NotFound) || !errors.Is(staged, skep.Conflict) || !deleted || cas != nil {
			t.Error(value, err, gone, staged, deleted, cas)
		}
		return nil
	})
	if got := fmt.Sprint(w.Values(skep.ScopeAgent, in), w.Values(skep.ScopeTask, in)); got != "map[b:2] map[t:]" {
		t.Error(got)
	}
}

func TestKeysComePageByPage(t *testing.T) {
	t.Parallel()
	w := &skeptest.World{KV: skep.ScopeAgent}
	values := w.Values(skep.ScopeAgent, skeptest.Input{})
	for i := range 999 {
		values[fmt.Sprintf("a%03d", i)] = ""
	}
	turnIn(t, w, func(turn *skep.Turn) error {
		kv := turn.KV(skep.ScopeAgent)
		n := 0
		for key, err := range kv.Keys("a") {
			if err != nil || key != fmt.Sprintf("a%03d", n) {
				t.Fatal(n, key, err)
			}
			n++
		}
		page, next, err := kv.List("a", "a996", 1)
		if n != 999 || err != nil || next != "a997" || !slices.Equal(page, []string{"a997"}) {
			t.Error(n, page, next, err)
		}
		if page, next, _ := kv.List("", "", 0); len(page) != 100 || next != "a099" {
			t.Error(len(page), next)
		}
		for _, err := range turn.KV(skep.ScopeInstance).Keys("") {
			if !errors.Is(err, skep.Denied) {
				t.Error(err)
			}
		}
		return nil
	})
}

func TestWorldHasTheHostsLimits(t *testing.T) {
	t.Parallel()
	w := &skeptest.World{KV: skep.ScopeTask}
	values := w.Values(skep.ScopeTask, skeptest.Input{})
	for i := range 63 {
		values[fmt.Sprint(i)] = strings.Repeat("x", 64<<10)
	}
	got := told(t, w, func(turn *skep.Turn) []error {
		kv := turn.KV(skep.ScopeTask)
		_, after := turn.SetTimer(0, "")
		_, far := turn.SetTimer(31*24*time.Hour, "")
		_, body := turn.SetTimer(time.Second, strings.Repeat("x", 256<<10+1))
		_, _, list := kv.List("", "", -1)
		_, unknown := turn.KV("swarm").Get("a")
		strange := turn.Call(skep.OpKVGet, map[string]string{"name": "a"}, nil)
		large := turn.Call(skep.OpKVPut, map[string]string{"key": strings.Repeat("x", 2<<20)}, nil)
		soon := turn.Call(skep.OpTimerSet, map[string]string{"after": "soon"}, nil)
		none := turn.Call(skep.OpKVPut, map[string]string{"key": "a"}, nil)
		return []error{
			kv.Put("", ""), kv.Put(strings.Repeat("k", 513), ""), kv.Put("a", strings.Repeat("x", 64<<10+1)),
			kv.Put("last", strings.Repeat("x", 64<<10)), turn.KV(skep.ScopeAgent).Put("a", ""), after, far, body, list, unknown, strange, large, soon, none,
		}
	})
	want := []string{
		"INVALID: the key must not be empty", "LIMIT: a key of 513 bytes, at most 512", "LIMIT: a value of 65537 bytes, at most 65536",
		"LIMIT: the scope would hold 4194424 bytes, at most 4194304", `DENIED: the scope agent is not granted to agent "agent"; set World.KV`,
		"INVALID: after is 0s; it must be from 1 ms to 30 days", "INVALID: after is 744h0m0s; it must be from 1 ms to 30 days",
		"LIMIT: body has 262145 bytes, at most 262144", "INVALID: limit must not be negative",
		`INVALID: the scope must be task, agent or instance, not "swarm"`, `INVALID: unknown field "name"`,
		"LIMIT: a request of 2097162 bytes, at most 2097152", `INVALID: timer.set: after must be a time as in "90s" or a number of milliseconds`,
		"INVALID: value is missing; it must be a text",
	}
	if !slices.Equal(got, want) {
		t.Errorf("refused\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i := range 1000 {
		values[fmt.Sprint(i)] = ""
	}
	got = told(t, w, func(turn *skep.Turn) []error {
		kv := turn.KV(skep.ScopeTask)
		return []error{kv.Put("999", "y"), kv.Put("1000", ""), kv.Delete("5"), kv.Put("1000", "")}
	})
	if want := []string{"<nil>", "LIMIT: the scope would hold 1001 keys, at most 1000", "<nil>", "<nil>"}; !slices.Equal(got, want) {
		t.Errorf("refused %q", got)
	}
}

// A timer comes as a turn of its own, when its time has come.
func TestTimersFire(t *testing.T) {
	t.Parallel()
	w := &skeptest.World{}
	if _, ok := w.Fire(); ok {
		t.Error("a timer out of nothing")
	}
	var first string
	turnIn(t, w, func(turn *skep.Turn) error {
		var errs [4]error
		first, errs[0] = turn.SetTimer(time.Hour, "late")
		_, errs[1] = turn.SetTimer(time.Minute, "soon")
		gone, err := turn.SetTimer(time.Second, "gone")
		errs[2], errs[3] = err, turn.CancelTimer(gone)
		return errors.Join(errs[:]...)
	})
	discards := turnFunc(func(turn *skep.Turn) error {
		_, err := turn.SetTimer(time.Second, "never")
		return errors.Join(err, turn.CancelTimer(first), errors.New("no"))
	})
	if out := skeptest.Run(discards, skeptest.Input{World: w}); out.Err == nil || len(w.Timers()) != 2 {
		t.Error(out.Err, w.Timers())
	}
	start := w.Now
	m, ok := w.Fire()
	if !ok || m.Body != "soon" || !m.FromTimer() || w.Now.Sub(start) != time.Minute {
		t.Fatalf("%v %+v after %v", ok, m, w.Now.Sub(start))
	}
	out := skeptest.Run(turnFunc(func(turn *skep.Turn) error {
		if !turn.Message.FromTimer() || turn.Message.Body != "soon" || turn.Now().Sub(start) != time.Minute {
			t.Errorf("%+v at %v", turn.Message, turn.Now())
		}
		if err := turn.CancelTimer(turn.Message.ID); !errors.Is(err, skep.NotFound) {
			t.Error(err)
		}
		return turn.TaskComplete("done")
	}), skeptest.Input{World: w, Message: m, CanComplete: true})
	if out.Err != nil {
		t.Error(out.Err)
	}
	if _, ok := w.Fire(); ok || len(w.Timers()) != 1 {
		t.Error("a timer of a task that is complete")
	}
	turnIn(t, w, func(turn *skep.Turn) error {
		for range 15 {
			if _, err := turn.SetTimer(time.Second, ""); err != nil {
				return err
			}
		}
		_, err := turn.SetTimer(time.Second, "")
		return isNot(err, skep.Limit)
	})
	if _, ok := w.Fire(); !ok {
		t.Error("a task that goes on has no timers")
	}
}

func TestFetches(t *testing.T) {
	t.Parallel()
	w := &skeptest.World{Secrets: []string{"key"}, HTTP: func(r skep.FetchRequest) (skep.FetchResponse, error) {
		switch r.URL {
		case "http://a/large":
			return skep.FetchResponse{Body: make([]byte, 8<<20+1)}, nil
		case "http://a/off":
			return skep.FetchResponse{}, skep.Unavailable
		}
		return skep.FetchResponse{Status: 404, Headers: map[string]string{"Content-Type": "x"}, Body: append([]byte(r.Method), r.Body...)}, nil
	}}
	turnIn(t, w, func(turn *skep.Turn) error {
		raw := []byte{0, 255, '"'}
		rsp, err := turn.Fetch(skep.FetchRequest{Method: "PUT", URL: "http://a/", Body: raw})
		if err != nil || rsp.Status != 404 || rsp.Headers["content-type"] != "x" || !bytes.Equal(rsp.Body, append([]byte("PUT"), raw...)) {
			t.Errorf("%+v %v", rsp, err)
		}
		var page skep.FetchResponse
		p := turn.Submit(skep.OpHTTPFetch, skep.FetchRequest{URL: "http://a/"})
		if err := p.Answer(&page); err != nil || string(page.Body) != "GET" {
			t.Errorf("%+v %v", page, err)
		}
		yes, _ := turn.SecretExists("key")
		if no, err := turn.SecretExists("other"); !yes || no || err != nil {
			t.Error(yes, no, err)
		}
		return nil
	})
	got := told(t, w, func(turn *skep.Turn) (all []error) {
		for _, r := range []skep.FetchRequest{
			{URL: "http://a/large"}, {URL: "http://a/off"}, {URL: "a"}, {URL: "http://a", Method: "get"}, {URL: "http://a", Body: make([]byte, 1<<21)},
		} {
			_, err := turn.Fetch(r)
			all = append(all, err)
		}
		return append(all, turn.Call(skep.OpHTTPFetch, json.RawMessage(`{"method":"GET","url":"http://a","body":"a","body_base64":"AA=="}`), nil),
			turn.Call(skep.OpHTTPFetch, json.RawMessage(`{"method":"GET","url":"http://a","header":{}}`), nil))
	})
	want := []string{
		"LIMIT: the answer has more than 8388608 bytes", "UNAVAILABLE: http.fetch is refused by the test", `INVALID: "a" is no absolute URL of http or https`,
		`INVALID: the method "get" is none of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS`, "LIMIT: a request of 2796254 bytes, at most 2097152",
		"INVALID: body and body_base64 are both set", `INVALID: unknown field "header"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("refused\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	got = told(t, nil, func(turn *skep.Turn) []error {
		_, err := turn.Fetch(skep.FetchRequest{URL: "http://a/"})
		return []error{err}
	})
	if got[0] != `DENIED: http://a/ is not granted to agent "agent"; set World.HTTP` {
		t.Error(got)
	}
}
