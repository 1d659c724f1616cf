package a2a_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/a2a"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/state"
)

// receiver is a push address. It fails as often as the test says.
type receiver struct {
	mu     sync.Mutex
	fails  int
	tried  int
	got    []string
	header http.Header
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if req.URL.Host == "hangs.example" {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried++
	if r.fails > 0 {
		if r.fails--; r.fails%2 == 0 {
			return nil, errors.New("no route to host")
		}
		return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
	}
	r.header = req.Header
	r.got = append(r.got, pushed(body))
	return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
}

// pushed shows the state and the answer of a pushed task, of either version.
func pushed(body []byte) string {
	var p struct {
		Task   json.RawMessage
		Status struct{ State string }
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return err.Error()
	}
	if p.Task != nil {
		return pushed(p.Task)
	}
	if strings.Contains(string(body), "hello Ann") {
		p.Status.State += " hello Ann"
	}
	return p.Status.State
}

func (r *receiver) read() (got []string, tried int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.got...), r.tried
}

// pushSite is a gateway without sockets, for tests in fake time.
type pushSite struct {
	rt       *gatewaytest.Runtime
	records  *fullStore
	receiver *receiver
	handler  http.Handler
	stop     func()
	// fails is what the next start gets instead of the tenants.
	fails error
}

func newPushSite() *pushSite {
	s := &pushSite{rt: gatewaytest.New(), receiver: &receiver{}}
	s.records = &fullStore{Store: s.rt.State()}
	s.rt.Admit(token, gatewaytest.User("acme", "ann"))
	s.rt.Admit("bob", gatewaytest.User("acme", "bob"))
	s.rt.Admit("carl", gatewaytest.User("other", "carl"))
	for _, tenant := range []string{"acme", "other"} {
		s.rt.Expose(tenant, gateway.ExposedAgent{Swarm: "hive", Name: "asks", Entrypoint: true}, asks)
	}
	s.run()
	return s
}

// run starts the gateway, as a host does that starts on its store.
func (s *pushSite) run() {
	g := a2a.New(a2a.Options{
		Runtime: fullRuntime{s.rt, s.records}, V03: true, Push: true, PushClient: &http.Client{Transport: s.receiver},
		CheckPush: func(address string) error {
			if strings.Contains(address, "unreachable") {
				return errors.New("it is not public")
			}
			return nil
		},
		Tenants: func(context.Context) ([]string, error) {
			err := s.fails
			s.fails = nil
			return []string{"acme", "other"}, err
		},
	})
	s.handler = gatewaytest.Listener(s.rt, g.Mounts())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	s.stop = func() { cancel(); <-done }
}

func (s *pushSite) close() {
	s.stop()
	s.rt.Close()
}

// call sends a JSON-RPC request and returns the result.
func (s *pushSite) call(t *testing.T, version, method, params string) map[string]any {
	t.Helper()
	return s.callAs(t, token, version, method, params)
}

func (s *pushSite) callAs(t *testing.T, token, version, method, params string) map[string]any {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a2a/hive/asks", strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)))
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("A2A-Version", version)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, req)
	var resp map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &resp); err != nil {
		t.Fatalf("%s: %d %s", method, w.Code, w.Body)
	}
	return resp
}

// ask sends a message with a push address.
func (s *pushSite) ask(t *testing.T, id, config string) {
	t.Helper()
	s.askAs(t, token, id, config)
}

func (s *pushSite) askAs(t *testing.T, token, id, config string) {
	t.Helper()
	resp := s.callAs(t, token, "1.0", "SendMessage", `{"message":{"messageId":"`+id+`","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{"taskPushNotificationConfig":`+config+`}}`)
	if resp["error"] != nil {
		t.Fatalf("%v", resp)
	}
}

func (s *pushSite) reply(t *testing.T, task string) {
	t.Helper()
	resp := s.call(t, "1.0", "SendMessage", `{"message":{"messageId":"r-`+task+`","taskId":"`+task+`","role":"ROLE_USER","parts":[{"text":"Ann"}]}}`)
	if resp["error"] != nil {
		t.Fatalf("%v", resp)
	}
}

