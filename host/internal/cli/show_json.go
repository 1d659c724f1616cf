package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"

	"skep/host/client"
)

// showJSON prints a task's record with three more members: events, turns and
// history. It writes them as they come, because a log may be larger than memory.
func (a *app) showJSON(ctx context.Context, c *client.Client, t client.Task) error {
	var head bytes.Buffer
	if err := json.Indent(&head, t.Raw, "", "  "); err != nil {
		return err
	}
	out := bufio.NewWriter(a.env.Stdout)
	out.Write(bytes.TrimSuffix(head.Bytes(), []byte("\n}"))) // what cannot be written shows when it is flushed
	out.WriteString(",\n  \"events\": [")
	agents := map[string]bool{}
	err := elements(out, "    ", func(yield func(any, error) bool) {
		for e, err := range c.Log(ctx, t.ID, 0, t.Cursor) {
			agents[e.Recipient()], agents[e.Caller()] = true, true
			if !yield(e, err) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	out.WriteString("\n  ],\n  \"turns\": [")
	if err := turnElements(ctx, out, c, t.ID); err != nil {
		return err
	}
	out.WriteString("\n  ],\n  \"history\": {")
	delete(agents, "")
	if err := histories(ctx, out, c, t.ID, slices.Sorted(maps.Keys(agents))); err != nil {
		return err
	}
	out.WriteString("\n  }\n}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

func turnElements(ctx context.Context, out *bufio.Writer, c *client.Client, task string) error {
	return elements(out, "    ", func(yield func(any, error) bool) {
		for turn, err := range c.Turns(ctx, task, 0) {
			if !yield(turn.Raw, err) {
				return
			}
		}
	})
}

func histories(ctx context.Context, out *bufio.Writer, c *client.Client, task string, agents []string) error {
	for i, agent := range agents {
		name, err := json.Marshal(agent)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteString(",")
		}
		fmt.Fprintf(out, "\n    %s: [", name)
		err = elements(out, "      ", func(yield func(any, error) bool) {
			for e, err := range c.Entries(ctx, task, agent, 0) {
				var refusal *client.Error
				if errors.As(err, &refusal) && refusal.Status == http.StatusNotFound {
					return // no agent of this host's
				}
				if !yield(e.Raw, err) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
		out.WriteString("\n    ]")
	}
	return nil
}

// elements writes the elements of an array, each on a line of its own.
func elements(out *bufio.Writer, indent string, list iter.Seq2[any, error]) error {
	separator := "\n" + indent
	for v, err := range list {
		if err != nil {
			return err
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		out.WriteString(separator)
		if _, err := out.Write(raw); err != nil {
			return fmt.Errorf("write to stdout: %w", err)
		}
		separator = ",\n" + indent
	}
	return nil
}
