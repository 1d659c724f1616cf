package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Configuration is a host's own file, which is to be the same on all hosts. Its parts are digests by
// what they are called. The caller of Prepare calls Adopt or Drop next.
type Configuration interface {
	// Running are the parts in force on this host.
	Running() map[string]string
	// Prepare reads the file and readies it for Adopt. It fails unless check returns nil for the file's parts.
	Prepare(ctx context.Context, check func(parts map[string]string) error) error
	// Adopt puts in force what was prepared, Drop forgets it.
	Adopt(ctx context.Context) error
	Drop()
	// Persist stores again what tasks begin with, if other hosts have dropped it while this one waited.
	Persist(ctx context.Context) error
}

// configTables: inforce is the configuration in force on all hosts, and the one that is proposed by a host while
// a reload is under way, proposer is 0 otherwise. A vote is a host's newest; without a refusal the host has
// prepared the proposal and is to adopt it.
const configTables = `
CREATE TABLE IF NOT EXISTS inforce (
	one        BOOLEAN PRIMARY KEY CHECK (one),
	generation BIGINT NOT NULL,
	config     TEXT NOT NULL,
	proposal   BIGINT NOT NULL,
	proposer   BIGINT NOT NULL,
	proposed   TEXT NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS votes (
	hid      BIGINT PRIMARY KEY,
	proposal BIGINT NOT NULL,
	refusal  TEXT NOT NULL
);`

// configVersion is the name in the table changes of what this file keeps.
const configVersion = "config"

// errConfig: the host cannot run what is in force on the others.
var errConfig = errors.New("the file of this host is not the one that is in force on all hosts")

// sharedConfig is the host's part in what all hosts have alike.
type sharedConfig struct {
	own Configuration
	// wake has a value when inforce may have changed.
	wake chan struct{}

	asking sync.Mutex // for the session, over a statement
	session

	mu sync.Mutex // for what follows
	// proposes: a reload of this host's is under way.
	proposes bool
	// deviation is why the host is not like the others, nil when it is.
	deviation error
	// follows: since its first sign of life this host runs what is in force.
	follows bool

	// Of awaitConfig and followConfig: followed is the generation that this host runs, voted the newest
	// proposal that was voted on, prepared the one that is to be adopted once it is in force, 0 for none;
	// deviates is since when what is in force is not adopted.
	followed, voted, prepared int64
	deviates                  time.Time
}

// agreed is a configuration of all hosts.
type agreed struct {
	// Version is the program's: another one may call the same file's parts otherwise.
	Version string            `json:"version"`
	Parts   map[string]string `json:"parts"`
}

// ShareConfig makes this host run the configuration that all hosts have. It is called before Run.
func (m *Member) ShareConfig(own Configuration) {
	m.config.own = own
	m.Watch(configVersion, func(context.Context) error {
		select {
		case m.config.wake <- struct{}{}:
		default: // it is awake
		}
		return nil
	})
}

// configText is the text of parts in inforce. Its keys are in order.
func (m *Member) configText(parts map[string]string) string {
	text, _ := json.Marshal(agreed{m.opts.Version, parts}) // it has strings only
	return string(text)
}

// checkParts returns how parts differ from a configuration of all hosts.
func (m *Member) checkParts(text string, parts map[string]string) error {
	var all agreed
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return err
	}
	if all.Version != m.opts.Version {
		return fmt.Errorf("it is skep %s, the others are %s: reload once all hosts are of one version", m.opts.Version, all.Version)
	}
	if differ := differing(parts, all.Parts); len(differ) > 0 {
		return fmt.Errorf("its file differs in %s: give all hosts one file, and its programs and directories one place", strings.Join(differ, ", "))
	}
	return nil
}

// mostDiffering bounds how many differences are told.
const mostDiffering = 8

// differing names the parts that are not the same. A tenant that comes or goes takes a restart, which is not
// compared, and its quotas come or go with it.
func differing(a, b map[string]string) (names []string) {
	all := maps.Clone(b)
	maps.Copy(all, a)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		comes := strings.HasPrefix(name, "limit tenants.") && (a[name] == "" || b[name] == "")
		if a[name] != b[name] && !comes {
			names = append(names, name)
		}
	}
	if more := len(names) - mostDiffering; more > 0 {
		names = append(names[:mostDiffering], fmt.Sprintf("and %d more", more))
	}
	return names
}

// configState is the row of inforce.
type configState struct {
	generation, proposal, proposer int64
	config, proposed               string
}

// isProposerAlive is true for a proposer that the others would fence.
const isProposerAlive = "EXISTS (SELECT FROM hosts h JOIN beats USING (hid) WHERE hid = proposer AND NOT h.dead)"

func (m *Member) readConfig(ctx context.Context) (st configState, err error) {
	const text = `SELECT generation, config, proposal, proposed,
		CASE WHEN ` + isProposerAlive + ` THEN proposer ELSE 0 END FROM inforce`
	err = m.queryConfig(ctx, text, nil, func(r pgx.Rows) error {
		return r.Scan(&st.generation, &st.config, &st.proposal, &st.proposed, &st.proposer)
	})
	return st, err
}

// queryConfig is [session.query] on the session of configurations.
func (m *Member) queryConfig(ctx context.Context, text string, args []any, each func(pgx.Rows) error) error {
	m.config.asking.Lock()
	defer m.config.asking.Unlock()
	return m.config.query(ctx, text, args, each)
}

// wakeFor, the name of a version and wakeEnd end a statement whose part "done" has a row if it has changed what
// the version is of: the hosts read it.
const (
	wakeFor = `, c AS (INSERT INTO changes AS c SELECT '`
	wakeEnd = `', 1 FROM done ON CONFLICT (name) DO UPDATE SET n = c.n + 1)
	SELECT done.n, pg_notify('` + channel + `', current_schema()) FROM done`
)

// changeConfig runs a statement with a part "done", and wakes the hosts. It returns the number that it has returned, 0 for none.
func (m *Member) changeConfig(ctx context.Context, text string, args ...any) (n int64, err error) {
	err = m.queryConfig(ctx, text+wakeFor+configVersion+wakeEnd, args, func(r pgx.Rows) error {
		var none any
		return r.Scan(&n, &none)
	})
	return n, err
}

// Deviation returns why this host does not run what is in force on all hosts, nil if it does.
func (m *Member) Deviation() error {
	m.config.mu.Lock()
	defer m.config.mu.Unlock()
	return m.config.deviation
}

func (m *Member) setDeviation(err error) {
	m.config.mu.Lock()
	defer m.config.mu.Unlock()
	m.config.deviation = err
}

func (m *Member) setFollows(yes bool) {
	m.config.mu.Lock()
	defer m.config.mu.Unlock()
	m.config.follows = yes
}

// mayTakeSlots reports whether this host runs what is in force on the others. What it was before its first
// sign of life does not count: another configuration could be put in force without its vote.
func (m *Member) mayTakeSlots() bool {
	m.config.mu.Lock()
	defer m.config.mu.Unlock()
	return m.config.own == nil || m.config.follows
}

// IsAlike reports whether this host runs what is in force on the others, and all are of one version: what is in
// force on hosts of another version cannot be told.
func (m *Member) IsAlike() bool {
	if !m.mayTakeSlots() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.others {
		if o.version != m.opts.Version {
			return false
		}
	}
	return true
}

// closeConfig ends the session of configurations.
func (m *Member) closeConfig() error {
	m.config.asking.Lock()
	defer m.config.asking.Unlock()
	return m.config.close()
}
