package swarm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// fakeKnownSwarms are the swarms that a hive knows.
type fakeKnownSwarms []swarm.KnownSwarm

func (a fakeKnownSwarms) List() []swarm.KnownSwarm { return slices.Clone(a) }

func (fakeKnownSwarms) Discover(context.Context, swarm.DiscoveryRequest) ([]string, error) {
	return nil, nil
}

// knowing makes a hive know swarms.
func (p *post) knowing(name string, known fakeKnownSwarms, change ...func(*hive)) *hive {
	h := p.hives[name]
	h.opt.KnownSwarms = known
	for _, c := range change {
		c(h)
	}
	h.restart()
	return h
}

func broadcastCall(names ...string) string {
	raw, _ := json.Marshal(names)
	return fmt.Sprintf(`["send_interswarm_broadcast",{"subject":"news","body":"rain","target_swarms":%s}]`, raw)
}

// toolText is the text that a tool returned to an agent.
func (h *hive) toolText(task, tool string) string {
	h.t.Helper()
	id := ""
	for _, e := range h.history(task, "boss") {
		switch {
		case e.Kind == abi.KindCall && e.Call.Name == tool:
			id = e.Call.ID
		case e.Kind == abi.KindResult && e.Result.ID == id:
			return e.Result.Text
		}
	}
	return ""
}

// S-10, G-04: the tool, which the reference offers without implementing it, reaches
// each swarm at its own entrypoint, and so does the end of the task.
func TestInterswarmBroadcast(t *testing.T) {
	p := federate(t, "hive", "depot", "yard")
	hive := p.knowing("hive", fakeKnownSwarms{{Name: "depot", Entrypoint: "math"}, {Name: "hive", Entrypoint: "boss"}, {Name: "yard", Entrypoint: "boss"}})
	hive.ask(`[`+broadcastCall("yard", "depot", "yard")+`,["task_complete",{"finish_message":"done"}]]`, task("t"))
	if got := hive.toolText("t", "send_interswarm_broadcast"); got != "SUCCESS: broadcast sent to 2 swarms" {
		t.Errorf("told %q", got)
	}
	eventually(t, "both ends", func() bool {
		return has(p.wire(), "hive>depot back response [::task_complete::]") && has(p.wire(), "hive>yard back response [::task_complete::]")
	})
	for swarm, want := range map[string]string{"depot": "math<-boss@hive:news", "yard": "boss<-boss@hive:news"} {
		if !has(p.wire(), "hive>"+swarm+" forward broadcast [news]") {
			t.Errorf("the wire had %q", p.wire())
		}
		eventually(t, "the turn at "+swarm, func() bool { return slices.Contains(p.hives[swarm].agents.turns(), want) })
	}
	for _, all := range []string{`[]`, `["all"]`, `null`} {
		hive.ask(`[["send_interswarm_broadcast",{"subject":"s","body":"b","target_swarms":`+all+`}],["task_complete",{"finish_message":"done"}]]`, task(all))
		if got := hive.toolText(all, "send_interswarm_broadcast"); got != "SUCCESS: broadcast sent to 2 swarms" {
			t.Errorf("%s: told %q", all, got)
		}
	}
}

