package cli

import (
	"errors"
	"io/fs"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"skep/host/client"
	"skep/host/internal/config"
)

// token is the one that was given, or that of the operator when the host is on
// this machine: nobody else may get to see it.
func (a *app) token(address string) (string, error) {
	if a.common.flagged["token-file"] {
		return a.tokenIn(a.common.tokenFile, "--token-file")
	}
	if token := a.envToken(); token != "" {
		a.sent = "SKEP_TOKEN"
		return token, nil
	}
	if a.common.tokenFile != "" {
		return a.tokenIn(a.common.tokenFile, "SKEP_TOKEN_FILE")
	}
	if !onThisMachine(address) {
		return "", nil
	}
	path := filepath.Join(a.dataDir(), "operator.key")
	token, err := readToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	a.sent = path
	return token, err
}

// tokenIn reads the file that a flag or a variable names.
func (a *app) tokenIn(path, namedBy string) (string, error) {
	a.sent = path + " (" + namedBy + ")"
	token, err := readToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", failf(exitNotFound, "there is no file %s, which %s names", path, namedBy)
	}
	return token, err
}

// credentialHint says which key a host has refused, and what to change.
func (a *app) credentialHint(e *client.Error) string {
	switch {
	case !strings.HasPrefix(e.Detail, "invalid role") && a.operatorKeyEnded():
		return "swarm.toml has [[auth.keys]], so the host knows no operator.key: put the key of one of them into SKEP_TOKEN"
	case a.sent == "":
		return "no key was sent: give one in SKEP_TOKEN or --token-file; on the host's own machine, run skep beside its swarm.toml"
	case strings.HasPrefix(e.Detail, "invalid role"):
		return "the key of " + a.sent + " is known; its role is what to change: give the key of somebody who may, in SKEP_TOKEN or --token-file"
	}
	return "the key that was sent is that of " + a.sent + "; give another in SKEP_TOKEN or --token-file"
}

// operatorKeyEnded reports whether the key of the data directory was sent, or would
// have been, though the host's file names keys of its own.
func (a *app) operatorKeyEnded() bool {
	written := a.sent == filepath.Join(a.dataDir(), "operator.key")
	return (a.sent == "" && a.common.url == "" || written) && config.NamesKeys(a.common.config)
}

// envToken is the token in the environment, without the line's end that a shell
// may have left on it.
func (a *app) envToken() string { return strings.TrimSpace(a.env.get("SKEP_TOKEN")) }

func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
