package cli

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
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
		URL: address, Token: token, UserAgent: "skep/" + readVersions().Skep,
		OnRetry: func(cause error, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if text := cause.Error(); text != last {
				last = text
				a.notef("%s %s; trying again", a.noteStyle().yellow("connection lost:"), printable(text))
			}
		},
	})
	if err != nil {
		return nil, usagef("%w", err)
	}
	return c, nil
}

// hostURL is --url, or else where the swarm's file lets its host listen.
func (a *app) hostURL() (string, error) {
	if a.common.url != "" {
		return a.common.url, nil
	}
	cfg, err := a.loadConfig()
	var faults config.Faults
	switch {
	case err == nil:
		return listenURL(cfg.Server.Listen), nil
	case errors.As(err, &faults):
		a.notef("%s %s has faults (`skep validate` lists them); calling %s",
			a.noteStyle().yellow("warning:"), a.common.config, defaultURL)
		return defaultURL, nil
	case a.common.given["config"]:
		return "", err
	}
	return defaultURL, nil
}

// listenURL is the address at which this machine reaches a listener.
func listenURL(listen string) string {
	hostname, port, err := net.SplitHostPort(listen)
	if err != nil {
		return defaultURL
	}
	if ip, err := netip.ParseAddr(hostname); hostname == "" || err == nil && ip.IsUnspecified() {
		hostname = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(hostname, port)
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