// replyAs answers in another way than over A2A.
func (s *pushSite) replyAs(t *testing.T, c gateway.Caller, task string) {
	t.Helper()
	x, err := s.rt.Find(t.Context(), c, task)
	if err == nil {
		_, err = s.rt.Ask(t.Context(), c, gateway.Ask{
			Kind: gateway.Answers, ID: "r-" + task, Swarm: "hive", Conversation: x.Conversation, Answers: "q-" + task, Body: "Ann",
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (s *pushSite) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got, _ := s.receiver.read(); !equal(got, want) {
		t.Errorf("pushed %q, want %q", got, want)
	}
}

// TestPush: each state of a task is pushed once, with token and credentials, and an
// address that fails is tried again.
func TestPush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPushSite()
		defer s.close()
		s.receiver.fails = 3
		s.ask(t, "m1", `{"url":"https://push.example/x","token":"tok","authentication":{"scheme":"Bearer","credentials":"cred"}}`)
		s.want(t)
		time.Sleep(time.Minute)
		s.want(t, "TASK_STATE_INPUT_REQUIRED")
		if h := s.receiver.header; h.Get("A2A-Notification-Token") != "tok" || h.Get("Authorization") != "Bearer cred" {
			t.Errorf("the push has the header %v", h)
		}
		s.reply(t, "m1")
		s.want(t, "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED hello Ann")
		time.Sleep(time.Hour)
		if _, tried := s.receiver.read(); tried != 5 {
			t.Errorf("%d attempts, want 3 that fail and 2", tried)
		}
	})
}

// TestPushAfterRestart: a host that starts again goes on, and tells nothing twice that it
// has stored as told.
func TestPushAfterRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPushSite()
		s.ask(t, "m1", `{"url":"https://push.example/x"}`)
		s.want(t, "TASK_STATE_INPUT_REQUIRED")
		s.stop()
		s.reply(t, "m1")
		s.want(t, "TASK_STATE_INPUT_REQUIRED")
		s.rt.FailNext("Look", errors.New("the store fails for a moment"))
		s.run()
		time.Sleep(time.Minute)
		s.want(t, "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED hello Ann")
		s.stop()
		s.run()
		time.Sleep(time.Minute)
		s.want(t, "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED hello Ann")
		s.close()
	})
}

// A state that was pushed is not pushed again because the store cannot write that, as when the
// tenant's storage is used up.
func TestPushIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPushSite()
		defer s.close()
		s.records.full.Store(true)
		s.ask(t, "m1", `{"url":"https://push.example/x"}`)
		time.Sleep(time.Hour)
		s.want(t, "TASK_STATE_INPUT_REQUIRED")
		s.reply(t, "m1")
		time.Sleep(time.Hour)
		s.want(t, "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED hello Ann")
		s.records.full.Store(false)
		time.Sleep(time.Hour)
		s.want(t, "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED hello Ann")
		s.stop()
		s.run() // it is stored by now
		time.Sleep(time.Minute)
		s.want(t, "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED hello Ann")
	})
}

// fullStore is a store of records that refuses to change one.
type fullStore struct {
	state.Store
	full atomic.Bool
}

func (s *fullStore) Put(ctx context.Context, r state.Record) (int64, error) {
	if r.Version != 0 && s.full.Load() {
		return 0, state.ErrFull
	}
	return s.Store.Put(ctx, r)
}

// fullRuntime is a runtime with such a store.
type fullRuntime struct {
	*gatewaytest.Runtime
	records *fullStore
}

func (rt fullRuntime) State() state.Store { return rt.records }

// crowded is a runtime whose records have no place for another.
type crowded struct{ *gatewaytest.Runtime }

func (o crowded) State() state.Store { return crowdedStore{o.Runtime.State()} }

type crowdedStore struct{ state.Store }

func (crowdedStore) Put(context.Context, state.Record) (int64, error) { return 0, state.ErrFull }

