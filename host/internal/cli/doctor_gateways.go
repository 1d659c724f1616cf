package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/turn/mcp"
)

const doctorGatewaysHelp = `Gateways looks at the gateways of swarm.toml and of the host that runs on it: whether
each is well and shows agents, whether partners answer, at their address, over the broker
or on a connection that they have opened, whether MCP servers with a url answer from here
and have their tools as pinned, whether partners can reach this host, how long
certificates are valid, and which keys sign agent cards and envelopes. Where there is no
swarm.toml, it looks at what the host of --url shows: its gateways, and the partners that
are called.

The exit code is 8 when something is not as it should be.`

// expirySoon is how long a certificate must be valid at least.
const expirySoon = 14 * 24 * time.Hour

func (a *app) doctorGatewaysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "gateways", Short: "Look for what is wrong with gateways and their partners", Args: atMost(0),
		Long: doctorGatewaysHelp, Example: "  skep doctor gateways\n  skep doctor gateways -o json | jq -r '.checks[] | select(.pass | not) | .name'",
	}
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		d := &gatewayDoctor{app: a, client: c, now: time.Now()}
		look := d.look
		if a.isElsewhere() {
			look = d.lookFromAfar
		}
		if err := look(cmd.Context()); err != nil {
			return err
		}
		return a.printGatewayChecks(d.checks)
	})
	return a.withCallFlags(cmd)
}

// gatewayCheck is one thing that was looked at.
type gatewayCheck struct {
	Name   string `json:"name"`
	Pass   bool   `json:"pass"`
	Detail string `json:"detail"`
}

// gatewayDoctor looks at gateways.
type gatewayDoctor struct {
	app    *app
	client *client.Client
	cfg    *config.Config
	now    time.Time
	checks []gatewayCheck
}

func (d *gatewayDoctor) add(name string, pass bool, format string, args ...any) {
	d.checks = append(d.checks, gatewayCheck{name, pass, fmt.Sprintf(format, args...)})
}

// isElsewhere reports whether the host was named, and its file is not here.
func (a *app) isElsewhere() bool {
	_, err := os.Stat(a.common.config)
	return errors.Is(err, fs.ErrNotExist) && a.common.url != "" && !a.common.set["config"]
}

// lookFromAfar checks what the host shows of its gateways.
func (d *gatewayDoctor) lookFromAfar(ctx context.Context) error {
	running, err := d.client.Gateways(ctx, "")
	if err != nil {
		return err
	}
	for _, g := range running {
		d.running(g)
		for _, p := range g.Partners {
			if p.URL == "" {
				continue
			}
			if err := d.ping(ctx, g.Name+" partner "+p.Name, p.Name, false); err != nil {
				return err
			}
		}
	}
	d.app.notef("there is no %s here: certificates, keys and public_url are not looked at", d.app.common.config)
	return nil
}

// look checks all gateways of the file.
func (d *gatewayDoctor) look(ctx context.Context) (err error) {
	if d.cfg, err = d.app.loadConfig(true); err != nil {
		return err
	}
	running, err := d.client.Gateways(ctx, "")
	if err != nil {
		return err
	}
	for _, g := range d.cfg.Gateways {
		d.gateway(g, running)
		for _, p := range g.Partners {
			if err := d.partner(ctx, g, p); err != nil {
				return err
			}
		}
		if own, is := g.Protocol.(*config.A2A); is && own.SignCards || g.Name == "uamp" {
			d.signingKey(g.Name)
		}
	}
	for _, m := range d.cfg.MCP {
		d.toolServer(ctx, m)
	}
	d.publicURL()
	if tlsFiles := d.cfg.Server.TLS; len(d.cfg.Gateways) > 0 && tlsFiles.Cert != "" {
		cert, err := tls.LoadX509KeyPair(tlsFiles.Cert, tlsFiles.Key)
		if err != nil {
			d.add("server.tls", false, "%v", err)
		} else {
			d.certificate("server.tls", cert)
		}
	}
	return nil
}