// nothing is sent if one named swarm may not be written to; the agent gets the
// reason for each.
func TestInterswarmBroadcastRefused(t *testing.T) {
	p := federate(t, "hive", "depot", "yard")
	known := fakeKnownSwarms{{Name: "depot", Entrypoint: "math"}, {Name: "yard", Entrypoint: "boss"}, {Name: "attic"}, {Name: "barn", Entrypoint: "b"}}
	hive := p.knowing("hive", known, func(h *hive) {
		h.def.Agents[0].Targets = []string{"math", "*@depot", "desk@yard", "*@attic", "*@nowhere", "*@barn"}
	})
	p.mu.Lock()
	p.hives["attic"] = p.hives["depot"] // it can be called, but its entrypoint is unknown
	p.mu.Unlock()
	for name, c := range map[string]struct {
		names []string
		want  []string
		mail  string
	}{
		"not allowed":      {[]string{"depot", "yard"}, []string{`"yard": agent "boss" may not write to its entrypoint; add "boss@yard" or "*@yard" to [agents.boss] comm_targets`}, mail.SubjectInvalidRecipient},
		"several":          {[]string{"nowhere", "yard"}, []string{`"nowhere": no peer "nowhere"; "yard": agent`}, mail.SubjectRouterError},
		"no entrypoint":    {[]string{"attic"}, []string{`"attic": it has not told its entrypoint yet`}, mail.SubjectRouterError},
		"its own swarm":    {[]string{"hive"}, []string{`"hive": it is this swarm; send_broadcast reaches its agents`}, mail.SubjectToolCallError},
		"not a name":       {[]string{"a b"}, []string{`"a b": its name must not contain whitespace`}, mail.SubjectToolCallError},
		"reserved subject": {nil, []string{"subjects that begin with '::' are the system's"}, mail.SubjectToolCallError},
	} {
		body := `[` + broadcastCall(c.names...) + `]`
		if c.names == nil {
			body = strings.Replace(body, "news", "::news::", 1)
		}
		a := hive.ask(body, task(name))
		for _, want := range c.want {
			if !strings.HasPrefix(a.Body, "boss got ["+c.mail+"] ") || !strings.Contains(a.Body, want) {
				t.Errorf("%s: answer %q lacks %q", name, a.Body, want)
			}
		}
	}
	if got := p.wire(); len(got) > 0 {
		t.Errorf("the wire had %q", got)
	}
}

// The form for all swarms passes over swarms that are down or not allowed, and lists
// them.
func TestInterswarmBroadcastForAll(t *testing.T) {
	p := federate(t, "hive", "depot", "yard")
	known := fakeKnownSwarms{
		{Name: "depot", Entrypoint: "math"}, {Name: "yard", Entrypoint: "boss", Down: true}, {Name: "nowhere", Entrypoint: "x"}, {Name: "barn", Entrypoint: "x"},
	}
	hive := p.knowing("hive", known, func(h *hive) { h.def.Agents[0].Targets = []string{"math", "*@depot", "*@yard", "*@nowhere"} })
	hive.ask(`[`+broadcastCall()+`,["task_complete",{"finish_message":"done"}]]`, task("t"))
	want := "SUCCESS: broadcast sent to 1 swarms; passed over: 1 not active, 1 not in comm_targets, 1 not to be reached"
	if got := hive.toolText("t", "send_interswarm_broadcast"); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// Without a target, or with too many, the agent gets the reason.
func TestInterswarmBroadcastWithoutTargets(t *testing.T) {
	var many fakeKnownSwarms
	for i := range 65 {
		many = append(many, swarm.KnownSwarm{Name: fmt.Sprint("s", i), Entrypoint: "desk"})
	}
	for name, c := range map[string]struct {
		known   fakeKnownSwarms
		targets []string
		want    string
	}{
		"none allowed": {fakeKnownSwarms{{Name: "depot", Entrypoint: "x", Down: true}, {Name: "barn", Entrypoint: "x"}}, []string{"math"},
			"broadcast not sent: of the swarms that are known, 1 not active, 1 not in comm_targets"},
		"none known": {fakeKnownSwarms{{Name: "hive", Entrypoint: "boss"}}, []string{"math", "*@*"}, "broadcast not sent: no other swarm is known"},
		"too many":   {many, []string{"math", "*@*"}, "it would reach more than 64 swarms; name fewer in target_swarms"},
	} {
		p := federate(t, "hive")
		p.mu.Lock()
		for _, n := range c.known {
			p.hives[n.Name] = p.hives["hive"]
		}
		p.mu.Unlock()
		hive := p.knowing("hive", c.known, func(h *hive) { h.def.Agents[0].Targets = c.targets })
		if a := hive.ask(`[`+broadcastCall()+`]`, task("t")); !strings.Contains(a.Body, c.want) || len(p.wire()) > 0 {
			t.Errorf("%s: answer %q lacks %q; wire %q", name, a.Body, c.want, p.wire())
		}
	}
}

// A swarm with an unknown entrypoint is written to where the task last wrote to.
func TestInterswarmBroadcastToKnownPeer(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.knowing("hive", fakeKnownSwarms{{Name: "depot"}})
	hive.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Type != mail.Response {
			return script(ctx, turn)
		}
		call(turn, mail.ToolTaskComplete, obj{"finish_message": call(turn, mail.ToolSendInterswarmBroadcast, obj{"subject": "news", "body": "b", "target_swarms": []string{"depot"}})})
		return swarm.Outcome{}
	}
	if a := hive.ask(requestTo("math@depot", "valves?"), task("t")); a.Body != "SUCCESS: broadcast sent to 1 swarms" {
		t.Fatalf("answer %+v", a)
	}
	// The end of the task follows the news, so that no turn may read them.
	depot := p.hives["depot"]
	eventually(t, "the end at the contributor", func() bool {
		return depot.load(guest("depot", "hive", "t")).Task.State == swarm.StateCompleted
	})
	news := func(e swarm.Event) bool {
		return strings.Contains(string(e.Extra), `"subject":"news"`) && strings.Contains(string(e.Extra), `"recipient":"math"`)
	}
	if log := depot.eventsOf(guest("depot", "hive", "t")); !slices.ContainsFunc(log, news) {
		t.Errorf("math@depot got no news: %+v", log)
	}
}

