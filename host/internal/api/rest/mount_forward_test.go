package rest_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/rest"
	"skep/host/internal/swarm"
)

// twoHosts are hosts that share a store, with one mount. One of them works on all tasks.
type twoHosts struct {
	servers [2]*httptest.Server

	mu      sync.Mutex
	owner   int
	changed chan struct{}
	// stops is set for a second host that stops: the first one has its tasks when it has refused some.
	stops   bool
	refused atomic.Int64
	// calls are the hosts whose handlers were called, with the keys of their requests.
	calls []string
	// charged counts the calls whose limits were charged before.
	charged int
}

// seenBy is what a host knows of both.
type seenBy struct {
	*twoHosts
	host int
}

func (s seenBy) Owner(swarm.TaskKey) (url string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner == s.host {
		return "", true
	}
	return s.servers[s.owner].URL, true
}

func (s seenBy) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// move gives all tasks to a host.
func (s *twoHosts) move(to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = to
	close(s.changed)
	s.changed = make(chan struct{})
}

// refuseToStop reports whether the second host stops.
func (s *twoHosts) refuseToStop() bool {
	if s.stops && s.refused.Add(1) == 2 {
		s.move(0)
	}
	return s.stops
}

// refuse notes that a host does not work on the task, if so.
func (s *twoHosts) refuse(r *http.Request, host int) bool {
	f := swarm.ForwardingOf(r.Context())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprint(host, " ", f.Key))
	if f.Charged {
		s.charged++
	}
	if s.owner != host {
		f.Note(fmt.Errorf("so: %w", &swarm.Elsewhere{Task: swarm.TaskKey{Task: "t"}}))
	}
	return s.owner != host
}

// newTwoHosts starts the hosts. The second, which works on the tasks, lets each caller send one
// request of his own.
func newTwoHosts(t *testing.T, proof rest.Proof, serve func(s *twoHosts, host int, w http.ResponseWriter, r *http.Request)) *twoHosts {
	t.Helper()
	s := &twoHosts{owner: 1, changed: make(chan struct{})}
	for host := range s.servers {
		opt := rest.Options{OtherHosts: rest.NewOtherHosts(seenBy{s, host}, []byte("a key of hosts"), time.Minute)}
		if host == 1 {
			opt.Rate = auth.Rate{Requests: 1, Per: time.Hour}
			opt.Draining = s.refuseToStop
		}
		handler := &mountedHandler{serve: func(w http.ResponseWriter, r *http.Request) { serve(s, host, w, r) }}
		s.servers[host] = httptest.NewServer(mounted(t, opt, rest.Mount{Proof: proof, Streams: true, Handler: handler}))
		t.Cleanup(s.servers[host].Close)
	}
	return s
}

// ask sends a request to a host.
func (s *twoHosts) ask(t *testing.T, host int, q request) (*http.Response, string, error) {
	t.Helper()
	r, err := buildRequest(t.Context(), s.servers[host].URL, q)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer, string(body), err
}

// asked are the hosts whose handlers were called, if all had one key.
func (s *twoHosts) asked() (hosts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[string]bool{}
	for _, one := range s.calls {
		host, key, _ := strings.Cut(one, " ")
		hosts, keys[key] = hosts+host, true
	}
	if len(keys) != 1 || keys[""] {
		return fmt.Sprint(hosts, " with the keys ", keys)
	}
	return hosts
}

// answerHost answers a request at the host that works on the task, and refuses it at the other.
func answerHost(s *twoHosts, host int, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	refused := s.refuse(r, host)
	w.Header().Set(fmt.Sprint("From-", host), "1")
	if refused {
		http.Error(w, "come again", http.StatusServiceUnavailable)
		return
	}
	who, _ := auth.PrincipalOf(r.Context())
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, who, " ", len(body), " ", err)
}

// TestMountElsewhere: another host answers a request of a mount for a task that it works on, with
// the whole body, one key and the caller, and counts it in no limit of the caller. What the first
// host has answered is not sent.
func TestMountElsewhere(t *testing.T) {
	t.Parallel()
	s := newTwoHosts(t, rest.BearerProof, answerHost)
	for range 3 {
		s.calls = nil
		answer, body, err := s.ask(t, 0, request{method: http.MethodPost, path: "/toy/a", token: aliceToken, body: strings.Repeat("x", 1<<20)})
		if err != nil || answer.StatusCode != http.StatusCreated || !strings.HasSuffix(body, "alice 1048576 <nil>") {
			t.Errorf("%d %s, %v", answer.StatusCode, body, err)
		}
		if answer.Header.Get("From-1") == "" || answer.Header.Get("From-0") != "" || s.asked() != "01" {
			t.Errorf("hosts %s, headers %v", s.asked(), answer.Header)
		}
	}
}

// TestMountComesBack: a request that was sent on is handled here, with its body and key, when the
// task comes here meanwhile, or when the other host stops.
func TestMountComesBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serve func(s *twoHosts, host int, w http.ResponseWriter, r *http.Request)
		stops bool
		want  string
	}{
		"the other host has begun to stop": {answerHost, true, "00"},
		"moved while it was on its way": {func(s *twoHosts, host int, w http.ResponseWriter, r *http.Request) {
			if host == 1 {
				s.move(0)
			}
			answerHost(s, host, w, r)
		}, false, "010"},
		"the other host stops": {func(s *twoHosts, host int, w http.ResponseWriter, r *http.Request) {
			if host == 1 {
				s.refuse(r, host)
				swarm.ForwardingOf(r.Context()).Note(fmt.Errorf("so: %w", swarm.ErrDraining))
				http.Error(w, "stopping", http.StatusServiceUnavailable)
				s.move(0)
				return
			}
			answerHost(s, host, w, r)
		}, false, "010"},
	} {
		s := newTwoHosts(t, rest.BearerProof, c.serve)
		s.stops = c.stops
		answer, body, err := s.ask(t, 0, request{method: http.MethodPost, path: "/toy/a", token: aliceToken, body: "hello"})
		if err != nil || answer.StatusCode != http.StatusCreated || !strings.HasSuffix(body, "alice 5 <nil>") || s.asked() != c.want {
			t.Errorf("%s: %d %s, %v; hosts %s", name, answer.StatusCode, body, err, s.asked())
		}
		if s.charged != len(c.want)-1 { // the first attempt charges
			t.Errorf("%s: %d of %s were charged before", name, s.charged, c.want)
		}
	}
}

