package egress_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/turn/egress"
)

// carry sends one request of the host through a transport.
func carry(t *testing.T, rt http.RoundTripper, url string) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer own")
	return rt.RoundTrip(req)
}

func TestTransport(t *testing.T) {
	for name, keep := range map[string]egress.KeepAlive{"alone": {}, "kept": {MaxIdlePerHost: 1}} {
		t.Run(name, func(t *testing.T) {
			w := newFakeNet(t)
			w.resolve("api.example.com", "93.184.216.34")
			next := make(chan struct{})
			w.serveTLS("93.184.216.34:443", func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				_, _ = rw.Write([]byte(r.Header.Get("Authorization") + " " + string(body)))
				_ = http.NewResponseController(rw).Flush()
				<-next
				_, _ = rw.Write([]byte(", and more"))
			})
			c := w.client(func(o *egress.Options) { o.KeepAlive = keep })
			t.Cleanup(c.Close)
			resp, err := carry(t, c.Transport(granted(t, "https://api.example.com")), "https://api.example.com/v1?q=1")
			if err != nil {
				t.Fatal(err)
			}
			first := make([]byte, len("Bearer own hello"))
			if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "Bearer own hello" {
				t.Errorf("the beginning is %q, %v", first, err)
			}
			close(next)
			rest, err := io.ReadAll(resp.Body)
			if err != nil || string(rest) != ", and more" {
				t.Errorf("the rest is %q, %v", rest, err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTransportRefuses: a transport reaches no address that a fetch would not.
func TestTransportRefuses(t *testing.T) {
	w := newFakeNet(t)
	w.resolve("api.example.com", "10.0.0.7")
	for name, c := range map[string]struct {
		url    string
		code   abi.Code
		reason string
	}{
		"another host":        {"https://evil.example.com/", abi.CodeDenied, egress.ReasonGrant},
		"another scheme":      {"http://api.example.com/", abi.CodeDenied, egress.ReasonGrant},
		"a private address":   {"https://api.example.com/", abi.CodeDenied, egress.ReasonAddress},
		"no URL of the web":   {"https://api.example.com:0/", abi.CodeInvalid, egress.ReasonRequest},
		"a user in its place": {"https://u:p@api.example.com/", abi.CodeInvalid, egress.ReasonRequest},
	} {
		t.Run(name, func(t *testing.T) {
			for _, keep := range []egress.KeepAlive{{}, {MaxIdlePerHost: 1}} {
				client := w.client(func(o *egress.Options) { o.KeepAlive = keep })
				_, err := carry(t, client.Transport(granted(t, "https://api.example.com")), c.url)
				var broken *abi.Error
				if !errors.As(err, &broken) || broken.Code != c.code || broken.Reason != c.reason {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	if len(w.dialled) != 0 {
		t.Errorf("dialled %v", w.dialled)
	}
}

// TestTransportRedirect: a redirect is returned as the response.
func TestTransportRedirect(t *testing.T) {
	w := newFakeNet(t)
	w.resolve("api.example.com", "93.184.216.34")
	w.serve("93.184.216.34:80", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://evil.example.com/", http.StatusTemporaryRedirect)
	})
	resp, err := carry(t, w.client().Transport(granted(t, "http://api.example.com")), "http://api.example.com/")
	if err != nil || resp.StatusCode != http.StatusTemporaryRedirect {
		t.Fatalf("got %v, %v", resp, err)
	}
	_ = resp.Body.Close()
}

func TestScrubber(t *testing.T) {
	secret, err := egress.NewSecret("api", "Bearer abcdefghij", "Authorization", "https://api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	s := egress.NewScrubber(secret)
	if got := s.Text("it is abcdefghij"); got != "it is [secret api]" {
		t.Errorf("got %q", got)
	}
	for text, want := range map[string]int{"": 0, "it is": 0, "it is abc": 3, "Bearer abcdefghi": 16, "say Bea": 3, "abcdefghij": 0} {
		if got := s.PartialLen(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := egress.NewScrubber(egress.HiddenValue("api_key", "")).Text("no secret"); got != "no secret" {
		t.Errorf("an empty value: %q", got)
	}
	if got := egress.NewScrubber().PartialLen("anything"); got != 0 {
		t.Errorf("without secrets: %d", got)
	}
}