// TestPushWithoutPlace: a message whose push address cannot be kept was taken: so it is in
// the log, though the caller gets an error, and a repeat is the same task.
func TestPushWithoutPlace(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *a2a.Options) {
		o.Runtime, o.Push, o.PushClient = crowded{o.Runtime.(*gatewaytest.Runtime)}, true, &http.Client{}
	})
	body := `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":` + hello + `,"configuration":{"taskPushNotificationConfig":{"url":"https://push.example/x"}}}}`
	for range 2 {
		if _, text := s.post(t, "/a2a/hive/echo", token, body); !strings.Contains(text, "no place for the push configuration") {
			t.Errorf("answer %s", text)
		}
	}
	got := s.rt.Events()
	if len(got) != 2 || got[0].Verdict != "accepted" || got[1].Verdict != "duplicate" || got[0].Task == "" || got[0].Task != got[1].Task {
		t.Errorf("recorded %+v", got)
	}
}

// TestPushEnds: an address that never answers is given up after keep, a removed one is
// told nothing more.
func TestPushEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPushSite()
		defer s.close()
		s.receiver.fails = 1 << 30
		s.ask(t, "m1", `{"id":"one","url":"https://push.example/x"}`)
		time.Sleep(25 * time.Hour)
		_, tried := s.receiver.read()
		time.Sleep(time.Hour)
		if _, later := s.receiver.read(); later != tried || tried < 100 {
			t.Errorf("%d attempts in a day, then %d more", tried, later-tried)
		}
		s.receiver.mu.Lock()
		s.receiver.fails = 0
		s.receiver.mu.Unlock()
		s.ask(t, "m2", `{"id":"one","url":"https://push.example/x"}`)
		s.want(t, "TASK_STATE_INPUT_REQUIRED")
		s.call(t, "1.0", "DeleteTaskPushNotificationConfig", `{"taskId":"m2","id":"one"}`)
		s.reply(t, "m2")
		s.want(t, "TASK_STATE_INPUT_REQUIRED")
	})
}

// TestPushesAreFair: one user's addresses that never answer hold a part of the attempts;
// users of the same tenant and of others are told at once.
func TestPushesAreFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPushSite()
		defer s.close()
		for i := range 40 {
			s.ask(t, fmt.Sprintf("h%d", i), `{"url":"https://hangs.example/x"}`)
		}
		s.want(t)
		s.askAs(t, "bob", "m1", `{"url":"https://push.example/x"}`)
		s.askAs(t, "carl", "m2", `{"url":"https://push.example/x"}`)
		s.want(t, "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_INPUT_REQUIRED")
	})
}

// TestPushesEndWithTheCaller: who may not read a task any more is told nothing more of it:
// the token that gave the address is revoked, or the agent is not exposed now.
func TestPushesEndWithTheCaller(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*gatewaytest.Runtime){
		"revoked": func(rt *gatewaytest.Runtime) { rt.Revoke("bob") },
		"hidden":  func(rt *gatewaytest.Runtime) { rt.Hide("acme", "hive", "asks") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newPushSite()
				defer s.close()
				s.askAs(t, "bob", "m1", `{"url":"https://push.example/x"}`)
				s.want(t, "TASK_STATE_INPUT_REQUIRED")
				end(s.rt)
				s.replyAs(t, gatewaytest.User("acme", "bob"), "m1")
				time.Sleep(time.Hour)
				s.want(t, "TASK_STATE_INPUT_REQUIRED")
			})
		})
	}
}

