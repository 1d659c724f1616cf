package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"time"

	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/definition/plan"
	"skep/host/internal/diagnosis"
)

// gather collects all parts.
func (b *supportBundle) gather(ctx context.Context, plainHTTP bool) {
	cfg, err := b.app.readConfig(plainHTTP, time.Time{})
	if err == nil {
		b.addSecrets(plan.Secrets(cfg)...)
	}
	c, served := b.openHost(ctx)
	if c != nil {
		defer c.Close()
	}
	b.addJSON("version.json", "this program", readVersions(), nil)
	var form any
	if err == nil {
		form = map[string]any{"parts": plan.Mask(cfg), "limits": limitsOf(cfg)}
	}
	b.addJSON("config.json", "swarm.toml without secrets and texts", form, withoutQuotes(err))
	b.addFindings(ctx, plainHTTP)
	b.addPlan(ctx, c, served)
	b.addPages(ctx, cfg)
	b.ask(ctx, "cluster.json", "the hosts that share its tasks", served, func(ctx context.Context) (any, error) { return c.Cluster(ctx) })
	b.ask(ctx, "tasks.json", "tasks that run or wait", served, func(ctx context.Context) (any, error) { return openTasks(ctx, c) })
	b.ask(ctx, "questions.json", "calls that wait for people", served, func(ctx context.Context) (any, error) { return openQuestions(ctx, c) })
}

func (b *supportBundle) addJSON(name, about string, v any, err error) {
	if err != nil {
		b.add(name, about, nil, err)
		return
	}
	content, err := json.MarshalIndent(v, "", "  ")
	b.add(name, about, append(content, '\n'), err)
}

// limitsOf lists the limits in force.
func limitsOf(cfg *config.Config) (list []config.Limit) {
	for _, l := range config.InForce(cfg) {
		list = append(list, l.Limit)
	}
	return list
}

// withoutQuotes takes the words of faults away, which may quote the file.
func withoutQuotes(err error) error {
	var faults config.Faults
	if errors.As(err, &faults) {
		return fmt.Errorf("the file has %s, the first in line %d: skep validate shows them", plural(int64(len(faults)), "fault"), faults[0].Line)
	}
	return err
}

// addFindings adds what doctor finds; what it says of faults of the file may quote it.
func (b *supportBundle) addFindings(ctx context.Context, plainHTTP bool) {
	d := &hostDoctor{app: b.app, plainHTTP: plainHTTP}
	err := d.diagnose(ctx, false)
	for i := range d.found {
		if d.found[i].ID == diagnosis.FileInvalid {
			d.found[i].Subject, d.found[i].Message = "", "the file has a fault here; skep validate shows it"
		}
	}
	b.addJSON("doctor.json", "what skep doctor finds", map[string]any{"findings": append([]diagnosis.Finding{}, d.found...)}, err)
}

// openHost returns a client of the host that is meant, or the reason why none answers.
func (b *supportBundle) openHost(ctx context.Context) (*client.Client, error) {
	address, err := b.app.hostURL()
	if err != nil {
		return nil, err
	}
	token, err := b.app.token(address)
	if err != nil {
		return nil, err
	}
	b.addSecrets(token)
	if own, failed := readToken(filepath.Join(b.app.dataDir(), "operator.key")); failed == nil {
		b.addSecrets(own)
	}
	c, err := b.app.client(address, token)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, answerTime)
	defer stop()
	_, err = c.Root(ctx)
	return c, err
}

// ask adds an answer of the host.
func (b *supportBundle) ask(ctx context.Context, name, about string, served error, question func(context.Context) (any, error)) {
	if served != nil {
		b.add(name, about, nil, served)
		return
	}
	ctx, stop := context.WithTimeout(ctx, supportTime)
	defer stop()
	answer, err := question(ctx)
	b.addJSON(name, about, answer, err)
}

// supportTime is how long the host has for a part.
const supportTime = 30 * time.Second

// addPlan adds what differs, by name: values may be prompts.
func (b *supportBundle) addPlan(ctx context.Context, c *client.Client, served error) {
	b.ask(ctx, "plan.json", "what differs between swarm.toml and what runs", served, func(ctx context.Context) (any, error) {
		changes, err := c.Plan(ctx)
		var refusal *client.Error
		if errors.As(err, &refusal) && refusal.Status == http.StatusConflict { // it quotes the file
			err = errors.New("the host finds a fault in its file, or has none: skep plan shows it")
		}
		for i := range changes {
			changes[i].Before, changes[i].After = nil, nil
		}
		return map[string]any{"changes": append([]client.Change{}, changes...)}, err
	})
}