// publicURL checks whether partners elsewhere can come back to this host: agent cards and
// addresses of answers name its public_url.
func (d *gatewayDoctor) publicURL() {
	const name = "server.public_url"
	address, far := d.cfg.Server.PublicURL, d.farPartners()
	switch {
	case len(d.cfg.Gateways) == 0:
	case d.cfg.Server.HasPublicURL():
		d.add(name, true, "%s", address)
	case len(far) > 0:
		d.add(name, false, "%s, which %s cannot reach: set the address that has your certificate, or allow_private = true for partners in a network of your own",
			cmp.Or(address, "not set"), strings.Join(far, ", "))
	case address != "":
		d.add(name, true, "%s is reached in your own network only", address)
	default:
		d.add(name, true, "not set: callers are shown the address that they have used")
	}
}

// farPartners are the partners that are called at addresses elsewhere.
func (d *gatewayDoctor) farPartners() (names []string) {
	for _, g := range d.cfg.Gateways {
		for _, p := range g.Partners {
			if hasAddress(p) && !p.AllowPrivate {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// gateway checks whether a gateway of the file runs, is well and shows agents.
func (d *gatewayDoctor) gateway(g config.Gateway, running []client.Gateway) {
	for _, r := range running {
		if r.Name == g.Name {
			d.running(r)
			return
		}
	}
	d.add(g.Name, false, "the host does not run it: start the host again")
}

// running checks whether a gateway that runs is well and shows agents.
func (d *gatewayDoctor) running(r client.Gateway) {
	d.add(r.Name, r.Healthy, "%s", strings.TrimSpace(gatewayState(r)+" "+r.Detail))
	switch {
	case len(r.Agents) > 0:
		d.add(r.Name+" agents", true, "%s exposed", plural(int64(len(r.Agents)), "agent"))
	case len(r.Partners) > 0 && !slices.ContainsFunc(r.Partners, mayAsk):
		d.add(r.Name+" agents", true, "none is exposed, and no partner may ask")
	default:
		d.add(r.Name+" agents", false, "no agent of your tenant has %q in expose", r.Name)
	}
}

// mayAsk reports whether a partner has any right: one without only answers.
func mayAsk(p client.GatewayPartner) bool { return len(p.May) > 0 }

// connecting are the gateways whose partners may have a connection open, on which they are
// asked.
var connecting = []string{"acp", "amp", "iacp", "uamp"}

// partner checks whether a partner answers where messages for it leave, and its client
// certificate. One that comes by itself may be away.
func (d *gatewayDoctor) partner(ctx context.Context, g config.Gateway, p config.Partner) error {
	name := g.Name + " partner " + p.Name
	if p.TLS != nil {
		for _, cert := range p.TLS.Certificates {
			d.certificate(name+" certificate", cert)
		}
	}
	called := isCalled(g.Name, p)
	if !called && !slices.Contains(connecting, g.Name) {
		d.add(name, true, "it is not called: it has no address")
		return nil
	}
	return d.ping(ctx, name, p.Name, !called)
}

// isCalled reports whether messages for a partner leave without a connection that it opens: to
// its address, over a broker, or where the DID documents of its agents say.
func isCalled(gateway string, p config.Partner) bool {
	switch own := p.Protocol.(type) {
	case *config.ACPPartner:
		return hasAddress(p) || own.Topics != ""
	case *config.AMPPartner:
		return hasAddress(p) || own.Queues
	}
	return hasAddress(p) || gateway == "uamp" && slices.ContainsFunc(p.IDs, namesHost)
}

// namesHost reports whether an id of UAMP names the host of its DID document
// (https://w3c-ccg.github.io/did-method-web/).
func namesHost(id string) bool {
	host, isWeb := strings.CutPrefix(id, "did:web:")
	return isWeb && host != "" && host[0] != '*'
}

// ping checks whether a partner answers; one that may be away passes.
func (d *gatewayDoctor) ping(ctx context.Context, name, partner string, mayBeAway bool) error {
	got, err := d.client.PingPartner(ctx, partner)
	switch {
	case err != nil:
		return err
	case got.Active:
		d.add(name, true, "%s", strings.TrimSuffix(fmt.Sprintf("answers in %s: %s", latencyText(got.Latency), strings.Join(got.Agents, ", ")), ": "))
	default:
		d.add(name, mayBeAway, "%s", got.Error)
	}
	return nil
}

// toolServer checks whether an MCP server with a url answers, and has its tools as they were pinned.
// Programs are the host's: a second one is not started beside its own.
func (d *gatewayDoctor) toolServer(ctx context.Context, m config.MCP) {
	if m.URL == "" {
		return
	}
	name, begun := "mcp server "+m.Name, time.Now()
	err := d.app.withServer(ctx, m.Name, func(m config.MCP, s *mcp.Server) error {
		now, err := theirTools(ctx, s)
		if err != nil {
			return err
		}
		var pinned, other []string
		for _, t := range compareTools(m.Tools, now) {
			switch t.State {
			case toolPinned:
				pinned = append(pinned, t.Name)
			case toolChanged, toolGone:
				other = append(other, t.Name+" is "+t.State)
			}
		}
		took := time.Since(begun).Seconds()
		if len(other) > 0 {
			return failf(exitRefused, "%s; see `%s`", strings.Join(other, ", "), d.app.sameSwarm("skep mcp tools "+m.Name))
		}
		d.add(name, true, "%s", strings.TrimSuffix(fmt.Sprintf("answers in %s: %s", latencyText(&took), strings.Join(pinned, ", ")), ": "))
		return nil
	})
	if err != nil {
		d.add(name, false, "%v", err)
	}
}

// hasAddress reports whether a partner has an address.
func hasAddress(p config.Partner) bool {
	for _, s := range p.Settings() {
		if address, isText := s.Value().(string); isText && s.Kind == config.KindURL && address != "" {
			return true
		}
	}
	return false
}

// certificate checks how long a certificate is valid.
func (d *gatewayDoctor) certificate(name string, cert tls.Certificate) {
	if cert.Leaf == nil {
		d.add(name, false, "it holds no certificate")
		return
	}
	d.add(name, cert.Leaf.NotAfter.Sub(d.now) > expirySoon, "valid until %s", cert.Leaf.NotAfter.UTC().Format(time.RFC3339))
}

// signingKey checks the key of agent cards, or of envelopes.
func (d *gatewayDoctor) signingKey(gateway string) {
	name := gateway + " key"
	data, err := d.app.dataOptions()
	if err != nil {
		d.add(name, false, "%v", err)
		return
	}
	keys, err := data.GatewayKeys(gateway)
	switch {
	case err != nil:
		d.add(name, false, "%v", err)
	case len(keys) == 0:
		d.add(name, false, "there is none in %s: name the data directory of the host with --data", data.Dir)
	default:
		d.add(name, true, "%s signs", signingKey(keys))
	}
}

// printGatewayChecks prints a line for each check.
func (a *app) printGatewayChecks(checks []gatewayCheck) error {
	failed, wide := 0, 0
	for _, c := range checks {
		wide = max(wide, len(c.Name))
		if !c.Pass {
			failed++
		}
	}
	err := a.printChecks(checks, failed, wide)
	if err == nil && failed > 0 {
		return reported(exitNonconforming)
	}
	return err
}

func (a *app) printChecks(checks []gatewayCheck, failed, wide int) error {
	if a.json() {
		return a.printJSON(map[string]any{"checks": append([]gatewayCheck{}, checks...), "failed": failed})
	}
	switch {
	case len(checks) > 0:
	case a.isElsewhere():
		a.notef("there are no gateways on %s", a.common.url)
	default:
		a.notef("there are no gateways in %s", a.common.config)
	}
	st := a.dataStyle()
	for _, c := range checks {
		word := st.green("pass")
		if !c.Pass {
			word = st.red("FAIL")
		}
		if err := a.printf("%s  %s  %s\n", word, pad(inLine(c.Name), wide), inLine(c.Detail)); err != nil {
			return err
		}
	}
	return nil
}
