package sqlite

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"skep/host/internal/swarm"
)

// exportVersion is the form of an export.
const exportVersion = 1

// line is one line of an export. The body is Data where it is JSON, else Text
// where it is text, else Bytes.
type line struct {
	Kind     string          `json:"kind"`
	Version  int             `json:"version,omitempty"`
	Tenant   string          `json:"tenant,omitempty"`
	Swarm    string          `json:"swarm,omitempty"`
	Instance string          `json:"instance,omitempty"`
	Task     string          `json:"task,omitempty"`
	Agent    string          `json:"agent,omitempty"`
	Scope    string          `json:"scope,omitempty"`
	Name     string          `json:"name,omitempty"`
	Gateway  string          `json:"gateway,omitempty"`
	Realm    string          `json:"realm,omitempty"`
	Turn     int64           `json:"turn,omitempty"`
	N        int64           `json:"n,omitempty"`
	SHA256   string          `json:"sha256,omitempty"` // of a blob
	Stash    bool            `json:"stash,omitempty"`
	Post     *post           `json:"submission,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	Text     string          `json:"text,omitempty"`
	Bytes    []byte          `json:"bytes,omitempty"`
}

// post is a submission in an export.
type post struct {
	Door    string    `json:"door"`
	Key     string    `json:"key"`
	Task    string    `json:"task"`
	Row     int64     `json:"row"`
	Cursor  int64     `json:"cursor"`
	Expires time.Time `json:"expires"`
	Answer  int64     `json:"answer,omitempty"`
	// Of a gateway's submission.
	Agent    string        `json:"agent,omitempty"`
	Accepted time.Time     `json:"accepted,omitzero"`
	Keep     time.Duration `json:"keep,omitempty"`
}

// Export implements [swarm.Tenants]. A line of kind tenant opens the export and
// one of kind end closes it: without that it is not whole.
func (s *Store) Export(ctx context.Context, tenant string, out io.Writer) error {
	b := bufio.NewWriter(out)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(line{Kind: "tenant", Version: exportVersion, Tenant: tenant})
	if err == nil {
		err = s.walk(ctx, tenant, func(items []item) error {
			for _, it := range items {
				if it.column.kind == "" {
					continue
				}
				l, err := s.line(it)
				if err == nil {
					err = enc.Encode(l)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil {
		err = s.exportTokens(ctx, tenant, enc)
	}
	if err == nil {
		err = s.exportConfined(ctx, tenant, enc)
	}
	if err == nil {
		err = s.exportUsage(ctx, tenant, enc)
	}
	if err == nil {
		err = enc.Encode(line{Kind: "end"})
	}
	if err == nil {
		err = b.Flush()
	}
	return wrapError("export tenant", tenant, err)
}

func (s *Store) line(it item) (line, error) {
	l := line{
		Kind: it.column.kind, Swarm: it.key.Swarm, Instance: it.key.Instance, Task: it.key.Task,
		Agent: it.facts.agent, Scope: it.facts.scope, Name: it.facts.name,
		Gateway: it.facts.gateway, Realm: it.facts.realm, Turn: it.facts.turn,
		N: it.at.seq, Stash: it.facts.stash,
	}
	if p := it.facts.post; p != nil {
		l.Post = &post{p.Door, p.Key, p.Task, p.Row, p.Cursor, p.Expires, p.Answer, p.Agent, p.Accepted, p.Keep}
	}
	if it.body == nil {
		return l, nil
	}
	raw, err := opener{s.codec, it.place()}.open(it.body, it.at)
	if err != nil {
		return l, fmt.Errorf("%s %d of task %q: %w", l.Kind, l.N, l.Task, err)
	}
	if it.table == blobTable {
		l.SHA256 = swarm.BlobID(sha256.Sum256(raw)).String()
	}
	switch {
	case it.table != blobTable && json.Valid(raw): // a blob is told byte for byte
		l.Data = raw
	case utf8.Valid(raw):
		l.Text = string(raw)
	default:
		l.Bytes = raw
	}
	return l, nil
}
