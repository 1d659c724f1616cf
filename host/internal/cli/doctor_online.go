package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/sync/errgroup"

	"skep/abi"
	"skep/host/internal/definition/config"
	"skep/host/internal/diagnosis"
	"skep/host/internal/turn/egress"
	"skep/host/internal/turn/mcp"
)

// maxProbeAnswer bounds what is read of an answer, in bytes: lists of models are long.
const maxProbeAnswer = 4 << 20

// callOthers calls the peers, models, MCP servers and the webhook of a file as the host would. What it
// finds is in the order of the file.
func (d *hostDoctor) callOthers(ctx context.Context, cfg *config.Config) error {
	client := egress.New(egress.Options{Timeout: answerTime, MaxResponseBody: maxProbeAnswer, MaxRedirects: -1})
	var calls []func(*hostDoctor)
	for _, p := range cfg.Peers {
		calls = append(calls, func(own *hostDoctor) { own.callPeer(ctx, client, p) })
	}
	for _, m := range cfg.Models {
		calls = append(calls, func(own *hostDoctor) { own.callModel(ctx, client, m) })
	}
	for _, m := range cfg.MCP {
		calls = append(calls, func(own *hostDoctor) { own.callToolServer(ctx, m) })
	}
	if cfg.Questions.Webhook != "" {
		calls = append(calls, func(own *hostDoctor) { own.callWebhook(ctx, client, cfg.Questions) })
	}
	found := make([]hostDoctor, len(calls))
	var g errgroup.Group
	g.SetLimit(pingsAtOnce)
	for i, call := range calls {
		found[i] = hostDoctor{app: d.app}
		g.Go(func() error { call(&found[i]); return nil })
	}
	err := g.Wait()
	for _, own := range found {
		d.found = append(d.found, own.found...)
	}
	return cmp.Or(context.Cause(ctx), err)
}

// probe makes a request without a body, and returns the status of its answer.
func probe(ctx context.Context, c *egress.Client, p egress.Policy, address string, headers map[string]string) (int, error) {
	u, err := url.Parse(address)
	if err != nil {
		return 0, err
	}
	grant, err := egress.ParseGrant(u.Scheme + "://" + u.Host)
	if err != nil {
		return 0, err
	}
	p.Grants, p.PrivateNames = []egress.Grant{grant}, p.AllowPrivate
	answer, broken := c.Fetch(ctx, p, "", abi.FetchRequest{Method: http.MethodGet, URL: address, Headers: headers})
	if broken != nil {
		return 0, broken
	}
	return answer.Status, nil
}

// callPeer asks a swarm whether it is well, with no credential.
func (d *hostDoctor) callPeer(ctx context.Context, c *egress.Client, p config.Peer) {
	status, err := probe(ctx, c, egress.Policy{AllowPrivate: p.AllowPrivate, TLS: p.TLS}, p.BaseURL+"/health", nil)
	if err == nil && status == http.StatusOK {
		return
	}
	if err == nil {
		err = fmt.Errorf("it answers %d %s", status, http.StatusText(status))
	}
	d.add(diagnosis.PeerSilent, diagnosis.Error, "[peers."+p.Name+"]", fmt.Sprintf("the swarm at %s is not well: %v", p.BaseURL, err),
		"start it, or correct base_url; messages for it wait meanwhile")
}

// callModel lists the models of a provider, which costs nothing. Not all that copy OpenAI's
// API have that list, so only a refused key is a fault of an answer
// (https://platform.openai.com/docs/api-reference/models/list,
// https://docs.anthropic.com/en/api/models-list).
func (d *hostDoctor) callModel(ctx context.Context, c *egress.Client, m config.Model) {
	if m.Provider == "script" || m.CassetteMode == "replay" || m.KeyVar != "" {
		return // it is not called, or only with a key that is not there
	}
	url, headers := strings.TrimSuffix(cmp.Or(m.BaseURL, "https://api.openai.com/v1"), "/")+"/models", map[string]string{"Authorization": "Bearer " + m.APIKey.Reveal()}
	if m.Provider == "anthropic" {
		url = strings.TrimSuffix(cmp.Or(m.BaseURL, "https://api.anthropic.com"), "/") + "/v1/models"
		headers = map[string]string{"X-Api-Key": m.APIKey.Reveal(), "Anthropic-Version": "2023-06-01"}
	}
	if m.APIKey == "" {
		headers = nil
	}
	status, err := probe(ctx, c, egress.Policy{AllowPrivate: m.AllowPrivate}, url, headers)
	subject := "[models." + m.Name + "]"
	switch {
	case err != nil:
		d.add(diagnosis.ModelSilent, diagnosis.Error, subject, fmt.Sprintf("the provider cannot be reached: %v", err), "correct base_url, or let the host reach it")
	case isServerError(status):
		d.add(diagnosis.ModelSilent, diagnosis.Warning, subject, fmt.Sprintf("the provider answers %d %s", status, http.StatusText(status)), "wait, or look at the provider's page of incidents")
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		d.add(diagnosis.ModelRefuses, diagnosis.Error, subject, fmt.Sprintf("the provider refuses the key: %d %s", status, http.StatusText(status)), "set the variable of api_key to a key of this provider")
	}
}

// isServerError reports whether a status is a fault of the server. 501 is none: the server lacks what it was asked for.
func isServerError(status int) bool {
	return status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}

// callWebhook looks whether the receiver of questions answers. It gets no message, so any answer but a
// fault of its own will do.
func (d *hostDoctor) callWebhook(ctx context.Context, c *egress.Client, q config.Questions) {
	status, err := probe(ctx, c, egress.Policy{AllowPrivate: true, NoPublicHTTP: true, HidePath: true}, q.Webhook, nil)
	const fix = "start it, or correct webhook; what waits for people is posted for a day"
	switch {
	case err != nil:
		d.add(diagnosis.WebhookSilent, diagnosis.Error, "[questions]", fmt.Sprintf("the receiver of questions cannot be reached: %v", err), fix)
	case isServerError(status):
		d.add(diagnosis.WebhookSilent, diagnosis.Warning, "[questions]", fmt.Sprintf("the receiver of questions answers %d %s", status, http.StatusText(status)), fix)
	}
}

// callToolServer lists the tools of an MCP server with a url. Programs are the host's: a
// second one is not started beside its own.
func (d *hostDoctor) callToolServer(ctx context.Context, m config.MCP) {
	if m.URL == "" {
		return
	}
	subject := "[mcp." + m.Name + "]"
	err := d.app.withServer(ctx, m.Name, func(m config.MCP, s *mcp.Server) error {
		now, err := theirTools(ctx, s)
		if err != nil {
			return err
		}
		for _, t := range compareTools(m.Tools, now) {
			if t.State == toolChanged || t.State == toolGone {
				d.add(diagnosis.ToolChanged, diagnosis.Error, subject+" "+t.Name, "the tool is "+t.State+" since it was pinned",
					d.app.sameSwarm("skep mcp tools "+m.Name)+" shows the change, skep mcp pin approves it")
			}
		}
		return nil
	})
	if err != nil {
		d.add(diagnosis.ToolServerSilent, diagnosis.Error, subject, fmt.Sprintf("the server cannot be used: %v", err), "start it, or correct url and auth_token")
	}
}