// readyPage is the page of a host's readiness.
const readyPage = "/readyz"

// addPages adds what the listener of operators shows.
func (b *supportBundle) addPages(ctx context.Context, cfg *config.Config) {
	for _, page := range [][3]string{
		{"readyz.txt", readyPage, "whether the host takes work"}, {"metrics.txt", "/metrics", "its metrics, without what agents report"}, {"host_version.json", "/version", "the version that runs"},
	} {
		var content []byte
		err := errors.New("the file that says where admin_listen is cannot be read")
		switch {
		case cfg == nil:
		case b.app.common.url != "" && b.app.common.url != doorURL(config.Door{Listen: cfg.Server.Listen, PublicURL: cfg.Server.PublicURL, TLS: cfg.Server.TLS.Cert != ""}):
			err = errors.New("--url names another host than the file, whose admin_listen is not known")
		default:
			content, err = fetchPage(ctx, cfg.Server.AdminListen, page[1])
		}
		b.add(page[0], page[2], agentMetrics.ReplaceAll(content, nil), err)
	}
}

// agentMetrics are the lines of metrics that agents report, which choose the values of labels freely.
var agentMetrics = regexp.MustCompile(`(?m)^(?:# (?:HELP|TYPE) )?skep_agent_.*\n?`)

// fetchPage reads a page of the listener of operators. A host that is not ready has another status than 200 and says
// why.
func fetchPage(ctx context.Context, address, path string) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, answerTime)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, doorURL(config.Door{Listen: address})+path, nil)
	if err != nil {
		return nil, err
	}
	own := &http.Transport{}
	defer own.CloseIdleConnections()
	rsp, err := (&http.Client{Transport: own, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rsp.Body.Close() }()
	if rsp.StatusCode != http.StatusOK && path != readyPage {
		return nil, fmt.Errorf("%s at admin_listen answers %s", path, rsp.Status)
	}
	return io.ReadAll(io.LimitReader(rsp.Body, maxSupportPart+1))
}

// Bounds of what is listed of each state, and of the pages that are read for it.
const (
	maxSupportTasks = 500
	maxSupportPages = 20
)

// supportTask is the shape of a task.
type supportTask struct {
	Tenant     string `json:"tenant"`
	ID         string `json:"task_id"`
	Entrypoint string `json:"entrypoint"`
	State      string `json:"state"`
	Started    string `json:"started"`
	Updated    string `json:"updated"`
	Turns      int64  `json:"turns"`
	MicroUSD   int64  `json:"micro_usd"`
}

// openTasks lists tasks that run or wait, the newest first; More is true where there are others.
func openTasks(ctx context.Context, c *client.Client) (any, error) {
	out := struct {
		Tasks []supportTask `json:"tasks"`
		More  bool          `json:"more"`
	}{Tasks: []supportTask{}}
	for _, state := range []string{statePaused, "running"} {
		q, n := client.TaskQuery{Scope: "host", State: state}, 0
		for range maxSupportPages {
			tasks, next, err := c.SelectTasks(ctx, q, maxSupportTasks-n)
			if err != nil {
				return nil, err
			}
			for _, t := range tasks {
				out.Tasks = append(out.Tasks, supportTask{t.Tenant, t.ID, t.Entrypoint, t.State, t.StartTime, t.Updated, t.Usage.Turns, t.Usage.MicroUSD})
			}
			n += len(tasks)
			if q.After = next; next == "" || n >= maxSupportTasks {
				break
			}
		}
		out.More = out.More || q.After != ""
	}
	return out, nil
}

// openQuestions lists a page of the calls that wait for people, without what is asked, and of whom.
func openQuestions(ctx context.Context, c *client.Client) (any, error) {
	list, next, err := c.Questions(ctx, "", "")
	if err != nil {
		return nil, err
	}
	type question struct {
		Tenant string    `json:"tenant"`
		Task   string    `json:"task_id"`
		Agent  string    `json:"agent"`
		Action string    `json:"action"`
		Since  time.Time `json:"since"`
	}
	out := struct {
		Questions []question `json:"questions"`
		More      bool       `json:"more"`
	}{[]question{}, next != ""}
	for _, q := range list {
		out.Questions = append(out.Questions, question{q.Tenant, q.Task, q.Agent, q.Action, q.Since})
	}
	return out, nil
}
