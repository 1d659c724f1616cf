package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/client"
)

const topHelp = `Top shows what a host does: its tenants, the agents that work most, tasks that wait or
cost most, and what has failed, was refused or asks people. Operators see all tenants,
admins theirs, users their own tasks; nobody sees content.

It counts the events that the host has kept (the last 8192) and those that come, until
Ctrl-C. With --once, with -o json, or without a terminal it prints one page of what the
host has kept.

Where several hosts share a store, it counts the events of all, through the host that is
asked. It names the hosts that it speaks for, and those that do not answer.`

// Orders of tenants and agents.
const (
	topByWork = "work"
	topByCost = "cost"
)

// Times between pages, and between looks at the lists of the host.
const (
	topEvery      = time.Second
	topListsEvery = 5
)

func (a *app) topCommand() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use: "top", Short: "Show what a host does now", GroupID: groupHost, Args: atMost(0), Long: topHelp,
		Example: "  skep top\n  skep top --once\n  skep top --order cost\n  skep top --tenant acme -o json | jq '.agents[0]'",
	}
	cmd.Flags().BoolVar(&once, "once", false, "print one page and end")
	order := cmd.Flags().String("order", topByWork, "the `ORDER` of the lists: work (the busiest agents first) or cost (the dearest tenants and agents first)")
	tenant := tenantFlag(cmd)
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		if *order != topByWork && *order != topByCost {
			return usagef("--order is work or cost, not %q", *order)
		}
		t := topView{app: a, client: c, tenant: *tenant, count: newTopCounter(), feeds: newTopFeeds(c, *tenant)}
		if err := t.open(cmd.Context()); err != nil {
			return err
		}
		t.count.byCost = *order == topByCost
		if once || a.json() || !a.env.StdoutTerminal || a.env.Every == nil {
			return t.printOnce()
		}
		return t.run(cmd.Context())
	})
	return cmd
}

// topView is one run of top.
type topView struct {
	app    *app
	client *client.Client
	tenant string
	scope  string
	feeds  *topFeeds
	count  *topCounter
	lists  topPage // of its fields only those that come from lists
	states map[string]topTasks
}

// open reads what the host has kept, and its lists.
func (t *topView) open(ctx context.Context) error {
	who, err := t.client.WhoAmI(ctx)
	if err != nil {
		return err
	}
	switch {
	case who.Operator && t.tenant == "":
		t.scope = "host"
	case who.Role == "admin":
		t.scope = "tenant"
	default:
		t.scope = "own"
	}
	if err := t.feeds.readKept(ctx, t.count.add); err != nil {
		return err
	}
	return t.readLists(ctx)
}

// maxTopTasks is how many tasks of a state are counted.
const maxTopTasks = 500

// readLists reads which tasks have not ended, and what waits for people.
func (t *topView) readLists(ctx context.Context) error {
	t.states, t.lists = map[string]topTasks{}, topPage{Dearest: []topTask{}}
	for _, state := range []string{"running", "paused"} {
		tasks, next, err := t.client.SelectTasks(ctx, client.TaskQuery{Scope: t.scope, Tenant: t.tenant, State: state}, maxTopTasks)
		if err != nil {
			return err
		}
		t.lists.Tasks.More = t.lists.Tasks.More || next != ""
		for _, task := range tasks {
			t.countTask(task)
			t.addDearest(task)
		}
		if err := t.readDearest(ctx, state); err != nil {
			return err
		}
	}
	questions, next, err := t.client.Questions(ctx, t.tenant, "")
	t.lists.Questions, t.lists.MoreQuestions = len(questions), next != ""
	return err
}

func (t *topView) countTask(task client.Task) {
	tenant := task.Tenant
	for name := range t.count.tenants {
		if t.scope == "own" { // the feed has one tenant, and own tasks do not name it
			tenant = name
		}
	}
	n := t.states[tenant]
	for _, list := range []*topTasks{&n, &t.lists.Tasks} {
		if task.State == statePaused {
			list.Paused++
		} else {
			list.Running++
		}
	}
	t.states[tenant] = n
}

// page joins what was counted with the lists.
func (t *topView) page() topPage {
	for tenant := range t.states {
		t.count.tenant(tenant)
	}
	p := t.count.page()
	p.Hosts, p.Silent = t.feeds.hosts()
	if len(p.Hosts) == 1 && len(p.Silent) == 0 {
		p.Host = p.Hosts[0]
	}
	p.Tasks, p.Questions, p.MoreQuestions, p.Dearest = t.lists.Tasks, t.lists.Questions, t.lists.MoreQuestions, t.lists.Dearest
	for i := range p.Tenants {
		n := t.states[p.Tenants[i].Tenant]
		p.Tenants[i].Running, p.Tenants[i].Paused = n.Running, n.Paused
	}
	return p
}

func (t *topView) printOnce() error {
	if t.app.json() {
		return t.app.printJSON(t.page())
	}
	return t.app.printf("%s", strings.Join(t.app.topLines(t.page()), "\n")+"\n")
}

// Terminals: the other screen, without a cursor, and back.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// run shows a page each second until the command is interrupted.
func (t *topView) run(ctx context.Context) (err error) {
	follow, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := t.feeds.follow(follow); err != nil {
		return err
	}
	if err := t.app.printf(enterScreen); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.app.printf(leaveScreen)) }()
	ticks, stop := t.app.env.Every(topEvery)
	defer stop()
	if err := t.draw(); err != nil {
		return err
	}
	for n := 1; ; {
		select {
		case <-ticks:
			n++
			if err := t.redraw(follow, n); err != nil && ctx.Err() == nil {
				return err
			}
		case end := <-t.feeds.ended:
			t.feeds.noteEnd(end)
		case e := <-t.feeds.events:
			t.feeds.note(e.host, e.PulseEvent)
			t.count.add(e.PulseEvent)
		case <-ctx.Done():
			return nil
		}
	}
}

// redraw writes the page n, for some of which the lists are read again.
func (t *topView) redraw(ctx context.Context, n int) error {
	if n%topListsEvery == 0 {
		if err := errors.Join(t.feeds.follow(ctx), t.readLists(ctx)); err != nil {
			return err
		}
	}
	return t.draw()
}

// draw writes a page over the one before.
func (t *topView) draw() error {
	lines := t.app.topLines(t.page())
	if h := t.app.env.Height; h > 0 && len(lines) > h {
		lines = append(lines[:h-1], t.app.clipped(fmt.Sprintf("and %s: make the terminal higher", plural(int64(len(lines)-h+1), "more line"))))
	}
	return t.app.printf("\x1b[H%s\x1b[K\x1b[J", strings.Join(lines, "\x1b[K\r\n"))
}
