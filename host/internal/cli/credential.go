package cli

import (
	"errors"
	"io/fs"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"skep/host/client"
	"skep/host/internal/definition/config"
)

// token is the given one, or the operator's when the host is on this machine: the
// operator's token is never sent elsewhere.
func (a *app) token(address string) (string, error) {
	if a.common.setByFlag["token-file"] {
		return a.tokenIn(a.common.tokenFile, "--token-file")
	}
	if token := a.envToken(); token != "" {
		a.keySource = "SKEP_TOKEN"
		return token, nil
	}
	if a.common.tokenFile != "" {
		return a.tokenIn(a.common.tokenFile, "SKEP_TOKEN_FILE")
	}
	if !isLocal(address) {
		return "", nil
	}
	path := filepath.Join(a.dataDir(), "operator.key")
	token, err := readToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	a.keySource = path
	return token, err
}

// tokenIn reads the file that a flag or a variable names.
func (a *app) tokenIn(path, namedBy string) (string, error) {
	a.keySource = path + " (" + namedBy + ")"
	token, err := readToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", failf(exitNotFound, "there is no file %s, which %s names", path, namedBy)
	}
	return token, err
}

// credentialHint names the key that a host has refused, and what to change.
func (a *app) credentialHint(e *client.Error) string {
	switch {
	case !strings.HasPrefix(e.Detail, "invalid role") && a.operatorKeyEnded():
		return filepath.Base(a.common.config) + " has [[auth.keys]], so the host knows no operator.key: put the key of one of them into SKEP_TOKEN"
	case a.keySource == "":
		return "no key was sent: give one in SKEP_TOKEN or --token-file; on the host's own machine, run skep beside its swarm.toml"
	case strings.HasPrefix(e.Detail, "invalid role"):
		return "the key of " + a.keySource + " is known; its role is what to change: give the key of somebody who may, in SKEP_TOKEN or --token-file"
	}
	return "the key that was sent is that of " + a.keySource + "; give another in SKEP_TOKEN or --token-file"
}

// operatorKeyEnded reports whether the key of the data directory was sent, or would
// have been, though the host's file names keys of its own.
func (a *app) operatorKeyEnded() bool {
	written := a.keySource == filepath.Join(a.dataDir(), "operator.key")
	local := a.common.url == "" || isLocal(a.common.url)
	return (a.keySource == "" && local || written) && config.NamesKeys(a.common.config)
}

// envToken is the token in the environment, without the line's end that a shell
// may have left on it.
func (a *app) envToken() string { return strings.TrimSpace(a.env.get("SKEP_TOKEN")) }

func isLocal(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
