package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/spec/mail"
)

var errDial = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

var answered = map[string]string{"X-MAIL-Task-Id": "t", "X-MAIL-Finish-Subject": mail.SubjectTaskComplete}

func good() *http.Response { return response(200, answered, `{"response":"yes","events":null}`) }

// TestPostIsRepeated loses the connection in every way and wants the answer of
// the same post.
func TestPostIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		steps := []func() (*http.Response, error){
			func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
			func() (*http.Response, error) { return nil, syscall.ECONNRESET },
			func() (*http.Response, error) { return response(503, nil, `{"detail":"draining"}`), nil },
			func() (*http.Response, error) { return nil, errDial },
			func() (*http.Response, error) { return response(200, nil, ""), nil },
			func() (*http.Response, error) { return good(), nil },
		}
		// An answer that breaks off in its middle.
		steps[4] = func() (*http.Response, error) {
			rsp := response(200, answered, "")
			rsp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"resp`), broken{}))
			return rsp, nil
		}
		var sent []string
		var told []error
		c := wired(t, Options{OnRetry: func(err error, _ time.Duration) { told = append(told, err) }},
			func(r *http.Request) (*http.Response, error) {
				body, _ := io.ReadAll(r.Body)
				sent = append(sent, r.Header.Get("Idempotency-Key")+string(body))
				return steps[len(sent)-1]()
			})
		a, err := c.PostMessage(t.Context(), Post{Body: "hello"})
		if want := (Answer{"t", mail.SubjectTaskComplete, "yes"}); err != nil || a != want {
			t.Fatalf("answer %+v, %v; want %+v", a, err, want)
		}
		if len(sent) != len(steps) || len(told) != len(steps)-1 {
			t.Fatalf("%d calls, %d told; want %d", len(sent), len(told), len(steps))
		}
		for i, s := range sent {
			if s != sent[0] || !strings.HasPrefix(s[36:], `{`) {
				t.Errorf("call %d differs: %q, first %q", i, s, sent[0])
			}
		}
	})
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestNoHost wants an answer at once when nothing listens.
func TestNoHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, begun := 0, time.Now()
		c := wired(t, Options{}, func(*http.Request) (*http.Response, error) {
			calls++
			return nil, errDial
		})
		_, err := c.PostAsync(t.Context(), Post{Body: "x"})
		var gone *Unreachable
		if !errors.As(err, &gone) || gone.URL != "http://host.test" || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("err = %v, want Unreachable by a refused connection", err)
		}
		if calls != 1 || time.Since(begun) > 0 {
			t.Errorf("%d calls in %v, want 1 at once", calls, time.Since(begun))
		}
		if strings.Contains(err.Error(), "Post \"") {
			t.Errorf("the text %q repeats the URL", err)
		}
	})
}

// TestPatience wants repeats to end, with pauses that grow.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var pauses []time.Duration
		c := wired(t, Options{Patience: 20 * time.Second, OnRetry: func(_ error, d time.Duration) { pauses = append(pauses, d) }},
			func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET })
		_, err := c.Root(t.Context())
		var gone *Unreachable
		if !errors.As(err, &gone) {
			t.Errorf("err = %v, want Unreachable", err)
		}
		if took := time.Since(begun); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("gave up after %v, want up to 20s", took)
		}
		if len(pauses) < 7 || pauses[0] > 150*time.Millisecond || pauses[6] < 3*time.Second {
			t.Errorf("pauses %v do not grow from 0.1 s to 3 s", pauses)
		}
	})
}

func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, calls := time.Now(), 0
		c := wired(t, Options{}, func(*http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				return response(503, map[string]string{"Retry-After": "7"}, `{"detail":"later"}`), nil
			}
			return good(), nil
		})
		_, err := c.PostMessage(t.Context(), Post{Body: "x"})
		if took := time.Since(begun); err != nil || took < 7*time.Second || took > 7*time.Second+firstPause {
			t.Errorf("answered after %v: %v; want 7s and a bit, so that not all come at once", took, err)
		}
	})
}

// A caller that does not wait for a limit still repeats after a lost connection.
func TestNoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, calls := time.Now(), 0
		c := wired(t, Options{NoWait: true}, func(*http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				return nil, syscall.ECONNRESET
			}
			return response(429, map[string]string{"Retry-After": "5"}, `{"detail":"over quota"}`), nil
		})
		_, err := c.PostMessage(t.Context(), Post{Body: "x"})
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Status != 429 || calls != 2 || time.Since(begun) > time.Second {
			t.Errorf("%v after %d calls and %v", err, calls, time.Since(begun))
		}
	})
}

