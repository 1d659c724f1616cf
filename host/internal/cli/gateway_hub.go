package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/abi"
	"skep/host/internal/gateway/uamp/hub"
	"skep/host/internal/turn/egress"
)

const gatewayHubHelp = `Hub reads the list of agents that a host of UAMP has at URL/.well-known/agent-hub.json,
and prints the tables that make them partners. Nothing in the list is trusted by itself:
an agent counts if the manifest beside its DID document has the hash that the list has,
and a key of that document has signed it. Those keys are in the table, so that no
document is fetched later, and a key that changes is refused. Other addresses in the list
are not followed.

Hub writes no file and needs no running host: put what you trust into swarm.toml, with
what the partner is shown there and what it shows here. A host lists what the caller may
see: one of skep shows its entrypoints to all, and the rest to a token of its partner.
Agents that do not count are named on stderr, and hub ends with 1. It ends with 4 where
there is no list, with 5 for a private address without --allow-private, and with 7 when
the host does not answer.`

// hubTime bounds the fetches of one list and of its agents.
const hubTime = 2 * time.Minute

// hubFlags are the flags of the command.
type hubFlags struct {
	ca, token    string // files
	allowPrivate bool
}

func (a *app) gatewayHubCommand() *cobra.Command {
	var flags hubFlags
	cmd := &cobra.Command{
		Use: "hub URL", Short: "Print partners for the agents that a host of UAMP lists", Long: gatewayHubHelp, Args: exactArguments("the URL of a host, as https://lab.example"),
		Example: "  skep gateway hub https://lab.example > lab.toml\n  skep gateway hub https://lab.example -o json | jq -r '.agents[] | select(.error) | .did'",
	}
	cmd.Flags().StringVar(&flags.ca, "ca", "", "`FILE` with the authorities of the hosts' certificates (default: the system's)")
	cmd.Flags().StringVar(&flags.token, "peer-token", "", "the `FILE` with the token that the host of URL has made for this one (default: what all may see)")
	cmd.Flags().BoolVar(&flags.allowPrivate, "allow-private", false, "the host of URL may be at a private address")
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) error {
		base, err := hubBase(args[0])
		if err != nil {
			return err
		}
		client, err := flags.client(base)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), hubTime)
		defer cancel()
		agents, err := hub.Read(ctx, client, base.String())
		if err != nil {
			return hubFailure(base.String()+hub.ListPath, err)
		}
		return a.printHub(base, flags, agents)
	})
	return cmd
}

// hubBase returns the URL of a host, given with or without the path of its list.
func hubBase(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(strings.TrimSuffix(text, hub.ListPath), "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		f := usagef("%s is no URL of a host", printable(text))
		if !strings.Contains(text, "://") {
			f.hint = "did you mean https://" + printable(text) + "?"
		}
		return nil, f
	}
	return u, nil
}

// client returns a client for public hosts. With --allow-private the host of base may be at a
// private address.
func (f hubFlags) client(base *url.URL) (*http.Client, error) {
	token, err := readPeerToken(f.token)
	if err != nil {
		return nil, err
	}
	t := hubTransport{client: egress.New(egress.Options{}), base: base.Host, private: f.allowPrivate, token: token}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, unusableFile(f.ca, "read", err)
		}
		t.tls = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		if !t.tls.RootCAs.AppendCertsFromPEM(text) {
			return nil, usagef("%s of --ca holds no certificate in PEM", f.ca)
		}
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// hubTransport fetches what hosts show.
type hubTransport struct {
	client  *egress.Client
	tls     *tls.Config
	base    string // the host of the list, which alone is shown the token
	token   string // empty for none
	private bool   // base may be at a private address
}

// RoundTrip implements [http.RoundTripper].
func (t hubTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	grant, err := egress.ParseGrant("GET " + r.URL.Scheme + "://" + r.URL.Host)
	if err != nil {
		return nil, err
	}
	if r.URL.Host == t.base && t.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	private, key := t.private && r.URL.Host == t.base, "--allow-private"
	if r.URL.Host != t.base {
		key += " with https://" + r.URL.Host + " as URL"
	}
	return t.client.Transport(egress.Policy{
		Grants: []egress.Grant{grant}, AllowPrivate: private, PrivateNames: private, NoPublicHTTP: true, PrivateKey: key, TLS: t.tls, OfferHTTP2: true, Secrets: []egress.Secret{egress.HiddenValue("token", t.token)},
	}).RoundTrip(r)
}

// hubFailure returns why a list could not be read, with its exit code.
func hubFailure(at string, err error) error {
	var denied *abi.Error
	switch {
	case errors.Is(err, hub.ErrNoList):
		return failf(exitNotFound, "%s: %v", at, err).help("the host must speak UAMP, and URL be what its agents' DIDs have: https://lab.example for did:web:lab.example:agents:x")
	case errors.As(err, &denied):
		return toolFailure(denied)
	case errors.As(err, new(*url.Error)):
		return failf(exitUnreachable, "%v", err)
	}
	return failf(exitFailed, "%s: %v", at, err)
}

// printHub prints the tables of the agents that count.
func (a *app) printHub(base *url.URL, flags hubFlags, agents []hub.Agent) error {
	partners := partnersOf(agents, base, flags)
	for _, p := range partners {
		if flags.ca != "" {
			p.CA = a.besideConfig(flags.ca)
		}
		if flags.token != "" && p.URL == "https://"+base.Host {
			p.AuthToken = "file::" + a.besideConfig(flags.token)
		}
	}
	type shown struct {
		DID         string  `json:"did"`
		Description string  `json:"description"`
		Error       *string `json:"error"`
	}
	list, bad := []shown{}, 0
	for _, one := range agents {
		reason := ""
		if one.Err != nil {
			bad++
			reason = one.Err.Error()
			a.notef("%s does not count: %s", inLine(one.Name), inLine(reason))
		}
		list = append(list, shown{one.Name, one.Manifest.Description, orNull(reason)})
	}
	err := a.printPartners(base, list, partners)
	if err == nil && bad > 0 {
		err = reported(exitFailed)
	}
	return err
}

// printPartners prints partners as JSON with the agents that the list has, or as tables.
func (a *app) printPartners(base *url.URL, agents any, partners []*hubPartner) error {
	if a.json() {
		return a.printJSON(map[string]any{"hub": base.String() + hub.ListPath, "agents": agents, "partners": append([]*hubPartner{}, partners...)})
	}
	for _, p := range partners {
		if err := a.printf("%s", p.table()); err != nil {
			return err
		}
	}
	if len(partners) == 0 {
		a.notef("%s%s lists no agent that counts", base, hub.ListPath)
		return nil
	}
	a.notef("nothing was written: add what you trust to %s, and tell the partner which DIDs write to its agents", a.common.config)
	return nil
}

// besideConfig returns a path as the swarm's file names it: relative to the directory of that file.
func (a *app) besideConfig(file string) string {
	from, err := filepath.Abs(filepath.Dir(a.common.config))
	if err != nil {
		return file
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	if near, err := filepath.Rel(from, to); err == nil {
		to = near
	}
	return filepath.ToSlash(to)
}
