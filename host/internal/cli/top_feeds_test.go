package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/host/client"
)

// sharedStore is a host through which the feeds of all hosts of a store can be read.
type sharedStore struct {
	mu sync.Mutex
	// turns are the tenants of the turns of each host that is alive; none is that it does not answer.
	turns map[string][]string
	asked []string
}

// set changes a host; none is that it does not answer.
func (s *sharedStore) set(host string, tenants ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[host] = tenants
}

func (s *sharedStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/whoami":
		fmt.Fprint(w, `{"id":"op","role":"admin","operator":true}`)
	case "/skep/v1/questions":
		fmt.Fprint(w, `{"questions":[],"next":""}`)
	case "/skep/v1/tasks":
		fmt.Fprint(w, storedTasks(q.Get("state")+" "+q.Get("order")+" "+q.Get("after")))
	case "/skep/v1/pulse":
		s.pulse(w, q.Get("host"), q.Get("kept") == "true", r.Header.Get("Last-Event-ID"))
	}
}

// storedTasks is the store's list of tasks: by cost the running one comes on the second page only.
func storedTasks(query string) string {
	const task = `{"task_id":%q,"tenant":"acme","instance":"user:bob","state":"running","usage":{"micro_usd":%d}}`
	switch query {
	case "running  ":
		return fmt.Sprintf(`{"tasks":[`+task+`],"next":"older"}`, "new", 0)
	case "running cost ":
		return `{"tasks":[],"next":"cheaper"}`
	case "running cost cheaper":
		return fmt.Sprintf(`{"tasks":[`+task+`],"next":""}`, "old-and-dear", 9)
	}
	return `{"tasks":[],"next":""}`
}

// pulse is the feed of a host. What it has ends after its last turn.
func (s *sharedStore) pulse(w http.ResponseWriter, host string, kept bool, last string) {
	if host != "" {
		s.asked = append(s.asked, fmt.Sprint(host, " ", kept, " ", last))
	}
	tenants := s.turns[host]
	if host != "" && len(tenants) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, `{"detail":"host %s does not answer; come again"}`, host)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for n, tenant := range tenants {
		if id := fmt.Sprintf("%s-%d", host, n+1); id > last {
			fmt.Fprintf(w, "id: %s\nevent: turn\ndata: {\"kind\":\"turn\",\"state\":\"ok\",\"tenant\":%q,\"agent\":\"boss\"}\n\n", id, tenant)
		}
	}
	if kept {
		all, _ := json.Marshal(slices.Sorted(maps.Keys(s.turns)))
		fmt.Fprintf(w, "id: %s-%d\nevent: ping\ndata: {\"host\":%q,\"hosts\":%s}\n\n", host, len(tenants), host, all)
	}
}