// TestUnavailable wants the host's own words when it never comes back.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := wired(t, Options{Patience: 5 * time.Second}, func(*http.Request) (*http.Response, error) {
			return response(503, nil, `{"detail":"another host has taken over"}`), nil
		})
		_, err := c.PostMessage(t.Context(), Post{Body: "x"})
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Status != 503 || refusal.Detail != "another host has taken over" {
			t.Errorf("err = %v, want the refusal", err)
		}
	})
}

func TestNoRepeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := wired(t, Options{Patience: -1}, func(*http.Request) (*http.Response, error) {
			calls++
			return nil, syscall.ECONNRESET
		})
		if _, err := c.Root(t.Context()); err == nil || calls != 1 {
			t.Errorf("%d calls, err %v; want 1 and an error", calls, err)
		}
	})
}

// TestWaitingGoesOn wants a post to be waited for when the host lets go of it.
func TestWaitingGoesOn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		rsp  func() *http.Response
	}{
		{"not held any longer", func() *http.Response { return response(202, nil, `{"task_id":"t","status":"accepted"}`) }},
		{"going down", func() *http.Response {
			return response(200, map[string]string{"X-MAIL-Finish-Subject": mail.SubjectShutdownRequested}, `{"response":"bye"}`)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				c := wired(t, Options{}, func(*http.Request) (*http.Response, error) {
					if calls++; calls < 30 {
						// Every hold is long, so patience is not at an end.
						time.Sleep(10 * time.Second)
						return tc.rsp(), nil
					}
					return good(), nil
				})
				if a, err := c.PostMessage(t.Context(), Post{Body: "x"}); err != nil || a.Body != "yes" {
					t.Errorf("answer %+v, %v", a, err)
				}
			})
		})
	}
}

// TestContextEnds wants the cause of the caller's context, also in a pause.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	stop := errors.New("the caller has left")
	for _, at := range []time.Duration{50 * time.Millisecond, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(at, func() { cancel(stop) })
			c := wired(t, Options{}, func(r *http.Request) (*http.Response, error) {
				select {
				case <-r.Context().Done():
					return nil, r.Context().Err()
				case <-time.After(time.Second):
					return nil, syscall.ECONNRESET
				}
			})
			if _, err := c.Root(ctx); !errors.Is(err, stop) {
				t.Errorf("after %v: err = %v, want the cause", at, err)
			}
		})
	}
}

func TestPostOnTheWire(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		post Post
		want map[string]any
	}{
		{"least", Post{Body: "b"}, map[string]any{"body": "b"}},
		{"all", Post{
			Body: "b", Subject: "s", Type: mail.Interrupt, Entrypoint: "chief", Task: "t",
			Timeout: 1500 * time.Millisecond, MaxSteps: 7, Key: "k",
		}, map[string]any{
			"body": "b", "subject": "s", "msg_type": "interrupt", "entrypoint": "chief", "task_id": "t",
			"kwargs": map[string]any{"timeout": 1.5, "max_steps": 7.0},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				if key := r.Header.Get("Idempotency-Key"); key == "" || tc.post.Key != "" && key != tc.post.Key {
					t.Errorf("key %q, want %q", key, tc.post.Key)
				}
				if diff := cmp.Diff(tc.want, decodeBody(t, r)); diff != "" {
					t.Errorf("body (-want +got):\n%s", diff)
				}
				if r.Header.Get("Prefer") != "respond-async" {
					t.Error("the post does not prefer to be answered at once")
				}
				w.Header().Set("Location", "/skep/v1/tasks/t/events?after=41")
				reply(w, 202, `{"task_id":"t","status":"accepted"}`)
			})
			got, err := c.PostAsync(t.Context(), tc.post)
			if want := (Receipt{Task: "t", Cursor: 41}); err != nil || got != want {
				t.Errorf("receipt %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestPostAnswers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `[]`, `{"response":null}`, `{"response":5}`, ``} {
		c := fakeHost(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, body) })
		if a, err := c.PostMessage(t.Context(), Post{Body: "x"}); !errors.Is(err, ErrNotMAIL) {
			t.Errorf("%q: answer %+v, err %v; want ErrNotMAIL", body, a, err)
		}
		if r, err := c.PostAsync(t.Context(), Post{Body: "x"}); !errors.Is(err, ErrNotMAIL) {
			t.Errorf("%q: receipt %+v, err %v; want ErrNotMAIL", body, r, err)
		}
	}
}

func TestCursorIn(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]int64{
		"": 0, "/x": 0, "/x?after=7": 7, "/x?after=-7": 0, "/x?after=x": 0, "::": 0, "/x?after=99999999999999999999": 0,
	} {
		if got := cursorIn(location); got != want {
			t.Errorf("cursorIn(%q) = %d, want %d", location, got, want)
		}
	}
}