// TestMountStreamElsewhere: a stream comes through piece by piece. One that has begun is cut off
// when its task moves, and not begun again.
func TestMountStreamElsewhere(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	s := newTwoHosts(t, rest.BearerProof, func(s *twoHosts, host int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK) // before the first event, as some libraries do
		if s.refuse(r, host) {
			fmt.Fprint(w, "data: come again\n\n")
			return
		}
		fmt.Fprint(w, "data: one\n\n")
		_ = http.NewResponseController(w).Flush()
		<-next
		s.move(1 - host)
		s.refuse(r, host)
		fmt.Fprint(w, "data: it failed\n\n")
	})
	for host := range s.servers {
		s.calls, s.owner = nil, 1
		r, err := buildRequest(t.Context(), s.servers[host].URL, request{path: "/toy/a", token: aliceToken})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, len("data: one\n\n"))
		if _, err := io.ReadFull(answer.Body, first); err != nil || string(first) != "data: one\n\n" {
			t.Errorf("host %d: %q, %v", host, first, err)
		}
		next <- struct{}{}
		if rest, err := io.ReadAll(answer.Body); err == nil || len(rest) > 0 {
			t.Errorf("host %d: then %q, %v, want a stream that breaks off", host, rest, err)
		}
		_ = answer.Body.Close()
		if hosts := s.asked(); hosts != []string{"011", "11"}[host] {
			t.Errorf("host %d: hosts %s", host, hosts)
		}
	}
}

// TestCallerOfAnotherHost: a caller without a token is the one whom the other host has named, with
// the proof of that host alone.
func TestCallerOfAnotherHost(t *testing.T) {
	t.Parallel()
	s := newTwoHosts(t, rest.BearerProof, answerHost)
	others := rest.NewOtherHosts(seenBy{s, 0}, []byte("a key of hosts"), time.Minute)
	named := request{path: "/toy/a", token: "-", header: http.Header{"Skep-Hop-Caller": {`%7B%22Tenant%22:%22acme%22,%22Role%22:%22agent%22,%22ID%22:%22mill%22%7D`}}}
	if answer, body, _ := s.ask(t, 1, named); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a proof: %d %s", answer.StatusCode, body)
	}
	proven := named
	proven.header = named.header.Clone()
	proven.header.Set("Skep-Hop-Body", fmt.Sprintf("%x", sha256.Sum256(nil)))
	r, err := buildRequest(t.Context(), s.servers[1].URL, proven)
	if err != nil {
		t.Fatal(err)
	}
	proven.header.Set("Skep-Hop", others.Proof(r, time.Now()))
	if answer, body, _ := s.ask(t, 1, proven); answer.StatusCode != http.StatusCreated || !strings.Contains(body, "mill 0") {
		t.Errorf("with a proof: %d %s", answer.StatusCode, body)
	}
	for name, change := range map[string]func(q *request){
		"another caller": func(q *request) {
			q.header.Set("Skep-Hop-Caller", strings.Replace(q.header.Get("Skep-Hop-Caller"), "mill", "shop", 1))
		},
		"another key":  func(q *request) { q.header.Set("Skep-Hop-Key", "other") },
		"another body": func(q *request) { q.body = "other" },
		"another body, with its hash": func(q *request) {
			q.body = "other"
			q.header.Set("Skep-Hop-Body", fmt.Sprintf("%x", sha256.Sum256([]byte("other"))))
		},
	} {
		other := proven
		other.header = proven.header.Clone()
		change(&other)
		if answer, body, _ := s.ask(t, 1, other); answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusTooManyRequests { // the limit is for callers who are unknown
			t.Errorf("with the proof for %s: %d %s", name, answer.StatusCode, body)
		}
	}
}

// TestCallerLeavesAnotherHost: a host that has a request from another one learns that its caller has
// left. That the other host has gone is not that.
func TestCallerLeavesAnotherHost(t *testing.T) {
	t.Parallel()
	begun, causes := make(chan struct{}), make(chan error)
	s := newTwoHosts(t, rest.BearerProof, func(s *twoHosts, host int, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if !s.refuse(r, host) {
			begun <- struct{}{}
			<-r.Context().Done()
			causes <- context.Cause(r.Context())
		}
	})
	others := rest.NewOtherHosts(seenBy{s, 0}, []byte("a key of hosts"), time.Minute)
	for host, want := range []error{swarm.ErrCallerLeft, context.Canceled} {
		r, err := buildRequest(t.Context(), s.servers[host].URL, request{method: http.MethodPost, path: "/toy/a", token: aliceToken, body: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if host == 1 { // as the first host sends it
			r.Header.Set("Skep-Hop-Key", "k")
			r.Header.Set("Skep-Hop", others.Proof(r, time.Now()))
		}
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if answer, err := http.DefaultClient.Do(r.WithContext(ctx)); err == nil {
				_ = answer.Body.Close()
			}
		}()
		<-begun
		leave()
		if got := <-causes; got != want {
			t.Errorf("by host %d: the request ends with %v, want %v", host, got, want)
		}
		<-ended
	}
}
