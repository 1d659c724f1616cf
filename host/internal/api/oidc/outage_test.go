package oidc_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/api/oidc"
)

// The fault of a backend is logged once a minute, and is a warning until the
// backend answers.
func TestOutageIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	p, clock := newProvider(t), now
	endpoint := p.URL + "/login"
	e, err := oidc.NewEndpoints(oidc.EndpointsOptions{
		Login: endpoint, TokenInfo: endpoint, Now: func() time.Time { return clock },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	ask := func(status int) error {
		p.set("", func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(status); return true })
		clock = clock.Add(20 * time.Second)
		_, err := e.Authenticate(t.Context(), "a-key-of-somebody")
		return err
	}
	for range 5 {
		var gone *auth.Unavailable
		if err := ask(http.StatusBadGateway); !errors.As(err, &gone) {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 2 || !strings.Contains(log.String(), "status 502") {
		t.Errorf("%d warnings in 100 seconds:\n%s", n, &log)
	}
	if all := e.Warnings(); len(all) != 1 || !strings.Contains(all[0], "[auth.endpoints] does not answer as it should: POST "+endpoint+": status 502") {
		t.Errorf("%q", all)
	}
	if strings.Contains(log.String(), "a-key-of-somebody") {
		t.Error("the log has a caller's key")
	}
	if err := ask(http.StatusUnauthorized); !errors.Is(err, auth.ErrUnknown) {
		t.Error(err)
	}
	if all := e.Warnings(); len(all) != 0 || !strings.Contains(log.String(), "answers again") {
		t.Errorf("%q\n%s", all, &log)
	}
}

// An unreachable issuer is logged too; an unknown key id is no outage.
func TestIssuerOutageIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	p := newProvider(t)
	j := newJWT(t, func(o *oidc.JWTOptions) {
		o.Keys, o.URL, o.Issuer, o.Now = "", p.URL+"/keys", p.URL, p.now
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	p.set("", func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusTeapot); return true })
	token := p.token(t, "made-up", ring().ed)
	_, err := j.Authenticate(t.Context(), token)
	if all := j.Warnings(); len(all) != 1 || !strings.Contains(all[0], "[auth.jwt]") || !strings.Contains(log.String(), "status 418") {
		t.Errorf("%v: %q\n%s", err, all, &log)
	}
	p.set(set(t, jwk("d", "", ring().ed)), nil)
	p.move(time.Minute)
	for range 2 {
		_, err = j.Authenticate(t.Context(), token)
	}
	if all := j.Warnings(); len(all) != 0 {
		t.Errorf("%v: %q", err, all)
	}
}
