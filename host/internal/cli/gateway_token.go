package cli

import (
	"crypto"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway/uamp/did"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

const gatewayTokenHelp = `Token issues a capability token of UAMP and prints it on stdout: signed by the host's
key, it lets the agent with the DID, and no other, send envelopes of the given intents to
the agents of this host. A partner whose host is skep puts it into a file that its
swarm.toml names as cap_token.

A token opens nothing by itself: its holder must be let in as a partner, and sign with
the key of the DID. It narrows what the partner may do; require_cap_token in
[gateways.uamp] refuses envelopes without one. It cannot be revoked: it ends after --ttl,
which is an hour, and thirty days at most, or when the key that signed it is rotated
twice.

It works on swarm.toml and the data directory, while a host runs as well. It ends with 2
for what no token can say, and with 4 for an agent or a gateway that is not there.`

// Life of a capability token.
const (
	tokenLife    = time.Hour
	maxTokenLife = 30 * 24 * time.Hour
)

// tokenFlags are the flags of the command.
type tokenFlags struct {
	agents, intents []string
	life            string
}

func (a *app) gatewayTokenCommand() *cobra.Command {
	var flags tokenFlags
	cmd := &cobra.Command{
		Use: "token DID", Short: "Issue a capability token to a foreign agent of UAMP", Long: gatewayTokenHelp,
		Args:    exactArguments("the DID of the agent that sends the envelopes"),
		Example: "  skep gateway token did:web:lab.example:agents:lab:x > lab.token\n  skep gateway token did:web:lab.example:agents:lab:x --agent calc --intent ask --intent cancel --ttl 7d -o json | jq -r .expires",
	}
	f := cmd.Flags()
	f.StringArrayVar(&flags.agents, "agent", nil, "the `NAME` of an agent that may be reached, which may be given again (default: all)")
	f.StringArrayVar(&flags.intents, "intent", []string{string(envelope.Ask)}, "an `INTENT` of the envelopes, or * for all, which may be given again")
	f.StringVar(&flags.life, "ttl", "", "how long it lives, as 12h or 7d (`TIME`, default 1h)")
	cmd.RunE = a.withDir(func(_ *cobra.Command, d datadir.Data, args []string) error {
		claims, err := flags.claims(args[0], time.Now())
		if err != nil {
			return err
		}
		cfg, err := a.loadConfig(false)
		if err != nil {
			return err
		}
		if claims.Issuer, err = tokenIssuer(cfg, flags.agents); err != nil {
			return err
		}
		claims.Audience = []string{claims.Issuer}
		return a.issueToken(d, claims)
	})
	return cmd
}

// claims are what the token grants to its holder, without issuer and audience.
func (f tokenFlags) claims(holder string, now time.Time) (c seal.Claims, err error) {
	if _, err := did.Parse(holder); err != nil {
		return c, usagef("%s is no DID of an agent: give one as did:web:lab.example:agents:lab:x", printable(holder))
	}
	life := tokenLife
	if f.life != "" {
		if life, err = config.ParseDuration(f.life); err != nil || life < time.Second || life > maxTokenLife {
			return c, usagef("--ttl takes a time such as 12h or 7d, and 30d at most, not %q", f.life)
		}
	}
	c = seal.Claims{Subject: holder, Expires: now.Add(life).Truncate(time.Second)}
	for _, intent := range f.intents {
		if intent != "*" && !slices.Contains(envelope.Intents(), envelope.Intent(intent)) {
			return c, usagef("--intent takes * or an intent of UAMP such as ask, not %q", intent)
		}
		c.Scope = append(c.Scope, "uamp:"+intent)
	}
	for _, agent := range f.agents {
		c.Scope = append(c.Scope, "agent:"+agent)
	}
	return c, nil
}

// tokenIssuer is the DID of the host, if it has the gateway and the agents are reached by it.
func tokenIssuer(cfg *config.Config, agents []string) (string, error) {
	i := slices.IndexFunc(cfg.Gateways, func(g config.Gateway) bool { return g.Name == "uamp" })
	if i < 0 {
		return "", failf(exitNotFound, "there is no gateway to UAMP: add [gateways.uamp]")
	}
	for _, name := range agents {
		at := slices.IndexFunc(cfg.Agents, func(one config.Agent) bool { return one.Name == name })
		if at < 0 {
			return "", failf(exitNotFound, "there is no agent %s", printable(name))
		}
		if !slices.Contains(cfg.Agents[at].Expose, "uamp") {
			return "", failf(exitNotFound, "%s is not reached over UAMP: add expose = [\"uamp\"] to [agents.%s]", name, name)
		}
	}
	own, _ := cfg.Gateways[i].Protocol.(*config.UAMP)
	return own.DID, nil
}

// issueToken signs a token and prints it.
func (a *app) issueToken(d datadir.Data, c seal.Claims) error {
	var text string
	err := d.GrantByGatewayKey("uamp", c.Subject, func(private crypto.Signer) error {
		key, err := seal.NewKey("", private)
		if err != nil {
			return err
		}
		text, err = key.WithID(c.Issuer + "#" + key.Public().Thumbprint()).Grant(c)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return failf(exitFailed, noGatewayKey, "uamp")
	}
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(map[string]any{
			"token": text, "issuer": c.Issuer, "subject": c.Subject, "audience": c.Audience, "scope": c.Scope, "expires": c.Expires.UTC(),
		})
	}
	a.notef("of %s for %s, until %s", inLine(c.Subject), strings.Join(c.Scope, " "), localTime(c.Expires))
	return a.printf("%s\n", text)
}
