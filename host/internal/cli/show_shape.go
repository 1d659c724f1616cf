package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skep/host/client"
)

// showShape prints another's task without what it says.
func (a *app) showShape(ctx context.Context, c *client.Client, of client.TaskOf) error {
	t, err := c.TaskShape(ctx, of)
	if err != nil {
		return err
	}
	mail, err := allMail(ctx, c, of)
	if err != nil {
		return err
	}
	var turns []client.Turn
	for turn, err := range c.TurnsOf(ctx, of, 0) {
		if err != nil {
			return err
		}
		turns = append(turns, turn)
	}
	if a.json() {
		return a.printShapeJSON(t, mail, turns)
	}
	if err := a.printRows(append(taskHead(a.dataStyle(), t), [2]string{"shown", "the shape; what was said is the owner's"})); err != nil {
		return err
	}
	for _, m := range mail {
		if err := a.printf("%s\n", mailLine(m)); err != nil {
			return err
		}
	}
	for _, turn := range turns {
		if err := a.printf("%s\n", turnLine(turn)); err != nil {
			return err
		}
	}
	return nil
}

func allMail(ctx context.Context, c *client.Client, of client.TaskOf) (all []client.Mail, err error) {
	for after := int64(0); ; {
		page, next, err := c.TaskMail(ctx, of, after)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); next <= after {
			return all, nil
		}
		after = next
	}
}

func (a *app) printShapeJSON(t client.Task, mail []client.Mail, turns []client.Turn) error {
	raw := make([]json.RawMessage, len(turns))
	for i, turn := range turns {
		raw[i] = turn.Raw
	}
	return a.printJSON(struct {
		Task  json.RawMessage   `json:"task"`
		Mail  []client.Mail     `json:"mail"`
		Turns []json.RawMessage `json:"turns"`
	}{t.Raw, append([]client.Mail{}, mail...), raw})
}

func mailLine(m client.Mail) string {
	at := pad(localTime(m.Time), 19) + "  "
	if m.From == "" {
		return at + inLine(m.Event)
	}
	to := m.Recipient
	if to == "" {
		to = strings.Join(m.To, ", ")
	}
	return at + fmt.Sprintf("%s → %s  %s, tier %d, %s", inLine(m.From), inLine(to), inLine(m.Type), m.Tier, plural(int64(m.Size), "byte"))
}

func turnLine(t client.Turn) string {
	line := fmt.Sprintf("turn %d of %s: ", t.N, inLine(t.Agent))
	if t.Exit == "" {
		line += "not over"
	} else {
		line += inLine(t.Exit)
	}
	if u := t.Usage; u != nil {
		line += fmt.Sprintf(" · %s fuel · %s cpu · %s", quantity(u.Fuel), span(u.CPU), span(u.Wall))
		if u.Tokens > 0 {
			line += " · " + modelText(u.Tokens, u.MicroUSD)
		}
	}
	var ops []string
	for op, n := range t.Ops {
		ops = append(ops, fmt.Sprintf("%s ×%d", inLine(op), n))
	}
	slices.Sort(ops)
	if len(ops) > 0 {
		line += " · " + strings.Join(ops, ", ")
	}
	return strings.Join(append([]string{line}, modelFailureTexts(t)...), " · ")
}