// top counts the events of all hosts of a store, and names those that do not answer. The dearest tasks
// are of the store's list by cost.
func TestTopOfHosts(t *testing.T) {
	t.Parallel()
	store := &sharedStore{turns: map[string][]string{"a": {"acme", "acme"}, "b": {"acme", "depot"}, "c": nil}}
	srv := httptest.NewServer(store)
	t.Cleanup(srv.Close)
	s := newShell(map[string]string{"SKEP_TOKEN": "a-token"}, "top", "--once", "-o", "json", "--url", srv.URL)
	if code := Main(t.Context(), s.Env); code != exitOK {
		t.Fatalf("%d: %s", code, &s.stderr)
	}
	var page topPage
	if err := json.Unmarshal(s.stdout.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(page.Hosts, []string{"a", "b"}) || len(page.Silent) != 1 || page.Silent[0].Host != "c" || !strings.Contains(page.Silent[0].Reason, "does not answer") {
		t.Errorf("of %v without %v", page.Hosts, page.Silent)
	}
	if len(page.Tenants) != 2 || page.Tenants[0].Turns != 3 || page.Tenants[1].Turns != 1 {
		t.Errorf("%+v", page.Tenants)
	}
	if len(page.Dearest) != 2 || page.Dearest[0].Task != "old-and-dear" || page.Dearest[1].Task != "new" {
		t.Errorf("the dearest tasks are %+v", page.Dearest)
	}
	s = newShell(map[string]string{"SKEP_TOKEN": "a-token"}, "top", "--url", srv.URL)
	if code := Main(t.Context(), s.Env); code != exitOK || !strings.HasPrefix(s.stdout.String(), "a, b  events ") || !strings.Contains(s.stdout.String(), "\nwithout c: ") {
		t.Errorf("%d: %s", code, &s.stdout)
	}
	for _, host := range []string{"a", "b"} {
		store.set(host)
	}
	s = newShell(map[string]string{"SKEP_TOKEN": "a-token"}, "top", "--url", srv.URL)
	if code := Main(t.Context(), s.Env); code == exitOK || !strings.Contains(s.stderr.String(), "host a does not answer") {
		t.Errorf("without any host: %d %s", code, &s.stderr)
	}
}

// A host that hangs is named as silent, however long its feed is open, until an event or a ping of it comes.
func TestTopOfHangingHost(t *testing.T) {
	t.Parallel()
	store := &sharedStore{turns: map[string][]string{"a": {"acme"}}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if store.ServeHTTP(w, r); r.Header.Get("Last-Event-ID") == "a-1" {
			fmt.Fprint(w, "id: a-1\nevent: ping\ndata: {}\n\n")
		}
	}))
	t.Cleanup(srv.Close)
	c, err := client.New(client.Options{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	f := newTopFeeds(c, "")
	f.feed("a").isOpen, f.feed("a").failure = true, errTopSlow
	for range 2 {
		if err := f.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		if counted, silent := f.hosts(); len(counted) != 0 || len(silent) != 1 || silent[0].Reason != errTopSlow.Error() {
			t.Errorf("a host that hangs: %v without %v", counted, silent)
		}
	}
	go f.send(t.Context(), "a", "a-1")
	if e := <-f.events; e.Kind != client.PulsePing {
		t.Errorf("got %+v, want a ping", e)
	} else {
		f.note(e.host, e.PulseEvent)
	}
	if counted, silent := f.hosts(); len(counted) != 1 || len(silent) != 0 {
		t.Errorf("a host that answers: %v without %v", counted, silent)
	}
}

// A host that comes is counted from its first event, one that comes again from behind its last, and one
// that is gone is named.
func TestTopFollowsHosts(t *testing.T) {
	t.Parallel()
	store := &sharedStore{turns: map[string][]string{"a": {"acme"}, "b": nil}}
	srv := httptest.NewServer(store)
	t.Cleanup(srv.Close)
	c, err := client.New(client.Options{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	f, turns := newTopFeeds(c, ""), 0
	add := func(e client.PulseEvent) {
		if e.Kind == "turn" {
			turns++
		}
	}
	if err := f.readKept(t.Context(), add); err != nil {
		t.Fatal(err)
	}
	check := func(when string, wantTurns int, counted string, silent ...string) {
		t.Helper()
		hosts, rest := f.hosts()
		var names []string
		for _, s := range rest {
			names = append(names, s.Host)
		}
		if turns != wantTurns || strings.Join(hosts, " ") != counted || !slices.Equal(names, silent) {
			t.Errorf("%s: %d turns of %v without %v", when, turns, hosts, rest)
		}
	}
	// look has all hosts that are alive followed until their feeds end, each of which does by itself.
	look := func() {
		if err := f.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		for open := true; open; {
			select {
			case e := <-f.events:
				f.note(e.host, e.PulseEvent)
				add(e.PulseEvent)
			case end := <-f.ended:
				f.noteEnd(end)
			}
			open = slices.ContainsFunc(slices.Collect(maps.Values(f.known)), func(one *topFeed) bool { return one.isOpen })
		}
	}
	check("at first", 1, "a", "b")
	store.set("b", "depot", "depot")
	store.set("a", "acme", "acme")
	look()
	check("b has come", 4, "", "a", "b") // their feeds have ended
	store.set("b", "depot", "depot", "depot")
	look()
	check("one more", 5, "", "a", "b")
	store.mu.Lock()
	delete(store.turns, "b")
	store.mu.Unlock()
	look()
	if _, silent := f.hosts(); silent[1].Reason != errTopGone.Error() {
		t.Errorf("b is gone: %v", silent)
	}
	if !slices.Contains(store.asked, "a false a-1") || !slices.Contains(store.asked, "b true ") {
		t.Errorf("asked: %q", store.asked)
	}
}
