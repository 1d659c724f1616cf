package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// votePatience bounds how long a host has for its vote: it compiles modules. votePause is the time between
// two looks at the votes, settlePatience bounds how long the end of a reload is looked for.
const (
	votePatience   = 5 * time.Minute
	votePause      = 50 * time.Millisecond
	settlePatience = 30 * time.Second
)

// errNoMember: this host does not run what is in force on the others.
var errNoMember = errors.New("nothing has changed: this host takes no tasks yet: reload at one that does")

// errReloading: one reload is under way at a time.
var errReloading = errors.New("nothing has changed: another host reloads: reload again when it is done")

// AgreeConfig puts parts in force on all hosts, if each of them can follow: then the caller is to
// adopt what it has prepared. Otherwise nothing has changed anywhere, unless the error is another one.
func (m *Member) AgreeConfig(ctx context.Context, parts map[string]string) error {
	if !m.isAlive() { // nobody fences it, and its proposal would stay
		return errNoMember
	}
	m.setProposes(true)
	defer m.setProposes(false)
	ctx, stop := context.WithTimeout(ctx, votePatience)
	defer stop()
	const propose = `WITH done AS (UPDATE inforce SET proposal = proposal + 1, proposer = $1, proposed = $2
		WHERE proposer IN (0, $1) OR NOT ` + isProposerAlive + ` RETURNING proposal AS n)`
	n, err := m.changeConfig(ctx, propose, m.opts.HID, m.configText(parts))
	if err != nil {
		return fmt.Errorf("nothing has changed: the other hosts cannot be asked: %w", err)
	}
	if n == 0 {
		return errReloading
	}
	err = m.vote(ctx, n, "")
	for err == nil {
		var done bool
		if done, err = m.settle(ctx, n); done {
			return nil
		}
		select {
		case <-time.After(votePause):
		case <-ctx.Done():
		}
	}
	return m.withdraw(context.WithoutCancel(ctx), n, err)
}

func (m *Member) setProposes(yes bool) {
	m.config.mu.Lock()
	defer m.config.mu.Unlock()
	m.config.proposes = yes
}

// commitProposal puts a proposal in force. A host that has come since the votes were read has to vote, too; one
// that comes later starts with what is in force.
const commitProposal = `WITH done AS (UPDATE inforce SET generation = proposal, config = proposed, proposer = 0
	WHERE proposal = $1 AND proposer = $2 AND EXISTS (SELECT FROM hosts WHERE hid = $2 AND NOT dead) AND NOT EXISTS (SELECT FROM hosts h JOIN beats USING (hid)
	LEFT JOIN votes v ON v.hid = h.hid AND v.proposal = $1 AND v.refusal = '' WHERE NOT h.dead AND v.hid IS NULL)
	RETURNING generation AS n)`

// settle puts a proposal in force once all hosts have voted for it. An error ends it.
func (m *Member) settle(ctx context.Context, n int64) (done bool, err error) {
	missing, refusals, err := m.readVotes(context.WithoutCancel(ctx), n)
	if len(refusals) > 0 {
		return false, errors.New(strings.Join(refusals, "; "))
	}
	if ctx.Err() != nil {
		if len(missing) > 0 {
			return false, fmt.Errorf("no answer yet from the host at %s", strings.Join(missing, ", "))
		}
		return false, context.Cause(ctx)
	}
	if err != nil || len(missing) > 0 {
		return false, nil // it is asked again
	}
	got, err := m.changeConfig(ctx, commitProposal, n, m.opts.HID)
	if err == nil && got == 0 {
		_, err = m.stillProposed(ctx, n)
		return false, err
	}
	return err == nil, err
}

// errWithdrawn: a proposal is no longer one.
var errWithdrawn = errors.New("another host has taken this one for dead")

func (m *Member) stillProposed(ctx context.Context, n int64) (bool, error) {
	st, err := m.readConfig(ctx)
	if err == nil && (st.proposal != n || st.proposer != m.opts.HID) {
		return false, errWithdrawn
	}
	return err == nil, err
}

// readVotes lists the live hosts that have not voted on a proposal, and why others refuse it.
func (m *Member) readVotes(ctx context.Context, n int64) (missing, refusals []string, err error) {
	const text = `SELECT b.address, v.refusal FROM hosts h JOIN beats b USING (hid)
		LEFT JOIN votes v ON v.hid = h.hid AND v.proposal = $1 WHERE NOT h.dead ORDER BY h.hid`
	err = m.queryConfig(ctx, text, []any{n}, func(r pgx.Rows) error {
		var address string
		var refusal *string
		err := r.Scan(&address, &refusal)
		switch {
		case refusal == nil:
			missing = append(missing, address)
		case *refusal != "":
			refusals = append(refusals, fmt.Sprintf("the host at %s cannot follow: %s", address, *refusal))
		}
		return err
	})
	return missing, refusals, err
}

// vote tells the host that proposes whether this one can follow.
func (m *Member) vote(ctx context.Context, n int64, refusal string) error {
	const text = "INSERT INTO votes VALUES ($1, $2, $3) ON CONFLICT (hid) DO UPDATE SET proposal = excluded.proposal, refusal = excluded.refusal"
	m.config.asking.Lock()
	defer m.config.asking.Unlock()
	return m.config.exec(ctx, text, m.opts.HID, n, refusal)
}

// withdraw ends a proposal that was not put in force because of why, which it returns. The answer to the
// statement that put it in force may have been lost: then it returns nil.
func (m *Member) withdraw(ctx context.Context, n int64, why error) error {
	ctx, stop := context.WithTimeout(ctx, settlePatience)
	defer stop()
	for {
		_, err := m.changeConfig(ctx, withdrawProposal, n, m.opts.HID)
		var st configState
		if err == nil {
			st, err = m.readConfig(ctx)
		}
		switch {
		case err == nil && st.generation == n:
			return nil
		case err == nil:
			return fmt.Errorf("nothing has changed: %w", why)
		}
		select {
		case <-time.After(votePause):
		case <-ctx.Done():
			return fmt.Errorf("whether the file is in force is not known: the hosts go by what the server has once they reach it: %w", err)
		}
	}
}

const withdrawProposal = "WITH done AS (UPDATE inforce SET proposer = 0 WHERE proposal = $1 AND proposer = $2 RETURNING proposal AS n)"
