package cli

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"skep/host/client"
	"skep/host/internal/config"
)

// defaultURL is where a host listens that is told nothing.
const defaultURL = "http://127.0.0.1:8000"

// connect returns a client of the host that is meant.
func (a *app) connect() (*client.Client, error) {
	address, err := a.hostURL()
	if err != nil {
		return nil, err
	}
	token, err := a.token(address)
	if err != nil {
		return nil, err
	}
	return a.client(address, token)
}

// client returns a client that tells the person when it repeats a call.
func (a *app) client(address, token string) (*client.Client, error) {
	var mu sync.Mutex
	last := ""
	c, err := client.New(client.Options{
		URL: address, Token: token, TLS: a.common.tls, UserAgent: "skep/" + readVersions().Skep,
		OnRetry: func(cause error, _ time.Duration) {
			if a.answered.Load() {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if text := cause.Error(); text != last {
				last = text
				a.notef("%s %s; trying again", a.noteStyle().yellow(setback(cause)), inLine(text))
			}
		},
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		f := usagef("%s", strings.TrimPrefix(err.Error(), "client: "))
		if !strings.Contains(address, "://") {
			f.hint = "did you mean http://" + printable(address) + "?"
		}
		return nil, f
	}
	return c, nil
}

// setback is what has kept a call from its answer.
func setback(cause error) string {
	var refusal *client.Error
	if errors.As(cause, &refusal) {
		return "not now:"
	}
	return "connection lost:"
}

// hostURL is --url, or else where the swarm's file lets its host listen. The
// rest of the file is the host's affair: a caller need not have its variables,
// and a token must not go to an address that is only guessed.
func (a *app) hostURL() (string, error) {
	if a.common.url != "" {
		return a.common.url, nil
	}
	door, err := config.Listen(a.common.config, config.Options{Env: a.env.LookupEnv})
	var faults config.Faults
	switch {
	case err == nil:
		return doorURL(door), nil
	case errors.As(err, &faults):
		return "", failf(exitConfig, "cannot tell the host's address; give --url").help("%s", printable(faults[0].String()))
	case errors.Is(err, fs.ErrNotExist) && !a.common.given["config"]:
		return defaultURL, nil
	}
	return "", a.unreadable(err)
}

// doorURL is where callers on this machine find a host. One with a certificate is
// called by the name that is in it.
func doorURL(door config.Door) string {
	if door.TLS && door.PublicURL != "" {
		return door.PublicURL
	}
	scheme := "http://"
	if door.TLS {
		scheme = "https://"
	}
	hostname, port, err := net.SplitHostPort(door.Listen)
	if err != nil {
		return defaultURL
	}
	if ip, err := netip.ParseAddr(hostname); hostname == "" || err == nil && ip.IsUnspecified() {
		hostname = "127.0.0.1"
	}
	return scheme + net.JoinHostPort(hostname, port)
}

// token is the one that was given, or that of the operator when the host is on
// this machine: nobody else may get to see it.
func (a *app) token(address string) (string, error) {
	if a.common.flagged["token-file"] {
		return readToken(a.common.tokenFile)
	}
	if token := a.env.get("SKEP_TOKEN"); token != "" {
		return token, nil
	}
	if a.common.tokenFile != "" {
		return readToken(a.common.tokenFile)
	}
	if !onThisMachine(address) {
		return "", nil
	}
	token, err := readToken(filepath.Join(a.dataDir(), "operator.key"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return token, err
}

func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
