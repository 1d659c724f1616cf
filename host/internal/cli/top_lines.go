package cli

import (
	"fmt"
	"strings"
	"time"

	"skep/host/client"
)

// maxTopAgents is how many agents a page shows.
const maxTopAgents = 12

// topLines renders a page.
func (a *app) topLines(p topPage) []string {
	orMore := map[bool]string{true: " or more"}
	st := a.dataStyle()
	lines := []string{
		fmt.Sprintf("%s  events %s to %s", st.bold(inLine(strings.Join(p.Hosts, ", "))), clock(p.Since), clock(p.Until)),
		fmt.Sprintf("tasks: %d running, %d paused%s · %s%s for people", p.Tasks.Running, p.Tasks.Paused, orMore[p.Tasks.More], plural(int64(p.Questions), "question"), orMore[p.MoreQuestions]),
	}
	for _, s := range p.Silent {
		lines = append(lines, st.yellow(a.clipped("without "+inLine(s.Host)+": "+inLine(s.Reason))))
	}
	if p.Missed > 0 {
		lines = append(lines, st.yellow(fmt.Sprintf("%d events were missed", p.Missed)))
	}
	var others string
	if n := len(p.Agents) - maxTopAgents; n > 0 {
		others = "and " + plural(int64(n), "more agent") + "; -o json has all"
	}
	lines = append(lines, a.topTable(tenantRows(p.Tenants), "")...)
	lines = append(lines, a.topTable(agentRows(p.Agents), others)...)
	lines = append(lines, a.topTable(dearestRows(p.Dearest), "")...)
	for i, e := range p.Recent {
		if i == 0 {
			lines = append(lines, "")
		}
		lines = append(lines, a.clipped(recentLine(e)))
	}
	return lines
}

func tenantRows(list []topTenant) [][]string {
	rows := [][]string{{"TENANT", "RUNNING", "PAUSED", "ENDED", "FAILED", "REFUSED", "TURNS", "FAILED TURNS", "CPU", "TOKENS", "COST"}}
	for _, t := range list {
		name := inLine(t.Tenant)
		if name == "" {
			name = "(host)" // what belongs to no tenant, as a request without a valid token
		}
		cells := []string{name, fmt.Sprint(t.Running), fmt.Sprint(t.Paused), fmt.Sprint(t.Ended), fmt.Sprint(t.Failed), fmt.Sprint(t.Refused)}
		rows = append(rows, append(cells, t.cells()...))
	}
	return rows
}

func agentRows(list []topAgent) [][]string {
	rows := [][]string{{"AGENT", "MAIL", "WAIT", "TURNS", "FAILED TURNS", "CPU", "TOKENS", "COST"}}
	for _, g := range list[:min(len(list), maxTopAgents)] {
		rows = append(rows, append([]string{inLine(g.Tenant + "/" + g.Agent), fmt.Sprint(g.Mail), span(g.wait())}, g.cells()...))
	}
	return rows
}

func dearestRows(list []topTask) [][]string {
	rows := [][]string{{"TASK", "OWNER", "STATE", "STARTED", "TURNS", "COST"}}
	for _, t := range list {
		owner := strings.TrimPrefix(t.Tenant+"/"+t.Instance, "/")
		rows = append(rows, []string{inLine(t.Task), inLine(owner), inLine(t.State), localTime(wireTime(t.Started)), fmt.Sprint(t.Turns), moneyText(t.MicroUSD)})
	}
	return rows
}

func recentLine(e client.PulseEvent) string {
	return fmt.Sprintf("%s  %s  %s %s", clock(e.Time), pad(inLine(e.Kind), 10), inLine(strings.Trim(e.Tenant+" "+e.Task, " ")), pulseText(style{}, e))
}

func (n *topCount) cells() []string {
	return []string{fmt.Sprint(n.Turns), fmt.Sprint(n.TurnsFailed), span(milliseconds(n.CPUms)), quantity(uint64(max(0, n.Tokens))), moneyText(n.MicroUSD)}
}

// topTable renders an empty line, rows below a head, and what stands below them. Without rows it is empty.
func (a *app) topTable(rows [][]string, below string) []string {
	if len(rows) == 1 {
		return nil
	}
	lines := append([]string{""}, a.tableLines(rows)...)
	if below != "" {
		lines = append(lines, a.clipped(below))
	}
	return lines
}

// tableLines renders rows below a head.
func (a *app) tableLines(rows [][]string) (lines []string) {
	wide := make([]int, len(rows[0])-1)
	for _, row := range rows {
		for i := range wide {
			wide[i] = max(wide[i], len([]rune(row[i])))
		}
	}
	for i, row := range rows {
		line := a.clipped(alignCells(row, wide))
		if i == 0 {
			line = a.dataStyle().dim(line)
		}
		lines = append(lines, line)
	}
	return lines
}

// clipped shortens a line to the width of the terminal.
func (a *app) clipped(line string) string {
	if !a.env.StdoutTerminal {
		return line
	}
	return clip(line, a.env.Width)
}

// clock renders a time of the day, "-" for none.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("15:04:05")
}
