package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"skep/spec/mail"
)

// changes are the calls that change something.
var changes = []struct {
	name string
	safe bool
	// response is that member of the answer, if not a text.
	response string
	do       func(*Client, *testing.T) error
}{
	{"post", true, "", func(c *Client, t *testing.T) error { _, err := c.PostMessage(t.Context(), Post{Body: "x"}); return err }},
	{"post async", true, "", func(c *Client, t *testing.T) error { _, err := c.PostAsync(t.Context(), Post{Body: "x"}); return err }},
	{"cancel", true, "", func(c *Client, t *testing.T) error { return c.Cancel(t.Context(), "t") }},
	{"release", true, "", func(c *Client, t *testing.T) error { return c.ReleaseAgent(t.Context(), "", "a") }},
	{"revoke", true, "", func(c *Client, t *testing.T) error { _, err := c.RevokeToken(t.Context(), "i"); return err }},
	{"create token", false, "", func(c *Client, t *testing.T) error {
		_, err := c.CreateToken(t.Context(), TokenWish{Role: "user", ID: "x"})
		return err
	}},
	{"erase tenant", false, "", func(c *Client, t *testing.T) error { return c.EraseTenant(t.Context(), "x") }},
	{"set health", false, "", func(c *Client, t *testing.T) error { _, err := c.SetHealth(t.Context(), "x"); return err }},
	{"register swarm", false, "", func(c *Client, t *testing.T) error {
		_, err := c.RegisterSwarm(t.Context(), Registration{Name: "x", BaseURL: "http://x"})
		return err
	}},
	{"remove swarm", false, "", func(c *Client, t *testing.T) error { return c.RemoveSwarm(t.Context(), "x") }},
	{"load swarm", false, "", func(c *Client, t *testing.T) error { _, err := c.LoadSwarm(t.Context(), "{}"); return err }},
	{"interswarm", false, encoded(wrapper()), func(c *Client, t *testing.T) error {
		_, err := c.PostInterswarm(t.Context(), Outbound{Targets: []string{"a"}, Body: "x"})
		return err
	}},
	{"forward", false, "", func(c *Client, t *testing.T) error { _, err := c.Forward(t.Context(), wrapper()); return err }},
	{"back", false, "", func(c *Client, t *testing.T) error { _, err := c.Back(t.Context(), wrapper()); return err }},
}

// encoded is the message in a wrapper, as it is answered.
func encoded(w mail.Interswarm) string {
	raw, err := json.Marshal(mail.Message{ID: w.MessageID, Timestamp: w.Timestamp, Type: w.Type, Payload: w.Payload})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func wrapper() mail.Interswarm {
	const id = "1c9d8d2f-6f0e-4a39-9f5e-0d2c6a1c7b11"
	return mail.Interswarm{
		MessageID: id, SourceSwarm: "depot", TargetSwarm: "hive", Timestamp: "2026-03-01T09:31:00.000000+00:00", Type: mail.Request,
		Payload: mail.Payload{
			TaskID: "t", ID: id, Sender: mail.Address{Type: mail.Agent, Name: "clerk"},
			Recipients: []mail.Address{{Type: mail.Agent, Name: "boss"}}, Subject: "s", Body: "b",
		},
		TaskOwner: "user:alice@depot", TaskContributors: []string{"user:alice@depot"},
	}
}

// TestOnlySafeCallsAreRepeated: what is lost on the way may have been done, what
// was refused for its number or never sent was not.
func TestOnlySafeCallsAreRepeated(t *testing.T) {
	t.Parallel()
	lost := func() (*http.Response, error) { return nil, syscall.ECONNRESET }
	undialled := func() (*http.Response, error) { return nil, errDial }
	refuse := func(status int) func() (*http.Response, error) {
		return func() (*http.Response, error) { return response(status, nil, `{"detail":"later"}`), nil }
	}
	for _, tc := range changes {
		for _, f := range []struct {
			name  string
			first func() (*http.Response, error)
			again bool
		}{
			{"lost", lost, tc.safe},
			{"not dialled", undialled, true},
			{"429", refuse(429), true},
			{"502", refuse(502), tc.safe},
			{"503", refuse(503), tc.safe},
			{"504", refuse(504), tc.safe},
			{"409", refuse(409), false},
			{"500", refuse(500), false},
		} {
			t.Run(tc.name+", "+f.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					calls := 0
					c := wired(t, Options{}, func(*http.Request) (*http.Response, error) {
						if calls++; calls == 1 {
							return f.first()
						}
						return response(200, answered, fmt.Sprintf(`{"response":%s,"task_id":"t"}`, cmp.Or(tc.response, `"yes"`))), nil
					})
					c.reached.Store(true)
					err := tc.do(c, t)
					if want := map[bool]int{false: 1, true: 2}[f.again]; calls != want || (err == nil) != f.again {
						t.Errorf("%d calls, %v; want %d", calls, err, want)
					}
				})
			})
		}
	}
}

// TestTooLongToWait gives up at once when the host asks for more time than there
// is patience.
func TestTooLongToWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, calls := time.Now(), 0
		c := wired(t, Options{}, func(*http.Request) (*http.Response, error) {
			calls++
			return response(429, map[string]string{"Retry-After": "3600", "X-Request-Id": "r-7"}, `{"detail":"too many"}`), nil
		})
		_, err := c.WhoAmI(t.Context())
		var refusal *Error
		if !errors.As(err, &refusal) || *refusal != (Error{429, "too many", "r-7"}) || calls != 1 || time.Since(begun) != 0 {
			t.Errorf("%d calls in %v: %v; want the refusal at once", calls, time.Since(begun), err)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "99999999999999999999": 0,
		"Sun, 01 Mar 2026 09:30:20 GMT": 20 * time.Second, "Sun, 01 Mar 2026 09:29:00 GMT": 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", text, got, want)
		}
	}
}