// 7.1: the tools are a supervisor's that may write to other swarms; the operator
// may take them away, and lets discover all or admins alone.
func TestInterswarmToolsAreGranted(t *testing.T) {
	const tell, seek = mail.ToolSendInterswarmBroadcast, mail.ToolDiscoverSwarms
	for name, c := range map[string]struct {
		change func(*swarm.Definition)
		role   mail.Role
		want   []string
		why    string // of the first one that is refused
	}{
		"a user":        {func(*swarm.Definition) {}, mail.RoleUser, []string{tell}, "the task is not an admin's; set [swarm] allow_agent_discovery = true"},
		"an admin":      {func(*swarm.Definition) {}, mail.RoleAdmin, []string{tell, seek}, ""},
		"let all":       {func(d *swarm.Definition) { d.Discovery = true }, mail.RoleUser, []string{tell, seek}, ""},
		"excluded":      {func(d *swarm.Definition) { d.Agents[0].Exclude = []string{tell, seek} }, mail.RoleAdmin, nil, "[agents.boss] exclude_tools names it"},
		"agent at home": {func(d *swarm.Definition) { d.Agents[0].Interswarm = false; d.Discovery = true }, mail.RoleAdmin, nil, "set enable_interswarm = true in [swarm] and in [agents.boss]"},
		"swarm at home": {func(d *swarm.Definition) { d.Interswarm = false }, mail.RoleAdmin, nil, "set enable_interswarm = true in [swarm] and in [agents.boss]"},
		"no supervisor": {func(d *swarm.Definition) { d.Agents[0].CanComplete, d.Agents[1].CanComplete = false, true }, mail.RoleAdmin, nil, "only supervisors have it"},
	} {
		var given []string
		var refused []string
		h := newHive(t, func(h *hive) {
			h.def.Interswarm = true
			h.def.Agents[0].Interswarm = true
			c.change(&h.def)
			h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
				var in abi.TurnInput
				if err := json.Unmarshal(turn.Input(), &in); err != nil {
					return failed(err)
				}
				for _, tool := range []string{tell, seek} {
					if slices.ContainsFunc(in.Tools, func(x abi.Tool) bool { return x.Name == tool }) {
						given = append(given, tool)
					} else {
						refused = append(refused, call(turn, tool, obj{}))
					}
				}
				return failed(context.Canceled)
			}
		})
		h.ask("x", func(p *swarm.Post) { p.Principal.Role = c.role })
		if !slices.Equal(given, c.want) {
			t.Errorf("%s: given %q, want %q", name, given, c.want)
		}
		if c.why != "" && (len(refused) == 0 || !strings.HasPrefix(refused[0], "ERROR DENIED") || !strings.Contains(refused[0], c.why)) {
			t.Errorf("%s: refused %q, want %q", name, refused, c.why)
		}
	}
}

// A person may be asked before news go out.
func TestInterswarmBroadcastIsABreakpoint(t *testing.T) {
	h := newHive(t, func(h *hive) {
		h.def.Interswarm, h.def.BreakpointTools = true, []string{mail.ToolSendInterswarmBroadcast}
		h.def.Agents[0].Interswarm = true
		h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			asks := turn.NeedsPerson(abi.OpMail, mail.ToolSendInterswarmBroadcast)
			call(turn, mail.ToolTaskComplete, obj{"finish_message": fmt.Sprint(asks)})
			return swarm.Outcome{}
		}
	})
	if a := h.ask("x"); a.Body != "true" {
		t.Errorf("answer %+v", a)
	}
}

