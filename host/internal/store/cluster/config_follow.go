package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// awaitConfig waits before the first sign of life until this host runs what is in force on the others. One
// that is alone puts what it runs in force. Hosts that are silent are fenced: nobody else may be there to
// do it.
func (m *Member) awaitConfig(ctx context.Context) {
	if m.config.own == nil {
		return
	}
	t := time.NewTicker(m.opts.Beat)
	defer t.Stop()
	for {
		began := m.opts.Now()
		err := m.readAll(ctx, began, false)
		if err == nil {
			m.fenceSilent(ctx)
			err = m.beginConfig(ctx)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if before := m.Deviation(); before == nil || before.Error() != err.Error() {
			m.opts.Logger.Warn("this host takes no tasks", "err", err)
		}
		m.setDeviation(err)
		select {
		case <-t.C:
		case <-m.config.wake:
		case <-ctx.Done():
			return
		}
	}
}

// firstConfig is the row of inforce, which the first host makes.
const firstConfig = `WITH done AS (INSERT INTO inforce VALUES (true, 1, $1, 1, 0, '') ON CONFLICT DO NOTHING RETURNING 1::bigint AS n)`

// raiseConfig puts in force what a host runs that is alone, with its first sign of life: of two such hosts the
// second is not alone.
const raiseConfig = `WITH raised AS (UPDATE inforce SET generation = proposal + 1, proposal = proposal + 1, proposer = 0, config = $1
	WHERE generation = $2 AND NOT EXISTS (SELECT FROM hosts h JOIN beats USING (hid) WHERE NOT h.dead) RETURNING generation AS n),
	done AS (INSERT INTO beats SELECT $3::bigint, 1, $4::text FROM raised RETURNING n)`

// beginConfig returns why this host does not run what is in force on the others.
func (m *Member) beginConfig(ctx context.Context) error {
	running := m.config.own.Running()
	text := m.configText(running)
	if _, err := m.changeConfig(ctx, firstConfig, text); err != nil {
		return err
	}
	st, err := m.readConfig(ctx)
	if err == nil && st.config != text {
		var raised int64
		raised, err = m.changeConfig(ctx, raiseConfig, text, st.generation, m.opts.HID, m.opts.Address)
		if err == nil && raised == 0 {
			err = m.follow(ctx, st)
		}
	}
	if err == nil {
		err = m.config.own.Persist(ctx)
	}
	if err == nil {
		m.setDeviation(nil)
	}
	return err
}

// isLike reports whether what this host runs is a configuration of all hosts, or of another version: then it
// cannot be told.
func (m *Member) isLike(text string) bool {
	var all agreed
	if json.Unmarshal([]byte(text), &all) != nil || all.Version != m.opts.Version {
		return true
	}
	return len(differing(m.config.own.Running(), all.Parts)) == 0
}

// errIsLike ends a Prepare for which a reload of this host's was waited that has done it.
var errIsLike = errors.New("the host runs it already")

// follow makes this host run what is in force.
func (m *Member) follow(ctx context.Context, st configState) error {
	if m.config.followed == st.generation {
		return nil
	}
	err := errIsLike
	if !m.isLike(st.config) {
		err = m.config.own.Prepare(ctx, func(parts map[string]string) error {
			if m.isLike(st.config) {
				return errIsLike
			}
			return m.checkParts(st.config, parts)
		})
	}
	if err == nil {
		err = m.config.own.Adopt(ctx)
	}
	if err != nil && !errors.Is(err, errIsLike) {
		return fmt.Errorf("%w: %w", errConfig, err)
	}
	m.config.followed = st.generation
	return nil
}

// followConfig takes part in the reloads of other hosts until ctx ends, or until this host cannot run what is in
// force on the others.
func (m *Member) followConfig(ctx context.Context, stop context.CancelCauseFunc) error {
	if m.config.own == nil {
		return nil
	}
	defer m.dropPrepared()
	t := time.NewTicker(m.opts.Beat)
	defer t.Stop()
	for {
		err := m.followOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errConfig):
			if m.config.deviates.IsZero() {
				m.config.deviates = m.opts.Now()
			}
			m.opts.Logger.Warn("this host cannot follow the others", "err", err)
			if m.opts.Now().Sub(m.config.deviates) >= m.opts.TTL {
				stop(err)
				return err
			}
		case err != nil:
			m.config.deviates = time.Time{} // nor can anything be put in force
			m.opts.Logger.Warn("cannot read which configuration is in force", "err", err)
		default:
			m.config.deviates = time.Time{}
		}
		select {
		case <-t.C:
		case <-m.config.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// followOnce adopts what is in force, and votes on what is proposed.
func (m *Member) followOnce(ctx context.Context) error {
	c, alive := &m.config, m.isAlive()
	st, err := m.readConfig(ctx)
	if err != nil {
		return err
	}
	if c.prepared != 0 && c.prepared == st.generation {
		c.prepared = 0
		if err := c.own.Adopt(ctx); err != nil {
			return fmt.Errorf("%w: %w", errConfig, err)
		}
	}
	if c.prepared != 0 && (c.prepared != st.proposal || st.proposer == 0) {
		m.dropPrepared()
	}
	if err := m.follow(ctx, st); err != nil {
		m.setFollows(false)
		return err
	}
	if alive {
		m.setFollows(true)
	}
	switch {
	case st.proposer == m.opts.HID && !m.isProposing(): // its end could not be told
		_, err = m.changeConfig(ctx, withdrawProposal, st.proposal, m.opts.HID)
	case st.proposer != 0 && st.proposer != m.opts.HID && c.voted != st.proposal:
		err = m.voteOn(ctx, st)
	}
	return err
}

func (m *Member) isProposing() bool {
	m.config.mu.Lock()
	defer m.config.mu.Unlock()
	return m.config.proposes
}

// voteOn prepares what another host proposes, and votes. What was prepared for a proposal that is none any
// more is dropped with the next look.
func (m *Member) voteOn(ctx context.Context, st configState) error {
	c, refusal := &m.config, ""
	if c.prepared != st.proposal {
		err := c.own.Prepare(ctx, func(parts map[string]string) error { return m.checkParts(st.proposed, parts) })
		switch {
		case err == nil:
			c.prepared = st.proposal
		case ctx.Err() != nil:
			return err
		default:
			refusal = refusalText(err)
		}
	}
	err := m.vote(ctx, st.proposal, refusal)
	if err == nil {
		c.voted = st.proposal
	}
	return err
}

// maxRefusal bounds the text of a refusal, in bytes.
const maxRefusal = 4 << 10

// refusalText is the text of a refusal as the server takes it. That nothing has changed says who proposes.
func refusalText(err error) string {
	text := strings.TrimPrefix(err.Error(), "nothing has changed: ")
	text = strings.TrimPrefix(text, "nothing has changed, because ")
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), maxRefusal)], "")
}

func (m *Member) dropPrepared() {
	if m.config.prepared != 0 {
		m.config.prepared = 0
		m.config.own.Drop()
	}
}