// TestPushesOfUnlistedCredentials: what a JSON Web Token has asked to be told ends with the
// token, and with the host, which cannot check the token after a restart.
func TestPushesOfUnlistedCredentials(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*pushSite, *atomic.Bool){
		"expired":   func(_ *pushSite, valid *atomic.Bool) { valid.Store(false) },
		"restarted": func(s *pushSite, _ *atomic.Bool) { s.stop(); s.run() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newPushSite()
				defer s.close()
				valid := new(atomic.Bool)
				valid.Store(true)
				dora := gatewaytest.User("acme", "dora")
				dora.Recheck = func(context.Context) bool { return valid.Load() }
				s.rt.AdmitUnlisted("dora", dora)
				for _, id := range []string{"m1", "m2"} {
					s.askAs(t, "dora", id, `{"url":"https://push.example/x"}`)
				}
				s.want(t, "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_INPUT_REQUIRED")
				s.replyAs(t, dora, "m1")
				s.want(t, "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED hello Ann")
				end(s, valid)
				s.replyAs(t, dora, "m2")
				time.Sleep(time.Hour)
				s.want(t, "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED hello Ann")
				last := s.rt.Events()[len(s.rt.Events())-1]
				if last.Type != "push" || last.Verdict != "refused" || last.Foreign != "m2" || !strings.Contains(last.Reason, "credential") {
					t.Errorf("the last event is %+v", last)
				}
			})
		})
	}
}

// TestPushesResume: a store that fails when the host starts is asked again.
func TestPushesResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPushSite()
		s.ask(t, "m1", `{"url":"https://push.example/x"}`)
		s.want(t, "TASK_STATE_INPUT_REQUIRED")
		s.stop()
		s.reply(t, "m1")
		s.fails = errors.New("the store fails for a moment")
		s.run()
		time.Sleep(time.Minute)
		s.want(t, "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED hello Ann")
		s.close()
	})
}

// TestPushConfigs: addresses are set, read, listed and removed in both versions, and a
// push has the form of the version in which its address came.
func TestPushConfigs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPushSite()
		defer s.close()
		s.call(t, "1.0", "SendMessage", `{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]}}`)
		made := s.call(t, "0.3", "tasks/pushNotificationConfig/set", `{"taskId":"m1","pushNotificationConfig":{"id":"old","url":"https://push.example/x"}}`)
		if made["error"] != nil {
			t.Fatalf("%v", made)
		}
		s.want(t, "input-required")
		for i := range 9 {
			resp := s.call(t, "1.0", "CreateTaskPushNotificationConfig", fmt.Sprintf(`{"taskId":"m1","id":"n%d","url":"https://push.example/x"}`, i))
			if refused := resp["error"] != nil; refused != (i > 6) {
				t.Errorf("address %d: %v", i, resp)
			}
		}
		list := fmt.Sprint(s.call(t, "1.0", "ListTaskPushNotificationConfigs", `{"taskId":"m1"}`))
		if strings.Count(list, "https://push.example/x") != 8 || !strings.Contains(list, "id:old") {
			t.Errorf("listed: %s", list)
		}
		if one := fmt.Sprint(s.call(t, "1.0", "GetTaskPushNotificationConfig", `{"taskId":"m1","id":"n3"}`)); !strings.Contains(one, "id:n3") {
			t.Errorf("read: %s", one)
		}
		if none := fmt.Sprint(s.call(t, "1.0", "GetTaskPushNotificationConfig", `{"taskId":"m1","id":"n9"}`)); !strings.Contains(none, "-32001") {
			t.Errorf("one that is not there: %s", none)
		}
		for _, bad := range []string{`"ftp://x"`, `"https://unreachable/x"`, `"https://a:b@x"`, `"/x"`, `"https://x/` + strings.Repeat("y", 2048) + `"`} {
			if resp := fmt.Sprint(s.call(t, "1.0", "CreateTaskPushNotificationConfig", `{"taskId":"m1","url":`+bad+`}`)); !strings.Contains(resp, "-32602") {
				t.Errorf("address %.20s: %s", bad, resp)
			}
		}
	})
}

// TestPushIsOff: a host that pushes nothing says so.
func TestPushIsOff(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ListTaskPushNotificationConfigs","params":{"taskId":"m1"}}`,
		strings.Replace(sendBody(hello), `{"message"`, `{"configuration":{"taskPushNotificationConfig":{"url":"https://x"}},"message"`, 1),
	} {
		if _, text := s.post(t, "/a2a/hive/echo", token, body); !strings.Contains(text, "-32003") {
			t.Errorf("%s: %s", body, text)
		}
	}
}
