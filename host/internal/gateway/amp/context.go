package amp

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"skep/host/internal/gateway/amp/message"
	"skep/host/internal/gateway/verb"
)

// sharedContext is a shared context as the state has it, and without other agents' memory as
// callers see it (M-050).
type sharedContext struct {
	ID        string    `json:"id"`
	Session   string    `json:"session_id,omitempty"`
	Created   time.Time `json:"created_at"`
	Expires   time.Time `json:"expires_at"`
	Version   int64     `json:"version,omitempty"`
	Owner     string    `json:"owner"`
	Shared    object    `json:"shared_memory"`
	Private   object    `json:"agent_memory"` // by full name; callers see their own under their id
	Access    access    `json:"access_control"`
	Lineage   lineage   `json:"lineage"`
	Bounds    []string  `json:"bounds,omitempty"`  // ids of the contexts whose readers alone may read it
	Changes   []string  `json:"changes,omitempty"` // the last ones: id and digest
	Conflicts []string  `json:"-"`                 // of a merge, as JSON pointers

	record int64           // the version of its record
	made   bool            // by this request
	bounds []sharedContext // what Bounds names; the zero value for one that has ended
}

// object is a JSON object whose members were not looked at.
type object = map[string]json.RawMessage

// access lists who may read and write, as full names AGENT@REALM, *@REALM or *. A writer may
// read.
type access struct {
	Read  []string `json:"read"`
	Write []string `json:"write"`
}

type lineage struct {
	Parent string   `json:"parent_context,omitempty"`
	Root   string   `json:"root_context"`
	Merged []string `json:"merged_from,omitempty"`
}

// contextCaller is who works with a context: the agent of a realm, or a swarm of ours.
type contextCaller struct {
	tenant string
	// realm has the contexts that the caller makes, and bare names in lists of access.
	realm string
	// full is AGENT@REALM, or *@SWARM for the agents of a swarm of ours; own is the caller's key
	// in agent_memory.
	full, own string
}

// everyone is the entry of a list of access that means all agents of the tenant.
const everyone = "*"

// includes reports whether a list has a full name, or an entry that means more than it.
func includes(list []string, full string) bool {
	realm := realmIn(full)
	return slices.ContainsFunc(list, func(entry string) bool {
		return entry == full || entry == everyone || entry == everyone+"@"+realm
	})
}

// realmIn is the realm of a full name.
func realmIn(full string) string { return full[strings.LastIndexByte(full, '@')+1:] }

// canRead reports whether the access lists of the context, and of each of its bounds, let a caller
// read. The owner and writers may, too.
func (c sharedContext) canRead(full string) bool {
	own := full == c.Owner || includes(c.Access.Write, full) || includes(c.Access.Read, full)
	return own && !slices.ContainsFunc(c.bounds, func(bound sharedContext) bool { return !bound.canRead(full) })
}

// canWrite reports whether a caller may read the context and change it.
func (c sharedContext) canWrite(full string) bool {
	return c.canRead(full) && (full == c.Owner || includes(c.Access.Write, full))
}

// covers reports whether each reader of lists may read the context as well. An entry for all
// is covered by such an entry only.
func (c sharedContext) covers(a access) bool {
	own := slices.Concat(c.Access.Read, c.Access.Write, []string{c.Owner})
	return !slices.ContainsFunc(slices.Concat(a.Read, a.Write), func(entry string) bool {
		if entry == everyone {
			return !slices.Contains(own, everyone)
		}
		return !includes(own, entry)
	})
}

// shownTo returns the context as a caller sees it: of the private memory only its own (M-058).
func (c sharedContext) shownTo(who contextCaller) sharedContext {
	shown := c
	shown.Bounds, shown.Changes, shown.Private = nil, nil, object{}
	if own, has := c.Private[who.full]; has {
		shown.Private[who.own] = own
	}
	return shown
}

// accessOf are given lists of access with full names.
func accessOf(given access, realm string) (a access, err error) {
	if a.Read, err = fullNames("access_control.read", given.Read, realm); err == nil {
		a.Write, err = fullNames("access_control.write", given.Write, realm)
	}
	return a, err
}

// maxAccess bounds a list of access.
const maxAccess = verb.MaxContextAccess

// fullNames are the entries of a list of access, which has a name, as full names: a bare one is an
// agent of the realm.
func fullNames(name string, list []string, realm string) ([]string, error) {
	full := []string{}
	if len(list) > maxAccess {
		return nil, message.Faultf(message.InvalidSchema, message.ReasonTooLarge, "%s has %d entries, more than %d", name, len(list), maxAccess)
	}
	for _, entry := range list {
		switch {
		case entry == "" || len(entry) > message.MaxID || strings.HasSuffix(entry, "@"):
			return nil, message.Faultf(message.InvalidSchema, message.ReasonMalformed, "%s has the entry %.100q: one must be AGENT, AGENT@REALM, *@REALM or *, of at most %d bytes", name, entry, message.MaxID)
		case entry != everyone && !strings.Contains(entry, "@"):
			entry += "@" + realm
		}
		full = append(full, entry)
	}
	slices.Sort(full)
	return slices.Compact(full), nil
}
