package cli

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"strings"

	"skep/host/client"
	"skep/host/internal/definition/config"
)

// defaultURL is the address of a host without settings.
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

// client returns a client that reports each repeat of a call on stderr.
func (a *app) client(address, token string) (*client.Client, error) {
	c, err := client.New(client.Options{
		URL: address, Token: token, TLS: a.common.tls, UserAgent: "skep/" + readVersions().Skep, NoWait: a.noWait,
		OnRetry: (&retryNotes{app: a}).report,
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

// hostURL is --url, or else where the swarm's file lets its host listen. The
// rest of the file does not matter: a caller need not have its variables, and a
// token must not go to a guessed address.
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
		return "", failf(exitConfig, "%s", printable(faults[0].String())).help("where the host listens stands in this file: mend it, or give --url")
	case errors.Is(err, fs.ErrNotExist) && !a.common.set["config"]:
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