// A message without a request is no reason to wait: await_message is refused at
// once instead of stalling. A timer is a reason.
func TestAwaitAfterInterswarmBroadcast(t *testing.T) {
	p := federate(t, "hive", "depot")
	hive := p.knowing("hive", fakeKnownSwarms{{Name: "depot", Entrypoint: "math"}})
	a := hive.ask(`[`+broadcastCall("depot")+`,["await_message",{}]]`, task("t"))
	want := "boss got [::tool_call_error::] no outstanding requests and message queue is empty"
	if a.State != swarm.StateCompleted || a.Body != want || hive.toolText("t", "await_message") != "ERROR: no outstanding requests and message queue is empty" {
		t.Errorf("answer %+v, want %q", a, want)
	}
	hive.agents.by["boss"] = func(ctx context.Context, turn *swarm.Turn) swarm.Outcome {
		if incoming(turn).Payload.Sender.Type == mail.System {
			return script(ctx, turn)
		}
		if _, fault := turn.SetTimer(time.Millisecond, "later"); fault != nil {
			return failed(fault)
		}
		call(turn, mail.ToolSendInterswarmBroadcast, obj{"subject": "s", "body": "b"})
		if got := call(turn, mail.ToolAwaitMessage, obj{}); got != "SUCCESS: waiting for a new message" {
			return failed(fmt.Errorf("await: %s", got))
		}
		return swarm.Outcome{}
	}
	if a := hive.ask("x", task("u")); a.State != swarm.StateCompleted {
		t.Errorf("answer %+v", a)
	}
}

// Who has answered a peer may wait for what comes: the task is the peer's.
func TestAwaitBehindAnAnswer(t *testing.T) {
	p := federate(t, "hive", "depot")
	depot := p.hives["depot"]
	waited := make(chan string, 1)
	depot.agents.by["math"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
		call(turn, mail.ToolSendResponse, obj{"target": "boss@hive", "subject": "Re", "body": "here"})
		waited <- call(turn, mail.ToolAwaitMessage, obj{})
		return swarm.Outcome{}
	}
	if a := p.hives["hive"].ask(requestTo("math@depot", "x"), task("t")); a.Body != "boss got [Re] here" {
		t.Errorf("answer %+v", a)
	}
	select {
	case got := <-waited:
		if got != "SUCCESS: waiting for a new message" {
			t.Errorf("await: %s", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("math@depot, which has answered, did not come to wait for a message")
	}
}

// help lists the other swarms that an agent may write to, in bounds, with the text of
// each swarm on its own line.
func TestHelpListsSwarms(t *testing.T) {
	known := fakeKnownSwarms{
		{Name: "depot", Entrypoint: "desk", Description: "stock\n===== SUMMARY =====\nand more " + strings.Repeat("x", 500)},
		{Name: "yard", Down: true}, {Name: "barn"},
	}
	for i := range 40 {
		known = append(known, swarm.KnownSwarm{Name: fmt.Sprint("s", i)})
	}
	var text string
	h := newHive(t, func(h *hive) {
		h.opt.KnownSwarms = known
		h.def.Agents[0].Targets = []string{"math", "a@depot", "*@yard"}
		h.agents.by["boss"] = func(_ context.Context, turn *swarm.Turn) swarm.Outcome {
			text = call(turn, mail.ToolHelp, obj{"get_summary": false, "get_identity": true})
			call(turn, mail.ToolTaskComplete, obj{"finish_message": ""})
			return swarm.Outcome{}
		}
	})
	h.ask("x")
	if strings.Contains(text, "depot (") || strings.Contains(text, "Other swarms") {
		t.Errorf("an agent that stays at home is told %s", text)
	}
	h.def.Agents[0].Interswarm = true
	h.restart()
	h.ask("x")
	_, list, _ := strings.Cut(text, "Other swarms, in their own words:\n")
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], `- depot (write to desk@depot): "stock ===== SUMMARY ===== and more xx`) || len(lines[0]) > 260 ||
		lines[1] != "- yard (does not answer now)" {
		t.Errorf("told %q", lines)
	}
	h.def.Agents[0].Targets = []string{"math", "*@*"}
	h.restart()
	h.ask("x")
	if !strings.Contains(text, "\n- s28\nand 11 more\n") {
		t.Errorf("told %s", text)
	}
}
